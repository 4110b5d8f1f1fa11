/* retrieval.c - nearest rows of a gallery, a block of rows at a time.
 * Invariant: device memory is allocated once per search, not per block.
 *
 *      scores [BLOCK, count] = rows of `from` [BLOCK, embed] x (rows of `to` [count, embed])^T      on the device */
#include "train/evaluate/retrieval.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

enum { BLOCK = 128 };

const unsigned mr_recall_at[MR_RECALLS] = {1, 5, 10};

static size_t at_a_time(size_t left)
{
    return left < BLOCK ? left : BLOCK;
}

typedef struct search {
    mr_device *device;
    const mr_embeddings *gallery;
    float *from, *to, *result; /* on the device, where it cannot use host memory */
    float *scores;             /* [BLOCK, count], host */
} search;

static void close_search(search *s)
{
    if (!s->device->iface->host_memory) {
        s->device->iface->free(s->device, s->from);
        s->device->iface->free(s->device, s->to);
        s->device->iface->free(s->device, s->result);
    }
    free(s->scores);
}

/* `out`: zeroed except for the device; call close_search() also after a failure. */
static mr_status open_search(mr_device *d, const mr_embeddings *g, unsigned to, search *out, mr_error *err)
{
    const mr_device_iface *c = d->iface;
    size_t bytes = g->count * g->embed * sizeof(float), block = BLOCK * sizeof(float);
    out->gallery = g;
    out->scores = mr_alloc(BLOCK * g->count, sizeof *out->scores);
    if (!out->scores)
        return mr_fail_memory(err, "comparing embeddings");
    if (c->host_memory) {
        out->to = g->embeddings[to];
        out->result = out->scores;
        return MR_OK;
    }
    MR_TRY(c->alloc(d, bytes, "embeddings", (void **)&out->to, err));
    MR_TRY(c->alloc(d, block * g->embed, "embeddings", (void **)&out->from, err));
    MR_TRY(c->alloc(d, block * g->count, "embeddings", (void **)&out->result, err));
    c->upload(d, out->to, g->embeddings[to], bytes);
    return MR_OK;
}

/* Scores of `rows` <= BLOCK rows of kind `from` beginning with row `first`, in s->scores. */
static mr_status score(search *s, unsigned from, size_t first, size_t rows, mr_error *err)
{
    const mr_embeddings *g = s->gallery;
    const mr_device_iface *c = s->device->iface;
    const float *queries = g->embeddings[from] + first * g->embed;
    if (!c->host_memory) {
        c->upload(s->device, s->from, queries, rows * g->embed * sizeof *queries);
        queries = s->from;
    }
    const mr_gemm gemm = {.a_type = MR_F32,
                          .b_type = MR_F32,
                          .c_type = MR_F32,
                          .m = rows,
                          .n = g->count,
                          .k = g->embed,
                          .a = queries,
                          .b = s->to,
                          .transpose_b = true,
                          .c = s->result};
    mr_run_gemm(s->device, &gemm);
    if (!c->host_memory)
        c->download(s->device, s->scores, s->result, rows * g->count * sizeof *s->scores);
    return c->wait(s->device, err);
}

/* ---- recall ------------------------------------------------------------------------------------------------------ */

bool mr_answers(const mr_embeddings *g, size_t r, size_t c)
{
    const mr_embeddings_sample *x = &g->samples[r], *y = &g->samples[c];
    return r == c || x->image == y->image || x->text == y->text;
}

/* Scores of equal rows differ by less.  They may differ: a matrix product may add up its last columns in another
 * order than the others (OpenBLAS for Core2 does). */
static const float rounding = 1e-6F;

/* How many samples that are not answers are as near as the best answer; NaN counts as near. */
static size_t others_in_front(const mr_embeddings *g, size_t r, const float *scores)
{
    float best = scores[r];
    size_t others = 0;
    for (size_t c = 0; c < g->count; c++)
        if (scores[c] > best && mr_answers(g, r, c))
            best = scores[c];
    for (size_t c = 0; c < g->count; c++)
        others += !(scores[c] < best - rounding) && !mr_answers(g, r, c);
    return others;
}

static mr_status count_found(mr_device *d, mr_ranks *ranks, const mr_embeddings *g, unsigned from, unsigned to,
                             uint64_t found[MR_RECALLS], mr_error *err)
{
    /* Whole blocks are shared out: in which block a row is compared may show in the last bit of its scores. */
    uint64_t world = mr_ranks_world(ranks), rank = mr_ranks_rank(ranks), blocks = (g->count + BLOCK - 1) / BLOCK;
    size_t begin = (size_t)(blocks * rank / world) * BLOCK, end = (size_t)(blocks * (rank + 1) / world) * BLOCK;
    end = end < g->count ? end : g->count;
    MR_AUTO(close_search) search s = {.device = d};
    MR_TRY(open_search(d, g, to, &s, err));
    for (size_t first = begin; first < end; first += BLOCK) {
        size_t rows = at_a_time(end - first);
        MR_TRY(score(&s, from, first, rows, err));
        for (size_t i = 0; i < rows; i++) {
            size_t others = others_in_front(g, first + i, s.scores + i * g->count);
            for (int k = 0; k < MR_RECALLS; k++)
                found[k] += others < mr_recall_at[k];
        }
    }
    return MR_OK;
}

mr_status mr_recall_measure(mr_device *d, mr_ranks *ranks, const mr_embeddings *g, mr_recall *out, mr_error *err)
{
    uint64_t found[2][MR_RECALLS] = {{0}}, sums[2][MR_RECALLS] = {{0}};
    MR_AUTO(mr_buf_free) mr_buf mine = {0};
    MR_AUTO(mr_buf_free) mr_buf all = {0};
    *out = (mr_recall){{0}, {0}};
    if (!g->count)
        return MR_OK;
    mr_status status = count_found(d, ranks, g, MR_OF_TEXT, MR_OF_IMAGE, found[0], err);
    if (status == MR_OK)
        status = count_found(d, ranks, g, MR_OF_IMAGE, MR_OF_TEXT, found[1], err);
    mr_buf_add(&mine, found, sizeof found);
    if (status == MR_OK)
        status = mr_buf_status(&mine, err, "measuring recall");
    MR_TRY(mr_ranks_agree(ranks, status, err));
    MR_TRY(mr_ranks_gather(ranks, &mine, &all, NULL, err));
    for (size_t at = 0; at + sizeof found <= all.len; at += sizeof found) {
        memcpy(found, all.data + at, sizeof found);
        for (int k = 0; k < MR_RECALLS; k++) {
            sums[0][k] += found[0][k];
            sums[1][k] += found[1][k];
        }
    }
    for (int k = 0; k < MR_RECALLS; k++) {
        out->text_to_image[k] = (double)sums[0][k] / (double)g->count;
        out->image_to_text[k] = (double)sums[1][k] / (double)g->count;
    }
    return MR_OK;
}

/* ---- matches ----------------------------------------------------------------------------------------------------- */

/* Insertion into the sorted list of the best so far. */
static void pick(const float *scores, size_t count, size_t top, mr_match *out)
{
    size_t have = 0;
    for (size_t c = 0; c < count; c++) {
        size_t at = have < top ? have++ : top;
        if (at == top && !(scores[c] > out[top - 1].score))
            continue;
        for (at = at == top ? top - 1 : at; at > 0 && scores[c] > out[at - 1].score; at--)
            out[at] = out[at - 1];
        out[at] = (mr_match){.sample = c, .score = scores[c]};
    }
}

mr_status mr_matches_find(mr_device *d, const mr_embeddings *g, unsigned from, unsigned to, size_t first, size_t count,
                          size_t top, mr_match *out, mr_error *err)
{
    MR_AUTO(close_search) search s = {.device = d};
    MR_TRY(open_search(d, g, to, &s, err));
    for (size_t i = 0; i < count; i += BLOCK) {
        size_t rows = at_a_time(count - i);
        MR_TRY(score(&s, from, first + i, rows, err));
        for (size_t r = 0; r < rows; r++)
            pick(s.scores + r * g->count, g->count, top, out + (i + r) * top);
    }
    return MR_OK;
}

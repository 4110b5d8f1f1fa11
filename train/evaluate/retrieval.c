/* retrieval.c - nearest rows of a gallery, a block of rows at a time.
 *
 *      scores [BLOCK, count] = rows of `from` [BLOCK, embed] x (rows of `to` [count, embed])^T      on the device */
#include "evaluate/retrieval.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 128 };

const unsigned mr_recall_at[MR_RECALLS] = {1, 5, 10};

static size_t at_a_time(size_t left)
{
    return left < BLOCK ? left : BLOCK;
}

typedef struct search {
    mr_device *device;
    const mr_embeddings *gallery;
    float *from, *to, *there; /* on the device, where host memory will not do for it */
    float *scores;            /* [BLOCK, count], host */
} search;

static void close_search(search *s)
{
    if (!s->device->card->host_memory) {
        s->device->card->free(s->device, s->from);
        s->device->card->free(s->device, s->to);
        s->device->card->free(s->device, s->there);
    }
    free(s->scores);
}

static mr_status open_search(mr_device *d, const mr_embeddings *g, unsigned to, search *out, mr_error *err)
{
    const mr_device_card *c = d->card;
    size_t bytes = g->count * g->embed * sizeof(float), block = BLOCK * sizeof(float);
    search s = {.device = d, .gallery = g, .scores = mr_alloc(BLOCK * g->count, sizeof *s.scores)};
    mr_status status = s.scores ? MR_OK : mr_fail_memory(err, "comparing embeddings");
    if (c->host_memory) {
        s.to = g->embeddings[to];
        s.there = s.scores;
    } else if (status == MR_OK) {
        status = c->alloc(d, bytes, (void **)&s.to, err);
        if (status == MR_OK)
            status = c->alloc(d, block * g->embed, (void **)&s.from, err);
        if (status == MR_OK)
            status = c->alloc(d, block * g->count, (void **)&s.there, err);
        if (status == MR_OK)
            c->upload(d, s.to, g->embeddings[to], bytes);
    }
    if (status == MR_OK)
        *out = s;
    else
        close_search(&s);
    return status;
}

/* Scores of `rows` <= BLOCK rows of kind `from` beginning with row `first`, in s->scores. */
static mr_status score(search *s, unsigned from, size_t first, size_t rows, mr_error *err)
{
    const mr_embeddings *g = s->gallery;
    const mr_device_card *c = s->device->card;
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
                          .c = s->there};
    c->gemm(s->device, &gemm);
    if (!c->host_memory)
        c->download(s->device, s->scores, s->there, rows * g->count * sizeof *s->scores);
    return c->wait(s->device, err);
}

/* ---- recall -------------------------------------------------------------------------------------------------------
 */

static bool answers(const mr_embeddings *g, size_t r, size_t c)
{
    const mr_embeddings_sample *x = &g->samples[r], *y = &g->samples[c];
    return r == c || x->image == y->image || x->text == y->text;
}

/* Scores of equal rows differ by less.  They need not be equal: a matrix product may add up its last columns in another
 * order than the others (OpenBLAS for Core2 does). */
static const float rounding = 1e-6F;

/* How many samples that are no answer are as near as the best answer; a score that is no number is near. */
static size_t others_in_front(const mr_embeddings *g, size_t r, const float *scores)
{
    float best = scores[r];
    size_t others = 0;
    for (size_t c = 0; c < g->count; c++)
        if (scores[c] > best && answers(g, r, c))
            best = scores[c];
    for (size_t c = 0; c < g->count; c++)
        others += !(scores[c] < best - rounding) && !answers(g, r, c);
    return others;
}

static mr_status count_found(mr_device *d, mr_ranks *ranks, const mr_embeddings *g, unsigned from, unsigned to,
                             uint64_t found[MR_RECALLS], mr_error *err)
{
    /* Whole blocks are shared out: in which block a row is compared may show in the last bit of its scores. */
    uint64_t world = mr_ranks_world(ranks), rank = mr_ranks_rank(ranks), blocks = (g->count + BLOCK - 1) / BLOCK;
    size_t begin = (size_t)(blocks * rank / world) * BLOCK, end = (size_t)(blocks * (rank + 1) / world) * BLOCK;
    end = end < g->count ? end : g->count;
    search s;
    mr_status status = open_search(d, g, to, &s, err);
    if (status != MR_OK)
        return status;
    for (size_t first = begin; first < end && status == MR_OK; first += BLOCK) {
        size_t rows = at_a_time(end - first);
        status = score(&s, from, first, rows, err);
        for (size_t i = 0; i < rows && status == MR_OK; i++) {
            size_t others = others_in_front(g, first + i, s.scores + i * g->count);
            for (int k = 0; k < MR_RECALLS; k++)
                found[k] += others < mr_recall_at[k];
        }
    }
    close_search(&s);
    return status;
}

mr_status mr_recall_measure(mr_device *d, mr_ranks *ranks, const mr_embeddings *g, mr_recall *out, mr_error *err)
{
    uint64_t found[2][MR_RECALLS] = {{0}}, sums[2][MR_RECALLS] = {{0}};
    mr_buf mine = {0}, all = {0};
    *out = (mr_recall){{0}, {0}};
    if (!g->count)
        return MR_OK;
    mr_status status = count_found(d, ranks, g, MR_OF_TEXT, MR_OF_IMAGE, found[0], err);
    if (status == MR_OK)
        status = count_found(d, ranks, g, MR_OF_IMAGE, MR_OF_TEXT, found[1], err);
    mr_buf_add(&mine, found, sizeof found);
    if (status == MR_OK)
        status = mr_buf_status(&mine, err, "measuring recall");
    status = mr_ranks_agree(ranks, status, err);
    if (status == MR_OK)
        status = mr_ranks_gather(ranks, &mine, &all, NULL, err);
    for (size_t at = 0; status == MR_OK && at + sizeof found <= all.len; at += sizeof found) {
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
    mr_buf_free(&mine);
    mr_buf_free(&all);
    return status;
}

/* ---- matches ------------------------------------------------------------------------------------------------------
 */

/* A sorted list of the best so far: a new one goes in from behind. */
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
    search s;
    mr_status status = open_search(d, g, to, &s, err);
    if (status != MR_OK)
        return status;
    for (size_t i = 0; i < count && status == MR_OK; i += BLOCK) {
        size_t rows = at_a_time(count - i);
        status = score(&s, from, first + i, rows, err);
        for (size_t r = 0; r < rows && status == MR_OK; r++)
            pick(s.scores + r * g->count, g->count, top, out + (i + r) * top);
    }
    close_search(&s);
    return status;
}

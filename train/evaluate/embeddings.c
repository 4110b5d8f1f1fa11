/* embeddings.c - the embeddings of all ranks gathered in the samples' order.
 * Invariant: equal on every rank.
 *
 *      mine:  | sample | rows of it | sample | rows of it | ...         gathered, sorted, and copied to the arrays */
#include "train/evaluate/embeddings.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

void mr_embeddings_add(mr_buf *mine, const mr_embeddings_sample *s, const float *const *rows, unsigned kinds,
                       size_t embed)
{
    mr_buf_add(mine, s, sizeof *s);
    for (unsigned k = 0; k < kinds; k++)
        mr_buf_add(mine, rows[k], embed * sizeof **rows);
}

static int by_sample(const void *a, const void *b)
{
    mr_embeddings_sample x, y;
    memcpy(&x, *(const uint8_t *const *)a, sizeof x);
    memcpy(&y, *(const uint8_t *const *)b, sizeof y);
    return (x.sample > y.sample) - (x.sample < y.sample);
}

static bool reserve(mr_embeddings *g, size_t count)
{
    g->samples = mr_alloc(count ? count : 1, sizeof *g->samples);
    bool ok = g->samples != NULL;
    for (unsigned k = 0; k < g->kinds && ok; k++) {
        g->embeddings[k] = mr_alloc((count ? count : 1) * g->embed, sizeof **g->embeddings);
        ok = g->embeddings[k] != NULL;
    }
    return ok;
}

static mr_status sort_into(const mr_buf *all, mr_embeddings *g, mr_error *err)
{
    size_t row = g->embed * sizeof(float), record = sizeof(mr_embeddings_sample) + g->kinds * row;
    size_t count = all->len / record;
    MR_AUTO(mr_scope_free) const uint8_t **order = mr_alloc(count ? count : 1, sizeof *order);
    if (!order || !reserve(g, count))
        return mr_fail_memory(err, "gathering embeddings");
    for (size_t i = 0; i < count; i++)
        order[i] = all->data + i * record;
    qsort(order, count, sizeof *order, by_sample);
    for (size_t i = 0; i < count; i++) {
        mr_embeddings_sample *s = &g->samples[g->count];
        memcpy(s, order[i], sizeof *s);
        if (!(s->weight > 0))
            continue;
        for (unsigned k = 0; k < g->kinds; k++)
            memcpy(g->embeddings[k] + g->count * g->embed, order[i] + sizeof *s + k * row, row);
        g->count++;
    }
    return MR_OK;
}

mr_status mr_embeddings_join(mr_ranks *ranks, const mr_buf *mine, unsigned kinds, size_t embed, mr_embeddings *out,
                             mr_error *err)
{
    MR_AUTO(mr_embeddings_release) mr_embeddings g = {.embed = embed, .kinds = kinds};
    MR_AUTO(mr_buf_free) mr_buf all = {0};
    MR_TRY(mr_ranks_agree(ranks, mr_buf_status(mine, err, "gathering embeddings"), err));
    MR_TRY(mr_ranks_gather(ranks, mine, &all, NULL, err));
    MR_TRY(mr_ranks_agree(ranks, sort_into(&all, &g, err), err));
    *out = g;
    g = (mr_embeddings){0};
    return MR_OK;
}

void mr_embeddings_release(mr_embeddings *g)
{
    free(g->samples);
    for (unsigned k = 0; k < MR_EMBEDDINGS; k++)
        free(g->embeddings[k]);
    memset(g, 0, sizeof *g);
}

/* damage.c - damaged samples that were skipped.
 *
 *      noted:   40 3 40 ...  |  32 3 ...        per rank, in the order of its batches
 *      joined:  3 32 40                         the same on every rank                                               */
#include "loader/batch/damage.h"

#include <stdlib.h>

#include "base/scope.h"
#include "shards/format/meta.h"

typedef unsigned long long ull;

enum { NAMED = 5 };

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void sort(mr_damage *d)
{
    size_t kept = 0;
    if (d->count)
        qsort(d->samples, d->count, sizeof *d->samples, by_number);
    for (size_t i = 0; i < d->count; i++)
        if (kept == 0 || d->samples[kept - 1] != d->samples[i])
            d->samples[kept++] = d->samples[i];
    d->count = kept;
}

static mr_status add(mr_damage *d, uint64_t sample, mr_error *err)
{
    if (!MR_GROW(d->samples, d->count, d->capacity))
        return mr_fail_memory(err, "noting damaged samples");
    d->samples[d->count++] = sample;
    return MR_OK;
}

mr_status mr_damage_note(mr_damage *d, const mr_batch *batch, mr_error *err)
{
    const mr_bad_slot *bad = mr_batch_bad_slots(batch);
    for (uint64_t i = 0; i < batch->replaced; i++)
        MR_TRY(add(d, bad[i].sample, err));
    return MR_OK;
}

static mr_status set_all(mr_damage *d, const mr_buf *all, mr_error *err)
{
    const uint64_t *samples = (const uint64_t *)(const void *)all->data;
    d->count = 0;
    for (size_t i = 0; i < all->len / sizeof *samples; i++)
        MR_TRY(add(d, samples[i], err));
    sort(d);
    return MR_OK;
}

mr_status mr_damage_join(mr_damage *d, mr_ranks *ranks, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf mine = {0}, all = {0};
    mr_buf_add(&mine, d->samples, d->count * sizeof *d->samples);
    MR_TRY(mr_ranks_agree(ranks, mr_buf_status(&mine, err, "counting damaged samples"), err));
    MR_TRY(mr_ranks_gather(ranks, &mine, &all, NULL, err));
    return mr_ranks_agree(ranks, set_all(d, &all, err), err);
}

void mr_sample_source(const mr_dataset *ds, const char *split, uint64_t sample, mr_buf *out)
{
    MR_AUTO(mr_sample_view_free) mr_sample_view view = {0};
    mr_meta_facts facts;
    size_t before = out->len;
    if (mr_dataset_read_meta(ds, split, sample, &view, NULL) == MR_OK &&
        mr_meta_scan(view.meta, view.meta_len, &facts, out, NULL) != MR_OK)
        out->len = before;
}

mr_status mr_damage_text(const mr_damage *d, const mr_dataset *ds, const char *split, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf source = {0};
    if (!d->count)
        return MR_OK;
    mr_buf_printf(out, "%s: %zu damaged sample%s skipped: ", split, d->count, d->count == 1 ? "" : "s");
    for (size_t i = 0; i < d->count && i < NAMED; i++) {
        mr_buf_clear(&source);
        mr_sample_source(ds, split, d->samples[i], &source);
        mr_buf_printf(out, "%s%llu", i ? ", " : "", (ull)d->samples[i]);
        if (source.len)
            mr_buf_printf(out, " (%s)", mr_buf_text(&source));
    }
    if (d->count > NAMED)
        mr_buf_printf(out, " and %zu more", d->count - NAMED);
    mr_buf_add_text(out, "; `millrace verify` shows the extent");
    return mr_buf_status(out, err, "naming damaged samples");
}

void mr_damage_release(mr_damage *d)
{
    free(d->samples);
    *d = (mr_damage){0};
}

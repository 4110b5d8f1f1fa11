/* targets.c - the classes of all samples of a split, read from their metas.
 * Invariant: the result depends on the dataset alone, not on ranks and threads.
 *
 *      one rank's, then all ranks':  | n | classes of sample 0 | n | classes of sample 1 | ...      int32_t each */
#include "train/feed/targets.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/pool.h"
#include "base/scope.h"
#include "shards/format/meta.h"
#include "shards/format/objects.h"

enum { EACH = 512 };                               /* samples per task */
enum { SILENT = -1, UNREADABLE = -2, LABEL = -3 }; /* in place of n; LABEL: 1, the sample's own label */

typedef struct reading {
    const mr_dataset *ds;
    const mr_split *split;
    size_t classes;
    uint64_t first, end; /* samples of this rank */
    mr_buf *parts;       /* one for each task */
} reading;

void mr_targets_release(mr_targets *t)
{
    free(t->at);
    free(t->classes);
    *t = (mr_targets){0};
}

/* ---- one sample -------------------------------------------------------------------------------------------------- */

static int by_class(const void *a, const void *b)
{
    return (*(const int32_t *)a > *(const int32_t *)b) - (*(const int32_t *)a < *(const int32_t *)b);
}

static mr_status find_labels(const mr_sample_view *v, mr_objects *objects, mr_buf *labels, bool *told, mr_error *err)
{
    mr_meta_facts facts;
    mr_buf_clear(labels);
    *told = true;
    if (v->label >= 0) {
        mr_buf_add(labels, &v->label, sizeof v->label);
        return MR_OK;
    }
    MR_TRY(mr_meta_scan_labels(v->meta, v->meta_len, &facts, labels, err));
    if (facts.multi_label)
        return MR_OK;
    MR_TRY(mr_objects_parse(v->meta, v->meta_len, objects, err));
    for (size_t i = 0; i < objects->count; i++)
        if (objects->items[i].label >= 0)
            mr_buf_add(labels, &objects->items[i].label, sizeof objects->items[i].label);
    *told = objects->known;
    return MR_OK;
}

/* Sorted, each once.  Returns their number. */
static size_t tidy(mr_buf *labels)
{
    int32_t *items = (int32_t *)(void *)labels->data;
    size_t count = labels->len / sizeof *items, kept = 0;
    if (count > 1)
        qsort(items, count, sizeof *items, by_class);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || items[i] != items[i - 1])
            items[kept++] = items[i];
    return kept;
}

static mr_status add_sample(const reading *r, uint64_t n, mr_sample_view *view, mr_objects *objects, mr_buf *labels,
                            mr_buf *out, mr_error *err)
{
    mr_error why;
    bool told;
    mr_status status = mr_dataset_read_meta(r->ds, r->split->name, n, view, &why);
    if (status == MR_OK)
        status = find_labels(view, objects, labels, &told, &why);
    if (status != MR_OK && !mr_status_is_bad(status)) {
        if (err)
            *err = why;
        return status;
    }
    int32_t count = status != MR_OK ? UNREADABLE : (int32_t)tidy(labels);
    const int32_t *items = (const int32_t *)(const void *)labels->data;
    if (count > 0 && (size_t)items[count - 1] >= r->classes)
        return mr_fail(err, MR_BAD_DATA, "%s sample %llu: has class %d of %zu; run 'millrace verify'", r->split->name,
                       (unsigned long long)n, (int)items[count - 1], r->classes);
    if (count == 0 && !told)
        count = SILENT;
    if (status == MR_OK && view->label >= 0)
        count = LABEL;
    mr_buf_add(out, &count, sizeof count);
    if (count > 0 || count == LABEL)
        mr_buf_add(out, items, count > 0 ? (size_t)count * sizeof *items : sizeof *items);
    return MR_OK;
}

static mr_status read_part(void *ctx, size_t task, unsigned worker, mr_error *err)
{
    const reading *r = ctx;
    MR_AUTO(mr_sample_view_free) mr_sample_view view = {0};
    MR_AUTO(mr_objects_free) mr_objects objects = {0};
    MR_AUTO(mr_buf_free) mr_buf labels = {0};
    uint64_t first = r->first + (uint64_t)task * EACH, end = first + EACH < r->end ? first + EACH : r->end;
    (void)worker;
    for (uint64_t n = first; n < end; n++)
        MR_TRY(add_sample(r, n, &view, &objects, &labels, &r->parts[task], err));
    return mr_buf_status(&r->parts[task], err, "reading labels");
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static mr_status read_share(reading *r, unsigned threads, mr_buf *out, mr_error *err)
{
    size_t tasks = (size_t)((r->end - r->first + EACH - 1) / EACH);
    r->parts = mr_alloc(tasks + 1, sizeof *r->parts);
    if (!r->parts)
        return mr_fail_memory(err, "reading labels");
    mr_status status = mr_pool_run(tasks, threads, read_part, r, err);
    for (size_t i = 0; i < tasks; i++) {
        mr_buf_add(out, r->parts[i].data, r->parts[i].len);
        mr_buf_free(&r->parts[i]);
    }
    free(r->parts);
    return status == MR_OK ? mr_buf_status(out, err, "reading labels") : status;
}

static mr_status unpack(const mr_buf *all, uint64_t samples, mr_targets *out, mr_error *err)
{
    const int32_t *at = (const int32_t *)(const void *)all->data;
    uint64_t total = 0;
    out->samples = samples;
    out->at = mr_alloc((size_t)samples + 1, sizeof *out->at);
    out->classes = mr_alloc(all->len / sizeof *at + 1, sizeof *out->classes);
    if (!out->at || !out->classes)
        return mr_fail_memory(err, "reading labels");
    for (uint64_t n = 0; n < samples; n++) {
        int32_t count = *at++;
        if (count == SILENT)
            out->first_silent = out->silent++ ? out->first_silent : n;
        out->none += count == 0 || count == SILENT;
        out->several += count > 1;
        out->listed += count >= 0;
        for (int32_t i = 0; i < (count == LABEL ? 1 : count); i++)
            out->classes[total++] = *at++;
        out->at[n + 1] = total;
    }
    return MR_OK;
}

mr_status mr_targets_read(const mr_dataset *ds, const mr_split *split, unsigned threads, mr_ranks *ranks,
                          mr_targets *out, mr_error *err)
{
    uint64_t world = mr_ranks_world(ranks), rank = mr_ranks_rank(ranks), samples = split->samples;
    MR_AUTO(mr_buf_free) mr_buf mine = {0}, all = {0};
    reading r = {.ds = ds,
                 .split = split,
                 .classes = mr_dataset_manifest(ds)->class_count,
                 .first = samples / world * rank + (rank < samples % world ? rank : samples % world),
                 .end = samples / world * (rank + 1) + (rank + 1 < samples % world ? rank + 1 : samples % world)};
    MR_TRY(mr_ranks_agree(ranks, read_share(&r, threads, &mine, err), err));
    MR_TRY(mr_ranks_gather(ranks, &mine, &all, NULL, err));
    mr_status status = mr_ranks_agree(ranks, unpack(&all, samples, out, err), err);
    if (status != MR_OK)
        mr_targets_release(out);
    return status;
}

void mr_targets_count(const mr_targets *t, uint64_t *counts)
{
    for (uint64_t i = 0; t->samples && i < t->at[t->samples]; i++)
        counts[t->classes[i]]++;
}

/* labels.c - counts the samples of a split that lack what a classifier learns.
 * Invariant: what cannot be read counts as labelled: the loader reports it, sample by sample. */
#include "train/setup/labels.h"

#include <string.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "base/text.h"

enum { ROWS = 512 }; /* rows of an index read at a time */

typedef struct unlabelled {
    uint64_t count, first;
} unlabelled;

static void add_unlabelled(const mr_dataset *ds, const mr_shard *shard, unlabelled *u)
{
    uint8_t rows[ROWS][MR_INDEX_ROW];
    mr_row row;
    MR_AUTO(mr_scope_close) int fd = -1;
    if (mr_dataset_open_file(ds, shard, "idx", &fd, NULL) != MR_OK)
        return;
    for (uint64_t at = 0; at < shard->samples; at += ROWS) {
        size_t count = shard->samples - at < ROWS ? (size_t)(shard->samples - at) : ROWS;
        uint64_t from = MR_INDEX_HEADER + at * MR_INDEX_ROW;
        if (mr_file_pread(fd, rows, count * MR_INDEX_ROW, from, shard->name, NULL) != MR_OK)
            continue;
        for (size_t k = 0; k < count; k++)
            if (mr_dataset_row_from(rows[k], shard, at + k, &row, NULL) == MR_OK && row.label < 0)
                u->first = u->count++ ? u->first : mr_shard_begin(shard) + at + k;
    }
}

static void add_unlabelled_seen(const mr_dataset *ds, const mr_split *split, unlabelled *u)
{
    MR_AUTO(mr_scope_free) int32_t *labels = mr_alloc(split->samples, sizeof *labels);
    if (!labels || mr_dataset_labels(ds, split->name, labels, NULL) != MR_OK)
        return;
    for (uint64_t n = 0; n < split->samples; n++)
        if (labels[n] < 0)
            u->first = u->count++ ? u->first : n;
}

/* Every rank looks at its part of the shards, so that the indexes, 64 bytes per sample, are read once and not by each
 * of a thousand ranks. */
static mr_status count_unlabelled(const mr_dataset *ds, const mr_split *split, mr_ranks *ranks, unlabelled *out,
                                  mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf mine = {0}, all = {0};
    unlabelled u = {0};
    if (split->seen && mr_ranks_rank(ranks) == 0)
        add_unlabelled_seen(ds, split, &u);
    for (size_t i = mr_ranks_rank(ranks); !split->seen && i < split->shard_count; i += mr_ranks_world(ranks))
        add_unlabelled(ds, &split->shards[i], &u);
    mr_buf_add(&mine, &u, sizeof u);
    MR_TRY(mr_ranks_agree(ranks, mr_buf_status(&mine, err, "reading labels"), err));
    MR_TRY(mr_ranks_gather(ranks, &mine, &all, NULL, err));
    *out = (unlabelled){0};
    for (size_t at = 0; at + sizeof u <= all.len; at += sizeof u) {
        memcpy(&u, all.data + at, sizeof u);
        if (u.count && (!out->count || u.first < out->first))
            out->first = u.first;
        out->count += u.count;
    }
    return MR_OK;
}

mr_status mr_labels_missing(const mr_dataset *ds, const mr_split *split, mr_ranks *ranks, uint64_t *count,
                            mr_error *err)
{
    unlabelled u;
    MR_TRY(count_unlabelled(ds, split, ranks, &u, err));
    *count = u.count;
    return MR_OK;
}

mr_status mr_labels_check(const mr_dataset *ds, const mr_split *split, mr_ranks *ranks, const char *dataset,
                          const char *advice, mr_error *err)
{
    unlabelled u;
    MR_TRY(count_unlabelled(ds, split, ranks, &u, err));
    char number[2][40];
    if (u.count == 0)
        return MR_OK;
    bool one = u.count == 1;
    if (u.count == split->samples)
        return mr_fail(err, MR_MISUSE, "%s: no sample of %s has a label of its own, and a classifier needs labels; %s",
                       dataset, split->name, advice);
    return mr_fail(
        err, MR_MISUSE,
        "%s: of the %s samples of %s %s %s without a label of %s own (the first is %llu), "
        "and a classifier needs labels; leave %s out with a view (millrace view OUT %s --class NAMES), or %s",
        dataset, mr_text_count(split->samples, number[0]), split->name, mr_text_count(u.count, number[1]),
        one ? "is" : "are", one ? "its" : "their", (unsigned long long)u.first, one ? "it" : "them", dataset, advice);
}

mr_status mr_labels_check_targets(const mr_targets *t, const mr_split *split, const char *dataset, mr_error *err)
{
    char number[2][40];
    if (t->none == t->samples)
        return mr_fail(err, MR_MISUSE, "%s: no sample of %s has a class, and a classifier needs labels", dataset,
                       split->name);
    if (!t->silent)
        return MR_OK;
    return mr_fail(err, MR_MISUSE,
                   "%s: for %s of the %s samples of %s (the first is %llu) the source does not say which classes they "
                   "have; leave them out with a view: millrace view OUT %s --class NAMES",
                   dataset, mr_text_count(t->silent, number[0]), mr_text_count(t->samples, number[1]), split->name,
                   (unsigned long long)t->first_silent, dataset);
}

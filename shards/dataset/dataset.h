/* dataset.h - an open dataset as the loader sees it: manifest, files, rows one by one.
 * Invariant: nothing here changes the dataset; all of it may be called by any number of threads at once.
 *
 * This module, on top of format and seek: an open dataset, for millrace.h, the loader, verify and export.
 *   index_trust      the digest of each index, once
 *   dataset          opening; rows and records of single samples
 *   dataset_copies   copies on this host, ranges of what is elsewhere
 *   dataset_facts    layout, splits, classes and labels, through dataset.h
 *   class_counts     labels counted by the indexes
 *   dataset_view     a view in place of a dataset: splits of what is seen
 *   dataset_ranks    whether all ranks have opened the same dataset */
#ifndef MR_DATASET_H
#define MR_DATASET_H

#include "shards/manifest/format.h"
#include "shards/manifest/manifest.h"
#include "shards/local/local.h"

/* For MR_AUTO. */
static inline void mr_dataset_release(mr_dataset **ds)
{
    mr_dataset_free(*ds);
}

/* mr_dataset_open() in steps, for ranks of which one reads the manifest for all of a host: the folder first, so that it
 * shows if it and the manifest are of different datasets. */
mr_status mr_dataset_begin(const char *path, mr_dataset **out, mr_error *err);
typedef struct mr_dataset_source {
    mr_status status;      /* the outcome of reading it; err says why */
    mr_manifest *manifest; /* becomes the dataset's */
    uint8_t digest[32];
    bool looked; /* another rank looks at the shards' files, which are these */
} mr_dataset_source;
/* Takes over the dataset, also on failure. */
mr_status mr_dataset_end(mr_dataset *ds, const mr_dataset_source *read, mr_dataset **out, mr_error *err);

const mr_manifest *mr_dataset_manifest(const mr_dataset *ds);
const uint8_t *mr_dataset_digest(const mr_dataset *ds); /* [32], of the manifest that was read */

/* Opens NAME.mdb or NAME.idx of a shard ("mdb", "idx") and makes sure that it is as long as the manifest says, and that
 * the bytes of an .idx are those that the manifest names (index_trust.h).  MR_BAD_DATA: it is missing or another;
 * MR_SYSTEM: errno is set (EMFILE: too many open files; ESTALE: the dataset was replaced). */
mr_status mr_dataset_open_file(const mr_dataset *ds, const mr_shard *shard, const char *suffix, int *fd, mr_error *err);

/* The copy of NAME.mdb on this host's own disk, if mr_dataset_stage() was called and there is one; else false, and the
 * shard is copied soon. */
bool mr_dataset_open_copy(const mr_dataset *ds, const mr_shard *shard, int *fd);
/* Whether copies can be found at all. */
bool mr_dataset_has_copies(const mr_dataset *ds);
/* Whether the shard is behind a URL, so that opening NAME.mdb may mean fetching all of it. */
bool mr_dataset_has_remote(const mr_dataset *ds, const mr_shard *shard);
/* Whether the dataset is behind a URL; of a view, whether its first dataset is. */
bool mr_dataset_is_remote(const mr_dataset *ds);
/* These bytes of NAME.mdb of such a dataset will soon be requested by mr_dataset_read_range(). */
void mr_dataset_read_ahead(const mr_dataset *ds, const mr_shard *shard, uint64_t from, size_t len);
/* Reads `len` bytes of NAME.mdb of such a dataset, without the rest; nothing is compared here. */
mr_status mr_dataset_read_range(const mr_dataset *ds, const mr_shard *shard, uint64_t from, void *out, size_t len,
                                const atomic_bool *stop, mr_error *err);
/* What a run over such a dataset will transfer, in one sentence, once it is staged. */
void mr_dataset_describe_remote(const mr_dataset *ds, mr_error *out);
/* Fetches the split's indexes if the dataset is remote, several at once, so that no reader waits for each of them. */
void mr_dataset_fetch_indexes(const mr_dataset *ds, const mr_split *split, const atomic_bool *stop);
/* Removes a copy whose bytes were found to be wrong. */
void mr_dataset_drop_copy(const mr_dataset *ds, const mr_shard *shard);
mr_local_counts mr_dataset_copies(const mr_dataset *ds); /* zeros without them */

/* Opens the seek index of a shard, if there is one whose header is of this shard.  MR_END: there is none;
 * MR_BAD_DATA: it is not of this shard; MR_SYSTEM: errno is set. */
mr_status mr_dataset_open_seek(const mr_dataset *ds, const mr_shard *shard, int *fd, uint64_t *size, mr_error *err);

/* How many datasets a view has, 0 for a dataset; and where they are, as mr_dataset_open() accepts it, lent. */
size_t mr_dataset_source_count(const mr_dataset *ds);
const char *mr_dataset_source_path(const mr_dataset *ds, size_t i);

/* The shard that has sample n of the split; n < split->samples. */
const mr_shard *mr_dataset_shard(const mr_split *split, uint64_t n);

/* Calls `visit` for each sample of the split that is seen, in order, with its row; ends at the first failure. */
typedef mr_status (*mr_row_visitor)(void *ctx, uint64_t number, const mr_row *row, mr_error *err);
mr_status mr_dataset_each_row(const mr_dataset *ds, const mr_split *split, mr_row_visitor visit, void *ctx,
                              mr_error *err);
/* Row i of an open .idx, bounds-checked against the manifest.  MR_BAD_SAMPLE: the row points outside the shard. */
mr_status mr_dataset_row(int idx, const mr_shard *shard, uint64_t i, mr_row *row, mr_error *err);
/* The same for a row that has been read already. */
mr_status mr_dataset_row_from(const uint8_t packed[MR_INDEX_ROW], const mr_shard *shard, uint64_t i, mr_row *row,
                              mr_error *err);

#endif

/* manifest_parts.h - between the files of the manifest.
 * Invariant: both forms of the list of shards, JSON and table, obey the same rules: mr_manifest_check_shards(). */
#ifndef MR_MANIFEST_PARTS_H
#define MR_MANIFEST_PARTS_H

#include "shards/manifest/manifest.h"

/* manifest_splits.c.  The splits of a parsed document, with their shards or, of MR_FORMAT_TABLE, with their places in
 * the table.  m->format is known. */
mr_status mr_manifest_parse_splits(const json_t *doc, const char *name, mr_manifest *m, mr_error *err);
/* Each shard alone, that each begins where the one before ends, and that the split's sums are theirs.  `file`: where
 * they are listed. */
mr_status mr_manifest_check_shards(const mr_split *split, const mr_shard *shards, const char *file, mr_error *err);
/* Shard `i` of a split is called SPLIT-NNNNN, with more digits beyond 99999. */
void mr_manifest_shard_name(const char *split, size_t i, mr_shard *shard);

/* manifest_table.c.  The failure of a table that has `size` bytes. */
mr_status mr_manifest_table_size(const mr_manifest *m, uint64_t size, mr_error *err);

#endif

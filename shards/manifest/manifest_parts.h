/* manifest_parts.h - between the files of the manifest.
 * Invariant: splits are checked as a whole before the manifest has them. */
#ifndef MR_MANIFEST_PARTS_H
#define MR_MANIFEST_PARTS_H

#include "shards/manifest/manifest.h"

/* manifest_splits.c.  The splits of a parsed document, with their shards or, unless `listed`, with their number
 * only. */
mr_status mr_manifest_parse_splits(const json_t *doc, const char *name, bool listed, mr_manifest *m, mr_error *err);

#endif

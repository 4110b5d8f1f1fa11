/* sight.h - whether the hosts of a run see the same sources.
 * Invariant: a sight depends on names and sizes alone, in any order: no file is opened, and no clock is read. */
#ifndef MR_SOURCE_SIGHT_H
#define MR_SOURCE_SIGHT_H

#include "base/ranks/ranks.h"
#include "ingest/source/source.h"

typedef struct mr_sight {
    uint64_t files, bytes; /* without folders; for a link, what it leads to */
    uint64_t sum;          /* sum of the hashes of all names and sizes */
} mr_sight;

/* The sight of all SRCs except "-".  A path that cannot be listed counts as an empty folder: listing it reports
 * that. */
mr_sight mr_sight_of(char *const *srcs, size_t count);

/* Collective, with rank 0's listing on all ranks.  One rank of each host looks, where there are several.  MR_BAD_DATA
 * names the first rank that sees something else than rank 0, and a file. */
mr_status mr_sight_agree(const mr_source *listing, char *const *srcs, size_t count, mr_ranks *ranks, mr_error *err);

#endif

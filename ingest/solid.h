/* solid.h - a view, or a dataset, written as a dataset of its own: new shards with only what is seen.
 * Invariant: no byte of a sample that is not seen is in any file of the new dataset; all others are as they were. */
#ifndef MR_SOLID_H
#define MR_SOLID_H

#include <stdatomic.h>

#include "base/ranks/ranks.h"

typedef struct mr_solid_options {
    const char *source, *target; /* a view's file; DATASET */
    uint64_t shard_size;         /* bytes of images and metas per shard */
    unsigned jobs;               /* threads; 0: all processors */
    bool force, quiet;
    bool seek; /* with seek indexes of this spacing */
    unsigned seek_every;
    mr_ranks *ranks;        /* one process; lent */
    atomic_bool *published; /* for signal handlers, as of mr_ingest_options */
} mr_solid_options;

typedef struct mr_solid_result {
    uint64_t samples, images, image_bytes;
    size_t shards, splits;
    char digest[65];
} mr_solid_result;

/* Whether the path leads to a view. */
bool mr_solid_is_view(const char *path);
/* Compares each image and meta with its hash.  MR_MISUSE: the target exists; MR_BAD_DATA,
 * MR_BAD_SAMPLE: the source is damaged; nothing is published then. */
mr_status mr_solid_write(const mr_solid_options *o, mr_solid_result *out, mr_error *err);

#endif

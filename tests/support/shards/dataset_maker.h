/* dataset_maker.h - small datasets to a test's own measure, written through liblmdb and the shards API.
 * Invariant: what dataset_make() leaves is whole at every level of verify, unless its images are broken on purpose. */
#ifndef MR_DATASET_MAKER_H
#define MR_DATASET_MAKER_H

#include "shards/manifest/manifest.h"
#include "tests/support/images/image.h"

typedef struct made {
    const char *source; /* path text */
    picture image;      /* of sample image_of if it shares */
    const char *more;   /* further members of the meta: ",\"label\":3"; NULL: none */
    bool shares;
    uint64_t image_of;
} made;

typedef struct made_split {
    const char *name;
    const made *samples;
    size_t count, per_shard; /* an image_of must stay within its shard */
} made_split;

/* DIR/NAME-NNNNN.mdb and .idx for every split, and the manifest with three classes. */
void dataset_make(const char *dir, const made_split *splits, size_t count);

/* Rewrites the manifest with the digests that the files have now: damage becomes what "was ingested". */
void dataset_reseal(const char *dir);

/* Gives DIR/manifest.json, after an edit by hand, the seal of the text that it has now.  It must end with a brace. */
void dataset_seal(const char *dir);

#endif

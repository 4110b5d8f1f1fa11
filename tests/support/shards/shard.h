/* shard.h - shards and whole datasets of drawn samples, written through liblmdb.
 * Invariant: sample n of a seed is the same wherever it is made, so a reader can be held against it. */
#ifndef MR_SUPPORT_SHARD_H
#define MR_SUPPORT_SHARD_H

#include "shards/manifest/manifest.h"
#include "tests/support/images/image.h"

typedef struct drawn {
    picture image;
    char *meta;  /* heap, NUL-terminated */
    bool shares; /* the image is stored under an earlier sample of the shard */
    uint64_t image_of;
} drawn;

/* Sample n of a shard that begins at `first`; about one in five shares an earlier image. */
drawn draw_sample(uint64_t seed, uint64_t first, uint64_t n);
void drawn_free(drawn *d);

/* DIR/NAME.mdb and .idx of `samples` samples, and the entry they have in a manifest. */
mr_shard draw_shard(const char *dir, const char *name, uint64_t seed, uint64_t first, uint64_t samples);

/* Splits "train" (two shards of 40 and 30 samples) and "val" (one of 12) with seeds 1, 2 and 3, and the manifest. */
void draw_dataset(const char *dir);

#endif

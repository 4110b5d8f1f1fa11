/* damage.h - shards that are cut, overwritten, removed and replaced under those who read them.
 * Invariant: damage_do() knows, from the index of before, which samples a reader with the file open has lost. */
#ifndef MR_SUPPORT_DAMAGE_H
#define MR_SUPPORT_DAMAGE_H

#include "tests/support/support.h"

typedef enum damage { CUT, CUT_TO_NOTHING, OVERWRITTEN, SCRIBBLED, REMOVED, REPLACED, KINDS } damage;

enum { DAMAGE_MAX = 64 }; /* samples of a damaged shard */

/* Samples of DIR/SHARD. */
uint64_t damage_samples(const char *dir, const char *shard);
/* Does it to DIR/SHARD.mdb, of which ANOTHER takes the place; hit[]: the shard's samples that are lost. */
void damage_do(damage kind, const char *dir, const char *shard, const char *another, bool hit[DAMAGE_MAX]);
void damage_nap(void); /* a short wait for those who work beside */

#endif

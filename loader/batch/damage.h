/* damage.h - samples of a split that were damaged and passed over: how many, and the first of them by name.
 * Invariant: a sample counts once, in however many epochs and on however many ranks it was met. */
#ifndef MR_DAMAGE_H
#define MR_DAMAGE_H

#include "base/ranks.h"
#include "batch/loader.h"

typedef struct mr_damage { /* zeroed before */
    uint64_t *samples;     /* numbers in the split */
    size_t count, room;
} mr_damage;

/* What was replaced or masked in a batch that the loader gave. */
mr_status mr_damage_note(mr_damage *d, const mr_batch *batch, mr_error *err);
/* Collective: what all ranks met becomes the same on every rank, ascending, each once. */
mr_status mr_damage_join(mr_damage *d, mr_ranks *ranks, mr_error *err);
/* Of a joined one: "val: 7 damaged samples passed over: 3 (val/a.JPEG), 32 (val/b.JPEG), 40 and 4 more; ...", without a
 * line's end, a source where its meta can be read.  Nothing where none is damaged. */
mr_status mr_damage_text(const mr_damage *d, const mr_dataset *ds, const char *split, mr_buf *out, mr_error *err);
void mr_damage_release(mr_damage *d); /* a zeroed one is fine */

/* Appends what the source called a sample; nothing if its meta cannot be read. */
void mr_sample_source(const mr_dataset *ds, const char *split, uint64_t sample, mr_buf *out);

#endif

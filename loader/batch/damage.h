/* damage.h - damaged samples of a split that were skipped: how many, and the first of them by name.
 * Invariant: a sample counts once, however many epochs and ranks it occurred in. */
#ifndef MR_DAMAGE_H
#define MR_DAMAGE_H

#include "base/ranks/ranks.h"
#include "loader/batch/loader.h"

typedef struct mr_damage { /* zeroed before */
    uint64_t *samples;     /* numbers in the split */
    size_t count, capacity;
} mr_damage;

/* Notes what was replaced or masked in a batch. */
mr_status mr_damage_note(mr_damage *d, const mr_batch *batch, mr_error *err);
/* Collective: every rank gets what any rank noted, ascending, each sample once. */
mr_status mr_damage_join(mr_damage *d, mr_ranks *ranks, mr_error *err);
/* After a join: "val: 7 damaged samples skipped: 3 (val/a.JPEG), 32 (val/b.JPEG), 40 and 4 more; ...", without a
 * newline; a sample whose meta cannot be read has no source.  Empty if no sample is damaged. */
mr_status mr_damage_text(const mr_damage *d, const mr_dataset *ds, const char *split, mr_buf *out, mr_error *err);
void mr_damage_release(mr_damage *d); /* a zeroed one is fine */

/* Appends the sample's name in the source; nothing if its meta cannot be read. */
void mr_sample_source(const mr_dataset *ds, const char *split, uint64_t sample, mr_buf *out);

#endif

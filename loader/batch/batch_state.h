/* batch_state.h - private to this room: what batch.c and batch_finish.c share.
 * Invariant: every place in a slab is a multiple of MR_SLAB_ALIGN. */
#ifndef MR_BATCH_STATE_H
#define MR_BATCH_STATE_H

#include "loader/batch/batch.h"

static inline size_t mr_slab_padded(size_t len)
{
    return (len + MR_SLAB_ALIGN - 1) / MR_SLAB_ALIGN * MR_SLAB_ALIGN;
}

static inline bool mr_work_is_coded(const mr_work *w)
{
    return w->o.deliver == MR_DELIVER_CODED;
}

/* Of one sample. */
static inline size_t mr_work_mask_bytes(const mr_work *w)
{
    return w->o.with_masks ? (size_t)w->o.transform.size * w->o.height : 0;
}

/* Weight 0, no label, not mixed. */
static inline mr_sample_facts mr_loading_blank(uint64_t sample, uint64_t item, uint64_t offset)
{
    return (mr_sample_facts){
        .sample = sample, .item = item, .label = -1, .offset = offset, .share = 1, .other_label = -1, .other = sample};
}

#endif

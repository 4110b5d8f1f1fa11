/* batch.h - one batch, from planning to delivery.
 * Invariant: the slots of a batch may be loaded by any threads in any order, with the same result.
 *
 *   plan     one thread     slots, rows, where each sample's bytes will go, read-ahead
 *   bind     one thread     memory, owned by the batch until it is released
 *   load     many threads   slot i alone: bytes or pixels into its place, its facts
 *   finish   one thread     bad slots handled according to `on_bad`, meta pointers, what the caller sees
 *
 *   slab     | sample 0 ..pad| sample 1 .....pad| ...        each at a multiple of 64, gaps zeroed; coded:
 * coded_batch.h tensor   | sample 0 | sample 1 | ...                     all of one size */
#ifndef MR_LOADER_BATCH_H
#define MR_LOADER_BATCH_H

#include "loader/batch/coded_batch.h"
#include "loader/batch/loader.h"
#include "loader/batch/work.h"

enum { MR_SLAB_ALIGN = 64 };

static inline size_t mr_slab_padded(size_t len)
{
    return (len + MR_SLAB_ALIGN - 1) / MR_SLAB_ALIGN * MR_SLAB_ALIGN;
}

/* Weight 0, no label, not mixed. */
static inline mr_sample_facts mr_loading_blank(uint64_t sample, uint64_t item, uint64_t offset)
{
    return (mr_sample_facts){
        .sample = sample, .item = item, .label = -1, .offset = offset, .share = 1, .other_label = -1, .other = sample};
}

typedef struct mr_part { /* a slot while it is being loaded */
    mr_row row;
    uint64_t meta_at;
    bool bad;
} mr_part;

typedef struct mr_loading {
    mr_batch lent; /* first, as the caller's pointer is cast back */
    mr_sample_facts *facts;
    mr_part *parts;
    mr_slab data; /* from mr_loading_bind() */
    mr_slab meta;
    size_t meta_used;
    mr_moved *moved; /* with objects: of each slot */
    mr_slab masks;   /* with masks */
    mr_slab joined;  /* the same as one mr_batch_objects, once it is finished */
    mr_coded_loading coded;
    mr_bad_slot *bad; /* in order of slots */
    size_t bad_count, bad_capacity;
    mr_status status; /* status of the whole batch, once it is finished */
    mr_error error;
    /* Guarded by the queue's lock: */
    int state;
    bool bound;           /* the batch owns `data` */
    uint64_t taken, done; /* slots begun, slots loaded */
} mr_loading;

mr_status mr_loading_init(mr_loading *b, const mr_work *w, mr_error *err);
void mr_loading_free(mr_loading *b, const mr_work *w);

mr_status mr_loading_plan(mr_loading *b, mr_work *w, uint64_t epoch, uint64_t step, mr_error *err);

/* The batch owns `memory` until it is taken back from b->data.  Bound late, so that the most recently used memory,
 * which is still in the processor's cache, is used next. */
mr_status mr_loading_bind(mr_loading *b, const mr_work *w, mr_slab memory, mr_error *err);

/* Moves the contents of a finished batch into *out, which mr_batch_free() frees; the batch gets new facts.  MR_SYSTEM:
 * out of memory, nothing has changed. */
mr_status mr_loading_detach(mr_loading *b, const mr_work *w, mr_batch **out, mr_error *err);

/* MR_BAD_SAMPLE and MR_BAD_DATA: pass to mr_loading_note(), one thread at a time; MR_SYSTEM: the batch fails; MR_END:
 * the loader is stopping. */
mr_status mr_loading_load(mr_loading *b, mr_work *w, mr_worker *worker, uint64_t slot, mr_error *err);
mr_status mr_loading_note(mr_loading *b, const mr_work *w, uint64_t slot, const mr_error *why, mr_error *err);

/* After all slots have been loaded or noted.  A failure fails the batch. */
mr_status mr_loading_finish(mr_loading *b, mr_work *w, mr_worker *worker, mr_error *err);

/* Decodes a slot of a finished coded batch into `out`.  A damaged sample is noted and treated as by finish. */
mr_status mr_loading_decode(mr_loading *b, mr_work *w, mr_worker *worker, uint64_t slot, float *out, mr_error *err);

#endif

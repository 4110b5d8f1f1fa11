/* coded_batch.h - what a batch of coded delivery has besides records: descriptions, and tensors made by the host.
 * Invariant: a slot becomes a tensor if its row or the planner says so, never because of threads or time.
 *
 *   plan      records one after another, then room for the tensors that are known to be needed
 *   load      record and description, or tensor; one that was not expected ("late") gets memory of its own
 *   finish    late tensors move to the end of the slab; header and sections follow (coded/coded.h) */
#ifndef MR_CODED_BATCH_H
#define MR_CODED_BATCH_H

#include "loader/batch/work.h"
#include "image/coded/coded.h"

typedef struct mr_coded_loading { /* zeroed for a batch that is not coded */
    mr_coded_slot *slots;
    mr_coded_description *descriptions;
    float **late;             /* [slot]: a tensor outside of the slab; NULL: none */
    float *elsewhere;         /* the next tensor goes here; NULL: into the batch */
    uint64_t records;         /* their end */
    uint64_t count, capacity; /* slots: in this batch; at most */
    mr_buf tables;
    mr_resize_norm norm;
} mr_coded_loading;

/* `max`: slots of the largest batch.  Does nothing for other deliveries. */
mr_status mr_coded_loading_init(mr_coded_loading *c, const mr_work *w, uint64_t max, mr_error *err);
void mr_coded_loading_free(mr_coded_loading *c);

void mr_coded_loading_begin(mr_coded_loading *c, uint64_t count);
/* Decides how a slot is made; returns the bytes that its record takes, at *used, or 0. */
uint64_t mr_coded_loading_plan(mr_coded_loading *c, mr_work *w, uint64_t slot, uint64_t sample, const mr_row *row);
/* Room for tensors after the records, which end at `used`.  Returns the end. */
uint64_t mr_coded_loading_place(mr_coded_loading *c, const mr_work *w, uint64_t used);

/* From here on the slot is a tensor, or zeros. */
void mr_coded_loading_by_host(mr_coded_loading *c, uint64_t slot);
void mr_coded_loading_zeros(mr_coded_loading *c, uint64_t slot);

typedef struct mr_coded_sample {
    uint64_t slot, sample, offset; /* offset: where its record is in the slab */
    const mr_row *row;
    mr_view view;
} mr_coded_sample;
mr_status mr_coded_loading_load(mr_coded_loading *c, mr_work *w, mr_worker *worker, uint8_t *slab,
                                const mr_coded_sample *s, mr_error *err);
/* *bytes: in use before and after. */
mr_status mr_coded_loading_finish(mr_coded_loading *c, mr_work *w, mr_slab *slab, size_t *bytes, mr_error *err);

#endif

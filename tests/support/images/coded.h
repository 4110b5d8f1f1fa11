/* coded.h - coded batches made of pictures in memory, and decoded by the kernels as plain C.
 * Invariant: every block of memory has its exact size, so that sanitizers see accesses past the ends. */
#ifndef MR_SUPPORT_CODED_H
#define MR_SUPPORT_CODED_H

#include "image/coded/coded.h"

enum { CODED_MOST = 16 };

typedef struct coded_batch { /* zeroed: empty */
    mr_coded_planner *planner;
    mr_slab slab;
    uint64_t used, bytes;
    mr_coded_slot slots[CODED_MOST]; /* images only */
    mr_coded_description descriptions[CODED_MOST];
    uint32_t count, size;
    uint64_t piece_bytes; /* 0: the usual */
} coded_batch;

/* Begins a batch of results of size x size. */
mr_status coded_begin(coded_batch *b, uint32_t size, mr_error *err);
/* Adds a picture; its `at` is set here. */
mr_status coded_add(coded_batch *b, const mr_coded_picture *picture, bool *taken, mr_error *err);
mr_status coded_end(coded_batch *b, const float mean[3], const float std[3], mr_error *err);
void coded_free(coded_batch *b);

static inline const mr_coded *coded_head(const coded_batch *b)
{
    return (const mr_coded *)(const void *)b->slab.data;
}

/* Decodes a coded slab. values: slots x 3 x size x size; failed: for each image.  False: out of memory. */
bool coded_run_plain(const void *slab, float *values, uint32_t *failed);

typedef struct coded_ways { /* how slots were made */
    uint64_t images, tensors, zeros, failed;
} coded_ways;

/* What a coded batch stands for, as MR_DELIVER_F32_NCHW has it; heap.  Images that fail are made by the host.  `ways`
 * is added to; NULL is fine. */
float *coded_floats(mr_loader *l, const mr_batch *b, coded_ways *ways, mr_status *status, mr_error *err);

#endif

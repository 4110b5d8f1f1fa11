/* weights.h - private to this module: the weights of an axis as devices use them, kept for images of equal size.
 * Invariant: what is kept is what mr_resize_axis_set() gives, one 32-bit number for each tap. */
#ifndef MR_CODED_WEIGHTS_H
#define MR_CODED_WEIGHTS_H

#include "image/resize/kernels.h"

typedef struct mr_coded_axis {
    mr_resize_side side;
    uint32_t taps;    /* of each output */
    uint32_t *starts; /* [outputs], then the weights: [outputs][taps] */
    int32_t *weights;
} mr_coded_axis;

typedef struct mr_coded_weights mr_coded_weights; /* of one thread */
mr_coded_weights *mr_coded_weights_new(void);     /* NULL: out of memory */
void mr_coded_weights_free(mr_coded_weights *w);

/* Lent until the next call.  MR_SYSTEM: out of memory. */
mr_status mr_coded_weights_get(mr_coded_weights *w, const mr_resize_side *side, const mr_coded_axis **out,
                               mr_error *err);

#endif

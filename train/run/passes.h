/* passes.h - the forward and backward passes of micro-steps, recorded where the device can (mr_recorder).
 * Invariant: what is replayed is what the model would queue: a recording belongs to one input - the same memory, number
 * of samples and length of texts - and a backward pass is replayed only after its forward pass was.
 *
 *      an input is met    queued: the device makes what it needs on the first use
 *      again              recorded, and replayed for the first time
 *      from then on       replayed: the model's own code does not run
 *
 * Losses that ask other ranks within a pass (in.peers) are always queued. */
#ifndef MR_PASSES_H
#define MR_PASSES_H

#include "train/model/model.h"

enum { MR_PASSES_KEPT = 64 }; /* inputs, at most; others are queued */

typedef struct mr_pass mr_pass; /* the pass of one input */

typedef struct mr_passes {
    mr_device *device;
    mr_model *model;
    const float *values;      /* the model's values, on the device */
    float *gradients;         /* gradients of all values, on the device */
    mr_gradients_ready ready; /* called during the last backward pass of an update; may be NULL */
    void *ctx;
    mr_pass *kept; /* [count] */
    size_t count, capacity;
    mr_pass *now; /* the pass of the current micro-step; NULL: it is queued */
    bool replays, last;
} mr_passes;

/* `p` with the members up to ctx set; the other ones zero.  Close before the model and the device. */
void mr_passes_close(mr_passes *p);
/* last: the update's last micro-step, whose backward pass calls p->ready. */
void mr_passes_forward(mr_passes *p, const mr_model_input *in, bool last, mr_model_output *out);
/* For the last forward pass. */
void mr_passes_backward(mr_passes *p);

#endif

/* optimizer.h - learning rate, clipping and the update of all parameters at once.
 * Invariant: a pure function of the update's number and the gradients; its whole state is `slots` flat buffers.
 * Source: torch.optim.SGD and AdamW, torch.nn.utils.clip_grad_norm_; schedules of HabanaAI's ViT trainer: update k
 * (from 1) uses f(k - 1), with f(s) = s / warmup below warmup, then cosine or linear down to 0 at `steps`. */
#ifndef MR_OPTIMIZER_H
#define MR_OPTIMIZER_H

#include "device/device.h"
#include "train/model/params.h"

typedef enum mr_decay { MR_DECAY_COSINE = 0, MR_DECAY_LINEAR, MR_DECAY_NONE } mr_decay; /* none: constant after it */

typedef struct mr_schedule_lr {
    double base;
    uint64_t warmup, steps; /* updates */
    mr_decay decay;
} mr_schedule_lr;

/* The learning rate of update k = 1 .. steps; cosine and linear give 0 after them. */
double mr_lr_at(const mr_schedule_lr *s, uint64_t update);

typedef enum mr_optimizer_kind { MR_SGD = 0, MR_ADAMW } mr_optimizer_kind;

typedef struct mr_optimizer_options {
    mr_optimizer_kind kind;
    mr_schedule_lr lr;
    double momentum;          /* sgd: 0.9 */
    double beta1, beta2, eps; /* adamw: 0.9, 0.999, 1e-8 */
    double weight_decay;
    double clip; /* largest norm of all gradients together; 0: no clipping */
} mr_optimizer_options;

typedef struct mr_optimizer {
    mr_optimizer_options options;
    const mr_params *params; /* must outlive it */
    mr_device *device;
    unsigned slots;  /* 1: momentum; 2: m and v */
    float *state[2]; /* [params->total] each, on the device */
} mr_optimizer;

/* MR_MISUSE names the invalid option (momentum of 1, negative rates, warmup beyond steps, 0 steps with a
 * decay, eps of 0 ...).  options.lr.base may be changed between updates. */
mr_status mr_optimizer_open(const mr_optimizer_options *options, const mr_params *params, mr_device *device,
                            mr_optimizer *out, mr_error *err);
void mr_optimizer_close(mr_optimizer *o); /* a zeroed one is fine */

typedef struct mr_update_facts {
    double lr, grad_norm; /* norm before clipping, of the mean gradient */
} mr_update_facts;

/* Update number `update` (from 1): g = gradients / divisor, clipped: g *= min(1, clip / (norm + 1e-6)); values changed.
 * Gradients that are not finite change nothing: MR_BAD_DATA names the update and the norm.  MR_MISUSE: update 0, or a
 * divisor that is not above 0.  `facts` may be NULL.  Queued, but for the norm, which waits for the gradients. */
mr_status mr_optimizer_update(mr_optimizer *o, uint64_t update, double divisor, const float *gradients, float *values,
                              mr_update_facts *facts, mr_error *err);

#endif

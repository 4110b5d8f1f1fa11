/* losses.h - the losses of one update, kept on the device until its gradients are done.
 * Invariant: keeping them waits for nothing, so the host can queue all passes of an update; their sum is taken in the
 * order of the samples, on the host.
 *
 *      micro-step 1: losses | micro-step 2: losses | ...      on the device; copied to the host once per update */
#ifndef MR_LOSSES_H
#define MR_LOSSES_H

#include "device/device.h"

typedef struct mr_losses {
    mr_device *device;
    size_t capacity, count; /* the most samples of an update; those of this one so far */
    float *kept;            /* [capacity], on the device */
    float *host;            /* [capacity] */
} mr_losses;

/* MR_MISUSE: more losses than there are addresses. */
mr_status mr_losses_open(mr_device *device, size_t batch, size_t micro_steps, mr_losses *out, mr_error *err);
void mr_losses_close(mr_losses *l); /* a zeroed one is fine; before its device */

/* Before each update. */
void mr_losses_clear(mr_losses *l);
/* Queued: copies losses[count], on the device, which may then be overwritten. */
void mr_losses_keep(mr_losses *l, const float *losses, size_t count);
/* Waits for the device: *sum of all that were kept. */
mr_status mr_losses_sum(mr_losses *l, double *sum, mr_error *err);

#endif

/* gradients.h - the gradients of one rank, on the device, and the sum of all ranks'.
 * Invariant: on a device that works in host memory they are the exchange's own buffer, and nothing is copied; nor is it
 * on any device if this rank is alone.  Elsewhere the backward pass is queued as a whole, and then its gradients are
 * copied piece by piece, so that queueing never waits for the device.
 *
 *      backward pass -> values, on the device -> the exchange's buffer -> sum, on the host -> values -> optimizer
 */
#ifndef MR_GRADIENTS_H
#define MR_GRADIENTS_H

#include "device/device.h"
#include "exchange/exchange.h"

typedef struct mr_gradients {
    mr_device *device;
    mr_exchange *exchange;
    uint64_t count;
    bool in_place; /* values are the exchange's buffer */
    bool alone;    /* one rank */
    float *values; /* [count], on the device */
} mr_gradients;

mr_status mr_gradients_open(mr_device *device, mr_exchange *exchange, uint64_t count, bool alone, mr_gradients *out,
                            mr_error *err);
void mr_gradients_close(mr_gradients *g); /* a zeroed one is fine; before its exchange and device */

/* Before each update. */
void mr_gradients_zero(mr_gradients *g);
/* `gradients`: an mr_gradients in place whose elements from `from` on are complete; a model calls it in its backward
 * pass. */
void mr_gradients_complete(void *gradients, uint64_t from);
/* After the backward pass, collective: *sum, on the device, is valid until the next update.  Where a device has failed
 * it means nothing, which the next wait of that rank reports. */
mr_status mr_gradients_finish(mr_gradients *g, const float **sum, mr_error *err);

#endif

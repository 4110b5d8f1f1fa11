/* gradients.h - the gradients of one rank, on the device, and the sum of all ranks'.
 * Invariant: on a device that works in host memory they are the exchange's own buffer, and nothing is copied; nor is it
 * on any device if this rank is alone, or where devices sum themselves (mr_sums_iface).  Elsewhere the backward pass is
 * queued as a whole, and then its gradients are copied piece by piece, so that queueing never waits for the device.
 *
 *      backward pass -> values, on the device -> the exchange's buffer -> sum, on the host -> values -> optimizer
 *                              \-> summed by the devices, where they are ---------------------> values -> optimizer */
#ifndef MR_GRADIENTS_H
#define MR_GRADIENTS_H

#include "device/device.h"
#include "train/exchange/exchange.h"
#include "train/model/model.h"

typedef struct mr_gradients {
    mr_device *device;
    mr_exchange *exchange;
    uint64_t count;
    bool in_place;  /* values are the exchange's buffer */
    bool alone;     /* one rank */
    bool direct;    /* the devices sum */
    uint64_t piece; /* elements of a sum by the devices */
    uint64_t asked; /* in this update, devices were asked to sum the elements from here on */
    float *values;  /* [count], on the device */
} mr_gradients;

/* Collective, before the exchange is opened: whether the devices of all ranks can sum themselves, and if so they have
 * met; the exchange then needs no gradients.  They cannot if two ranks share a device, or one lacks the library;
 * `remarks` gets a line that says so.  With a single rank: no. */
mr_status mr_gradients_meet(mr_device *device, mr_ranks *ranks, bool *direct, mr_buf *remarks, mr_error *err);

typedef struct mr_gradients_options {
    uint64_t count;
    mr_exchange_kind kind; /* how devices sum: all, or pieces during the backward pass */
    bool alone, direct;
} mr_gradients_options;

mr_status mr_gradients_open(mr_device *device, mr_exchange *exchange, const mr_gradients_options *options,
                            mr_gradients *out, mr_error *err);
void mr_gradients_close(mr_gradients *g); /* a zeroed one is fine; before its exchange and device */

/* Before each update. */
void mr_gradients_zero(mr_gradients *g);
/* What a model has to call in the last backward pass of an update, with these gradients; NULL: nothing. */
mr_gradients_ready mr_gradients_listener(const mr_gradients *g);
/* After the backward pass, collective: *sum, on the device, is valid until the next update.  Where a device has failed
 * it means nothing, which the next wait of that rank reports. */
mr_status mr_gradients_finish(mr_gradients *g, const float **sum, mr_error *err);

#endif

/* images.h - coded batches of the loader become float32 images on a device.
 * Invariant: the images are those of MR_DELIVER_F32_NCHW to the bit, wherever they are decoded.
 *
 *      records, sections --upload--> decode, piece by piece --> images          flags --download--> host
 *      tensors of the host --upload---------------------------> images <--upload-- flagged images, decoded by the
 * host
 *
 * A device with a second queue does all of that there, beside the operations that are queued between begin and end.
 * Device memory grows to what the largest batch needs; that between the steps to at most MR_CODED_PIECE_BYTES. */
#ifndef MR_IMAGES_H
#define MR_IMAGES_H

#include "device/device.h"

typedef struct mr_images_counts {
    uint64_t device, host; /* images, by where they were decoded */
    uint64_t flagged;      /* how many of those of the host the device could not decode */
} mr_images_counts;

typedef struct mr_images mr_images;
/* The device must outlive it. */
mr_status mr_images_new(mr_device *device, mr_images **out, mr_error *err);
void mr_images_free(mr_images *m); /* NULL is fine */

/* Decodes an image of the batch on the host: the caller's mr_batch_decode(). */
typedef mr_status mr_decode_on_host(mr_loader *l, const mr_batch *batch, uint64_t slot, float *out, mr_error *err);

/* Begins to decode a batch; out: memory of the device for [batch->count, 3, size, size], which nothing that was queued
 * since the last end uses.  The batch has to be lent until the end.  MR_SYSTEM: the device has too little memory. */
mr_status mr_images_begin(mr_images *m, const mr_batch *batch, float *out, mr_error *err);
/* After a begin that succeeded: what is queued from now on finds the images.  Those that the device has flagged are
 * made by `decode_on_host`; its failures are returned, and damage that only shows then changes the batch's facts.
 * MR_SYSTEM: the device failed. */
mr_status mr_images_end(mr_images *m, mr_loader *l, mr_decode_on_host *decode_on_host, mr_error *err);
/* Both at once, to any memory. */
mr_status mr_images_make(mr_images *m, mr_loader *l, const mr_batch *batch, mr_decode_on_host *decode_on_host,
                         float *out, mr_error *err);
mr_images_counts mr_images_count(const mr_images *m);

#endif

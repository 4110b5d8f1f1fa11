/* bench_device.h - a benchmark's batches decoded on a device.
 * Invariant: a batch is complete on the device before the next one begins, so that its time is known. */
#ifndef MR_BENCH_DEVICE_H
#define MR_BENCH_DEVICE_H

#include <jansson.h>

#include "device/images/images.h"

enum { MR_BENCH_WARP = 32 }; /* parts that lanes of a GPU decode in step */

/* What the kernels of a batch have to do, as the host has described it; sums over batches.  Time in the first kernel
 * goes by steps, a symbol each, and those of a warp are at least its longest part's.  They are counted in one batch, as
 * that takes the host as long as decoding it. */
typedef struct mr_bench_work {
    uint64_t images, batches;
    uint64_t parts, coded_bytes;                  /* items of the first kernel, and what they decode */
    uint64_t step_batches, steps;                 /* the batches whose steps are counted, and those of their parts */
    uint64_t longest;                             /* steps of the longest part of each of these batches */
    uint64_t warp_steps;                          /* sum over warps of the steps of the longest part, for all lanes */
    uint64_t blocks, pixels, line_values, values; /* items of the others: idct (eight each), pixels, across, down */
    uint64_t uploaded;                            /* bytes */
    uint64_t moved; /* bytes that kernels read and write: each tensor between two of them once each */
} mr_bench_work;

typedef struct mr_bench_device { /* zeroed: none */
    mr_device *device;           /* NULL: the host decodes */
    mr_images *images;
    void *out;
    size_t capacity;
    double seconds; /* spent on uploading and decoding */
    mr_bench_work work;
} mr_bench_device;

void mr_bench_work_add(mr_bench_work *sum, const mr_bench_work *more);
/* Two lines for people; nothing if no image was decoded on a device. */
void mr_bench_work_text(const mr_bench_work *w, mr_buf *out);
json_t *mr_bench_work_json(const mr_bench_work *w); /* per image, or as named; NULL: no memory */

mr_status mr_bench_device_open(mr_bench_device *d, mr_device *device, mr_error *err);
void mr_bench_device_close(mr_bench_device *d);
/* Counts the steps of a batch. */
void mr_bench_device_count(mr_bench_device *d, const mr_batch *batch);
mr_status mr_bench_device_run(mr_bench_device *d, mr_loader *l, const mr_batch *batch, uint32_t size, mr_error *err);

#endif

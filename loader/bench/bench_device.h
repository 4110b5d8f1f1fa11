/* bench_device.h - a benchmark's batches decoded on a device.
 * Invariant: a batch is complete on the device before the next one begins, so that its time is known. */
#ifndef MR_BENCH_DEVICE_H
#define MR_BENCH_DEVICE_H

#include "images/images.h"

typedef struct mr_bench_device { /* zeroed: none */
    mr_device *device;           /* NULL: the host decodes */
    mr_images *images;
    void *out;
    size_t room;
    double seconds; /* spent on uploading and decoding */
} mr_bench_device;

mr_status mr_bench_device_open(mr_bench_device *d, mr_device *device, mr_error *err);
void mr_bench_device_close(mr_bench_device *d);
mr_status mr_bench_device_run(mr_bench_device *d, mr_loader *l, const mr_batch *batch, uint32_t size, mr_error *err);

#endif

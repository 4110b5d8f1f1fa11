/* any_kernel.h - an operation of a device on shapes and numbers that follow from bytes, for fuzzing.
 * Invariant: the same bytes are the same operation on every device. */
#ifndef MR_SUPPORT_ANY_KERNEL_H
#define MR_SUPPORT_ANY_KERNEL_H

#include "device/device.h"

/* No size is above `limit`.  *digest: of all tensors after it.  The status is that of the device's wait(). */
mr_status any_kernel_run(mr_device *d, const uint8_t *data, size_t size, size_t limit, uint64_t *digest, mr_error *err);

#endif

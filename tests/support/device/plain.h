/* plain.h - a device for tests that runs the kernels of the trainer as plain C, one lane after another.
 * Invariant: each tensor is a heap block of its own, as long as it was asked for, so that a sanitizer sees every access
 * beside it; without one, canaries at both ends are checked when it is freed and when the device is waited for.  With
 * several threads groups of products have one lane, as on processors: that gives the same bits. */
#ifndef MR_SUPPORT_PLAIN_H
#define MR_SUPPORT_PLAIN_H

#include "device/device.h"

/* "plain" as MILLRACE_TEST_DEVICE. */
extern const mr_device_iface support_plain;

/* mr_device_open(), which also knows this one and "isolated". */
mr_status support_open(const char *word, const mr_device_options *options, mr_device **out, mr_error *err);

#endif

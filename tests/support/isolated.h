/* isolated.h - a device for tests of everything above the interface: the CPU, on memory that nothing else can touch.
 * Invariant: outside of an operation no byte of device memory can be read or written, and in one only the blocks that
 * its operands are in, those that it only reads read-only; host memory given to an operation is reported by wait(). */
#ifndef MR_SUPPORT_ISOLATED_H
#define MR_SUPPORT_ISOLATED_H

#include "device/device.h"

/* "isolated" as MILLRACE_TEST_DEVICE, and as --device of the program millrace_isolated; its results are the CPU's to
 * the bit. */
extern const mr_device_iface mr_device_isolated;

#endif

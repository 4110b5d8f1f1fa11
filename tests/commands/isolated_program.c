/* isolated_program.c - the devices of the program millrace_isolated: one more than millrace has.
 * Invariant: it replaces device/device.c, which is not linked as nothing else of it is missing. */
#include "device/device.h"
#include "tests/support/isolated.h"

#undef MR_DEVICES
#define MR_DEVICES(X) X(cpu) X(isolated) X(opencl) X(cuda)

#include "device/device.c"

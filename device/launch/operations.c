/* operations.c - which function launches the kernels of an operation.
 * Invariant: there is one for each row of MR_OPERATIONS. */
#include "device/launch/launch.h"

void mr_launch_run(mr_device *device, const mr_op *op)
{
    switch (op->kind) {
#define X(name, ...)                                                                                                   \
    case MR_OP_##name:                                                                                                 \
        mr_launch_##name(device, op->arguments);                                                                       \
        break;
        MR_OPERATIONS(X)
#undef X
    default:
        break;
    }
}

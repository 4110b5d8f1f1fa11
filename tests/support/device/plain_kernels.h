/* plain_kernels.h - the kernels of the trainer as plain C, a lane a call; included once per table.
 * Invariant: what runs is the text that devices compile.  A tensor is two values, its memory and the number of its
 * first element there; a value of a launch is at the start of its eight bytes.
 *
 * PLAIN_TABLE names the table; with MR_REAL_BF16 it has the typed kernels only, with MR_ONE_LANE the product only. */
#include <stdint.h>
#include <tgmath.h>

#include "device/kernels/dialect.h"
#include "device/launch/kernels_table.h"
#include "tests/support/device/lanes.h"
#include "tests/support/device/plain_table.h"

#undef MR_KERNEL
#undef MR_SPOT
#undef MR_SHARED
#undef MR_BARRIER
#undef MR_ITEM
#undef MR_GROUP_ID
#undef MR_ROW
#undef MR_FOR_LANES
#undef MR_PRIVATE
#undef MR_OF
#define MR_KERNEL(name, lanes) static inline void name /* some are not in every table */
#define MR_SPOT
#define MR_SHARED                     static /* one group runs at a time */
#define MR_BARRIER()                  lanes_wait(__LINE__)
#define MR_LANE()                     (lanes_here.lane)
#define MR_ITEM()                     (lanes_here.group * lanes_here.lanes + lanes_here.lane)
#define MR_GROUP_ID()                 (lanes_here.group)
#define MR_ROW()                      (lanes_here.row)
#define MR_FOR_LANES(lane, lanes)     for (u32 lane = MR_LANE(), mr_once = 1; mr_once; mr_once = 0)
#define MR_PRIVATE(type, name, lanes) type name[1]
#define MR_OF(name, lane)             name[0]

#include "device/kernels/base.cl"

#include "device/kernels/elements.cl"
#include "device/kernels/rows.cl"
#include "device/kernels/tokens.cl"
#include "device/kernels/attention.cl"
#include "device/kernels/loss.cl"
#ifndef MR_REAL_BF16
#include "device/kernels/updates.cl"

#include "device/kernels/gemm.cl"
#endif

static inline f32 plain_float(const u64 *value)
{
    f32 x;
    memcpy(&x, value, sizeof x);
    return x;
}

/* In a call: a tensor, whole numbers, a fraction (device/kernels.cmake). */
#define T(i) (void *)(uintptr_t)v[i], v[(i) + 1]
#define N(i) v[i]
#define F(i) plain_float(&v[i])

#if defined(MR_REAL_BF16)
#define KERNELS(X) MR_TYPED_KERNELS(X)
#elif defined(MR_ONE_LANE)
#define KERNELS(X) X(gemm, 1, 0)
#else
#define KERNELS(X) MR_TYPED_KERNELS(X) MR_UNTYPED_KERNELS(X)
#endif

#define X(name, lanes, barriers)                                                                                       \
    static void call_##name(const void *values)                                                                        \
    {                                                                                                                  \
        const u64 *v = values;                                                                                         \
        mr_##name(MR_ARGUMENTS_##name);                                                                                \
    }
KERNELS(X)
#undef X

const plain_kernel PLAIN_TABLE[] = {
#define X(name, lanes, barriers) {#name, call_##name, lanes, barriers},
    KERNELS(X)
#undef X
        {NULL, NULL, 0, 0},
};

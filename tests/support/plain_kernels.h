/* plain_kernels.h - the kernels of the trainer as plain C, a lane a call; included once per table.
 * Invariant: what runs is the text that devices compile.  A tensor is two values, its memory and the number of its
 * first element there; a value of a launch is at the start of its eight bytes.
 *
 * PLAIN_TABLE names the table; with MR_REAL_BF16 it has the typed kernels only, with MR_ONE_LANE the product only. */
#include <stdint.h>
#include <tgmath.h>

#include "kernels/dialect.h"
#include "support/lanes.h"
#include "support/plain_table.h"

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

#include "kernels/base.cl"

#include "kernels/elements.cl"
#include "kernels/rows.cl"
#include "kernels/tokens.cl"
#include "kernels/attention.cl"

#include "kernels/mma.cl"

#include "kernels/attention_mma.cl"
#include "kernels/loss.cl"
#ifndef MR_REAL_BF16
#include "kernels/updates.cl"

#include "kernels/gemm.cl"
#endif

static inline f32 plain_float(const u64 *value)
{
    f32 x;
    memcpy(&x, value, sizeof x);
    return x;
}

/* In a call: a tensor, whole numbers, a fraction, MR_DROPOUT, and MR_SHAPE of attention.cl. */
#define T(i)       (void *)(uintptr_t)v[i], v[(i) + 1]
#define N(i)       v[i]
#define F(i)       plain_float(&v[i])
#define DROPOUT(i) T(i), N((i) + 2), F((i) + 3), N((i) + 4)
#define SHAPE(i)                                                                                                       \
    N(i), N((i) + 1), N((i) + 2), N((i) + 3), N((i) + 4), N((i) + 5), N((i) + 6), N((i) + 7), F((i) + 8), N((i) + 9)

enum { ALONE, TOGETHER }; /* lanes: with barriers */

/* X(name, lanes, barriers, arguments) */
#define TYPED(X)                                                                                                       \
    X(drop, MR_WIDTH, ALONE, T(0), T(2), N(4), N(5), DROPOUT(6))                                                       \
    X(activate, MR_WIDTH, ALONE, T(0), T(2), T(4), N(6), N(7), N(8), N(9), DROPOUT(10))                                \
    X(add, MR_WIDTH, ALONE, T(0), T(2), T(4), N(6))                                                                    \
    X(norm, MR_WIDTH, TOGETHER, T(0), T(2), T(4), T(6), T(8), T(10), T(12), T(14), N(16), N(17), F(18), N(19), N(20),  \
      N(21), DROPOUT(22))                                                                                              \
    X(norm_back, MR_WIDTH, TOGETHER, T(0), T(2), T(4), T(6), T(8), T(10), T(12), N(14), N(15))                         \
    X(sum_part, MR_WIDTH, ALONE, T(0), T(2), T(4), T(6), T(8), N(10), N(11), N(12), N(13))                             \
    X(unit_back, MR_WIDTH, TOGETHER, T(0), T(2), T(4), T(6), N(8), F(9))                                               \
    X(cross_entropy, MR_WIDTH, TOGETHER, T(0), T(2), T(4), T(6), T(8), T(10), T(12), T(14), N(16), F(17), F(18),       \
      N(19))                                                                                                           \
    X(sigmoid_loss, MR_WIDTH, TOGETHER, T(0), T(2), T(4), T(6), T(8), T(10), T(12), N(14), N(15))                      \
    X(patches, MR_WIDTH, ALONE, T(0), T(2), N(4), N(5), N(6), N(7))                                                    \
    X(tokens, MR_WIDTH, ALONE, T(0), T(2), T(4), T(6), N(8), N(9), DROPOUT(10))                                        \
    X(tokens_back, MR_WIDTH, ALONE, T(0), T(2), T(4), T(6), N(8), N(9), N(10), DROPOUT(11))                            \
    X(rows, MR_WIDTH, ALONE, T(0), T(2), N(4), N(5), N(6), N(7))                                                       \
    X(lookup, MR_WIDTH, ALONE, T(0), T(2), T(4), N(6), N(7), N(8), N(9))                                               \
    X(lookup_back, MR_WIDTH, ALONE, T(0), T(2), T(4), N(6), N(7), N(8), N(9), N(10))                                   \
    X(attention_forward, MR_ATTENTION_LANES, TOGETHER, T(0), T(2), T(4), T(6), T(8), T(10), SHAPE(12), DROPOUT(22))    \
    X(attention_along, MR_WIDTH, ALONE, T(0), T(2), T(4), N(6), N(7), N(8), N(9), N(10))                               \
    X(attention_back_q, MR_ATTENTION_LANES, TOGETHER, T(0), T(2), T(4), T(6), T(8), T(10), T(12), SHAPE(14),           \
      DROPOUT(24))                                                                                                     \
    X(attention_back_kv, MR_ATTENTION_LANES, TOGETHER, T(0), T(2), T(4), T(6), T(8), T(10), T(12), T(14), SHAPE(16),   \
      DROPOUT(26))
#define PRODUCT(X, lanes, barriers)                                                                                    \
    X(gemm, lanes, barriers, T(0), T(2), T(4), T(6), N(8), N(9), N(10), N(11), N(12), N(13), N(14), N(15), N(16),      \
      N(17), N(18))
#if defined(MR_REAL_BF16)
#define KERNELS(X) TYPED(X)
#elif defined(MR_ONE_LANE)
#define KERNELS(X) PRODUCT(X, 1, ALONE)
#else
#define KERNELS(X)                                                                                                     \
    TYPED(X)                                                                                                           \
    PRODUCT(X, 256, TOGETHER)                                                                                          \
    X(to_bf16, MR_WIDTH, ALONE, T(0), T(2), N(4), N(5), N(6))                                                          \
    X(sgd, MR_WIDTH, ALONE, T(0), T(2), T(4), N(6), F(7), F(8), F(9), F(10))                                           \
    X(adamw, MR_WIDTH, ALONE, T(0), T(2), T(4), T(6), N(8), F(9), F(10), F(11), F(12), F(13), F(14), F(15), F(16),     \
      F(17))                                                                                                           \
    X(scale, MR_WIDTH, ALONE, T(0), T(2), T(4), N(6))                                                                  \
    X(scale_back, MR_WIDTH, TOGETHER, T(0), T(2), T(4), T(6), T(8), N(10), N(11))                                      \
    X(sum_fold, MR_WIDTH, ALONE, T(0), T(2), N(4), N(5), N(6))                                                         \
    X(unit, MR_WIDTH, TOGETHER, T(0), T(2), T(4), N(6), F(7))                                                          \
    X(squares, MR_WIDTH, TOGETHER, T(0), T(2), N(4), N(5))
#endif

#define X(name, lanes, barriers, ...)                                                                                  \
    static void call_##name(const void *values)                                                                        \
    {                                                                                                                  \
        const u64 *v = values;                                                                                         \
        mr_##name(__VA_ARGS__);                                                                                        \
    }
KERNELS(X)
#undef X

const plain_kernel PLAIN_TABLE[] = {
#define X(name, lanes, barriers, ...) {#name, call_##name, lanes, barriers},
    KERNELS(X)
#undef X
        {NULL, NULL, 0, 0},
};

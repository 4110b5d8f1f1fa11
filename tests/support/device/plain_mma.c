/* plain_mma.c - the kernels for activations in bf16, with attention for tensor cores, as plain C. */
#define MR_REAL_BF16
#define MR_MMA
#define PLAIN_TABLE plain_mma
#include "tests/support/device/plain_kernels.h"

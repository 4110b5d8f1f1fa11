/* plain_bf16.c - the kernels for activations in bf16 as plain C. */
#define MR_REAL_BF16
#define PLAIN_TABLE plain_bf16
#include "tests/support/device/plain_kernels.h"

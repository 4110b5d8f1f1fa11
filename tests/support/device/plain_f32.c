/* plain_f32.c - the kernels for activations in float32, and those that have no type, as plain C. */
#define PLAIN_TABLE plain_f32
#include "tests/support/device/plain_kernels.h"

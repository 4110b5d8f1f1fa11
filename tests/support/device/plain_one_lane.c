/* plain_one_lane.c - the product in groups of one lane, as processors run it, as plain C. */
#define MR_ONE_LANE
#define PLAIN_TABLE plain_one_lane
#include "tests/support/device/plain_kernels.h"

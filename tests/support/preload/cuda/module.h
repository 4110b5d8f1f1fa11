/* module.h - between the fake device and a module of kernels that g++ has built (language.hpp).
 * Invariant: the same for C and C++. */
#ifndef MR_FAKE_MODULE_H
#define MR_FAKE_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/device/lanes.h"

enum { EMULATED_ARGUMENTS = 40 };

typedef struct emulated_lanes { /* what a kernel asks */
    const lanes_spot *spot;
    void (*wait)(int line), (*wait_warp)(int line);
} emulated_lanes;

typedef struct emulated_kernel {
    const char *name;
    uint32_t lanes, count;             /* of a group at most; arguments */
    uint8_t sizes[EMULATED_ARGUMENTS]; /* bytes; of a pointer, of what it points to */
    bool pointers[EMULATED_ARGUMENTS];
    void (*call)(void *const *arguments); /* as one lane */
} emulated_kernel;

typedef struct emulated_module {
    const emulated_kernel *kernels;
    size_t count;
    uint8_t *shared, *shared_end; /* variables of the group; NULL: a sanitizer watches them */
} emulated_module;

#endif

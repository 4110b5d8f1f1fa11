/* text.h - private to this room: the text of all kernels, as the build put it into the program.
 * Invariant: it is dialect.h, base.cl and the other files of device/kernels one after the other, see
 * device/CMakeLists.txt. */
#ifndef MR_OPENCL_TEXT_H
#define MR_OPENCL_TEXT_H

#include <stddef.h>
#include <stdint.h>

extern const uint8_t mr_cl_text[];
extern const size_t mr_cl_text_size;

#endif

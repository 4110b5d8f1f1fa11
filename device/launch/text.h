/* text.h - private to devices that launch kernels: their text, as the build put it into the program.
 * Invariant: it is dialect.h, base.cl and the other files of device/kernels one after another, see
 * device/CMakeLists.txt; its start is all that typed kernels need. */
#ifndef MR_LAUNCH_TEXT_H
#define MR_LAUNCH_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* A pointer, as a test that is linked to a library would keep the size that an array had then. */
extern const uint8_t *const mr_launch_text;
extern const size_t mr_launch_text_size;
extern const size_t
    mr_launch_text_typed; /* bytes of the part that is built again for bf16, with MR_REAL_BF16 defined */

#endif

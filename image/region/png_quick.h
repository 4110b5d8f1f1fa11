/* png_quick.h - private to this module: the rows of a PNG of the usual kinds, unpacked at once by libdeflate.
 * Invariant: the samples are those that libspng gives.  What is rare (interlaced, other than 8 bits, with a tRNS
 * chunk), large, or damaged in any way is left to libspng, which also says what is wrong with it. */
#ifndef MR_PNG_QUICK_H
#define MR_PNG_QUICK_H

#include <spng.h>

#include "image/region/parts.h"

typedef struct mr_png_quick {
    struct spng_ihdr ihdr;
    const uint8_t *palette; /* three bytes for each of `colours`; in the file */
    size_t colours;
    const uint8_t *rows; /* rows of 8-bit samples, `stride` apart, in the scratch's `work` */
    size_t stride;
} mr_png_quick;

/* The first `count` rows of the file.  False: decode it by libspng. */
bool mr_png_quick_rows(mr_pixels_scratch *s, const uint8_t *bytes, size_t len, uint32_t count, mr_png_quick *out);

#endif

/* png_numbers.h - a PNG whose samples are numbers, not colours, such as a mask of classes.
 * Invariant: a number is the sample as stored: a grey value is not scaled, and an index not looked up. */
#ifndef MR_PNG_NUMBERS_H
#define MR_PNG_NUMBERS_H

#include "base/buf.h"
#include "image/region/pixels.h"

/* Replaces the contents of `out` by width x height numbers, row by row.  MR_BAD_SAMPLE: it cannot be decoded, has
 * another size, several channels, or more than 8 bits a sample.  `s` lends its buffers. */
mr_status mr_png_numbers(mr_pixels_scratch *s, const uint8_t *bytes, size_t len, uint32_t width, uint32_t height,
                         mr_buf *out, mr_error *err);

#endif

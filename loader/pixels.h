/* pixels.h - encoded bytes to RGB pixels of a region.  The boundary under which a faster decoder can come.
 * Invariant: a region equals the same region of a full decode, to the last bit.
 *
 *   gray         R = G = B                       palette       looked up
 *   gray/RGB + alpha, transparent colours        alpha dropped (as Pillow's convert("RGB") does), not blended
 *   16 bit       as Pillow's convert("RGB"): RGB(A) 16 keeps the high byte; gray 16 is clipped to 255 (mode I)
 *   CMYK, YCCK   as Pillow: Adobe-inverted CMYK, R = clip(255 - C - K)... (state the exact arithmetic here)
 */
#ifndef MR_PIXELS_H
#define MR_PIXELS_H

#include "image.h"

typedef struct mr_region {
    uint32_t left, top, width, height;
} mr_region;

typedef struct mr_pixels_scratch mr_pixels_scratch;     /* one a thread: decoder state and buffers, reused */
mr_pixels_scratch *mr_pixels_scratch_new(void);         /* NULL: no memory */
void mr_pixels_scratch_free(mr_pixels_scratch *s);

/* Decodes `region` (in stored pixels, inside width x height of `facts`) to packed RGB, region.width * 3 bytes a row.
 * *rgb is lent by the scratch until its next use.  MR_BAD_SAMPLE: cannot be decoded in full; a decoder's warning is a
 * failure. */
mr_status mr_pixels_decode(mr_pixels_scratch *s, const uint8_t *bytes, size_t len, const mr_image_facts *facts,
                           const mr_region *region, const uint8_t **rgb, mr_error *err);

/* EXIF orientation: the picture as it is meant to be seen.  Size of it, a region of it in stored pixels, and the pixels
 * of that region turned (lent by the scratch; orientation 1 gives rgb itself back). */
void mr_orient_size(uint8_t orientation, uint32_t *width, uint32_t *height);
mr_region mr_orient_region(uint8_t orientation, uint32_t stored_width, uint32_t stored_height, const mr_region *seen);
mr_status mr_orient_pixels(mr_pixels_scratch *s, uint8_t orientation, const uint8_t *rgb, const mr_region *stored,
                           const uint8_t **turned, mr_error *err);

#endif

/* pixels.h - encoded bytes to RGB pixels of a region.  The boundary under which a faster decoder can come.
 * Invariant: a region equals the same region of a full decode, to the last bit.
 *
 * All of it equals Pillow 11's Image.open(file).convert("RGB"), which tests/oracle_pillow.py checks byte for byte:
 *
 *   JPEG gray, YCbCr, RGB    libjpeg-turbo's defaults: ISLOW, fancy upsampling, block smoothing; gray: R = G = B
 *   JPEG CMYK, YCCK          libjpeg's CMYK taken as inverted (255: no ink), with or without an Adobe marker:
 *                            R = K - mul(255 - C, K), G, B likewise; mul(a, b) = a * b / 255 to nearest, that is
 *                            t = a * b + 128, ((t >> 8) + t) >> 8.  No colour profile is applied, here or anywhere
 *   PNG gray 1, 2, 4 bits    times 255, 85, 17
 *   PNG gray 16              min(value, 255), not its high byte: Pillow's mode I;16
 *   PNG gray + alpha, RGB, RGB + alpha 16     the high byte of each sample
 *   PNG palette              looked up; a number n beyond the palette is (n, n, n)
 *   alpha, transparent colours       dropped, not blended; gamma is not applied
 *   WebP                     libwebp with fancy upsampling; an animation: its first frame on black.  APNG: the still
 *
 * Where Pillow makes up what damage took away (an early end, restart markers out of order) this refuses. */
#ifndef MR_PIXELS_H
#define MR_PIXELS_H

#include <stdatomic.h>

#include "codec/image.h"

typedef struct mr_region {
    uint32_t left, top, width, height;
} mr_region;

typedef struct mr_pixels_scratch mr_pixels_scratch; /* one a thread: decoder state and buffers, reused */
mr_pixels_scratch *mr_pixels_scratch_new(void);     /* NULL: no memory */
void mr_pixels_scratch_free(mr_pixels_scratch *s);
/* From now on a decode or a turn ends with MR_END, soon after *stop has become true: within a few rows, 1 KiB of a
 * JPEG, or a 256th of a large WebP's bytes (however much of the picture they hold).  `stop` must outlive the
 * scratch. */
void mr_pixels_scratch_stop(mr_pixels_scratch *s, const _Atomic bool *stop);

/* From now on libjpeg-turbo decodes all JPEGs, not only those that millrace's own decoder leaves to it: the same bytes,
 * later. */
void mr_pixels_scratch_libjpeg(mr_pixels_scratch *s);
typedef struct mr_pixels_counts {
    uint64_t own, libjpeg; /* JPEGs decoded by millrace's own decoder, and by libjpeg-turbo (or refused by it) */
    uint64_t seek;         /* of its own: with a seek index at hand */
} mr_pixels_counts;
mr_pixels_counts mr_pixels_scratch_counts(const mr_pixels_scratch *s);

/* Of the file that is decoded next, and of no other: where its scan can be entered, as jpeg/seek.h packs it.  Lent
 * until that decode ends; NULL: not known.  It changes no pixel: what is wrong in it is found and left alone. */
void mr_pixels_scratch_seek(mr_pixels_scratch *s, const uint8_t *seek, size_t len);

/* Decodes `region` (in stored pixels, inside width x height of `facts`) to packed RGB, region.width * 3 bytes a row.
 * *rgb is lent by the scratch until its next use.  MR_BAD_SAMPLE: cannot be decoded in full: of JPEGs,
 * what mr_image_decode() refuses, as far as the file is read; where the region has the last row, that is all of it.
 * MR_END: stopped. */
mr_status mr_pixels_decode(mr_pixels_scratch *s, const uint8_t *bytes, size_t len, const mr_image_facts *facts,
                           const mr_region *region, const uint8_t **rgb, mr_error *err);

/* EXIF orientation: the picture as it is meant to be seen.  Size of it, a region of it in stored pixels, and the pixels
 * of that region turned (lent by the scratch; orientation 1 gives rgb itself back). */
void mr_orient_size(uint8_t orientation, uint32_t *width, uint32_t *height);
mr_region mr_orient_region(uint8_t orientation, uint32_t stored_width, uint32_t stored_height, const mr_region *seen);
mr_status mr_orient_pixels(mr_pixels_scratch *s, uint8_t orientation, const uint8_t *rgb, const mr_region *stored,
                           const uint8_t **turned, mr_error *err);

#endif

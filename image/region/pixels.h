/* pixels.h - decodes a region of an encoded image to RGB.
 * Invariant: a region equals the same region of a full decode, to the last bit.
 *
 * This module: pixels.c chooses among jpeg.c, png.c and webp.c; orient.c applies the EXIF orientation; parts.h is what
 * they share.  A faster decoder needs no change outside this module.
 *
 * Pixels equal Pillow 11's Image.open(file).convert("RGB"), which tests/image/region/oracle_pillow.py checks:
 *
 *   JPEG gray, YCbCr, RGB    libjpeg-turbo's defaults: ISLOW, fancy upsampling, block smoothing; gray: R = G = B
 *   JPEG CMYK, YCCK          libjpeg's CMYK read as inverted (255: no ink), with or without an Adobe marker:
 *                            R = K - mul(255 - C, K), G, B likewise; mul(a, b) = a * b / 255 to nearest, that is
 *                            t = a * b + 128, ((t >> 8) + t) >> 8.  No colour profile is applied for any codec
 *   PNG gray 1, 2, 4 bits    times 255, 85, 17
 *   PNG gray 16              min(value, 255), not its high byte: Pillow's mode I;16
 *   PNG gray + alpha, RGB, RGB + alpha 16     the high byte of each sample
 *   PNG palette              looked up; an index n outside the palette is (n, n, n)
 *   alpha, transparent colours       dropped, not blended; gamma is not applied
 *   WebP                     libwebp with fancy upsampling; an animation: its first frame on black.  APNG: the still
 *
 * Damaged files (truncated, restart markers out of order), for which Pillow invents pixels, are rejected. */
#ifndef MR_PIXELS_H
#define MR_PIXELS_H

#include <stdatomic.h>

#include "image/codec/image.h"

typedef struct mr_region {
    uint32_t left, top, width, height;
} mr_region;

typedef struct mr_pixels_scratch mr_pixels_scratch; /* one per thread: decoder state and buffers, reused */
mr_pixels_scratch *mr_pixels_scratch_new(void);     /* NULL: out of memory */
void mr_pixels_scratch_free(mr_pixels_scratch *s);
/* From now on a call ends with MR_END soon after *stop becomes true: within a few rows, 1 KiB of a JPEG, 64 MiB of a
 * PNG's samples, or a 256th of a large WebP's bytes.  `stop` must outlive the scratch. */
void mr_pixels_scratch_stop(mr_pixels_scratch *s, const _Atomic bool *stop);

/* From now on libjpeg-turbo decodes all JPEGs and libspng all PNGs, not only those that millrace's own ways do not
 * support: the same bytes, but slower. */
void mr_pixels_scratch_libraries(mr_pixels_scratch *s);
typedef struct mr_pixels_counts {
    uint64_t own, libjpeg; /* JPEGs decoded by millrace's own decoder, and by libjpeg-turbo (or rejected by it) */
    uint64_t seek;         /* how many of `own` had a seek index */
} mr_pixels_counts;
mr_pixels_counts mr_pixels_scratch_counts(const mr_pixels_scratch *s);

/* For the next decode only: where the file's scan can be entered, as packed by image/jpeg/seek.h.  Must stay valid
 * until that decode ends; NULL: not known.  It does not affect pixels: errors in it are detected, and it is then not
 * used. */
void mr_pixels_scratch_seek(mr_pixels_scratch *s, const uint8_t *seek, size_t len);

/* Decodes `region` (in stored pixels, inside width x height of `facts`) to packed RGB, region.width * 3 bytes per row.
 * *rgb is owned by the scratch and valid until its next use.  MR_BAD_SAMPLE: cannot be decoded in full; a JPEG fails as
 * in mr_image_decode() up to where the file is read, which is its end if the region includes the last row.
 * MR_END: stopped. */
mr_status mr_pixels_decode(mr_pixels_scratch *s, const uint8_t *bytes, size_t len, const mr_image_facts *facts,
                           const mr_region *region, const uint8_t **rgb, mr_error *err);

/* The image as seen, with the EXIF orientation applied: its size, a region of it in stored pixels, and the pixels of
 * that region (owned by the scratch; orientation 1 returns `rgb` itself). */
void mr_orient_size(uint8_t orientation, uint32_t *width, uint32_t *height);
mr_region mr_orient_region(uint8_t orientation, uint32_t stored_width, uint32_t stored_height, const mr_region *seen);
mr_status mr_orient_pixels(mr_pixels_scratch *s, uint8_t orientation, const uint8_t *rgb, const mr_region *stored,
                           const uint8_t **turned, mr_error *err);

#endif

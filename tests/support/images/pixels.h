/* pixels.h - JPEGs of every sampling, their full decode by libjpeg-turbo alone, and regions held against one.
 * Invariant: a region that differs fails the running test and is named. */
#ifndef MR_SUPPORT_PIXELS_H
#define MR_SUPPORT_PIXELS_H

#include "image/region/pixels.h"
#include "tests/support/images/image.h"

typedef struct jpeg_make {
    unsigned width, height, components;
    uint8_t h[4], v[4]; /* sampling factors, 0: 1 */
    bool progressive, scans, arithmetic;
    unsigned restart;
    unsigned quality; /* 0: 85 */
    bool optimized;   /* Huffman tables of its own */
} jpeg_make;

void *pixels_take(size_t n); /* zeroed */
picture pixels_jpeg_make(mr_random *r, const jpeg_make *k);
/* RGB, or CMYK as it comes; heap. */
uint8_t *pixels_jpeg_whole(picture p, unsigned *channels);

mr_image_facts pixels_facts(picture p);
const uint8_t *pixels_decoded(mr_pixels_scratch *s, picture p, const mr_image_facts *f, mr_region r);
mr_region pixels_region(mr_random *r, uint32_t width, uint32_t height); /* a drawn one, small ones often */
/* The whole, a corner and `times` drawn regions of `p` against the whole's RGB. */
void pixels_check_regions(mr_random *rnd, mr_pixels_scratch *s, picture p, const uint8_t *want, int times,
                          const char *what);

#endif

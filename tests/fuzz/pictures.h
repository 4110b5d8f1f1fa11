/* pictures.h - what the targets that decode pictures share: a drawn region, its pixels or why there are none.
 * Invariant: what is drawn is a function of the input's bytes alone. */
#ifndef MR_FUZZ_PICTURES_H
#define MR_FUZZ_PICTURES_H

#include "base/random.h"
#include "tests/fuzz/fuzz.h"
#include "image/region/parts.h"

enum { FUZZ_PIXELS = 1 << 16 }; /* larger images are left alone: a fuzzer wants many, not large ones */

/* Some part of a picture of that size; one of three times all of it. */
mr_region fuzz_region(mr_random *draw, uint32_t width, uint32_t height);

typedef struct fuzz_judgement {
    mr_status status; /* MR_OK or MR_BAD_SAMPLE */
    mr_error err;
    const uint8_t *rgb; /* lent by the scratch */
} fuzz_judgement;

fuzz_judgement fuzz_decode(mr_pixels_scratch *s, const uint8_t *data, size_t size, const mr_image_facts *f,
                           const mr_region *r);

/* The size that a JPEG's frame header states, wherever it is: damage after it must not end the test.  False: none, or
 * one of too many pixels. */
bool fuzz_jpeg_facts(const uint8_t *data, size_t size, mr_image_facts *f);

#endif

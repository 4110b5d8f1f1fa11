/* jpeg.h - baseline JPEGs that no encoder makes: any symbol, codes of any length, any quantiser.
 * Invariant: what is written is sound: libjpeg-turbo decodes it without a word. */
#ifndef MR_SUPPORT_JPEG_H
#define MR_SUPPORT_JPEG_H

#include "tests/support/images/image.h"

typedef struct jpeg_coded {
    unsigned width, height, components;
    unsigned h, v;             /* of the first component; the others have 1, 1 */
    unsigned restart;          /* MCUs */
    unsigned ladder;           /* 1 to 8: this many codes of 1, 2, 3 ... bits; the others are all 8 bits longer */
    unsigned dc_bits, ac_bits; /* of the largest values, at most 15 */
    unsigned density;          /* 0 to 100: how many coefficients follow another */
    unsigned quant;            /* the largest quantiser, above 255: in 16 bits */
} jpeg_coded;

picture jpeg_coded_make(mr_random *r, const jpeg_coded *k);

typedef struct jpeg_sampling {
    const char *name;
    uint8_t components, h, v;
} jpeg_sampling;
enum { JPEG_SAMPLINGS = 7 };
extern const jpeg_sampling jpeg_samplings[JPEG_SAMPLINGS]; /* all that millrace's own decoder takes */
/* The i-th of many small pictures, encoded and coded ones, of every sampling, with and without restart markers. */
picture jpeg_draw(mr_random *r, unsigned i);

void jpeg_damage(mr_random *r, picture *p); /* one to three changes, cuts among them */
/* Whether libjpeg-turbo decodes all of it, end marker included, without a word. */
bool jpeg_taken_by_libjpeg(picture p);

#endif

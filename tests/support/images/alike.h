/* alike.h - drawn photographs, copies of them as augmentation makes copies, and both as files of any codec.
 * Invariant: equal seeds, sizes and edits give equal bytes. */
#ifndef MR_SUPPORT_ALIKE_H
#define MR_SUPPORT_ALIKE_H

#include "ingest/sample/sample.h"
#include "tests/support/images/image.h"

typedef struct alike_edit { /* all zero: as it is */
    unsigned quarters;      /* turns by 90 degrees */
    bool mirror, invert;
    double degrees, zoom, shear; /* zoom: the share of each side that is cropped away */
    double gain, offset;         /* of brightness; gain 0: 1 */
    unsigned cut;                /* black squares, an eighth of a side each */
    unsigned noise;              /* grey levels */
} alike_edit;

enum alike_codec { ALIKE_JPEG, ALIKE_ROUGH_JPEG, ALIKE_PNG, ALIKE_WEBP };

/* A scene of many patches of colour, as no other seed draws it; mr_picture_free() it. */
mr_picture alike_photo(uint64_t seed, uint32_t width, uint32_t height);
mr_picture alike_tone(uint8_t red, uint8_t green, uint8_t blue);
mr_picture alike_copy(const mr_picture *p, alike_edit edit);
mr_picture alike_resized(const mr_picture *p, uint32_t width, uint32_t height);
picture alike_file(const mr_picture *p, enum alike_codec codec);
/* The file of such a copy of such a photograph of 200 x 150 pixels, at this path. */
void alike_write(uint64_t seed, alike_edit edit, enum alike_codec codec, const char *path);

#endif

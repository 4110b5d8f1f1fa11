/* alike.h - whether two images look like copies of one original: a perceptual hash, and the comparison of two.
 * Invariant: the answer depends on the pixels alone, not on codec, size, orientation or brightness.
 *
 * The hash is the image itself, shrunk to 64 x 64 grey cells.  Fewer bits (the usual 64 signs of a cosine transform)
 * recognise a re-encoded copy, but not the copies in training sets: rotated by some degrees, cropped, with squares cut
 * out.  So two hashes are aligned, and then compared block by block. */
#ifndef MR_ALIKE_H
#define MR_ALIKE_H

#include <stdbool.h>
#include <stdint.h>

enum { MR_ALIKE_SIDE = 64 };

typedef struct mr_alike { /* 4 KiB; made by mr_image_shrink() */
    uint8_t grey[MR_ALIKE_SIDE * MR_ALIKE_SIDE];
} mr_alike;

/* Whether it is a single tone, which is not alike to any image. */
bool mr_alike_plain(const mr_alike *a);
/* Takes a few milliseconds for any images.  Thread-safe. */
bool mr_alike_compare(const mr_alike *a, const mr_alike *b);

/* Half as wide and high: enough to see that most pairs of images are not alike. */
typedef struct mr_alike_rough {
    uint8_t grey[MR_ALIKE_SIDE * MR_ALIKE_SIDE / 4];
} mr_alike_rough;

/* Where in one image the other is expected: a window of `zoom` of its side, its middle x, y sides off the middle. */
typedef struct mr_alike_window {
    float zoom, x, y;
} mr_alike_window;

void mr_alike_rough_make(const mr_alike *a, mr_alike_rough *out);
/* False: b is hardly a copy of this window of a, mirrored and turned as `way` says: bit 0: left to right, bit 1: top to
 * bottom, bit 2: at the diagonal.  Takes 10 microseconds. */
bool mr_alike_rough_compare(const mr_alike_rough *a, const mr_alike_rough *b, mr_alike_window window, unsigned way);

#endif

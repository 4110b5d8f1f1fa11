/* alike.h - whether two pictures look like copies of one original: a perceptual hash, and the comparison of two.
 * Invariant: the answer depends on the pixels alone, not on codec, size, orientation or brightness.
 *
 * The hash is the picture itself, shrunk to 64 x 64 grey cells.  Fewer bits (the usual 64 signs of a cosine transform)
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

/* Whether it is a single tone, which is not alike to any picture. */
bool mr_alike_plain(const mr_alike *a);
/* Takes a few milliseconds for any pictures.  Thread-safe. */
bool mr_alike_compare(const mr_alike *a, const mr_alike *b);

#endif

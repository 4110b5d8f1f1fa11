/* alike.h - do two pictures look like copies of one original?  A perceptual hash, and the comparison of two of them.
 * Invariant: the answer depends on the pixels alone: not on codec, size, orientation or brightness.
 *
 * The hash is the picture itself, shrunk to 64 x 64 grey cells.  Fewer bits (the usual 64 signs of a cosine transform)
 * tell a re-encoded copy from another picture, but not the copies that training sets hold: rotated by some degrees,
 * cropped, with squares cut out.  So two hashes are laid over one another as well as they fit, and then compared block
 * by block. */
#ifndef MR_ALIKE_H
#define MR_ALIKE_H

#include <stdbool.h>
#include <stdint.h>

enum { MR_ALIKE_SIDE = 64 };

typedef struct mr_alike { /* 4 KiB; made by mr_image_shrink() */
    uint8_t grey[MR_ALIKE_SIDE * MR_ALIKE_SIDE];
} mr_alike;

/* A single tone: there is nothing to compare, and no other picture that it is alike. */
bool mr_alike_plain(const mr_alike *a);
/* Some milliseconds, whatever the pictures.  Thread-safe. */
bool mr_alike_compare(const mr_alike *a, const mr_alike *b);

#endif

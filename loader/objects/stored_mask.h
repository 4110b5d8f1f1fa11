/* stored_mask.h - a mask of numbers that the source has beside an image, moved as the image is.
 * Invariant: a number of the result is the nearest one of the mask, or 255 outside of the image. */
#ifndef MR_STORED_MASK_H
#define MR_STORED_MASK_H

#include <stddef.h>

#include "loader/order/augment.h"
#include "shards/format/objects.h"

enum { MR_MASK_NONE = 255 }; /* nothing is known of the pixel */

/* `numbers`: stored->width x height, as the image is stored.  `steps`: working memory for `width` numbers.  `out`: a
 * row of `width` bytes for each of `height`, the delivered image's size.  Source: torchvision's resize by NEAREST. */
void mr_stored_mask_move(const uint8_t *numbers, const mr_stored *stored, const mr_view *v, uint32_t width,
                         uint32_t height, ptrdiff_t *steps, uint8_t *out);

#endif

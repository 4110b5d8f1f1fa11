/* stored_mask.c - see stored_mask.h.
 * The EXIF orientation moves a step to the right or down in the image as seen to a constant step in the image as
 * stored, so that a pixel's place is the sum of two. */
#include <stddef.h>
#include <string.h>

#include "loader/objects/stored_mask.h"
#include "image/region/pixels.h"

/* Where a pixel of the image as seen is stored. */
static ptrdiff_t place_of(const mr_stored *s, uint32_t x, uint32_t y)
{
    const mr_region seen = {x, y, 1, 1};
    const mr_region at = mr_orient_region(s->orientation, s->width, s->height, &seen);
    return (ptrdiff_t)((size_t)at.top * s->width + at.left);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void mr_stored_mask_move(const uint8_t *numbers, const mr_stored *stored, const mr_view *v, uint32_t width,
                         uint32_t height, ptrdiff_t *steps, uint8_t *out)
{
    const uint32_t across = least(v->out_width - v->crop_left, width - v->pad_left);
    const uint32_t down = least(v->out_height - v->crop_top, height - v->pad_top);
    const ptrdiff_t origin = place_of(stored, 0, 0);
    memset(out, MR_MASK_NONE, (size_t)width * height);
    for (uint32_t x = 0; x < across; x++) {
        uint64_t from = v->left + ((uint64_t)x + v->crop_left) * v->width / v->out_width;
        steps[x] = place_of(stored, (uint32_t)from, 0) - origin;
    }
    for (uint32_t y = 0; y < down; y++) {
        uint64_t from = v->top + ((uint64_t)y + v->crop_top) * v->height / v->out_height;
        const uint8_t *row = numbers + place_of(stored, 0, (uint32_t)from);
        uint8_t *to = out + ((size_t)v->pad_top + y) * width;
        for (uint32_t x = 0; x < across; x++)
            to[v->flip ? width - 1 - v->pad_left - x : v->pad_left + x] = row[steps[x]];
    }
}

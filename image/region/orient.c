/* orient.c - EXIF orientation: where the pixel seen at (x, y) is stored.
 * Invariant: sizes, regions and pixels follow from one table.
 *
 *      1 as stored     2 mirrored      3 half turn     4 upside down
 *      5 transposed    6 quarter turn clockwise        7 transverse        8 quarter turn counterclockwise
 * Source: EXIF 2.32, tag 0x0112; the same as Pillow's ImageOps.exif_transpose. */
#include <string.h>

#include "image/region/parts.h"

/* The pixel seen at (x, y) is stored at (a, b) = (x, y), or (y, x) if `swap`; a flag each: counted from the far end. */
typedef struct turn {
    bool swap, from_right, from_bottom;
} turn;

static turn turn_of(uint8_t orientation)
{
    static const turn turns[9] = {
        [2] = {false, true, false}, [3] = {false, true, true}, [4] = {false, false, true}, [5] = {true, false, false},
        [6] = {true, false, true},  [7] = {true, true, true},  [8] = {true, true, false},
    };
    return turns[orientation < MR_COUNT(turns) ? orientation : 0];
}

void mr_orient_size(uint8_t orientation, uint32_t *width, uint32_t *height)
{
    uint32_t w = *width;
    if (!turn_of(orientation).swap)
        return;
    *width = *height;
    *height = w;
}

mr_region mr_orient_region(uint8_t orientation, uint32_t stored_width, uint32_t stored_height, const mr_region *seen)
{
    turn t = turn_of(orientation);
    mr_region r = *seen;
    if (t.swap)
        r = (mr_region){seen->top, seen->left, seen->height, seen->width};
    if (t.from_right)
        r.left = stored_width - r.left - r.width;
    if (t.from_bottom)
        r.top = stored_height - r.top - r.height;
    return r;
}

mr_status mr_orient_pixels(mr_pixels_scratch *s, uint8_t orientation, const uint8_t *rgb, const mr_region *stored,
                           const uint8_t **turned, mr_error *err)
{
    turn t = turn_of(orientation);
    if (!t.swap && !t.from_right && !t.from_bottom) {
        *turned = rgb;
        return MR_OK;
    }
    uint8_t *out = mr_pixels_reserve(&s->turned, stored->width, stored->height, 3);
    if (!out)
        return mr_fail_memory(err, "rotating an image");
    *turned = out;
    uint32_t width = stored->width, height = stored->height;
    mr_orient_size(orientation, &width, &height);
    ptrdiff_t row = (ptrdiff_t)stored->width * 3;
    ptrdiff_t right = t.from_right ? -3 : 3, down = t.from_bottom ? -row : row;
    const uint8_t *first = rgb + (t.from_right ? row - 3 : 0) + (t.from_bottom ? row * (stored->height - 1) : 0);
    ptrdiff_t along = t.swap ? down : right, across = t.swap ? right : down;
    for (uint32_t y = 0; y < height; y++) {
        if (mr_pixels_stopped(s))
            return MR_END;
        const uint8_t *from = first + across * y;
        for (uint32_t x = 0; x < width; x++, from += along, out += 3)
            memcpy(out, from, 3);
    }
    return MR_OK;
}

/* test_stored_mask.c - masks moved by views, against a search of the nearest pixel in the image as seen.
 * Invariant tested: every orientation, mirror, crop, scale and frame moves a mask as it moves pixels. */
#include <stdlib.h>
#include <string.h>

#include "image/region/pixels.h"
#include "loader/objects/stored_mask.h"
#include "tests/support/support.h"

/* The image as seen: by the pixels' own way, of numbers in place of red. */
static uint8_t *see(const uint8_t *numbers, const mr_stored *s, uint32_t *width, uint32_t *height)
{
    size_t count = (size_t)s->width * s->height;
    uint8_t *rgb = calloc(count, 3), *seen = calloc(count, 1);
    const uint8_t *turned;
    const mr_region whole = {0, 0, s->width, s->height};
    mr_pixels_scratch *scratch = mr_pixels_scratch_new();
    for (size_t i = 0; i < count; i++)
        rgb[3 * i] = numbers[i];
    assert_int_equal(mr_orient_pixels(scratch, s->orientation, rgb, &whole, &turned, NULL), MR_OK);
    for (size_t i = 0; i < count; i++)
        seen[i] = turned[3 * i];
    *width = s->width;
    *height = s->height;
    mr_orient_size(s->orientation, width, height);
    mr_pixels_scratch_free(scratch);
    free(rgb);
    return seen;
}

/* What a pixel of the result shows. */
static uint8_t expected(const uint8_t *seen, uint32_t seen_width, const mr_view *v, uint32_t width, uint32_t x,
                        uint32_t y)
{
    int64_t at_x = (int64_t)(v->flip ? width - 1 - x : x) - v->pad_left + v->crop_left;
    int64_t at_y = (int64_t)y - v->pad_top + v->crop_top;
    if (at_x < v->crop_left || at_y < v->crop_top || at_x >= v->out_width || at_y >= v->out_height)
        return MR_MASK_NONE;
    uint64_t left = v->left + (uint64_t)at_x * v->width / v->out_width;
    uint64_t top = v->top + (uint64_t)at_y * v->height / v->out_height;
    return seen[top * seen_width + left];
}

static mr_view draw_view(mr_random *r, unsigned kind, uint32_t size, uint32_t height, uint32_t w, uint32_t h)
{
    mr_transform t = {.kind = (mr_transform_kind)kind, .size = size, .flip = 0.5f};
    uint64_t n = mr_random_u64(r);
    if (kind == MR_TRANSFORM_PATCH) {
        t.resize = size < height ? size / 2 : height / 2;
        return mr_view_patch(&t, height, n, 0, n, w, h);
    }
    if (kind == MR_TRANSFORM_LETTERBOX)
        return mr_view_letterbox(&t, height, w, h);
    mr_view v = kind == MR_TRANSFORM_TRAIN ? mr_view_train(&t, n, 0, n, w, h) : mr_view_eval(&t, w, h);
    if (kind != MR_TRANSFORM_CENTER)
        v.out_height = height;
    return v;
}

static void masks_move_as_pixels_do(void **state)
{
    (void)state;
    mr_random r = support_random();
    for (unsigned i = 0; i < 2000; i++) {
        const mr_stored s = {1 + (uint32_t)mr_random_below(&r, 60), 1 + (uint32_t)mr_random_below(&r, 60),
                             1 + (uint8_t)mr_random_below(&r, 8)};
        const unsigned kind = (unsigned)mr_random_below(&r, MR_TRANSFORM_PATCH + 1);
        const uint32_t width = 1 + (uint32_t)mr_random_below(&r, 70),
                       height = kind == MR_TRANSFORM_CENTER ? width : 1 + (uint32_t)mr_random_below(&r, 70);
        uint8_t *numbers = calloc((size_t)s.width * s.height, 1), *out = calloc((size_t)width * height, 1);
        ptrdiff_t *steps = calloc(width, sizeof *steps);
        uint32_t seen_width, seen_height;
        for (size_t k = 0; k < (size_t)s.width * s.height; k++)
            numbers[k] = (uint8_t)mr_random_below(&r, 255);
        uint8_t *seen = see(numbers, &s, &seen_width, &seen_height);
        const mr_view v = draw_view(&r, kind, width, height, seen_width, seen_height);
        mr_stored_mask_move(numbers, &s, &v, width, height, steps, out);
        for (uint32_t y = 0; y < height; y++)
            for (uint32_t x = 0; x < width; x++)
                assert_int_equal(out[(size_t)y * width + x], expected(seen, seen_width, &v, width, x, y));
        free(seen);
        free(numbers);
        free(out);
        free(steps);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(masks_move_as_pixels_do)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

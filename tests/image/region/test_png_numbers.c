/* test_png_numbers.c - PNGs of every kind as numbers, by both ways, against what the pixels of the same file are.
 * Invariant tested: grey values are the samples themselves, and everything that is not numbers of a byte is refused. */
#include <string.h>

#include "image/region/png_numbers.h"
#include "image/region/pixels.h"
#include "tests/support/images/image.h"

enum { W = 37, H = 21 };

static mr_pixels_scratch *ways[2]; /* the second decodes by libspng alone */

static int open_ways(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        ways[i] = mr_pixels_scratch_new();
    mr_pixels_scratch_libraries(ways[1]);
    return 0;
}

static int close_ways(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        mr_pixels_scratch_free(ways[i]);
    return 0;
}

/* Grey samples are delivered as pixels times 255, 85, 17 or 1. */
static void greys_are_not_scaled(void **state)
{
    (void)state;
    static const unsigned depths[] = {1, 2, 4, 8}, scales[] = {255, 85, 17, 1};
    for (unsigned n = 0; n < 16; n++) {
        unsigned i = n / 2;
        picture p = make_png(W, H, 0, (uint8_t)depths[i / 2], i % 2);
        mr_buf out = {0};
        mr_error err;
        mr_image_facts facts;
        const mr_image_limits limits = {0};
        const mr_region whole = {0, 0, W, H};
        const uint8_t *rgb;
        assert_int_equal(mr_image_examine(p.bytes, p.len, &limits, &facts, &err), MR_OK);
        assert_int_equal(mr_pixels_decode(ways[1], p.bytes, p.len, &facts, &whole, &rgb, &err), MR_OK);
        assert_int_equal(mr_png_numbers(ways[n % 2], p.bytes, p.len, W, H, &out, &err), MR_OK);
        assert_int_equal(out.len, W * H);
        for (size_t at = 0; at < W * H; at++)
            assert_int_equal(out.data[at] * scales[i / 2], rgb[3 * at]);
        mr_buf_free(&out);
        picture_free(&p);
    }
}

/* Indices that differ are numbers that differ: as many as the picture has colours. */
static void indices_are_not_looked_up(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 8; n++) {
        unsigned depth = 1u << n / 2;
        picture p = make_png(W, H, 3, (uint8_t)depth, false);
        mr_buf out = {0};
        mr_error err;
        assert_int_equal(mr_png_numbers(ways[n % 2], p.bytes, p.len, W, H, &out, &err), MR_OK);
        assert_int_equal(out.len, W * H);
        bool seen[256] = {false};
        for (size_t at = 0; at < out.len; at++) {
            assert_true(out.data[at] < 1u << depth);
            seen[out.data[at]] = true;
        }
        assert_true(seen[0] && seen[1]);
        mr_buf_free(&out);
        picture_free(&p);
    }
}

static void refuse(picture *p, uint32_t width, const char *message)
{
    mr_buf out = {0};
    mr_error err;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mr_png_numbers(ways[i], p->bytes, p->len, width, H, &out, &err), MR_BAD_SAMPLE);
        if (!strstr(err.text, message))
            fail_msg("%s, not %s", err.text, message);
    }
    mr_buf_free(&out);
    picture_free(p);
}

static void others_are_refused(void **state)
{
    (void)state;
    picture grey = make_png(W, H, 0, 8, false), deep = make_png(W, H, 0, 16, false), rgb = make_png(W, H, 2, 8, false);
    picture alpha = make_png(W, H, 4, 8, false), cut = make_png(W, H, 0, 8, false);
    jpeg_kind kind = {.width = W, .height = H, .components = 1};
    picture jpeg = make_jpeg(kind);
    refuse(&grey, W + 1, "37 x 21 pixels, and the image has 38 x 21");
    refuse(&deep, W, "its numbers have 16 bits; at most 8");
    refuse(&rgb, W, "it is in colour");
    refuse(&alpha, W, "it is in colour");
    cut.len -= 40;
    refuse(&cut, W, "PNG cannot be decoded");
    refuse(&jpeg, W, "PNG cannot be decoded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greys_are_not_scaled),
        cmocka_unit_test(indices_are_not_looked_up),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, open_ways, close_ways);
}

/* test_pixels_large.c - pictures so large that they are decoded bit by bit, so that a decode can be given up.
 * Invariant tested: the pixels are the same as of a decode in one go; once told to stop, nothing goes on. */
#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>

#include "image/resize/resize.h"
#include "tests/support/images/pixels.h"

/* libjpeg is given a file in pieces, which end in the middle of anything. */
static void jpegs_in_pieces_equal_the_full_decode(void **state)
{
    static const jpeg_make kinds[] = {
        {.width = 1500, .height = 900, .components = 3, .h = {2, 1, 1}, .v = {2, 1, 1}},
        {.width = 1100, .height = 901, .components = 3, .restart = 7},
        {.width = 1000, .height = 700, .components = 3, .progressive = true},
        {.width = 900, .height = 700, .components = 4, .restart = 5},
    };
    mr_random rnd = support_random();
    mr_pixels_scratch *s = mr_pixels_scratch_new();
    (void)state;
    mr_pixels_scratch_libraries(s);
    for (size_t i = 0; i < MR_COUNT(kinds); i++) {
        unsigned channels;
        picture p = pixels_jpeg_make(&rnd, &kinds[i]);
        uint8_t *want = pixels_jpeg_whole(p, &channels);
        mr_image_facts f = pixels_facts(p);
        assert_true(p.len > 256 << 10);
        if (channels == 3) {
            pixels_check_regions(&rnd, s, p, want, 6, "pieces");
        } else { /* of CMYK only that it is decoded to its end */
            pixels_decoded(s, p, &f, (mr_region){0, 0, f.width, f.height});
        }
        free(want);
        picture_free(&p);
    }
    mr_pixels_scratch_free(s);
}

/* A long segment before the picture is passed over, from one piece into the next, and beyond the end of the file. */
static void long_segments_are_passed_over(void **state)
{
    mr_random rnd = support_random();
    mr_pixels_scratch *s = mr_pixels_scratch_new();
    jpeg_make k = {.width = 90, .height = 70, .components = 3};
    picture p = pixels_jpeg_make(&rnd, &k), longer;
    unsigned channels;
    const uint8_t *rgb;
    mr_error err;
    uint8_t *want = pixels_jpeg_whole(p, &channels), *segment = pixels_take(2 + 65535);
    (void)state;
    mr_pixels_scratch_libraries(s);
    memcpy(segment, "\xff\xed\xff\xff", 4);
    for (int i = 0; i < 9; i++) {
        longer = picture_splice(p, 2, segment, 2 + 65535);
        picture_free(&p);
        p = longer;
    }
    pixels_check_regions(&rnd, s, p, want, 6, "long segments");
    mr_image_facts f = pixels_facts(p);
    for (size_t cut = 1; cut < 9; cut++) {
        picture ended = picture_copy(p.bytes, 2 + cut * (2 + 65535) - 17);
        mr_region all = {0, 0, 90, 70};
        assert_int_equal(mr_pixels_decode(s, ended.bytes, ended.len, &f, &all, &rgb, &err), MR_BAD_SAMPLE);
        assert_non_null(strstr(err.text, "Premature end"));
        picture_free(&ended);
    }
    free(segment);
    free(want);
    picture_free(&p);
    mr_pixels_scratch_free(s);
}

/* More than two million pixels: libwebp is given more and more of the file. */
static void webps_in_pieces_equal_the_full_decode(void **state)
{
    mr_random rnd = support_random();
    mr_pixels_scratch *s = mr_pixels_scratch_new();
    (void)state;
    for (int lossless = 0; lossless < 2; lossless++) {
        int width, height;
        picture p = make_webp(1601, 1403, lossless, false);
        uint8_t *want = WebPDecodeRGB(p.bytes, p.len, &width, &height);
        assert_non_null(want);
        pixels_check_regions(&rnd, s, p, want, 8, lossless ? "lossless" : "lossy");
        mr_image_facts f = pixels_facts(p);
        const uint8_t *rgb;
        mr_error err;
        mr_region all = {0, 0, f.width, f.height};
        assert_int_equal(mr_pixels_decode(s, p.bytes, p.len * 2 / 3, &f, &all, &rgb, &err), MR_BAD_SAMPLE);
        WebPFree(want);
        picture_free(&p);
    }
    mr_pixels_scratch_free(s);
}

static void nothing_goes_on_after_a_stop(void **state)
{
    picture kinds[] = {
        make_jpeg((jpeg_kind){.width = 300, .height = 200, .components = 3}),
        make_jpeg((jpeg_kind){.width = 300, .height = 200, .components = 3, .progressive = true}),
        make_png(300, 200, 2, 8, false),
        make_png(300, 200, 3, 4, true),
        make_webp(1601, 1403, false, false),
    };
    _Atomic bool stop = false;
    mr_pixels_scratch *s = mr_pixels_scratch_new();
    mr_resizer *z = mr_resizer_new();
    (void)state;
    mr_pixels_scratch_stop(s, &stop);
    mr_resizer_stop(z, &stop);
    for (size_t i = 0; i < MR_COUNT(kinds); i++) {
        mr_image_facts f = pixels_facts(kinds[i]);
        mr_region all = {0, 0, f.width, f.height};
        const uint8_t *rgb, *turned;
        uint8_t out[8 * 8 * 3];
        mr_error err;
        stop = true;
        assert_int_equal(mr_pixels_decode(s, kinds[i].bytes, kinds[i].len, &f, &all, &rgb, &err), MR_END);
        stop = false;
        rgb = pixels_decoded(s, kinds[i], &f, all);
        mr_resize_job job = {.rgb = rgb,
                             .in_width = f.width,
                             .in_height = f.height,
                             .out_width = 8,
                             .out_height = 8,
                             .crop_width = 8,
                             .crop_height = 8};
        stop = true;
        assert_int_equal(mr_orient_pixels(s, 6, rgb, &all, &turned, &err), MR_END);
        assert_int_equal(mr_resize_u8(z, &job, out, &err), MR_END);
        stop = false;
        assert_int_equal(mr_resize_u8(z, &job, out, &err), MR_OK);
        picture_free(&kinds[i]);
    }
    mr_resizer_free(z);
    mr_pixels_scratch_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jpegs_in_pieces_equal_the_full_decode),
        cmocka_unit_test(long_segments_are_passed_over),
        cmocka_unit_test(webps_in_pieces_equal_the_full_decode),
        cmocka_unit_test(nothing_goes_on_after_a_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

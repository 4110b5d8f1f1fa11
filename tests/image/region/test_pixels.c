/* test_pixels.c - a region's pixels are those of the whole picture; every kind of picture has its RGB.
 * Covers region/buffers.c, region/jpeg.c, region/orient.c, region/png.c, region/webp.c. */
#include <stdlib.h>
#include <string.h>

#include <spng.h>
#include <webp/decode.h>

#include "tests/support/images/pixels.h"

/* The rule of pixels.h in other words: colour times black, rounded to nearest, of Adobe's inverted inks. */
static uint8_t *rgb_of_cmyk(const uint8_t *cmyk, size_t pixels)
{
    uint8_t *rgb = pixels_take(pixels * 3);
    for (size_t i = 0; i < pixels * 3; i++) {
        const uint8_t *p = cmyk + i / 3 * 4;
        rgb[i] = (uint8_t)(p[3] - (int)((255 - p[i % 3]) * p[3] / 255.0 + 0.5));
    }
    return rgb;
}

static void check_jpeg(mr_random *rnd, mr_pixels_scratch *s, const jpeg_make *k, int times, const char *what)
{
    unsigned channels;
    picture p = pixels_jpeg_make(rnd, k);
    uint8_t *want = pixels_jpeg_whole(p, &channels);
    if (channels == 4) {
        uint8_t *rgb = rgb_of_cmyk(want, (size_t)k->width * k->height);
        free(want);
        want = rgb;
    }
    pixels_check_regions(rnd, s, p, want, times, what);
    free(want);
    picture_free(&p);
}

static void jpeg_regions_equal_the_full_decode(void **state)
{
    static const struct {
        const char *name;
        uint8_t components, h[4], v[4];
    } kinds[] = {
        {"4:4:4", 3, {1, 1, 1}, {1, 1, 1}},
        {"4:2:2", 3, {2, 1, 1}, {1, 1, 1}},
        {"4:2:0", 3, {2, 1, 1}, {2, 1, 1}},
        {"4:4:0", 3, {1, 1, 1}, {2, 1, 1}},
        {"4:1:1", 3, {4, 1, 1}, {1, 1, 1}},
        {"4:1:0", 3, {4, 1, 1}, {2, 1, 1}},
        {"1x4", 3, {1, 1, 1}, {4, 1, 1}},
        {"gray", 1, {1}, {1}},
        {"gray 2x2", 1, {2}, {2}},
        {"half chroma differs", 3, {2, 2, 1}, {2, 1, 2}},
        {"fine chroma", 3, {1, 2, 2}, {1, 2, 2}},
        {"CMYK", 4, {1, 1, 1, 1}, {1, 1, 1, 1}},
        {"CMYK 2x2", 4, {2, 1, 1, 2}, {2, 1, 1, 2}},
    };
    static const unsigned sides[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 97, 130, 201};
    mr_random rnd = support_random();
    mr_pixels_scratch *s = mr_pixels_scratch_new();
    (void)state;
    assert_non_null(s);
    for (size_t i = 0; i < MR_COUNT(kinds); i++) {
        for (int variant = 0; variant < 5; variant++) {
            for (int size = 0; size < 14; size++) {
                jpeg_make k = {.width = sides[mr_random_below(&rnd, MR_COUNT(sides))],
                               .height = sides[mr_random_below(&rnd, MR_COUNT(sides))],
                               .components = kinds[i].components,
                               .progressive = variant == 1,
                               .scans = variant == 3,
                               .arithmetic = variant == 4,
                               .restart = variant == 2 ? 1 + (unsigned)size % 4 : 0};
                if (size == 0)
                    k.width = k.height = 1;
                if (size == 1)
                    k.width = 333, k.height = 210;
                memcpy(k.h, kinds[i].h, 4);
                memcpy(k.v, kinds[i].v, 4);
                if (k.scans && k.components != 3)
                    continue;
                check_jpeg(&rnd, s, &k, size == 1 ? 40 : 12, kinds[i].name);
            }
        }
    }
    mr_pixels_scratch_free(s);
}

/* A progressive file without its last scans is smoothed by libjpeg, over more neighbours than a margin holds. */
static void unfinished_progressive_jpegs_are_smoothed_alike(void **state)
{
    mr_random rnd = support_random();
    mr_pixels_scratch *s = mr_pixels_scratch_new();
    (void)state;
    for (int i = 0; i < 12; i++) {
        jpeg_make k = {.width = 150 + (unsigned)i * 7, .height = 120, .components = i % 3 ? 3 : 1, .progressive = true};
        picture p = pixels_jpeg_make(&rnd, &k), cut;
        size_t at = 2;
        int scans = 0;
        for (at = 2, scans = 0; at + 1 < p.len; at++) { /* the end of scan 1 + i % 4: the next DHT or SOS */
            if (p.bytes[at] != 0xff || (p.bytes[at + 1] != 0xda && p.bytes[at + 1] != 0xc4))
                continue;
            if (scans > i % 4)
                break;
            scans += p.bytes[at + 1] == 0xda;
        }
        cut = picture_copy(p.bytes, at + 2);
        cut.bytes[at] = 0xff;
        cut.bytes[at + 1] = 0xd9;
        unsigned channels;
        uint8_t *want = pixels_jpeg_whole(cut, &channels);
        pixels_check_regions(&rnd, s, cut, want, 20, "unfinished");
        free(want);
        picture_free(&cut);
        picture_free(&p);
    }
    mr_pixels_scratch_free(s);
}

static void webp_regions_equal_the_full_decode(void **state)
{
    mr_random rnd = support_random();
    mr_pixels_scratch *s = mr_pixels_scratch_new();
    (void)state;
    for (int i = 0; i < 40; i++) {
        unsigned w = 1 + (unsigned)mr_random_below(&rnd, 150), h = 1 + (unsigned)mr_random_below(&rnd, 150);
        int width, height;
        picture p = make_webp(w, h, i & 1, i & 2);
        uint8_t *want = WebPDecodeRGB(p.bytes, p.len, &width, &height);
        assert_non_null(want);
        pixels_check_regions(&rnd, s, p, want, 25, "WebP");
        WebPFree(want);
        picture_free(&p);
    }
    picture still = make_webp(20, 30, false, false), moving = make_webp_extended(20, 30, 3, NULL);
    int width, height;
    uint8_t *want = WebPDecodeRGB(still.bytes, still.len, &width, &height);
    pixels_check_regions(&rnd, s, moving, want, 25, "animated WebP");
    WebPFree(want);
    picture_free(&still);
    picture_free(&moving);
    mr_pixels_scratch_free(s);
}

/* ---- PNG: known answers ---------------------------------------------------------------------------------------- */

static picture png_of(unsigned width, unsigned height, uint8_t colour, uint8_t depth, bool interlaced,
                      const void *pixels, size_t len, struct spng_plte *plte)
{
    struct spng_ihdr ihdr = {width, height, depth, colour, 0, 0, interlaced};
    int e = 0;
    size_t size = 0;
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);
    spng_set_ihdr(ctx, &ihdr);
    if (plte)
        spng_set_plte(ctx, plte);
    e = spng_encode_image(ctx, pixels, len, SPNG_FMT_RAW, SPNG_ENCODE_FINALIZE);
    if (e)
        fail_msg("spng: %s", spng_strerror(e));
    uint8_t *bytes = spng_get_png_buffer(ctx, &size, &e);
    picture p = picture_copy(bytes, size);
    free(bytes);
    spng_ctx_free(ctx);
    return p;
}

static void expect_png(uint8_t colour, uint8_t depth, const uint8_t *stored, size_t len, unsigned width,
                       const uint8_t *rgb, struct spng_plte *plte)
{
    mr_random rnd = support_random();
    mr_pixels_scratch *s = mr_pixels_scratch_new();
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        picture p = png_of(width, 1, colour, depth, interlaced, stored, len, plte);
        pixels_check_regions(&rnd, s, p, rgb, 10, "PNG");
        picture_free(&p);
    }
    mr_pixels_scratch_free(s);
}

static void pngs_of_every_kind_have_their_rgb(void **state)
{
    static const uint8_t black_white[] = {0, 0, 0, 255, 255, 255, 255, 255, 255, 0, 0, 0};
    static const uint8_t grays2[] = {0, 0, 0, 85, 85, 85, 170, 170, 170, 255, 255, 255};
    static const uint8_t grays4[] = {0, 0, 0, 17, 17, 17, 170, 170, 170, 255, 255, 255};
    static const uint8_t clipped[] = {0, 0, 0, 254, 254, 254, 255, 255, 255, 255, 255, 255};
    static const uint8_t three[] = {1, 2, 3, 250, 128, 0};
    static const uint8_t gray_alpha[] = {9, 9, 9, 200, 200, 200};
    static const uint8_t looked_up[] = {11, 12, 13, 21, 22, 23, 0, 0, 0, 0, 0, 0}; /* 2, 3: not in the palette */
    struct spng_plte plte = {.n_entries = 2, .entries = {{11, 12, 13, 0}, {21, 22, 23, 0}}};
    (void)state;
    expect_png(0, 1, (const uint8_t[]){0x60}, 1, 4, black_white, NULL);
    expect_png(0, 2, (const uint8_t[]){0x1b}, 1, 4, grays2, NULL);
    expect_png(0, 4, (const uint8_t[]){0x01, 0xaf}, 2, 4, grays4, NULL);
    expect_png(0, 8, (const uint8_t[]){0, 85, 170, 255}, 4, 4, grays2, NULL);
    expect_png(0, 16, (const uint8_t[]){0, 0, 0, 254, 1, 0, 0xff, 0xff}, 8, 4, clipped, NULL);
    expect_png(2, 8, three, 6, 2, three, NULL);
    expect_png(2, 16, (const uint8_t[]){1, 255, 2, 128, 3, 0, 250, 1, 128, 7, 0, 255}, 12, 2, three, NULL);
    expect_png(4, 8, (const uint8_t[]){9, 0, 200, 77}, 4, 2, gray_alpha, NULL);
    expect_png(4, 16, (const uint8_t[]){9, 255, 0, 0, 200, 1, 77, 0}, 8, 2, gray_alpha, NULL);
    expect_png(6, 8, (const uint8_t[]){1, 2, 3, 0, 250, 128, 0, 9}, 8, 2, three, NULL);
    expect_png(6, 16, (const uint8_t[]){1, 9, 2, 9, 3, 9, 0, 0, 250, 9, 128, 9, 0, 9, 0, 1}, 16, 2, three, NULL);
    expect_png(3, 8, (const uint8_t[]){0, 1, 3, 2}, 4, 4, looked_up, &plte);
    expect_png(3, 2, (const uint8_t[]){0x1e}, 1, 4, looked_up, &plte);
}

static void png_regions_equal_the_full_decode(void **state)
{
    static const struct {
        uint8_t colour, depth;
    } kinds[] = {
        {0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
        {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16},
    };
    mr_random rnd = support_random();
    mr_pixels_scratch *s = mr_pixels_scratch_new(), *t = mr_pixels_scratch_new();
    (void)state;
    for (size_t i = 0; i < MR_COUNT(kinds) * 2; i++) {
        unsigned w = 1 + (unsigned)mr_random_below(&rnd, 90), h = 1 + (unsigned)mr_random_below(&rnd, 90);
        picture p = make_png(w, h, kinds[i / 2].colour, kinds[i / 2].depth, i & 1);
        mr_image_facts f = pixels_facts(p);
        pixels_check_regions(&rnd, s, p, pixels_decoded(t, p, &f, (mr_region){0, 0, w, h}), 20, "PNG");
        picture_free(&p);
    }
    mr_pixels_scratch_free(s);
    mr_pixels_scratch_free(t);
}

/* ---- orientation ----------------------------------------------------------------------------------------------- */

static void turned_regions_are_regions_of_the_turned(void **state)
{
    /* a b      as EXIF's figures show the letter F: what is seen for each orientation of
     * c d       2 x 3 pixels stored */
    static const char *const seen[] = {"",       "abcdef", "badcfe", "fedcba", "efcdab",
                                       "acebdf", "ecafdb", "fdbeca", "bdface"};
    uint8_t stored[18];
    mr_pixels_scratch *s = mr_pixels_scratch_new();
    mr_error err;
    (void)state;
    for (size_t i = 0; i < 6; i++)
        memset(stored + 3 * i, 'a' + (int)i, 3);
    for (uint8_t o = 1; o <= 8; o++) {
        const uint8_t *turned;
        uint32_t w = 2, h = 3;
        mr_region all = {0, 0, 2, 3};
        mr_orient_size(o, &w, &h);
        assert_int_equal(w, o < 5 ? 2 : 3);
        assert_int_equal(mr_orient_pixels(s, o, stored, &all, &turned, &err), MR_OK);
        for (size_t i = 0; i < 6; i++)
            assert_int_equal(turned[3 * i + 1], seen[o][i]);
        for (uint32_t k = 0; k < w * h; k++) { /* each single pixel, found where it is stored */
            mr_region one = {k % w, k / w, 1, 1}, at = mr_orient_region(o, 2, 3, &one);
            assert_int_equal(stored[(at.top * 2 + at.left) * 3], seen[o][k]);
        }
    }
    mr_region r = mr_orient_region(6, 640, 480, &(mr_region){10, 20, 30, 40});
    assert_true(r.left == 20 && r.top == 480 - 10 - 30 && r.width == 40 && r.height == 30);
    mr_pixels_scratch_free(s);
}

/* ---- damage ---------------------------------------------------------------------------------------------------- */

static void damage_counts_only_where_it_is_read(void **state)
{
    mr_random rnd = support_random();
    mr_pixels_scratch *s = mr_pixels_scratch_new();
    jpeg_make k = {.width = 128, .height = 256, .components = 3, .restart = 16};
    picture p = pixels_jpeg_make(&rnd, &k);
    mr_image_facts f = pixels_facts(p), other = f;
    const uint8_t *rgb = NULL;
    mr_error err = {0};
    (void)state;
    for (size_t i = p.len * 3 / 4; i + 3 < p.len; i++)
        if (p.bytes[i] == 0xff && p.bytes[i + 1] >= 0xd0 && p.bytes[i + 1] <= 0xd7) {
            p.bytes[i + 1] ^= 4; /* a restart marker out of order */
            break;
        }
    mr_region top = {0, 0, 128, 100}, all = {0, 0, 128, 256}, low = {5, 240, 9, 9}, out = {1, 0, 128, 1};
    pixels_decoded(s, p, &f, top);
    assert_int_equal(mr_pixels_decode(s, p.bytes, p.len, &f, &all, &rgb, &err), MR_BAD_SAMPLE);
    assert_non_null(strstr(err.text, "JPEG cannot be decoded"));
    assert_int_equal(mr_pixels_decode(s, p.bytes, p.len, &f, &low, &rgb, &err), MR_BAD_SAMPLE);
    assert_int_equal(mr_pixels_decode(s, p.bytes, p.len, &f, &out, &rgb, &err), MR_MISUSE);
    other.width--;
    top.width--;
    assert_int_equal(mr_pixels_decode(s, p.bytes, p.len, &other, &top, &rgb, &err), MR_BAD_SAMPLE);
    assert_non_null(strstr(err.text, "128 x 256 pixels, but 127 x 256 in the index; run `millrace verify --deep`"));
    assert_null(rgb);
    picture_free(&p);
    mr_pixels_scratch_free(s);
}

/* Any bytes, taken for what they are not: no read out of bounds (a sanitizer watches), a reason or a picture. */
static void hostile_bytes_are_refused_or_decoded(void **state)
{
    mr_random rnd = support_random();
    mr_pixels_scratch *s = mr_pixels_scratch_new();
    jpeg_make k = {.width = 70, .height = 50, .components = 3, .h = {2, 1, 1}, .v = {2, 1, 1}};
    picture sound[] = {pixels_jpeg_make(&rnd, &k),     make_png(70, 50, 2, 8, false),
                       make_png(70, 50, 3, 4, true),   make_webp(70, 50, false, true),
                       make_webp(70, 50, true, false), make_webp_extended(70, 50, 2, NULL)};
    int refused = 0, taken = 0;
    (void)state;
    for (int i = 0; i < 1500; i++) {
        picture p = sound[(size_t)i % MR_COUNT(sound)], bad;
        mr_image_facts f = pixels_facts(p);
        bad = picture_copy(p.bytes, i % 5 ? p.len : (size_t)mr_random_below(&rnd, p.len));
        for (int n = 0; n < 1 + i % 4 && bad.len; n++)
            bad.bytes[mr_random_below(&rnd, bad.len)] = (uint8_t)mr_random_u64(&rnd);
        mr_region r = pixels_region(&rnd, f.width, f.height);
        const uint8_t *rgb;
        mr_error err = {0};
        mr_status status = mr_pixels_decode(s, bad.bytes, bad.len, &f, &r, &rgb, &err);
        assert_true(status == MR_OK || (status == MR_BAD_SAMPLE && err.text[0]));
        taken += status == MR_OK;
        refused += status != MR_OK;
        picture_free(&bad);
    }
    assert_true(taken > 50 && refused > 50);
    for (size_t i = 0; i < MR_COUNT(sound); i++)
        picture_free(&sound[i]);
    mr_pixels_scratch_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jpeg_regions_equal_the_full_decode),
        cmocka_unit_test(unfinished_progressive_jpegs_are_smoothed_alike),
        cmocka_unit_test(webp_regions_equal_the_full_decode),
        cmocka_unit_test(pngs_of_every_kind_have_their_rgb),
        cmocka_unit_test(png_regions_equal_the_full_decode),
        cmocka_unit_test(turned_regions_are_regions_of_the_turned),
        cmocka_unit_test(damage_counts_only_where_it_is_read),
        cmocka_unit_test(hostile_bytes_are_refused_or_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

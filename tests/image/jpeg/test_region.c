/* test_region.c - millrace's own JPEG decoder against libjpeg-turbo: the same pixels, or the same refusal.
 * Covers image/jpeg/decoder.c, image/jpeg/parse.c, loader/bench/partial.c, image/jpeg/scan.c, image/jpeg/tables.c. */
#include <stdlib.h>
#include <string.h>

#include "image/jpeg/region.h"
#include "image/region/parts.h"
#include "tests/support/images/jpeg.h"
#include "tests/support/images/pixels.h"

typedef struct ways { /* the three that must agree */
    mr_pixels_scratch *own, *plain, *libjpeg;
} ways;

static ways ways_open(void)
{
    ways w = {mr_pixels_scratch_new(), mr_pixels_scratch_new(), mr_pixels_scratch_new()};
    assert_true(w.own && w.plain && w.libjpeg);
    mr_jpeg_decoder_plain(w.plain->jpeg);
    mr_pixels_scratch_libraries(w.libjpeg);
    return w;
}

static void ways_close(ways *w)
{
    mr_pixels_scratch_free(w->own);
    mr_pixels_scratch_free(w->plain);
    mr_pixels_scratch_free(w->libjpeg);
}

static void expect_taken(const ways *w, bool taken, const char *what)
{
    mr_pixels_counts a = mr_pixels_scratch_counts(w->own), b = mr_pixels_scratch_counts(w->plain);
    if (taken ? a.libjpeg || b.libjpeg || !a.own || !b.own : a.own || b.own || !a.libjpeg || !b.libjpeg)
        fail_msg("%s: %s libjpeg-turbo", what, taken ? "left to" : "not left to");
}

/* ---- sound pictures ---------------------------------------------------------------------------------------------- */

static void check(mr_random *rnd, picture p, int times, const char *what)
{
    unsigned channels;
    uint8_t *want = pixels_jpeg_whole(p, &channels);
    ways w = ways_open();
    pixels_check_regions(rnd, w.own, p, want, times, what);
    pixels_check_regions(rnd, w.plain, p, want, times, what);
    pixels_check_regions(rnd, w.libjpeg, p, want, times, what);
    expect_taken(&w, true, what);
    ways_close(&w);
    free(want);
    picture_free(&p);
}

static void pictures_of_every_size_and_sampling(void **state)
{
    mr_random rnd = support_random();
    (void)state;
    for (size_t i = 0; i < JPEG_SAMPLINGS; i++) {
        for (unsigned n = 0; n < 60; n++) {
            unsigned narrowest = jpeg_samplings[i].h == 2 && jpeg_samplings[i].components == 3 ? 5 : 1;
            jpeg_make k = {.width = narrowest + (n < 20 ? n : (unsigned)mr_random_below(&rnd, 180)),
                           .height = 1 + (n < 20 ? n : (unsigned)mr_random_below(&rnd, 120)),
                           .components = jpeg_samplings[i].components,
                           .h = {jpeg_samplings[i].h, 1, 1},
                           .v = {jpeg_samplings[i].v, 1, 1},
                           .quality = 1 + (unsigned)mr_random_below(&rnd, 100),
                           .restart = n % 3 ? 0 : 1 + (unsigned)mr_random_below(&rnd, 40),
                           .optimized = n & 1};
            check(&rnd, pixels_jpeg_make(&rnd, &k), 6, jpeg_samplings[i].name);
        }
    }
}

/* Codes of up to 16 bits, values of up to 15, quantisers of 16: what overflows does so as in libjpeg-turbo's SIMD code,
 * which only runs on x86; elsewhere the values stay small. */
static void streams_that_no_encoder_makes(void **state)
{
    mr_random rnd = support_random();
    (void)state;
#if defined(__x86_64__)
    const unsigned most = 15, quant = 65535;
#else
    const unsigned most = 7, quant = 8;
#endif
    for (size_t i = 0; i < JPEG_SAMPLINGS; i++) {
        for (unsigned n = 0; n < 90; n++) {
            jpeg_coded k = {.width = 5 + (unsigned)mr_random_below(&rnd, 70),
                            .height = 1 + (unsigned)mr_random_below(&rnd, 70),
                            .components = jpeg_samplings[i].components,
                            .h = jpeg_samplings[i].h,
                            .v = jpeg_samplings[i].v,
                            .ladder = 1 + n % 8,
                            .restart = n % 2 ? 0 : 1 + (unsigned)mr_random_below(&rnd, 9),
                            .dc_bits = n % 5 ? most : 5,
                            .ac_bits = 1 + (unsigned)mr_random_below(&rnd, most),
                            .density = (unsigned)mr_random_below(&rnd, 101)};
            if (k.components == 1)
                k.h = k.v = 1;
            k.quant = n % 3 == 0 ? quant : n % 3 == 1 ? 8 : 1;
            check(&rnd, jpeg_coded_make(&rnd, &k), 4, jpeg_samplings[i].name);
        }
    }
}

/* ---- files of others --------------------------------------------------------------------------------------------- */

static void check_left(picture p, const char *what)
{
    unsigned channels;
    mr_image_facts f = pixels_facts(p);
    uint8_t *want = f.components == 4 ? NULL : pixels_jpeg_whole(p, &channels);
    ways w = ways_open();
    mr_region all = {0, 0, f.width, f.height};
    const uint8_t *got = pixels_decoded(w.own, p, &f, all);
    if (want)
        assert_memory_equal(got, want, (size_t)f.width * f.height * 3);
    pixels_decoded(w.plain, p, &f, all);
    expect_taken(&w, false, what);
    ways_close(&w);
    free(want);
    picture_free(&p);
}

static picture with(picture p, uint8_t before, const void *bytes, size_t len)
{
    picture out = picture_splice(p, jpeg_marker(p, before), bytes, len);
    picture_free(&p);
    return out;
}

static void what_is_not_taken_is_left_to_libjpeg(void **state)
{
    static const uint8_t adobe_rgb[] = {0xff, 0xee, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 0};
    mr_random rnd = support_random();
    const jpeg_make base = {.width = 40, .height = 30, .components = 3};
    jpeg_make k = base;
    (void)state;
    k.progressive = true;
    check_left(pixels_jpeg_make(&rnd, &k), "progressive");
    k = base, k.arithmetic = true;
    check_left(pixels_jpeg_make(&rnd, &k), "arithmetic");
    k = base, k.scans = true;
    check_left(pixels_jpeg_make(&rnd, &k), "a scan a component");
    k = base, k.components = 4;
    check_left(pixels_jpeg_make(&rnd, &k), "CMYK");
    k = base, k.h[0] = 4, k.v[0] = k.h[1] = k.v[1] = k.h[2] = k.v[2] = 1;
    check_left(pixels_jpeg_make(&rnd, &k), "4:1:1");
    k = base, k.h[0] = k.v[0] = 1, k.h[1] = k.h[2] = 2, k.v[1] = k.v[2] = 1;
    check_left(pixels_jpeg_make(&rnd, &k), "fine chroma");
    k = base, k.h[0] = 2, k.v[0] = 1, k.width = 4;
    check_left(pixels_jpeg_make(&rnd, &k), "4:2:2, too narrow for fancy upsampling");
    jpeg_coded c = {.width = 20,
                    .height = 20,
                    .components = 3,
                    .h = 1,
                    .v = 1,
                    .ladder = 3,
                    .dc_bits = 5,
                    .ac_bits = 5,
                    .density = 50,
                    .quant = 8};
    check_left(with(jpeg_coded_make(&rnd, &c), 0xdb, adobe_rgb, sizeof adobe_rgb), "RGB by Adobe's word");
}

/* Segments that say nothing about the pixels, tables that are replaced, names of components: taken all the same. */
static void segments_around_the_tables(void **state)
{
    static const uint8_t adobe_ycc[] = {0xff, 0xee, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 1};
    static const uint8_t other[] = {0xff, 0xfe, 0, 4, 'h', 'i', 0xff, 0xed, 0, 2, 0xff, 0xe0, 0, 6, 'J', 'F', 'X', 'X'};
    uint8_t quantiser[69] = {0xff, 0xdb, 0, 67};
    mr_random rnd = support_random();
    jpeg_coded c = {.width = 33,
                    .height = 20,
                    .components = 3,
                    .h = 2,
                    .v = 2,
                    .ladder = 3,
                    .dc_bits = 5,
                    .ac_bits = 5,
                    .density = 50,
                    .quant = 8};
    (void)state;
    memset(quantiser + 5, 3, 64);
    check(&rnd, with(jpeg_coded_make(&rnd, &c), 0xdb, adobe_ycc, sizeof adobe_ycc), 5, "Adobe YCbCr");
    check(&rnd, with(jpeg_coded_make(&rnd, &c), 0xc4, other, sizeof other), 5, "other segments");
    check(&rnd, with(jpeg_coded_make(&rnd, &c), 0xda, quantiser, sizeof quantiser), 5, "a second quantiser table");
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

static bool judge(mr_pixels_scratch *s, picture p, const mr_image_facts *f, mr_region r, const uint8_t **rgb,
                  mr_error *err)
{
    *rgb = NULL;
    err->text[0] = '\0';
    mr_status status = mr_pixels_decode(s, p.bytes, p.len, f, &r, rgb, err);
    assert_true(status == MR_OK || (status == MR_BAD_SAMPLE && err->text[0]));
    return status == MR_OK;
}

static void expect_one_judgement(const ways *w, picture p, const mr_image_facts *f, mr_region r)
{
    const uint8_t *a, *b, *c;
    mr_error ea, eb, ec;
    bool own = judge(w->own, p, f, r, &a, &ea), plain = judge(w->plain, p, f, r, &b, &eb);
    bool libjpeg = judge(w->libjpeg, p, f, r, &c, &ec);
    if (own != libjpeg || plain != libjpeg)
        fail_msg("region %u x %u at %u, %u of %u x %u: own %s, plain %s, libjpeg-turbo %s", r.width, r.height, r.left,
                 r.top, f->width, f->height, ea.text, eb.text, ec.text);
    assert_string_equal(ea.text, ec.text);
    if (libjpeg) {
        assert_memory_equal(a, b, (size_t)r.width * r.height * 3);
#if defined(__x86_64__) /* sums that exceed 16 bits wrap as on x86-64, with other processors libjpeg-turbo saturates   \
                           some */
        assert_memory_equal(a, c, (size_t)r.width * r.height * 3);
#endif
    }
}

static void damage_is_judged_as_by_libjpeg(void **state)
{
    mr_random rnd = support_random();
    ways w = ways_open();
    (void)state;
    for (unsigned i = 0; i < 1500; i++) {
        picture p = jpeg_draw(&rnd, i), bad;
        mr_image_facts f = pixels_facts(p);
        bad = picture_copy(p.bytes, p.len);
        jpeg_damage(&rnd, &bad);
        picture exact = picture_copy(bad.bytes, bad.len);
        for (int times = 0; times < 4; times++)
            expect_one_judgement(&w, exact, &f, pixels_region(&rnd, f.width, f.height));
        expect_one_judgement(&w, exact, &f, (mr_region){0, 0, f.width, f.height});
        picture_free(&exact);
        picture_free(&bad);
        picture_free(&p);
    }
    mr_pixels_counts counts = mr_pixels_scratch_counts(w.own);
    assert_true(counts.own > 200 && counts.libjpeg > 200);
    ways_close(&w);
}

/* ---- the command line ------------------------------------------------------------------------------------------- */

static void replays_are_the_same_with_either_decoder(void **state)
{
    char *tmp = support_tmpdir(), *source = support_path("%s/source", tmp), *dst = support_path("%s/dst", tmp);
    (void)state;
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "40", "--quiet", (char *)NULL);
    support_expect(0, "ingest", source, dst, "--quiet", (char *)NULL);
    support_result own =
        support_millrace("replay", dst, "--global-batch", "8", "--size", "32", "--decoder", "auto", (char *)NULL);
    support_result libjpeg =
        support_millrace("replay", dst, "--global-batch", "8", "--size", "32", "--decoder", "libjpeg", (char *)NULL);
    support_assert_status(&own, 0);
    support_assert_status(&libjpeg, 0);
    assert_true(strstr(own.out, "step 2  ") != NULL);
    assert_string_equal(own.out, libjpeg.out);
    support_result_free(&own);
    support_result_free(&libjpeg);
    support_expect_refusal(support_millrace("replay", dst, "--global-batch", "8", "--decoder", "quick", (char *)NULL),
                           "use auto or libjpeg");
    free(source);
    free(dst);
    support_tmpdir_remove(tmp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_of_every_size_and_sampling),
        cmocka_unit_test(streams_that_no_encoder_makes),
        cmocka_unit_test(what_is_not_taken_is_left_to_libjpeg),
        cmocka_unit_test(segments_around_the_tables),
        cmocka_unit_test(damage_is_judged_as_by_libjpeg),
        cmocka_unit_test(replays_are_the_same_with_either_decoder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

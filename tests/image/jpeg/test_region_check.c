/* test_region_check.c - whether a JPEG's scan is sound, by millrace's own decoder: never where libjpeg-turbo warns.
 * Covers image/jpeg/means.c, whose verdict is the same. */
#include <stdlib.h>
#include <string.h>

#include "image/jpeg/region.h"
#include "tests/support/images/jpeg.h"

typedef struct pair {
    mr_jpeg_decoder *best, *plain;
} pair;

static pair pair_open(void)
{
    pair d = {mr_jpeg_decoder_new(), mr_jpeg_decoder_new()};
    assert_true(d.best && d.plain);
    mr_jpeg_decoder_plain(d.plain);
    return d;
}

static void pair_close(pair *d)
{
    mr_jpeg_decoder_free(d->best);
    mr_jpeg_decoder_free(d->plain);
}

static bool sound(const pair *d, picture p)
{
    mr_jpeg_outcome a = mr_jpeg_check(d->best, p.bytes, p.len, UINT64_MAX);
    assert_int_equal(a, mr_jpeg_check(d->plain, p.bytes, p.len, UINT64_MAX));
    mr_jpeg_means best, plain;
    assert_int_equal(a, mr_jpeg_check_means(d->best, p.bytes, p.len, UINT64_MAX, &best));
    assert_int_equal(a, mr_jpeg_check_means(d->plain, p.bytes, p.len, UINT64_MAX, &plain));
    for (uint32_t y = 0; a == MR_JPEG_DONE && y < best.height; y++)
        assert_memory_equal(best.grey + (size_t)y * best.stride, plain.grey + (size_t)y * plain.stride, best.width);
    return a == MR_JPEG_DONE;
}

static void sound_pictures_are_found_so(void **state)
{
    mr_random rnd = support_random();
    pair d = pair_open();
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        picture p = jpeg_draw(&rnd, i);
        assert_true(sound(&d, p));
        assert_true(jpeg_taken_by_libjpeg(p));
        mr_image_facts f;
        assert_int_equal(mr_image_examine(p.bytes, p.len, NULL, &f, NULL), MR_OK);
        uint64_t pixels = (uint64_t)f.width * f.height;
        assert_int_equal(mr_jpeg_check(d.best, p.bytes, p.len, pixels), MR_JPEG_DONE);
        assert_int_equal(mr_jpeg_check(d.best, p.bytes, p.len, pixels - 1), MR_JPEG_LEFT);
        picture_free(&p);
    }
    pair_close(&d);
}

/* What stands after the scan: libjpeg-turbo reads on to the end marker. */
static void the_end_is_looked_at(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } between[] = {
        {"\0", 1},           {"abc", 3},          {"\xff", 1},
        {"\xff\xff\xff", 3}, {"\xff\xd0", 2},     {"\xff\xfe\0\4hi", 6},
        {"\xff\xd8", 2},     {"\xff\xda\0\2", 4}, {"abcdefghijklmnopqrstuvwxyz", 26},
        {"\xff\0\xff\0", 4},
    };
    mr_random rnd = support_random();
    pair d = pair_open();
    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        picture p = jpeg_draw(&rnd, i);
        for (size_t n = 0; n < MR_COUNT(between); n++) {
            picture bad = picture_splice(p, p.len - 2, (const uint8_t *)between[n].bytes, between[n].len);
            if (sound(&d, bad) && !jpeg_taken_by_libjpeg(bad))
                fail_msg("picture %u, case %zu: sound, but libjpeg-turbo complains", i, n);
            picture_free(&bad);
        }
        picture behind = picture_splice(p, p.len, (const uint8_t *)"camera", 6), cut = picture_copy(p.bytes, p.len - 1);
        assert_true(sound(&d, behind));
        assert_false(sound(&d, cut));
        picture_free(&behind);
        picture_free(&cut);
        picture_free(&p);
    }
    pair_close(&d);
}

static void damage_is_never_sound_to_us_alone(void **state)
{
    mr_random rnd = support_random();
    pair d = pair_open();
    unsigned both = 0, neither = 0;
    (void)state;
    for (unsigned i = 0; i < 4000; i++) {
        picture p = jpeg_draw(&rnd, i);
        jpeg_damage(&rnd, &p);
        picture exact = picture_copy(p.bytes, p.len);
        bool own = sound(&d, exact), libjpeg = jpeg_taken_by_libjpeg(exact);
        if (own && !libjpeg)
            fail_msg("picture %u: sound, but libjpeg-turbo complains", i);
        both += own;
        neither += !own && !libjpeg;
        picture_free(&exact);
        picture_free(&p);
    }
    assert_true(both > 300 && neither > 500);
    pair_close(&d);
}

/* The reason that people read is libjpeg-turbo's. */
static void refusals_keep_their_words(void **state)
{
    mr_random rnd = support_random();
    mr_error err;
    (void)state;
    jpeg_coded k = {.width = 40,
                    .height = 40,
                    .components = 3,
                    .h = 2,
                    .v = 2,
                    .ladder = 4,
                    .dc_bits = 6,
                    .ac_bits = 6,
                    .density = 60,
                    .quant = 4};
    picture p = jpeg_coded_make(&rnd, &k);
    assert_int_equal(mr_image_decode(p.bytes, p.len, NULL, &err), MR_OK);
    memmove(p.bytes + p.len / 2, p.bytes + p.len - 2, 2);
    p.len = p.len / 2 + 2;
    assert_int_equal(mr_image_decode(p.bytes, p.len, NULL, &err), MR_BAD_SAMPLE);
    assert_non_null(strstr(err.text, "JPEG cannot be decoded: "));
    picture_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_pictures_are_found_so),
        cmocka_unit_test(the_end_is_looked_at),
        cmocka_unit_test(damage_is_never_sound_to_us_alone),
        cmocka_unit_test(refusals_keep_their_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_limits_images.c - the limits for pictures: pixels, segments, the unpacked size of a chunk.
 * Invariant tested: what is at a limit is accepted, one more is rejected, and the reason names the limit; the option
 * that raises it works wherever pictures are read. (Scans, and what pixels cost: test_hostile_images.c.) */
#include <spng.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/images/image.h"

/* ---- pictures ---------------------------------------------------------------------------------------------------- */

/* `times` segments or chunks put in at `at`; frees p. */
static picture stuffed(picture p, size_t at, const void *part, size_t len, size_t times)
{
    uint8_t *all = malloc(len * times);
    for (size_t i = 0; i < times; i++)
        memcpy(all + len * i, part, len);
    picture out = picture_splice(p, at, all, len * times);
    free(all);
    picture_free(&p);
    return out;
}

static mr_status examine(picture p, mr_error *err)
{
    mr_image_facts facts;
    mr_status status = mr_image_examine(p.bytes, p.len, NULL, &facts, err);
    picture_free(&p);
    return status;
}

static mr_status jpeg_segments(uint64_t n, mr_error *err)
{
    picture p = make_jpeg((jpeg_kind){.width = 8, .height = 8, .components = 1});
    uint64_t have = 1;
    for (size_t at = 2; p.bytes[at + 1] != 0xda; at += 2 + ((size_t)p.bytes[at + 2] << 8 | p.bytes[at + 3]))
        have++;
    return examine(stuffed(p, 2, "\xff\xfe\0\2", 4, n - have), err);
}

static mr_status png_chunks(uint64_t n, mr_error *err)
{
    enum { HAVE = 3 }; /* IHDR, IDAT, IEND */
    return examine(stuffed(make_png(8, 8, 0, 8, false), 33, "\0\0\0\0tEXt\0\0\0\0", 12, n - HAVE), err);
}

static mr_status webp_chunks(uint64_t n, mr_error *err)
{
    enum { HAVE = 2 }; /* VP8X, VP8 */
    picture p = make_webp_extended(8, 8, 0, NULL);
    p = stuffed(p, p.len, "JUNK\0\0\0\0", 8, n - HAVE);
    for (int i = 0; i < 4; i++)
        p.bytes[4 + i] = (uint8_t)((p.len - 8) >> 8 * i);
    return examine(p, err);
}

static void test_segments(void **state)
{
    (void)state;
    static const struct {
        mr_status (*make)(uint64_t n, mr_error *err);
        const char *words;
    } kinds[] = {
        {jpeg_segments, "JPEG has more than 100000 segments"},
        {png_chunks, "PNG has more than 100000 chunks"},
        {webp_chunks, "WebP has more than 100000 chunks"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        mr_error err = {0};
        if (kinds[i].make(100000, &err) != MR_OK)
            fail_msg("%s: %s", kinds[i].words, err.text);
        assert_int_equal(kinds[i].make(100001, &err), MR_BAD_SAMPLE);
        if (!strstr(err.text, kinds[i].words))
            fail_msg("%s: %s", kinds[i].words, err.text);
    }
}

/* A text chunk that unpacks to n bytes. */
static mr_status unpack_text(size_t n)
{
    struct spng_ihdr ihdr = {1, 1, 8, SPNG_COLOR_TYPE_GRAYSCALE, 0, 0, 0};
    char *words = malloc(n + 1);
    memset(words, 'w', n);
    words[n] = '\0';
    struct spng_text text = {.keyword = "k", .type = SPNG_ZTXT, .length = n, .text = words};
    size_t len;
    int e;
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);
    spng_set_ihdr(ctx, &ihdr);
    spng_set_text(ctx, &text, 1);
    assert_int_equal(spng_encode_image(ctx, "", 1, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE), 0);
    uint8_t *bytes = spng_get_png_buffer(ctx, &len, &e);
    mr_error err;
    mr_status status = mr_image_decode(bytes, len, NULL, &err);
    spng_ctx_free(ctx);
    free(bytes);
    free(words);
    return status;
}

/* Text makes no pixels, so it is not unpacked, however large it claims to be. */
static void test_png_text(void **state)
{
    (void)state;
    assert_int_equal(unpack_text(31 << 20), MR_OK);
    assert_int_equal(unpack_text(70 << 20), MR_OK);
}

/* ---- what libjpeg holds of a picture ----------------------------------------------------------------------------- */

/* Whole MCUs of all components at 2 bytes a coefficient, and its own rows: more than 8 bytes a pixel of a small or a
 * narrow picture, which is within the limit all the same. */
static void test_forms_of_jpeg(void **state)
{
    (void)state;
    static const jpeg_kind kinds[] = {
        {.width = 64, .height = 64, .components = 4, .progressive = true},
        {.width = 1, .height = 20000, .components = 3, .progressive = true},
        {.width = 20000, .height = 1, .components = 3, .progressive = true},
        {.width = 1, .height = 1, .components = 4, .progressive = true},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        picture p = make_jpeg(kinds[i]);
        uint64_t pixels = (uint64_t)kinds[i].width * kinds[i].height;
        mr_image_limits limits = {.max_pixels = pixels + pixels / 8 + 1}; /* for the 18 scans of CMYK */
        mr_error err = {0};
        if (mr_image_decode(p.bytes, p.len, &limits, &err) != MR_OK)
            fail_msg("%u x %u: %s", kinds[i].width, kinds[i].height, err.text);
        picture_free(&p);
    }
}

/* libjpeg takes ten, at 2 bytes a pixel each. */
static void test_components_of_jpeg(void **state)
{
    (void)state;
    picture p = make_jpeg((jpeg_kind){.width = 16, .height = 16, .components = 3, .progressive = true});
    uint8_t more[7 * 3];
    for (uint8_t i = 0; i < 7; i++)
        memcpy(more + 3 * i, (const uint8_t[]){10 + i, 0x11, 0}, 3);
    size_t sof = jpeg_marker(p, 0xc2);
    picture ten = picture_splice(p, sof + 10 + 3 * 3, more, sizeof more);
    ten.bytes[sof + 3] += sizeof more;
    ten.bytes[sof + 9] = 10;
    mr_error err;
    assert_int_equal(mr_image_decode(ten.bytes, ten.len, NULL, &err), MR_BAD_SAMPLE);
    if (!strstr(err.text, "JPEG of 10 components"))
        fail_msg("%s", err.text);
    picture_free(&p);
    picture_free(&ten);
}

/* ---- --max-pixels ------------------------------------------------------------------------------------------------ */

static support_result millrace_on(const char *dir, const char *const *args, const char *pixels)
{
    const char *argv[40] = {support_millrace_path()};
    size_t n = 1;
    while (*args && n < 36)
        argv[n++] = *args++;
    argv[n++] = "--max-pixels";
    argv[n++] = pixels;
    return support_run(argv, &(support_limits){.directory = dir});
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Every command that decodes, on pictures of 1,200 pixels: with room for them, and for one pixel less. */
static void test_max_pixels(void **state)
{
    char *dir = *state;
    for (unsigned i = 0; i < 12; i++) {
        picture p = i % 3 == 0   ? make_jpeg((jpeg_kind){.width = 40, .height = 30, .components = 3})
                    : i % 3 == 1 ? make_png(40, 30, 2, 8, false)
                                 : make_webp(40, 30, false, false);
        support_writef(p.bytes, p.len, "%s/source/%s/c%u/%u.jpg", dir, i < 6 ? "train" : "val", i % 2, i);
        picture_free(&p);
    }
    const char *const *const commands[] = {
        ARGS("ingest", "source", "ds", "--quiet"),
        ARGS("verify", "ds", "--decode"),
        ARGS("replay", "ds", "--global-batch", "4", "--size", "16"),
        ARGS("bench", "ds", "--stage", "decode", "--size", "16", "--seconds", "0.05", "--threads", "1"),
        ARGS("train", "ds", "--model", "vit", "--image-size", "16", "--patch", "8", "--hidden", "16", "--layers", "1",
             "--heads", "2", "--mlp", "32", "--batch", "4", "--steps", "1", "--threads", "1", "--quiet", "--output",
             "run"),
        ARGS("eval", "ds", "run", "--threads", "1"),
        ARGS("predict", "ds", "run", "--threads", "1"),
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        support_expect_refusal(millrace_on(dir, commands[i], "1199"), "more than the limit of 1199 pixels");
        support_result r = millrace_on(dir, commands[i], "1200");
        support_assert_status(&r, 0);
        support_result_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_segments), cmocka_unit_test(test_png_text),
                                       cmocka_unit_test(test_forms_of_jpeg), cmocka_unit_test(test_components_of_jpeg),
                                       IN_TMPDIR(test_max_pixels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

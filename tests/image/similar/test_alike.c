/* test_alike.c - which pictures look alike: copies as training sets hold them do, other pictures do not.
 * Invariant: what is compared are files, decoded as ingest decodes them.
 * Covers codec/shrink_jpeg.c, similar/shrink.c, similar/overlay.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <webp/encode.h>

#include "image/similar/alike.h"
#include "tests/support/images/alike.h"

/* Consumes the file. */
static mr_alike look_at(picture file)
{
    mr_alike look;
    mr_error err;
    memset(&look, 0xEE, sizeof look);
    if (mr_image_shrink(file.bytes, file.len, NULL, &look, &err) != MR_OK)
        fail_msg("%s", err.text);
    picture_free(&file);
    return look;
}

static mr_alike look_of(const mr_picture *p, enum alike_codec codec)
{
    return look_at(alike_file(p, codec));
}

static int largest_difference(const mr_alike *a, const mr_alike *b)
{
    int most = 0;
    for (size_t i = 0; i < sizeof a->grey; i++)
        most = abs(a->grey[i] - b->grey[i]) > most ? abs(a->grey[i] - b->grey[i]) : most;
    return most;
}

/* ---- copies and other pictures ----------------------------------------------------------------------------------- */

enum { PHOTOS = 3 };

static void test_copies_look_alike(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        alike_edit edit;
        enum alike_codec codec;
    } copies[] = {
        {"encoded again", {0}, ALIKE_JPEG},
        {"encoded roughly", {0}, ALIKE_ROUGH_JPEG},
        {"as PNG", {0}, ALIKE_PNG},
        {"as WebP", {0}, ALIKE_WEBP},
        {"brighter", {.gain = 1.2, .offset = 10}, ALIKE_JPEG},
        {"darker", {.gain = 0.6}, ALIKE_JPEG},
        {"mirrored", {.mirror = true}, ALIKE_JPEG},
        {"upside down", {.quarters = 2}, ALIKE_PNG},
        {"turned left", {.quarters = 1}, ALIKE_JPEG},
        {"turned right and mirrored", {.quarters = 3, .mirror = true}, ALIKE_WEBP},
        {"rotated by 6 degrees", {.degrees = 6}, ALIKE_JPEG},
        {"rotated by -13 degrees", {.degrees = -13}, ALIKE_JPEG},
        {"cropped to 85 %", {.zoom = 0.15}, ALIKE_JPEG},
        {"sheared", {.shear = 0.15}, ALIKE_JPEG},
        {"with squares cut out", {.cut = 4}, ALIKE_JPEG},
        {"with noise", {.noise = 25}, ALIKE_JPEG},
        {"all together", {.mirror = true, .degrees = 5, .zoom = 0.1, .gain = 1.1, .cut = 2}, ALIKE_JPEG},
    };
    for (uint64_t seed = 1; seed <= PHOTOS; seed++) {
        mr_picture photo = alike_photo(seed, 240, 180);
        mr_alike look = look_of(&photo, ALIKE_JPEG);
        for (size_t i = 0; i < MR_COUNT(copies); i++) {
            mr_picture copy = alike_copy(&photo, copies[i].edit);
            mr_alike other = look_of(&copy, copies[i].codec);
            if (!mr_alike_compare(&look, &other) || !mr_alike_compare(&other, &look))
                fail_msg("photograph %u %s is not recognised", (unsigned)seed, copies[i].what);
            mr_picture_free(&copy);
        }
        mr_picture_free(&photo);
    }
}

static void test_other_pictures_do_not(void **state)
{
    (void)state;
    enum { OTHERS = 16 };
    mr_alike looks[OTHERS];
    for (unsigned i = 0; i < OTHERS; i++) {
        mr_picture photo = alike_photo(100 + i, 240, 180);
        looks[i] = look_of(&photo, i % 3 ? ALIKE_JPEG : ALIKE_PNG);
        mr_picture_free(&photo);
    }
    for (unsigned i = 0; i < OTHERS; i++)
        for (unsigned j = 0; j < i; j++)
            if (mr_alike_compare(&looks[i], &looks[j]))
                fail_msg("photographs %u and %u are taken for one", i, j);
}

static void test_a_negative_is_another_picture(void **state)
{
    (void)state;
    mr_picture photo = alike_photo(3, 240, 180), negative = alike_copy(&photo, (alike_edit){.invert = true});
    mr_alike a = look_of(&photo, ALIKE_PNG), b = look_of(&negative, ALIKE_PNG);
    assert_false(mr_alike_compare(&a, &b));
    mr_picture_free(&photo);
    mr_picture_free(&negative);
}

static void test_copies_of_any_size(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{800, 600}, {400, 100}, {100, 75}, {64, 64}, {48, 36}};
    mr_picture photo = alike_photo(7, 300, 225), other = alike_photo(8, 300, 225);
    mr_alike look = look_of(&photo, ALIKE_JPEG);
    for (size_t i = 0; i < MR_COUNT(sizes); i++) {
        mr_picture small = alike_resized(&photo, sizes[i][0], sizes[i][1]);
        mr_picture no_copy = alike_resized(&other, sizes[i][0], sizes[i][1]);
        mr_alike a = look_of(&small, ALIKE_PNG), b = look_of(&small, ALIKE_JPEG), c = look_of(&no_copy, ALIKE_JPEG);
        assert_true(mr_alike_compare(&a, &b));
        assert_true(mr_alike_compare(&look, &a));
        assert_false(mr_alike_compare(&a, &c));
        mr_picture_free(&small);
        mr_picture_free(&no_copy);
    }
    mr_picture_free(&photo);
    mr_picture_free(&other);
}

/* ---- little to see ----------------------------------------------------------------------------------------------- */

static void test_a_single_tone_is_like_nothing(void **state)
{
    (void)state;
    mr_picture photo = alike_photo(1, 240, 180), red = alike_tone(200, 30, 30), blue = alike_tone(20, 40, 210);
    mr_alike tones[] = {look_of(&red, ALIKE_JPEG), look_of(&red, ALIKE_PNG), look_of(&blue, ALIKE_ROUGH_JPEG)};
    mr_alike look = look_of(&photo, ALIKE_JPEG);
    assert_false(mr_alike_plain(&look));
    for (size_t i = 0; i < MR_COUNT(tones); i++) {
        assert_true(mr_alike_plain(&tones[i]));
        assert_false(mr_alike_compare(&tones[i], &look));
        assert_false(mr_alike_compare(&tones[0], &tones[i]));
    }
    mr_picture_free(&photo);
    mr_picture_free(&red);
    mr_picture_free(&blue);
}

/* A spot on paper: where it lies is all that there is to tell. */
static mr_picture spot(uint32_t left, uint32_t top)
{
    mr_picture p = alike_tone(230, 230, 225);
    for (uint32_t y = top; y < top + 6; y++)
        memset(p.pixels + ((size_t)y * p.width + left) * 3, 20, 6 * 3);
    return p;
}

/* Copies are told by what there is, though it be in a corner. */
static void test_detail_at_the_border_alone(void **state)
{
    (void)state;
    mr_picture corner = spot(0, 0), edge = spot(70, 114), turned = alike_copy(&corner, (alike_edit){.quarters = 2});
    mr_alike a = look_of(&corner, ALIKE_PNG), b = look_of(&turned, ALIKE_JPEG), c = look_of(&edge, ALIKE_PNG);
    assert_true(mr_alike_compare(&a, &b));
    assert_false(mr_alike_compare(&a, &c));
    mr_picture_free(&corner);
    mr_picture_free(&edge);
    mr_picture_free(&turned);
}

static void test_pictures_with_little_detail(void **state)
{
    (void)state;
    mr_picture here = spot(40, 30), there = spot(90, 70), ramp = alike_tone(0, 0, 0);
    for (size_t i = 0; i < (size_t)ramp.width * ramp.height; i++)
        memset(ramp.pixels + 3 * i, (int)(i % ramp.width), 3);
    mr_picture fall = alike_copy(&ramp, (alike_edit){.quarters = 1, .gain = 0.8, .offset = 20});
    mr_alike spots[] = {look_of(&here, ALIKE_PNG), look_of(&here, ALIKE_JPEG), look_of(&there, ALIKE_PNG)};
    mr_alike ramps[] = {look_of(&ramp, ALIKE_PNG), look_of(&ramp, ALIKE_JPEG), look_of(&fall, ALIKE_JPEG)};
    assert_true(mr_alike_compare(&spots[0], &spots[1]));
    assert_false(mr_alike_compare(&spots[0], &spots[2]));
    assert_true(mr_alike_compare(&ramps[0], &ramps[1]));
    assert_true(mr_alike_compare(&ramps[0], &ramps[2]));
    assert_false(mr_alike_compare(&ramps[0], &spots[0]));
    mr_picture_free(&here);
    mr_picture_free(&there);
    mr_picture_free(&ramp);
    mr_picture_free(&fall);
}

/* ---- every kind of file ------------------------------------------------------------------------------------------ */

/* An interlaced PNG shrinks to what the same pixels in rows shrink to. */
static void test_every_kind_of_png(void **state)
{
    (void)state;
    static const uint8_t kinds[][2] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                                       {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
    static const unsigned sizes[][2] = {{1, 1}, {3, 2}, {70, 9}, {9, 70}, {150, 131}};
    for (size_t i = 0; i < MR_COUNT(kinds); i++)
        for (size_t k = 0; k < MR_COUNT(sizes); k++) {
            mr_alike rows = look_at(make_png(sizes[k][0], sizes[k][1], kinds[i][0], kinds[i][1], false));
            mr_alike passes = look_at(make_png(sizes[k][0], sizes[k][1], kinds[i][0], kinds[i][1], true));
            assert_memory_equal(&rows, &passes, sizeof rows);
        }
}

static void test_every_kind_of_jpeg_and_webp(void **state)
{
    (void)state;
    static const jpeg_kind kinds[] = {
        {150, 131, 1, false, false, 0, NULL}, {150, 131, 3, false, false, 2, NULL},
        {150, 131, 4, false, false, 0, NULL}, {700, 900, 3, true, false, 0, NULL},
        {1, 1, 3, false, false, 0, NULL},     {1, 900, 1, true, false, 0, NULL},
    };
    for (size_t i = 0; i < MR_COUNT(kinds); i++)
        look_at(make_jpeg(kinds[i]));
    for (int i = 0; i < 4; i++)
        look_at(make_webp(90, 70, i & 1, i & 2));
    mr_alike still = look_at(make_webp_extended(90, 70, 0, NULL)), first = look_at(make_webp_extended(90, 70, 3, NULL));
    assert_memory_equal(&still, &first, sizeof still);
}

/* Black lines that are nothing but opaque: what is under transparent pixels is not seen. */
static void test_transparent_pixels(void **state)
{
    (void)state;
    enum { SIDE = 80 };
    mr_picture lines = alike_photo(5, SIDE, SIDE);
    uint8_t *rgba = calloc(SIDE * SIDE, 4), *bytes = NULL;
    assert_non_null(rgba);
    for (size_t i = 0; i < SIDE * SIDE; i++)
        rgba[4 * i + 3] = lines.pixels[3 * i] > 120 ? 255 : 0;
    size_t len = WebPEncodeLosslessRGBA(rgba, SIDE, SIDE, SIDE * 4, &bytes);
    mr_alike drawn = look_at(picture_copy(bytes, len));
    for (size_t i = 0; i < SIDE * SIDE; i++)
        memset(lines.pixels + 3 * i, rgba[4 * i + 3] ? 0 : 128, 3);
    mr_alike flat = look_of(&lines, ALIKE_PNG);
    assert_false(mr_alike_plain(&drawn));
    assert_true(mr_alike_compare(&drawn, &flat));
    WebPFree(bytes);
    free(rgba);
    mr_picture_free(&lines);
}

/* CMYK as programs write it, inverted: with no black at all its first three colours are red, green and blue. */
static picture file_of_cmyk(const mr_picture *p)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long len = 0;
    JSAMPROW row = calloc(p->width, 4);
    assert_non_null(row);
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &bytes, &len);
    c.image_width = p->width;
    c.image_height = p->height;
    c.input_components = 4;
    c.in_color_space = JCS_CMYK;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 95, TRUE);
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < c.image_height) {
        const uint8_t *from = p->pixels + (size_t)c.next_scanline * p->width * 3;
        for (size_t x = 0; x < p->width; x++) {
            memcpy(row + 4 * x, from + 3 * x, 3);
            row[4 * x + 3] = 255;
        }
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    picture file = picture_copy(bytes, len);
    free(bytes);
    free(row);
    return file;
}

static void test_cmyk(void **state)
{
    (void)state;
    mr_picture photo = alike_photo(4, 240, 180);
    mr_alike cmyk = look_at(file_of_cmyk(&photo)), rgb = look_of(&photo, ALIKE_PNG);
    assert_true(largest_difference(&cmyk, &rgb) < 12);
    mr_picture_free(&photo);
}

static void refused(picture p, const mr_image_limits *limits, const char *words)
{
    mr_alike look;
    mr_error err = {.text = ""};
    assert_int_equal(mr_image_shrink(p.bytes, p.len, limits, &look, &err), MR_BAD_SAMPLE);
    if (!strstr(err.text, words))
        fail_msg("expected \"%s\" in: %s", words, err.text);
    picture_free(&p);
}

static void test_files_that_cannot_be_decoded(void **state)
{
    (void)state;
    const mr_image_limits small = {.max_pixels = 1000};
    mr_picture photo = alike_photo(1, 240, 180);
    for (int codec = ALIKE_JPEG; codec <= ALIKE_WEBP; codec++) {
        picture whole = alike_file(&photo, (enum alike_codec)codec);
        refused(picture_copy(whole.bytes, whole.len / 2), NULL, "cannot be decoded");
        refused(picture_copy(whole.bytes, whole.len), &small, "more than the limit of 1000 pixels");
        picture_free(&whole);
    }
    refused(picture_copy((const uint8_t *)"words", 5), NULL, "millrace stores JPEG, PNG and WebP");
    mr_picture_free(&photo);
}

/* ---- real pictures ----------------------------------------------------------------------------------------------- */

static mr_alike look_at_sample(const char *folder, const char *name)
{
    char *path = support_path("%s/%s", folder, name);
    picture file = {0};
    file.bytes = support_read(path, &file.len);
    free(path);
    return look_at(file);
}

static void test_real_signs(void **state)
{
    (void)state;
    char *folder = support_data("roboflow/multiclass_panneau");
    if (!folder)
        skip();
    mr_alike a = look_at_sample(folder, "test/znak1222-_jpg.rf.34ba6c372fd8441de303c151fd9acbba.jpg");
    mr_alike b = look_at_sample(folder, "valid/znak1222-_jpg.rf.ca42f6d51e348b510a2741d8cd6de6d2.jpg");
    mr_alike c = look_at_sample(folder, "test/images_png.rf.4367fdc755d197b54d2d5ceea29ddfbe.jpg");
    mr_alike d = look_at_sample(folder, "valid/images_png.rf.6d57e82f9ebe32a74b5430d347420375.jpg");
    assert_true(mr_alike_compare(&a, &b));
    assert_false(mr_alike_compare(&c, &d));
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_look_alike),
        cmocka_unit_test(test_other_pictures_do_not),
        cmocka_unit_test(test_a_negative_is_another_picture),
        cmocka_unit_test(test_copies_of_any_size),
        cmocka_unit_test(test_a_single_tone_is_like_nothing),
        cmocka_unit_test(test_pictures_with_little_detail),
        cmocka_unit_test(test_detail_at_the_border_alone),
        cmocka_unit_test(test_every_kind_of_png),
        cmocka_unit_test(test_every_kind_of_jpeg_and_webp),
        cmocka_unit_test(test_transparent_pixels),
        cmocka_unit_test(test_cmyk),
        cmocka_unit_test(test_files_that_cannot_be_decoded),
        cmocka_unit_test(test_real_signs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

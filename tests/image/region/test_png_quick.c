/* test_png_quick.c - PNGs unpacked at once, beside libspng.
 * Covers image/region/png_quick.c.
 * Invariant tested: both ways end in the same pixels or the same failure, whatever the file is: every kind and filter,
 * data in any number of pieces, and data that is damaged although its checksums match. */
#include <zlib.h>

#include "base/buf.h"
#include "image/region/parts.h"
#include "image/region/png_quick.h"
#include "tests/support/images/image.h"
#include "tests/support/images/pixels.h"

static mr_pixels_scratch *quick, *plain;

typedef struct kind {
    uint8_t colour, channels;
} kind;

static const kind kinds[] = {{0, 1}, {2, 3}, {3, 1}, {4, 2}, {6, 4}};

static void put(mr_buf *out, const char *tag, const void *body, size_t len)
{
    const uint8_t head[8] = {(uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len,
                             (uint8_t)tag[0],      (uint8_t)tag[1],      (uint8_t)tag[2],     (uint8_t)tag[3]};
    mr_buf_add(out, head, sizeof head);
    mr_buf_add(out, body, len);
    mr_buf_add(out, "\0\0\0\0", 4);
}

static size_t below(mr_random *r, size_t n)
{
    return (size_t)mr_random_below(r, n);
}

/* Rows of any bytes, each with a filter of its own: whatever they are, they are an image. */
static picture png_of(mr_random *r, kind k, unsigned width, unsigned height, unsigned filters)
{
    const uint8_t header[13] = {
        0, 0, (uint8_t)(width >> 8), (uint8_t)width, 0, 0, (uint8_t)(height >> 8), (uint8_t)height, 8, k.colour, 0,
        0, 0};
    size_t row = (size_t)width * k.channels + 1, len = row * height;
    uint8_t *rows = malloc(len), palette[768];
    for (size_t i = 0; i < len; i++)
        rows[i] = (uint8_t)(i % row ? below(r, 256) : below(r, filters));
    for (size_t i = 0; i < sizeof palette; i++)
        palette[i] = (uint8_t)below(r, 256);
    uLongf packed = compressBound((uLong)len);
    uint8_t *stream = malloc(packed);
    assert_int_equal(compress2(stream, &packed, rows, (uLong)len, (int)below(r, 10)), Z_OK);
    mr_buf out = {0};
    mr_buf_add(&out, "\x89PNG\r\n\x1a\n", 8);
    put(&out, "IHDR", header, sizeof header);
    if (k.colour == 3 || (k.colour & 2 && below(r, 4) == 0))
        put(&out, "PLTE", palette, 3 * (1 + below(r, 256)));
    for (size_t at = 0; at < packed;) {
        size_t piece = below(r, 3) ? packed - at : below(r, packed - at + 1);
        put(&out, "IDAT", stream + at, piece);
        if (below(r, 8) == 0)
            put(&out, "tEXt", "a\0b", 3);
        at += piece;
    }
    put(&out, "IEND", "", 0);
    picture p = picture_copy(out.data, out.len);
    png_mend(p);
    mr_buf_free(&out);
    free(rows);
    free(stream);
    return p;
}

/* Decodes a region both ways; whether the quick way took it. */
static bool same_both_ways(mr_random *r, picture p, unsigned width, unsigned height)
{
    const mr_image_facts facts = {.width = width, .height = height, .codec = MR_CODEC_PNG};
    mr_region seen = {.left = (uint32_t)below(r, width), .top = (uint32_t)below(r, height)};
    seen.width = 1 + (uint32_t)below(r, width - seen.left);
    seen.height = 1 + (uint32_t)below(r, height - seen.top);
    const uint8_t *a = NULL, *b = NULL;
    mr_error one = {0}, other = {0};
    mr_status status = mr_pixels_decode(quick, p.bytes, p.len, &facts, &seen, &a, &one);
    if (mr_pixels_decode(plain, p.bytes, p.len, &facts, &seen, &b, &other) != status)
        fail_msg("\"%s\", and libspng \"%s\"", one.text, other.text);
    if (status == MR_OK)
        assert_memory_equal(a, b, (size_t)seen.width * seen.height * 3);
    else
        assert_string_equal(one.text, other.text);
    mr_png_quick q;
    return mr_png_quick_rows(quick, p.bytes, p.len, seen.top + seen.height, &q);
}

static void the_usual_kinds_are_taken(void **state)
{
    mr_random r = support_random();
    (void)state;
    for (int i = 0; i < 400; i++) {
        kind k = kinds[below(&r, MR_COUNT(kinds))];
        unsigned width = 1 + (unsigned)below(&r, i % 8 ? 40 : 700), height = 1 + (unsigned)below(&r, 40);
        picture p = png_of(&r, k, width, height, 5);
        assert_true(same_both_ways(&r, p, width, height));
        picture_free(&p);
    }
}

static void the_others_are_left(void **state)
{
    static const struct {
        uint8_t colour, depth;
        bool interlaced;
    } others[] = {{0, 8, true}, {2, 8, true}, {0, 16, false}, {6, 16, false}, {0, 1, false}, {0, 4, false}};
    mr_random r = support_random();
    (void)state;
    for (size_t i = 0; i < MR_COUNT(others); i++) {
        picture p = make_png(21, 13, others[i].colour, others[i].depth, others[i].interlaced);
        assert_false(same_both_ways(&r, p, 21, 13));
        picture_free(&p);
    }
    picture p = make_png(21, 13, 2, 8, false), with = png_with(p, "IDAT", "tRNS", "\0\1\0\2\0\3", 6);
    assert_true(same_both_ways(&r, p, 21, 13));
    assert_false(same_both_ways(&r, with, 21, 13));
    picture_free(&p);
    picture_free(&with);
}

static void what_is_damaged_is_left_to_libspng(void **state)
{
    mr_random r = support_random();
    unsigned taken = 0;
    (void)state;
    for (int i = 0; i < 3000; i++) {
        picture p = png_of(&r, kinds[below(&r, MR_COUNT(kinds))], 9, 7, i % 4 ? 5 : 6);
        for (size_t flips = below(&r, 3); flips--;)
            p.bytes[8 + below(&r, p.len - 8)] ^= (uint8_t)(1u << below(&r, 8));
        if (below(&r, 4))
            png_mend(p);
        if (below(&r, 8) == 0)
            p.len -= below(&r, p.len / 2);
        taken += same_both_ways(&r, p, 9, 7);
        picture_free(&p);
    }
    assert_in_range(taken, 300, 2700);
}

static int open_both(void **state)
{
    (void)state;
    quick = mr_pixels_scratch_new();
    plain = mr_pixels_scratch_new();
    mr_pixels_scratch_libraries(plain);
    return 0;
}

static int close_both(void **state)
{
    (void)state;
    mr_pixels_scratch_free(quick);
    mr_pixels_scratch_free(plain);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_usual_kinds_are_taken),
        cmocka_unit_test(the_others_are_left),
        cmocka_unit_test(what_is_damaged_is_left_to_libspng),
    };
    return cmocka_run_group_tests(tests, open_both, close_both);
}

/* test_image.c - image headers: what is read from sound files, and why others are refused.
 * Covers codec/limits.c, codec/codec_jpeg.c, codec/codec_png.c, codec/codec_webp.c, codec/png_open.c,
 * codec/webp_open.c. */
#include "tests/support/images/image.h"

#include <stdlib.h>
#include <string.h>

static mr_image_facts accept(picture p)
{
    mr_image_facts f;
    mr_error err;
    if (mr_image_examine(p.bytes, p.len, NULL, &f, &err) != MR_OK ||
        mr_image_decode(p.bytes, p.len, NULL, &err) != MR_OK)
        fail_msg("refused: %s", err.text);
    return f;
}

/* Both must refuse, examine with these words; frees the picture. */
static void refuse(picture p, const char *words)
{
    mr_image_facts f;
    mr_error err = {0}, decode;
    if (mr_image_examine(p.bytes, p.len, NULL, &f, &err) != MR_BAD_SAMPLE || !strstr(err.text, words))
        fail_msg("expected \"%s\", got \"%s\"", words, err.text);
    if (mr_image_decode(p.bytes, p.len, NULL, &decode) != MR_BAD_SAMPLE)
        fail_msg("decoded, though refused: %s", err.text);
    picture_free(&p);
}

static void expect(picture p, unsigned width, unsigned height, unsigned codec, unsigned components, unsigned bits,
                   unsigned orientation, uint32_t flags)
{
    mr_image_facts f = accept(p);
    assert_int_equal(f.width, width);
    assert_int_equal(f.height, height);
    assert_int_equal(f.codec, codec);
    assert_int_equal(f.components, components);
    assert_int_equal(f.bits, bits);
    assert_int_equal(f.orientation, orientation);
    assert_int_equal(f.flags, flags);
    picture_free(&p);
}

static void tells_codecs_by_content(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *what;
    } rows[] = {
        {"", 0, "an empty file"},
        {"GIF89a..", 8, "GIF"},
        {"II*\0....", 8, "TIFF"},
        {"BM......", 8, "BMP"},
        {"\n<!DOCTYPE html>", 16, "HTML"},
        {"<?xml version", 13, "XML"},
        {"\xef\xbb\xbf <svg>", 9, "SVG"},
        {"{\"a\":1}", 7, "JSON"},
        {"P6\n1 1", 6, "PNM"},
        {"\0\0\0\x18"
         "ftypavif",
         12, "AVIF"},
        {"\0\0\0\x18"
         "ftypheic",
         12, "HEIC"},
        {"PK\3\4", 4, "ZIP"},
        {"\r\n\xff\xd8\xff\xe0", 6, "JPEG preceded by other bytes"},
        {"\xff\xd8", 2, NULL},
        {"version https://git-lfs.github.com/spec/v1\n", 43, "a Git LFS pointer (git lfs pull fetches the file)"},
        {"RIFF....WAVE", 12, NULL},
        {"RIFF....WEB", 11, NULL},
        {"P", 1, NULL},
        {"\xff\xd8\xff", 3, "JPEG"},
        {"\x89PNG\r\n\x1a\n", 8, "PNG"},
        {"RIFF....WEBP", 12, "WebP"},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(rows); i++) {
        picture p = picture_copy((const uint8_t *)rows[i].bytes, rows[i].len);
        const char *what = NULL;
        const mr_codec *codec = mr_codec_find(p.bytes, p.len, &what);
        assert_string_equal(what ? what : "-", rows[i].what ? rows[i].what : "-");
        assert_int_equal(codec != NULL, i >= MR_COUNT(rows) - 3);
        picture_free(&p);
    }
    for (unsigned id = MR_CODEC_JPEG; id <= MR_CODEC_WEBP; id++)
        assert_int_equal(mr_codec_by_id(id)->id, id);
    assert_null(mr_codec_by_id(MR_CODEC_NONE));
    assert_null(mr_codec_by_id(99));
    refuse(picture_copy((const uint8_t *)"GIF89a", 6), "GIF: millrace stores JPEG, PNG and WebP");
}

static void reads_every_kind_of_jpeg(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3 * 8; i++) {
        static const unsigned components[] = {1, 3, 4};
        jpeg_kind k = {33, 17, components[i / 8], i & 1, i & 2, i & 4 ? 2 : 0, NULL};
        uint32_t flags = (k.progressive ? MR_FLAG_PROGRESSIVE : 0u) | (k.arithmetic ? MR_FLAG_ARITHMETIC : 0u);
        expect(make_jpeg(k), 33, 17, MR_CODEC_JPEG, k.components, 8, 1, flags);
    }
}

static void reads_every_kind_of_png(void **state)
{
    static const uint8_t channels[] = {1, 0, 3, 3, 2, 0, 4};
    unsigned made = 0;
    (void)state;
    for (uint8_t colour = 0; colour <= 6; colour++) {
        for (uint8_t depth = 1; depth <= 16; depth *= 2) {
            bool palette = colour == 3, alpha = colour >= 4;
            if (!channels[colour] || (colour && !palette && depth < 8) || (palette && depth > 8))
                continue;
            for (int interlaced = 0; interlaced < 2; interlaced++, made++) {
                uint32_t flags = (interlaced ? MR_FLAG_PROGRESSIVE : 0u) | (palette ? MR_FLAG_PALETTE : 0u) |
                                 (alpha ? MR_FLAG_ALPHA : 0u);
                expect(make_png(9, 5, colour, depth, interlaced), 9, 5, MR_CODEC_PNG, channels[colour],
                       palette ? 8 : depth, 1, flags);
            }
        }
    }
    assert_int_equal(made, 2 * 15);
}

static void reads_every_kind_of_webp(void **state)
{
    (void)state;
    expect(make_webp(20, 30, false, false), 20, 30, MR_CODEC_WEBP, 3, 8, 1, 0);
    expect(make_webp(20, 30, false, true), 20, 30, MR_CODEC_WEBP, 4, 8, 1, MR_FLAG_ALPHA);
    expect(make_webp(20, 30, true, false), 20, 30, MR_CODEC_WEBP, 3, 8, 1, 0);
    expect(make_webp(20, 30, true, true), 20, 30, MR_CODEC_WEBP, 4, 8, 1, MR_FLAG_ALPHA);
    expect(make_webp_extended(20, 30, 0, NULL), 20, 30, MR_CODEC_WEBP, 3, 8, 1, 0);
    expect(make_webp_extended(20, 30, 1, NULL), 20, 30, MR_CODEC_WEBP, 3, 8, 1, 0);
    expect(make_webp_extended(20, 30, 2, NULL), 20, 30, MR_CODEC_WEBP, 3, 8, 1, MR_FLAG_ANIMATED);
}

static void reads_png_extras(void **state)
{
    static const uint8_t gray[2] = {0, 7}, two_frames[8] = {0, 0, 0, 2}, one_frame[8] = {0, 0, 0, 1};
    picture plain = make_png(9, 5, 0, 8, false), p;
    (void)state;
    expect(png_with(plain, "IDAT", "tRNS", gray, 2), 9, 5, MR_CODEC_PNG, 1, 8, 1, MR_FLAG_ALPHA);
    expect(png_with(plain, "IDAT", "acTL", two_frames, 8), 9, 5, MR_CODEC_PNG, 1, 8, 1, MR_FLAG_ANIMATED);
    expect(png_with(plain, "IDAT", "acTL", one_frame, 8), 9, 5, MR_CODEC_PNG, 1, 8, 1, 0);
    p = png_with(plain, "IDAT", "tRNS", gray, 2);
    p.bytes[png_chunk(p, "tRNS") + 10] ^= 1; /* its CRC: readers skip it, so it says nothing */
    expect(p, 9, 5, MR_CODEC_PNG, 1, 8, 1, 0);
    expect(picture_splice(plain, plain.len, "padding", 7), 9, 5, MR_CODEC_PNG, 1, 8, 1, 0);
    picture_free(&plain);
}

static void finds_the_orientation_in_every_container(void **state)
{
    (void)state;
    for (unsigned value = 1; value <= 8; value++) {
        picture exif = make_exif(value & 1, 3, 1, value), png = make_png(9, 5, 2, 8, false);
        expect(make_jpeg((jpeg_kind){9, 5, 3, .exif = &exif}), 9, 5, MR_CODEC_JPEG, 3, 8, value, 0);
        expect(png_with(png, "IEND", "eXIf", exif.bytes + 6, exif.len - 6), 9, 5, MR_CODEC_PNG, 3, 8, value, 0);
        expect(make_webp_extended(9, 5, 0, &exif), 9, 5, MR_CODEC_WEBP, 3, 8, value, 0);
        picture_free(&exif);
        picture_free(&png);
    }
}

static void first_sound_exif_segment_counts(void **state)
{
    static const uint8_t broken[] = {0xff, 0xe1, 0, 12, 'E', 'x', 'i', 'f', 0, 0, 'X', 'X', 0, 0};
    picture exif = make_exif(true, 3, 1, 6), one = make_jpeg((jpeg_kind){9, 5, 3, .exif = &exif});
    picture later = make_exif(true, 3, 1, 3), two;
    uint8_t head[4] = {0xff, 0xe1, 0, (uint8_t)(later.len + 2)};
    size_t dqt = jpeg_marker(one, 0xdb);
    (void)state;
    expect(picture_splice(one, 2, broken, sizeof broken), 9, 5, MR_CODEC_JPEG, 3, 8, 6, 0);
    two = picture_splice(one, dqt, later.bytes, later.len);
    expect(picture_splice(two, dqt, head, 4), 9, 5, MR_CODEC_JPEG, 3, 8, 6, 0);
    picture_free(&exif);
    picture_free(&one);
    picture_free(&later);
    picture_free(&two);
}

/* As for other readers of JPEG metadata, which stop at the first scan. */
static void exif_behind_a_scan_counts_for_nothing(void **state)
{
    picture exif = make_exif(true, 3, 1, 8), plain = make_jpeg((jpeg_kind){9, 5, 3, .exif = NULL}), late;
    uint8_t head[4] = {0xff, 0xe1, 0, (uint8_t)(exif.len + 2)};
    (void)state;
    late = picture_splice(plain, plain.len - 2, exif.bytes, exif.len);
    expect(picture_splice(late, plain.len - 2, head, 4), 9, 5, MR_CODEC_JPEG, 3, 8, 1, 0);
    picture_free(&exif);
    picture_free(&plain);
    picture_free(&late);
}

static unsigned orientation_of(picture p)
{
    unsigned value = mr_exif_orientation(p.bytes, p.len);
    picture_free(&p);
    return value;
}

static void exif_blocks_of_any_shape(void **state)
{
    static const uint32_t offsets[] = {0, 4, 7, 9, 37, 38, 39, 40, 1000, 0x7fffffff, 0xfffffffe, 0xffffffff};
    (void)state;
    for (int big = 0; big < 2; big++) {
        assert_int_equal(orientation_of(make_exif(big, 4, 1, 6)), 6); /* LONG and BYTE: seen in the wild */
        assert_int_equal(orientation_of(make_exif(big, 1, 1, 8)), 8);
        assert_int_equal(orientation_of(make_exif(big, 3, 1, 0)), 1);
        assert_int_equal(orientation_of(make_exif(big, 3, 1, 9)), 1);
        assert_int_equal(orientation_of(make_exif(big, 4, 1, 0x10006)), 1);
        assert_int_equal(orientation_of(make_exif(big, 3, 2, 6)), 1);
        assert_int_equal(orientation_of(make_exif(big, 3, 0, 6)), 1);
        assert_int_equal(orientation_of(make_exif(big, 2, 1, 6)), 1);
        picture whole = make_exif(big, 3, 1, 6);
        for (size_t len = 0; len <= whole.len; len++) /* whole entries count, the link after them does not */
            assert_int_equal(orientation_of(picture_copy(whole.bytes, len)), len >= 6 + 10 + 24 ? 6 : 1);
        for (size_t i = 0; i < MR_COUNT(offsets); i++) {
            picture p = picture_copy(whole.bytes, whole.len);
            for (int k = 0; k < 4; k++)
                p.bytes[6 + 4 + (big ? 3 - k : k)] = (uint8_t)(offsets[i] >> 8 * k);
            assert_in_range(orientation_of(p), 1, 1);
        }
        picture_free(&whole);
    }
}

static void exif_directory_with_too_many_entries(void **state)
{
    size_t len = 10 + 1001 * 12;
    (void)state;
    for (unsigned count = 1000; count <= 1001; count++) {
        picture p = {calloc(1, len), len};
        assert_non_null(p.bytes);
        memcpy(p.bytes, "II*\0\x08\0\0\0", 8);
        p.bytes[8] = (uint8_t)count;
        p.bytes[9] = (uint8_t)(count >> 8);
        memcpy(p.bytes + 10 + 999 * 12, "\x12\x01\3\0\1\0\0\0\5\0", 10);
        assert_int_equal(orientation_of(p), count == 1000 ? 5 : 1);
    }
}

static picture jpeg_patched(unsigned offset, const void *bytes, size_t len) /* in the frame header */
{
    picture p = make_jpeg((jpeg_kind){16, 16, 3, .restart = 0});
    memcpy(p.bytes + jpeg_marker(p, 0xc0) + offset, bytes, len);
    return p;
}

static void refuses_jpegs_with_a_reason(void **state)
{
    picture p = make_jpeg((jpeg_kind){16, 16, 3, .restart = 0}), q;
    size_t sos = jpeg_marker(p, 0xda), sof = jpeg_marker(p, 0xc0);
    (void)state;
    refuse(jpeg_patched(4, "\x0c", 1), "12-bit JPEG");
    refuse(jpeg_patched(1, "\xc3", 1), "lossless JPEG");
    refuse(jpeg_patched(1, "\xc5", 1), "hierarchical JPEG");
    refuse(jpeg_patched(1, "\xc8", 1), "marker 0xffc8");
    refuse(jpeg_patched(1, "\xf7", 1), "JPEG-LS");
    refuse(jpeg_patched(1, "\xfe", 1), "before any frame header");
    refuse(jpeg_patched(9, "\4", 1), "impossible length");
    refuse(jpeg_patched(2, "\0\x10", 2), "impossible length");
    refuse(jpeg_patched(2, "\0\x0e\x08\0\x10\0\x10\2", 8), "2 components");
    refuse(jpeg_patched(2, "\0\1", 2), "impossible length");
    refuse(jpeg_patched(5, "\0\0", 2), "the image is empty");
    refuse(jpeg_patched(7, "\0\0", 2), "the image is empty");
    refuse(jpeg_patched(5, "\xff\xff\xff\xff", 4), "65535 x 65535 pixels: more than the limit");
    refuse(jpeg_patched(7, "\xff\xff", 2), "sides above 65500");
    refuse(jpeg_patched(11, "\x50", 1), "sampling factors");
    refuse(jpeg_patched(11, "\x44", 1), "interleaves 18 blocks");
    refuse(jpeg_patched(10, "\x09", 1), "names component 1");
    refuse(picture_splice(p, sos, p.bytes + sof, sos - sof), "two frame headers");
    refuse(picture_splice(p, sos, "\xff\xd8", 2), "second image");
    refuse(picture_splice(p, 2, "\xff\x80", 2), "marker 0xff80");
    q = picture_copy(p.bytes, sos);
    refuse(picture_splice(q, sos, "\xff\xd9", 2), "no scan between them");
    picture_free(&q);
    refuse(picture_copy((const uint8_t *)"\xff\xd8\xff\xd9", 4), "only tables");
    refuse(picture_copy(p.bytes, p.len - 2), "no end marker; the file is cut short");
    refuse(picture_copy(p.bytes, sof + 5), "ends inside its header");
    picture_free(&p);
}

/* Decoding finds what a header cannot show: an early end marker, a table that is missing. */
static void decoding_sees_more_than_examining(void **state)
{
    picture p = make_jpeg((jpeg_kind){64, 64, 3, .restart = 0});
    size_t sos = jpeg_marker(p, 0xda);
    picture bad[] = {picture_splice(p, sos + 20, "\xff\xd9", 2), picture_splice(p, sos, "\xff\xc4\0\3x", 5)};
    static const char *const words[] = {"premature end of data segment", "Bogus marker length"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        mr_image_facts f;
        mr_error err = {0};
        assert_int_equal(mr_image_examine(bad[i].bytes, bad[i].len, NULL, &f, &err), MR_OK);
        assert_int_equal(f.width, 64);
        assert_int_equal(mr_image_decode(bad[i].bytes, bad[i].len, NULL, &err), MR_BAD_SAMPLE);
        assert_non_null(strstr(err.text, words[i]));
        picture_free(&bad[i]);
    }
    expect(picture_splice(p, p.len, "what cameras leave behind \xff\xd8\xff", 29), 64, 64, MR_CODEC_JPEG, 3, 8, 1, 0);
    expect(picture_splice(p, p.len - 2, "\xff\xff\xff", 3), 64, 64, MR_CODEC_JPEG, 3, 8, 1, 0); /* fill bytes */
    picture_free(&p);
}

static picture png_patched(unsigned offset, const void *bytes, size_t len) /* in the header's body */
{
    picture p = make_png(9, 5, 3, 8, false);
    memcpy(p.bytes + 16 + offset, bytes, len);
    png_mend(p);
    return p;
}

static void refuses_pngs_with_a_reason(void **state)
{
    picture p = make_png(9, 5, 3, 8, false), q;
    size_t plte = png_chunk(p, "PLTE"), idat = png_chunk(p, "IDAT"), iend = png_chunk(p, "IEND");
    (void)state;
    refuse(png_patched(0, "\0\0\0\0", 4), "the image is empty");
    refuse(png_patched(0, "\0\0\xff\xff\0\0\xff\xff", 8), "65535 x 65535 pixels: more than the limit");
    refuse(png_patched(0, "\xff\xff\xff\xff", 4), "more than the limit");
    refuse(png_patched(0, "\0\x0f\x42\x41", 4), "sides above 1000000");
    refuse(png_patched(8, "\x10", 1), "invalid colour type");
    refuse(png_patched(8, "\x03", 1), "invalid colour type");
    refuse(png_patched(9, "\x01", 1), "invalid colour type");
    refuse(png_patched(12, "\x02", 1), "interlace method");
    refuse(png_with(p, "IDAT", "XXXX", "abc", 3), "XXXX");
    refuse(png_with(p, "IDAT", "IHDR", p.bytes + 16, 13), "two headers");
    refuse(png_with(p, "IHDR", "tEXt", "a\0b", 3), "starts with tEXt");
    refuse(png_with(p, "PLTE", "PLTE", "ab", 2), "palette");
    q = picture_copy(p.bytes, p.len);
    q.bytes[idat + 9] ^= 4;
    refuse(q, "IDAT at byte 813 is damaged: its CRC differs");
    q = picture_copy(p.bytes, idat);
    refuse(picture_splice(q, idat, p.bytes + iend, 12), "no pixels");
    picture_free(&q);
    q = picture_copy(p.bytes, plte);
    refuse(picture_splice(q, plte, p.bytes + idat, p.len - idat), "no palette");
    picture_free(&q);
    refuse(picture_copy(p.bytes, iend), "without its end chunk");
    refuse(picture_copy(p.bytes, iend - 1), "cut short");
    picture_free(&p);
}

static picture webp_patched(bool extended, bool lossless, size_t offset, const void *bytes, size_t len)
{
    picture p = extended ? make_webp_extended(20, 30, 2, NULL) : make_webp(20, 30, lossless, false);
    memcpy(p.bytes + offset, bytes, len);
    return p;
}

static void refuses_webps_with_a_reason(void **state)
{
    (void)state;
    refuse(webp_patched(false, false, 4, "\xff\xff\0\0", 4), "of 65543 bytes: the file is cut short");
    refuse(webp_patched(false, false, 4, "\4\0\0\0", 4), "too small for an image");
    refuse(webp_patched(false, false, 12, "JUNK", 4), "unknown chunk");
    refuse(webp_patched(false, false, 16, "\xff\xff\xff\xff", 4), "goes past the end");
    refuse(webp_patched(false, false, 23, "\x9e", 1), "damaged header");
    refuse(webp_patched(false, false, 26, "\0\0", 2), "the image is empty");
    refuse(webp_patched(false, true, 20, "\x2e", 1), "damaged header");
    refuse(webp_patched(true, false, 24, "\xff\xff\xff\xff\xff\xff", 6), "16777216 x 16777216 pixels");
    refuse(webp_patched(true, false, 24, "\x12\0\0", 3), "frame 1 exceeds the image");
    picture p = webp_patched(true, false, 58, "\x12\0\0", 3); /* libwebp goes by the picture inside */
    mr_image_limits chunks = {.max_segments = 3};
    mr_image_facts f;
    mr_error err;
    assert_int_equal(mr_image_examine(p.bytes, p.len, NULL, &f, &err), MR_BAD_SAMPLE);
    assert_non_null(strstr(err.text, "frame 1 does not contain an image of the size"));
    assert_int_equal(mr_image_examine(p.bytes, p.len, &chunks, &f, &err), MR_BAD_SAMPLE);
    assert_non_null(strstr(err.text, "more than 3 chunks"));
    picture_free(&p);
}

static void keeps_the_limits(void **state)
{
    static const uint8_t comment[4] = {0xff, 0xfe, 0, 2};
    picture p = make_jpeg((jpeg_kind){64, 64, 3, .progressive = true}), png = make_png(9, 5, 2, 8, false), many;
    mr_image_limits pixels = {.max_pixels = 64 * 64 - 1}, scans = {.max_scans = 2}, segments = {.max_segments = 2};
    size_t sos = jpeg_marker(p, 0xda), rest = p.len - 2 - sos, n = 100001 * sizeof comment;
    mr_image_facts f;
    mr_error err = {0};
    (void)state;
    assert_int_equal(mr_image_examine(p.bytes, p.len, &pixels, &f, &err), MR_BAD_SAMPLE);
    assert_non_null(strstr(err.text, "limit of 4095 pixels"));
    assert_int_equal(mr_image_decode(p.bytes, p.len, &pixels, &err), MR_BAD_SAMPLE);
    assert_int_equal(mr_image_examine(p.bytes, p.len, &scans, &f, &err), MR_BAD_SAMPLE);
    assert_non_null(strstr(err.text, "more than 2 scans"));
    err.text[0] = '\0';
    assert_int_equal(mr_image_decode(p.bytes, p.len, &scans, &err), MR_BAD_SAMPLE);
    assert_non_null(strstr(err.text, "more than 2 scans"));
    assert_int_equal(mr_image_examine(png.bytes, png.len, &segments, &f, &err), MR_BAD_SAMPLE);
    assert_non_null(strstr(err.text, "more than 2 chunks"));
    picture_free(&png);

    many = picture_copy(p.bytes, p.len); /* scans without end: all of them again and again */
    for (int i = 0; i < 40; i++) {
        picture longer = picture_splice(many, p.len - 2, p.bytes + sos, rest);
        picture_free(&many);
        many = longer;
    }
    refuse(many, "more than 256 scans");
    uint8_t *comments = malloc(n);
    assert_non_null(comments);
    for (size_t i = 0; i < n; i++)
        comments[i] = comment[i % sizeof comment];
    many = picture_splice(p, 2, comments, n);
    assert_int_equal(mr_image_examine(many.bytes, many.len, NULL, &f, &err), MR_BAD_SAMPLE);
    assert_non_null(strstr(err.text, "more than 100000 segments"));
    free(comments);
    picture_free(&many);
    picture_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_codecs_by_content),
        cmocka_unit_test(reads_every_kind_of_jpeg),
        cmocka_unit_test(reads_every_kind_of_png),
        cmocka_unit_test(reads_every_kind_of_webp),
        cmocka_unit_test(reads_png_extras),
        cmocka_unit_test(finds_the_orientation_in_every_container),
        cmocka_unit_test(first_sound_exif_segment_counts),
        cmocka_unit_test(exif_behind_a_scan_counts_for_nothing),
        cmocka_unit_test(exif_blocks_of_any_shape),
        cmocka_unit_test(exif_directory_with_too_many_entries),
        cmocka_unit_test(refuses_jpegs_with_a_reason),
        cmocka_unit_test(decoding_sees_more_than_examining),
        cmocka_unit_test(refuses_pngs_with_a_reason),
        cmocka_unit_test(refuses_webps_with_a_reason),
        cmocka_unit_test(keeps_the_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

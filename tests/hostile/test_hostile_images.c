/* test_hostile_images.c - pictures made to do harm: few bytes that claim or cost much.
 * Invariant tested: a picture over a limit is rejected, with a reason, cheaply and within 256 MiB, by ingest with
 * --check decode and by everything that reads a dataset with it; one within the limits costs no more than SECURITY.md
 * says about its pixels. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/shards/dataset_maker.h"
#include "tests/support/images/image.h"

static char *dir, *source, *dst;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    source = support_path("%s/source", dir);
    dst = support_path("%s/dst", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(source);
    free(dst);
    support_tmpdir_remove(dir);
    return 0;
}

#define RUN(...) support_millrace_under((const char *const[]){__VA_ARGS__, NULL}, &(support_limits){.directory = dir})

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

typedef struct bits {
    uint8_t *bytes;
    size_t len;
    uint32_t pending, count;
} bits;

static void put_bits(bits *b, uint32_t value, unsigned n)
{
    for (unsigned i = n; i-- > 0;) {
        b->pending = b->pending << 1 | (value >> i & 1);
        if (++b->count % 8 == 0) {
            b->bytes[b->len++] = (uint8_t)b->pending;
            if ((uint8_t)b->pending == 0xff)
                b->bytes[b->len++] = 0;
        }
    }
}

static void put_bytes(bits *b, const void *bytes, size_t len)
{
    while (b->count % 8)
        put_bits(b, 1, 1);
    memcpy(b->bytes + b->len, bytes, len);
    b->len += len;
}

#define PUT(b, ...) put_bytes(b, (const uint8_t[]){__VA_ARGS__}, sizeof(const uint8_t[]){__VA_ARGS__})

/* Runs of "nothing in these blocks": 14 bits of length say 16,384 to 32,767 of them in 15 bits. */
static void empty_scan(bits *b, uint8_t band, uint8_t bit_planes, size_t blocks)
{
    PUT(b, 0xff, 0xda, 0, 8, 1, 1, 0, band, band, bit_planes);
    for (size_t left = blocks; left >= 16384;) {
        size_t run = left < 32767 ? left : 32767;
        put_bits(b, 0, 1);
        put_bits(b, (uint32_t)run - 16384, 14);
        left -= run;
    }
    while (b->count % 8)
        put_bits(b, 1, 1);
}

/* A progressive picture of side x side gray pixels (whose blocks such runs can share out) in `scans` scans, each of
 * them as the standard allows: a first one of the averages, then band by band, bit plane by bit plane. */
static picture scan_bomb(uint16_t side, unsigned scans)
{
    size_t across = (side + 7u) / 8, blocks = across * across, n = 1;
    bits b = {.bytes = malloc(4096 + blocks / 8 + scans * (blocks / 32767 * 2 + 5000))};
    uint8_t ones[64];
    memset(ones, 1, sizeof ones);
    PUT(&b, 0xff, 0xd8, 0xff, 0xdb, 0, 67, 0);
    put_bytes(&b, ones, 64);
    PUT(&b, 0xff, 0xc2, 0, 11, 8, (uint8_t)(side >> 8), (uint8_t)side, (uint8_t)(side >> 8), (uint8_t)side, 1, 1, 0x11,
        0);
    PUT(&b, 0xff, 0xc4, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    PUT(&b, 0xff, 0xc4, 0, 20, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xe0);
    PUT(&b, 0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0);
    for (size_t i = 0; i < blocks; i++)
        put_bits(&b, 0, 1);
    for (uint8_t band = 1; band < 64; band++)
        for (uint8_t plane = 8; plane-- > 0 && n < scans; n++)
            empty_scan(&b, band, (uint8_t)((plane == 7 ? 0 : plane + 1) << 4 | plane), blocks);
    PUT(&b, 0xff, 0xd9);
    return (picture){b.bytes, b.len};
}

static picture jpeg_of(uint16_t width, uint16_t height)
{
    picture p = make_jpeg((jpeg_kind){.width = 16, .height = 16, .components = 3});
    uint8_t size[4] = {(uint8_t)(height >> 8), (uint8_t)height, (uint8_t)(width >> 8), (uint8_t)width};
    memcpy(p.bytes + jpeg_marker(p, 0xc0) + 5, size, 4);
    return p;
}

static picture png_of(uint32_t width, uint32_t height)
{
    picture p = make_png(8, 8, 6, 16, true);
    for (int i = 0; i < 4; i++) {
        p.bytes[16 + i] = (uint8_t)(width >> (24 - 8 * i));
        p.bytes[20 + i] = (uint8_t)(height >> (24 - 8 * i));
    }
    png_mend(p);
    return p;
}

static picture webp_of(bool lossless, uint32_t width, uint32_t height)
{
    picture p = make_webp(16, 16, lossless, false);
    uint32_t size = lossless ? (height - 1) << 14 | (width - 1) : height << 16 | width;
    uint8_t *at = p.bytes + (lossless ? 21 : 26);
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)((lossless && i == 3 ? at[3] & 0xf0u : 0) | size >> 8 * i);
    return p;
}

static picture repeated(picture p, size_t at, const void *part, size_t len, size_t times)
{
    uint8_t *many = malloc(len * times);
    for (size_t i = 0; i < times; i++)
        memcpy(many + i * len, part, len);
    picture out = picture_splice(p, at, many, len * times);
    free(many);
    picture_free(&p);
    return out;
}

/* ---- who is to refuse them --------------------------------------------------------------------------------------- */

/* Beside twenty good ones; frees p. */
static void expect_rejected(const char *name, picture p, const char *words)
{
    picture ok = make_jpeg((jpeg_kind){.width = 16, .height = 16, .components = 3});
    for (int i = 0; i < 20; i++) {
        support_writef(ok.bytes, ok.len, "%s/train/c%d/%d.jpg", source, i % 2, i);
    }
    char *bad = support_path("%s/train/c0/%s", source, name);
    support_write(bad, p.bytes, p.len);
    support_result r = RUN("ingest", source, dst, "--check", "decode", "--max-rejects", "0", "--jobs", "1");
    support_expect_refusal(r, words);
    assert_false(support_exists(dst));
    unlink(bad);
    free(bad);
    picture_free(&ok);
    picture_free(&p);
}

static void test_claims_of_size(void **state)
{
    (void)state;
    static const uint8_t comment[] = {0xff, 0xfe, 0, 2}, chunk[] = {0, 0, 0, 0, 't', 'E', 'X', 't', 0, 0, 0, 0};
    expect_rejected("a.jpg", jpeg_of(65535, 65535), "more than the limit of 178956970 pixels");
    expect_rejected("b.jpg", jpeg_of(65500, 2700), "cannot be decoded");
    expect_rejected("c.png", png_of(0x7fffffff, 0x7fffffff), "more than the limit of 178956970 pixels");
    expect_rejected("d.png", png_of(13000, 13000), "");
    expect_rejected("e.jpg", repeated(jpeg_of(16, 16), 2, comment, 4, 200000), "more than 100000 segments");
    expect_rejected("f.png", repeated(make_png(8, 8, 2, 8, false), 33, chunk, 12, 200000), "");
    expect_rejected("g.webp", webp_of(true, 16384, 16384), "more than the limit of 178956970 pixels");
    expect_rejected("h.webp", webp_of(true, 13000, 13000), "WebP cannot be decoded");
    expect_rejected("i.webp", webp_of(false, 16383, 16383), "more than the limit of 178956970 pixels");
    expect_rejected("j.webp", webp_of(false, 13000, 13000), "WebP cannot be decoded");
}

static void test_endless_scans(void **state)
{
    (void)state;
    expect_rejected("a.jpg", scan_bomb(13000, 256), "more than 16 scans, the limit for its size");
    expect_rejected("b.jpg", scan_bomb(1100, 400), "more than 256 scans, the limit for its size");
    picture fine = scan_bomb(1100, 200);
    mr_error err;
    if (mr_image_decode(fine.bytes, fine.len, NULL, &err) != MR_OK) /* it is the number alone that is refused */
        fail_msg("%s", err.text);
    picture_free(&fine);
}

/* One picture alone, ingested by DATASET; frees p. */
static void ingest_one(picture p, const char *const *options)
{
    char *path = support_path("%s/train/c0/a.jpg", source);
    const char *argv[16] = {support_millrace_path(), "ingest", source, dst, "--force", "--quiet", "--max-rejects", "0"};
    for (size_t n = 8; *options && n < 15; n++)
        argv[n] = *options++;
    support_write(path, p.bytes, p.len);
    support_result r = support_run(argv, NULL);
    support_assert_status(&r, 0);
    support_result_free(&r);
    free(path);
    picture_free(&p);
}

#define OPTIONS(...)                                                                                                   \
    (const char *const[])                                                                                              \
    {                                                                                                                  \
        __VA_ARGS__, NULL                                                                                              \
    }

/* The options that raise a limit raise it to just there, and what they let in is read like anything else. */
static void test_scan_limits(void **state)
{
    (void)state;
    picture many = scan_bomb(1024, 300), full = scan_bomb(1024, 16), over = scan_bomb(1024, 17);
    char *path = support_path("%s/train/c0/a.jpg", source);
    support_write(path, many.bytes, many.len);
    support_expect_refusal(RUN("ingest", source, dst), "more than 256 scans, the limit for its size");
    support_expect_refusal(RUN("ingest", source, dst, "--max-scans", "299"), "more than 299 scans");
    support_write(path, over.bytes, over.len);
    support_expect_refusal(RUN("ingest", source, dst, "--max-pixels", "1048576"), "more than 16 scans, the limit");
    ingest_one(full, OPTIONS("--check", "decode", "--max-pixels", "1048576"));
    ingest_one(over, OPTIONS("--check", "decode", "--max-pixels", "1114112"));
    ingest_one(many, OPTIONS("--check", "decode", "--max-scans", "300"));
    support_expect(0, "verify", dst, "--decode", "--quiet", (char *)NULL);
    support_expect(0, "replay", dst, "--global-batch", "1", "--size", "32", (char *)NULL);
    free(path);
}

/* The highest memory that a command on DATASET has needed.  Until it has begun, that is what this process holds. */
static uint64_t peak(const char *const *args)
{
    malloc_trim(0);
    support_result r = support_millrace_under(args, &(support_limits){.directory = dir});
    support_assert_cheap(&r);
    support_assert_status(&r, 0);
    uint64_t bytes = r.peak_memory;
    support_result_free(&r);
    return bytes;
}

/* A sound picture of few bytes is not a bomb: it costs its pixels.  8 bytes each to be decoded, where a loader makes
 * RGB of it 3 more, where it turns that 3 again, and the file itself. */
static void test_cost_of_pixels(void **state)
{
    (void)state;
    enum { SIDE = 1536, PIXELS = SIDE * SIDE, SLACK = 4 << 20 };
    picture exif = make_exif(true, 3, 1, 6), flat = make_png(SIDE, SIDE, 6, 16, true);
    picture pictures[] = {
        make_jpeg((jpeg_kind){.width = 16, .height = 16, .components = 3}),
        make_jpeg((jpeg_kind){.width = SIDE, .height = SIDE, .components = 4, .progressive = true, .exif = &exif}),
        png_with(flat, "IDAT", "eXIf", exif.bytes + 6, exif.len - 6),
        make_webp(SIDE, SIDE, true, true),
        make_webp(SIDE, SIDE, false, true),
    };
    static const char *const names[] = {"", "progressive CMYK JPEG", "interlaced PNG", "lossless WebP", "lossy WebP"};
    const struct {
        const char *const *args;
        uint64_t bytes;
    } readers[] = {
        {OPTIONS("ingest", source, "again", "--force", "--check", "decode", "--quiet", "--jobs", "1"), 8},
        {OPTIONS("verify", dst, "--decode", "--quiet", "--jobs", "1"), 8},
        {OPTIONS("replay", dst, "--global-batch", "1", "--size", "32", "--augment", "eval"), 11},
        {OPTIONS("replay", dst, "--global-batch", "1", "--size", "32", "--augment", "eval", "--orientation", "apply"),
         14},
    };
    enum { READERS = sizeof readers / sizeof *readers };
    uint64_t base[READERS], len;
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
        len = pictures[i].len;
        ingest_one(pictures[i], OPTIONS("--jobs", "1"));
        for (size_t k = 0; k < READERS; k++) {
            uint64_t high = peak(readers[k].args);
            if (i == 0)
                base[k] = high;
            else if (!support_sanitized() && high > base[k] + readers[k].bytes * PIXELS + 2 * len + SLACK)
                fail_msg("%s, %s: %.1f bytes a pixel", names[i], readers[k].args[0], (double)(high - base[k]) / PIXELS);
        }
    }
    picture_free(&exif);
    picture_free(&flat);
}

/* A stranger's dataset: its index and its picture agree on 40,000 x 40,000 pixels. */
static void test_readers(void **state)
{
    (void)state;
    picture bomb = scan_bomb(40000, 3), ok = make_jpeg((jpeg_kind){.width = 16, .height = 16, .components = 3});
    const made samples[2] = {{"a.jpg", ok, ",\"label\":0", false, 0}, {"b.jpg", bomb, ",\"label\":1", false, 0}};
    const made_split split = {"train", samples, 2, 2};
    mkdir(dst, 0777);
    dataset_make(dst, &split, 1);
    const char *words = "40000 x 40000 pixels: more than the limit of 178956970 pixels (--max-pixels)";
    support_expect(0, "verify", dst, "--deep", "-q", (char *)NULL);
    support_expect_refusal(RUN("verify", dst, "--decode"), words);
    support_expect_refusal(RUN("replay", dst, "--global-batch", "2", "--size", "32"), words);
    support_expect_refusal(RUN("bench", dst, "--size", "32", "--seconds", "600", "--threads", "1"), words);
    support_expect_refusal(RUN("train", dst, "--model", "vit", "--image-size", "24", "--patch", "8", "--hidden", "16",
                               "--layers", "1", "--heads", "2", "--mlp", "32", "--batch", "2"),
                           words);
    support_result r = RUN("replay", dst, "--global-batch", "2", "--size", "32", "--on-bad", "replace");
    support_assert_cheap(&r);
    assert_int_equal(r.status, 0);
    support_result_free(&r);
    picture_free(&ok);
    picture_free(&bomb);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(test_claims_of_size), TEST(test_endless_scans), TEST(test_scan_limits),
                                       TEST(test_cost_of_pixels), TEST(test_readers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

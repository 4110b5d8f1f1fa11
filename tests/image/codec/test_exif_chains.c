/* test_exif_chains.c - EXIF directories that lead back to themselves or to each other, in each codec's own place.
 * Invariant tested: they cost nothing, and the orientation is what stands in the first directory, if that is one of at
 * most 1,000 entries, whatever it leads to. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/images/image.h"

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static void put_be(uint8_t *p, uint32_t value, int bytes)
{
    while (bytes--)
        *p++ = (uint8_t)(value >> 8 * bytes);
}

typedef struct exif_chain {
    unsigned directories; /* 1: all of its entries and its end lead to itself; 2: each leads to the other */
    unsigned entries;     /* of each */
    unsigned oriented;    /* which one has orientation 6, in its last entry: 0 or 1 */
    unsigned verdict;
} exif_chain;

/* Directories of entries that each say "a directory is there" (its Exif part), in a loop. */
static picture exif_of(exif_chain c)
{
    size_t one = 2 + (size_t)c.entries * 12 + 4, len = 6 + 8 + c.directories * one;
    uint8_t *b = calloc(len, 1), *tiff = b + 6;
    memcpy(b, "Exif\0\0MM\0*\0\0\0\10", 14);
    for (unsigned d = 0; d < c.directories; d++) {
        uint8_t *at = tiff + 8 + d * one;
        uint32_t to = (uint32_t)(8 + (c.directories - 1 - d) * one);
        put_be(at, c.entries, 2);
        at += 2;
        for (unsigned i = 0; i < c.entries; i++, at += 12) {
            put_be(at, 0x87690004, 4);
            put_be(at + 4, 1, 4);
            put_be(at + 8, to, 4);
        }
        put_be(at, to, 4);
        if (c.oriented == d) {
            put_be(at - 12, 0x01120003, 4);
            put_be(at - 4, 6 << 16, 4);
        }
    }
    return (picture){b, len};
}

/* A JPEG's segment has room for 5,460 entries: there the rest of them lies outside. */
static picture with_exif(unsigned codec, picture exif)
{
    if (codec == 0) {
        picture most = {exif.bytes, exif.len < 65533 ? exif.len : 65533};
        return make_jpeg((jpeg_kind){.width = 16, .height = 16, .components = 3, .exif = &most});
    }
    if (codec == 2)
        return make_webp_extended(16, 16, 0, &exif);
    picture plain = make_png(16, 16, 2, 8, false), p = png_with(plain, "IDAT", "eXIf", exif.bytes + 6, exif.len - 6);
    picture_free(&plain);
    return p;
}

/* ---- what ingest makes of them ----------------------------------------------------------------------------------- */

/* The sample's line "orientation N" in what show says. */
static unsigned orientation_shown(const char *dst, unsigned number)
{
    char *n = support_path("%u", number);
    support_result r = support_millrace("show", dst, "train", n, (char *)NULL);
    support_assert_cheap(&r);
    const char *at = strstr(r.out, "orientation ");
    unsigned value = at ? (unsigned)atoi(at + 12) : 0;
    support_result_free(&r);
    free(n);
    return value;
}

static void test_nested_exif(void **state)
{
    char *source = support_path("%s/source", (char *)*state), *dst = support_path("%s/dst", (char *)*state);
    static const exif_chain chains[] = {
        {1, 65535, 0, 1}, {2, 65535, 1, 1}, {1, 1000, 0, 6}, {2, 1000, 0, 6}, {2, 1000, 1, 1}, {2, 1001, 0, 1},
    };
    enum { CHAINS = sizeof chains / sizeof *chains, CODECS = 3 };
    for (unsigned i = 0; i < CHAINS * CODECS; i++) {
        picture exif = exif_of(chains[i / CODECS]), p = with_exif(i % CODECS, exif);
        char *path = support_path("%s/train/c0/%02u.jpg", source, i); /* in this order, whatever they are */
        support_write(path, p.bytes, p.len);
        free(path);
        picture_free(&exif);
        picture_free(&p);
    }
    support_result r = support_millrace("ingest", source, dst, "--check", "decode", "--max-rejects", "0", (char *)NULL);
    support_assert_cheap(&r);
    support_assert_status(&r, 0);
    support_result_free(&r);
    for (unsigned i = 0; i < CHAINS * CODECS; i++)
        if (orientation_shown(dst, i) != chains[i / CODECS].verdict)
            fail_msg("chain %u, codec %u: orientation %u", i / CODECS, i % CODECS, orientation_shown(dst, i));
    free(source);
    free(dst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(test_nested_exif)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

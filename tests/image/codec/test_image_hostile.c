/* test_image_hostile.c - no bytes at all break the image readers; and a collection of real files, good and bad. */
#include "tests/support/images/image.h"

#include <stdlib.h>
#include <string.h>

/* ---- hostile bytes -------------------------------------------------------------------------------------------- */

static mr_status examine_and_decode(const uint8_t *bytes, size_t len)
{
    const mr_image_limits limits = {.max_pixels = 1 << 18};
    mr_image_facts f = {0};
    mr_error err;
    picture p = picture_copy(bytes, len); /* of exactly this length */
    mr_status s = mr_image_examine(p.bytes, p.len, &limits, &f, &err);
    mr_status d = mr_image_decode(p.bytes, p.len, &limits, &err);
    if ((s != MR_OK && s != MR_BAD_SAMPLE) || (d != MR_OK && d != MR_BAD_SAMPLE))
        fail_msg("status %d, %d: %s", s, d, err.text);
    if (s == MR_OK && (!f.width || !f.height || (uint64_t)f.width * f.height > limits.max_pixels || f.orientation < 1 ||
                       f.orientation > 8 || f.components < 1 || f.components > 4))
        fail_msg("facts out of range");
    picture_free(&p);
    return s;
}

static void survive(picture p, bool is_png)
{
    enum { TRIALS = 2000 };
    mr_random r = support_random();
    assert_int_equal(examine_and_decode(p.bytes, p.len), MR_OK);
    for (size_t len = 0; len < p.len; len++)
        if (examine_and_decode(p.bytes, len) != MR_BAD_SAMPLE)
            fail_msg("accepted when cut to %zu of %zu bytes", len, p.len);
    for (int i = 0; i < TRIALS; i++) {
        picture q = picture_copy(p.bytes, p.len);
        for (uint64_t k = mr_random_between(&r, 1, 3); k; k--)
            q.bytes[mr_random_below(&r, q.len)] ^= (uint8_t)mr_random_between(&r, 1, 255);
        if (is_png && i & 1)
            png_mend(q); /* lets damage pass the CRCs */
        examine_and_decode(q.bytes, q.len);
        picture_free(&q);
    }
    picture_free(&p);
}

static void survives_damaged_jpegs(void **state)
{
    picture exif = make_exif(true, 3, 1, 6);
    (void)state;
    survive(make_jpeg((jpeg_kind){17, 9, 3, .exif = &exif}), false);
    survive(make_jpeg((jpeg_kind){17, 9, 3, .progressive = true, .restart = 1}), false);
    survive(make_jpeg((jpeg_kind){17, 9, 4, .arithmetic = true}), false);
    picture_free(&exif);
}

static void survives_damaged_pngs(void **state)
{
    picture exif = make_exif(false, 3, 1, 6), png = make_png(9, 5, 6, 16, true);
    (void)state;
    survive(png_with(png, "IDAT", "eXIf", exif.bytes + 6, exif.len - 6), true);
    survive(make_png(9, 5, 3, 4, false), true);
    picture_free(&exif);
    picture_free(&png);
}

static void survives_damaged_webps(void **state)
{
    picture exif = make_exif(false, 3, 1, 6);
    (void)state;
    survive(make_webp(17, 9, false, true), false);
    survive(make_webp(17, 9, true, true), false);
    survive(make_webp_extended(17, 9, 2, &exif), false);
    picture_free(&exif);
}

/* ---- floods of chunks ----------------------------------------------------------------------------------------- */

/* One limit, of all chunks, is for every reader: what ingest takes is decoded and trained on. */
static void any_number_of_texts_is_decoded(void **state)
{
    enum { TEXTS = 3000, LONG = 70 << 20 };
    picture plain = make_png(9, 5, 3, 8, false), p = picture_copy(plain.bytes, plain.len);
    uint8_t *body = calloc(LONG, 1);
    const mr_image_limits few = {.max_segments = 1000};
    mr_image_facts f;
    mr_error err;
    (void)state;
    for (int i = 0; i < TEXTS; i++) {
        picture q = png_with(p, "IDAT", i % 3 ? "tEXt" : "xxXx", "a\0b", 3);
        picture_free(&p);
        p = q;
    }
    memcpy(body, "a", 1);
    picture large = png_with(plain, "IEND", "tEXt", body, LONG);
    assert_int_equal(mr_image_examine(p.bytes, p.len, NULL, &f, &err), MR_OK);
    assert_int_equal(mr_image_decode(p.bytes, p.len, NULL, &err), MR_OK);
    assert_int_equal(mr_image_examine(p.bytes, p.len, &few, &f, &err), MR_BAD_SAMPLE);
    assert_int_equal(mr_image_examine(large.bytes, large.len, NULL, &f, &err), MR_OK);
    assert_int_equal(mr_image_decode(large.bytes, large.len, NULL, &err), MR_OK);
    free(body);
    picture_free(&large);
    picture_free(&p);
    picture_free(&plain);
}

static void any_number_of_webp_chunks_is_decoded(void **state)
{
    enum { CHUNKS = 30000, EACH = 10 };
    picture exif = make_exif(false, 3, 1, 6), plain = make_webp_extended(17, 9, 2, &exif);
    size_t len = plain.len + (size_t)CHUNKS * EACH;
    uint8_t *bytes = calloc(len, 1);
    const mr_image_limits few = {.max_segments = 1000};
    mr_image_facts f;
    mr_error err;
    (void)state;
    memcpy(bytes, plain.bytes, plain.len);
    for (size_t at = plain.len; at < len; at += EACH)
        memcpy(bytes + at, "text\1\0\0\0a", EACH);
    for (int i = 0; i < 4; i++)
        bytes[4 + i] = (uint8_t)((len - 8) >> 8 * i);
    assert_int_equal(mr_image_examine(bytes, len, NULL, &f, &err), MR_OK);
    assert_int_equal(mr_image_decode(bytes, len, NULL, &err), MR_OK);
    assert_int_equal(mr_image_examine(bytes, len, &few, &f, &err), MR_BAD_SAMPLE);
    free(bytes);
    picture_free(&exif);
    picture_free(&plain);
}

/* ---- the collection of real and hostile images, against what Pillow said about each ---------------------------- */

typedef struct listed {
    char *path, *orientation; /* of INVENTORY.tsv: "share/images/...", "exif6" */
    char format_name[16];
    unsigned width, height;
    bool loads, unreadable, ours;
} listed;

static bool parse_row(char *line, listed *row)
{
    char *save, *cell[6] = {0};
    const char *const known[] = {"JPEG", "PNG", "WEBP", "MPO"};
    int n = 0;
    for (char *c = strtok_r(line, "\t", &save); c && n < 6; c = strtok_r(NULL, "\t", &save))
        cell[n++] = c;
    if (n < 3)
        return false;
    *row = (listed){.path = cell[0], .orientation = cell[4]};
    row->loads = cell[5] && !strcmp(cell[5], "load-ok");
    row->unreadable = strstr(cell[2], "UnidentifiedImageError") || strstr(cell[2], "Truncated") ||
                      (cell[5] && !strncmp(cell[5], "LOAD-FAIL", 9));
    sscanf(cell[2], "%15s %*s %ux%u", row->format_name, &row->width, &row->height);
    for (size_t i = 0; i < MR_COUNT(known); i++)
        row->ours = row->ours || !strcmp(row->format_name, known[i]);
    return true;
}

static bool check_row(const char *dir, const listed *row)
{
    const char *inside = strncmp(row->path, "share/images/", 13) ? row->path : row->path + 13;
    char *path = support_path("%s/%s", dir, inside);
    size_t len;
    uint8_t *bytes = support_read(path, &len);
    picture p = picture_copy(bytes, len); /* without the NUL at the end */
    mr_image_facts f;
    mr_error err = {0}, decode_err = {0};
    mr_status s = mr_image_examine(p.bytes, p.len, NULL, &f, &err);
    mr_status d = mr_image_decode(p.bytes, p.len, NULL, &decode_err);
    if ((s != MR_OK && s != MR_BAD_SAMPLE) || (d != MR_OK && d != MR_BAD_SAMPLE))
        fail_msg("%s: status %d, %d", inside, s, d);
    if (row->unreadable && s == MR_OK && d == MR_OK)
        fail_msg("%s: accepted, though Pillow cannot read it", inside);
    if (row->loads && !row->ours && s == MR_OK)
        fail_msg("%s: accepted, though it is %s", inside, row->format_name);
    /* Pillow is content with files that lack their end or fail their checksum; nothing else may part us. */
    if (row->loads && row->ours && s != MR_OK && !strstr(err.text, "cut short") && !strstr(err.text, "CRC differs"))
        fail_msg("%s: refused, though Pillow loads it: %s", inside, err.text);
    if (s == MR_OK && d != MR_OK && f.codec != MR_CODEC_JPEG)
        fail_msg("%s: %s", inside, decode_err.text);
    if (s == MR_OK && row->ours) {
        unsigned orientation = row->orientation[4] >= '1' && row->orientation[4] <= '8' ? row->orientation[4] - '0' : 1;
        if (f.width != row->width || f.height != row->height || f.orientation != orientation)
            fail_msg("%s: %u x %u, orientation %u; Pillow says %u x %u, %u", inside, f.width, f.height, f.orientation,
                     row->width, row->height, orientation);
    }
    picture_free(&p);
    free(bytes);
    free(path);
    return s == MR_OK;
}

static void agrees_with_pillow_on_the_collection(void **state)
{
    char *dir = support_data("images"), *save;
    unsigned accepted = 0, refused = 0;
    listed row;
    (void)state;
    if (!dir)
        skip();
    char *inventory = support_path("%s/INVENTORY.tsv", dir), *text = (char *)support_read(inventory, NULL);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (parse_row(line, &row))
            *(check_row(dir, &row) ? &accepted : &refused) += 1;
    assert_true(accepted && refused);
    free(text);
    free(inventory);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survives_damaged_jpegs),
        cmocka_unit_test(survives_damaged_pngs),
        cmocka_unit_test(survives_damaged_webps),
        cmocka_unit_test(any_number_of_texts_is_decoded),
        cmocka_unit_test(any_number_of_webp_chunks_is_decoded),
        cmocka_unit_test(agrees_with_pillow_on_the_collection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_seek.c - regions that enter the scan at its entries equal those that read it from its begin; wrong entries
 * are found, or do no harm to memory.
 * Covers image/jpeg/entries.c. */
#include <stdlib.h>
#include <string.h>

#include "image/jpeg/decoder.h"
#include "image/jpeg/seek.h"
#include "tests/support/images/jpeg.h"
#include "tests/support/images/pixels.h"

enum { WAYS = 2 }; /* what this machine runs best, plain C */

static const unsigned spacings[] = {MR_JPEG_SEEK_ROWS, 16, 8, 4, 1};

typedef struct ways {
    mr_jpeg_decoder *d[WAYS];
} ways;

static ways ways_open(void)
{
    ways w = {{mr_jpeg_decoder_new(), mr_jpeg_decoder_new()}};
    assert_true(w.d[0] && w.d[1]);
    mr_jpeg_decoder_plain(w.d[1]);
    return w;
}

static void ways_close(ways *w)
{
    for (int i = 0; i < WAYS; i++)
        mr_jpeg_decoder_free(w->d[i]);
}

/* The same entries from both. */
static mr_buf make(const ways *w, picture p, unsigned every)
{
    mr_buf a = {0}, b = {0};
    assert_int_equal(mr_jpeg_seek_make(w->d[0], p.bytes, p.len, every, &a),
                     mr_jpeg_seek_make(w->d[1], p.bytes, p.len, every, &b));
    assert_false(a.failed || b.failed);
    assert_int_equal(a.len, b.len);
    assert_true(a.len <= p.len);
    if (a.len)
        assert_memory_equal(a.data, b.data, a.len);
    mr_buf_free(&b);
    return a;
}

static mr_jpeg_outcome region(mr_jpeg_decoder *d, picture p, const mr_image_facts *f, mr_region r, const uint8_t *seek,
                              size_t len, uint8_t **rgb)
{
    uint8_t *exact = seek ? malloc(len ? len : 1) : NULL; /* so that a sanitizer sees one byte too far */
    *rgb = pixels_take((size_t)r.width * r.height * 3);
    if (seek)
        memcpy(exact, seek, len);
    mr_jpeg_job job = {.bytes = p.bytes,
                       .len = p.len,
                       .width = f->width,
                       .height = f->height,
                       .left = r.left,
                       .top = r.top,
                       .crop_width = r.width,
                       .crop_height = r.height,
                       .rgb = *rgb,
                       .seek = exact,
                       .seek_len = len};
    mr_jpeg_outcome outcome = mr_jpeg_decode_region(d, &job);
    free(exact);
    return outcome;
}

static void same_region(const ways *w, picture p, const mr_image_facts *f, mr_region r, const mr_buf *seek,
                        unsigned every)
{
    uint8_t *want, *got;
    assert_int_equal(region(w->d[0], p, f, r, NULL, 0, &want), MR_JPEG_DONE);
    for (int i = 0; i < WAYS; i++) {
        if (region(w->d[i], p, f, r, seek->data, seek->len, &got) != MR_JPEG_DONE)
            fail_msg("way %d, every %u: left", i, every);
        if (memcmp(want, got, (size_t)r.width * r.height * 3))
            fail_msg("way %d, every %u: region %u x %u at %u, %u of %u x %u differs", i, every, r.width, r.height,
                     r.left, r.top, f->width, f->height);
        free(got);
    }
    free(want);
}

/* Its pixels at all spacings; how many of them had entries. */
static unsigned check(mr_random *rnd, const ways *w, picture p, int times)
{
    mr_image_facts f = pixels_facts(p);
    unsigned made = 0;
    for (size_t i = 0; i < MR_COUNT(spacings); i++) {
        mr_buf seek = make(w, p, spacings[i]);
        if (seek.len) {
            same_region(w, p, &f, (mr_region){0, 0, f.width, f.height}, &seek, spacings[i]);
            same_region(w, p, &f, (mr_region){f.width - 1, f.height - 1, 1, 1}, &seek, spacings[i]);
            for (int n = 0; n < times; n++)
                same_region(w, p, &f, pixels_region(rnd, f.width, f.height), &seek, spacings[i]);
            made++;
        }
        mr_buf_free(&seek);
    }
    picture_free(&p);
    return made;
}

/* ---- sound pictures ---------------------------------------------------------------------------------------------- */

static void pictures_of_every_size_and_sampling(void **state)
{
    mr_random rnd = support_random();
    ways w = ways_open();
    unsigned made = 0, pictures = 0;
    (void)state;
    for (size_t i = 0; i < JPEG_SAMPLINGS; i++) {
        for (unsigned n = 0; n < 40; n++, pictures++) {
            const jpeg_sampling *s = &jpeg_samplings[i];
            jpeg_make k = {.width = 5 + (n < 20 ? n : (unsigned)mr_random_below(&rnd, 300)),
                           .height = 1 + (n < 20 ? n : (unsigned)mr_random_below(&rnd, 120)),
                           .components = s->components,
                           .h = {s->h, 1, 1},
                           .v = {s->v, 1, 1},
                           .quality = 1 + (unsigned)mr_random_below(&rnd, 100),
                           .restart = n % 3 ? 0 : 1 + (unsigned)mr_random_below(&rnd, 40),
                           .optimized = n & 1};
            made += check(&rnd, &w, pixels_jpeg_make(&rnd, &k), 4);
        }
    }
    assert_true(made > pictures * (MR_COUNT(spacings) - 1));
    ways_close(&w);
}

static void streams_that_no_encoder_makes(void **state)
{
    mr_random rnd = support_random();
    ways w = ways_open();
    (void)state;
    for (unsigned i = 0; i < 400; i++)
        assert_true(check(&rnd, &w, jpeg_draw(&rnd, i), 3) > 0);
    ways_close(&w);
}

static void real_files(void **state)
{
    mr_random rnd = support_random();
    ways w = ways_open();
    char *dir = support_data("images"), *list = dir ? support_list(dir) : NULL, *next = list, *name;
    unsigned files = 0, made = 0;
    (void)state;
    while (next && (name = strsep(&next, "\n")) && *name && files < 150) {
        size_t len;
        char *path = support_path("%s/%s", dir, name);
        uint8_t *bytes = support_size(path) < 300 << 10 ? support_read(path, &len) : NULL;
        mr_image_facts f;
        if (bytes && mr_image_examine(bytes, len, NULL, &f, NULL) == MR_OK && f.codec == MR_CODEC_JPEG &&
            mr_jpeg_check(w.d[0], bytes, len, 1000000) == MR_JPEG_DONE) {
            made += check(&rnd, &w, picture_copy(bytes, len), 3);
            files++;
        }
        free(bytes);
        free(path);
    }
    print_message("%u files, entries %u times\n", files, made);
    free(list);
    free(dir);
    ways_close(&w);
    if (!files)
        skip();
    assert_true(made > files * 3);
}

static void entries_are_few_bytes(void **state)
{
    mr_random rnd = support_random();
    ways w = ways_open();
    size_t before = SIZE_MAX;
    const jpeg_make k = {.width = 500, .height = 375, .components = 3, .quality = 90};
    picture p = pixels_jpeg_make(&rnd, &k);
    (void)state;
    for (size_t i = MR_COUNT(spacings); i-- > 0;) {
        mr_buf seek = make(&w, p, spacings[i]), again = make(&w, p, spacings[i]);
        assert_true(seek.len == again.len && memcmp(seek.data, again.data, seek.len) == 0);
        assert_true(seek.len < before);
        before = seek.len;
        if (spacings[i] == 16)
            assert_true(seek.len < p.len / 50);
        mr_buf_free(&seek);
        mr_buf_free(&again);
    }
    mr_buf all = make(&w, p, 0), wide = make(&w, p, 63), wider = make(&w, p, 1000000);
    assert_true(wide.len == all.len && memcmp(all.data, wide.data, all.len) == 0);
    assert_true(wider.len == all.len && memcmp(all.data, wider.data, all.len) == 0);
    mr_buf_free(&all);
    mr_buf_free(&wide);
    mr_buf_free(&wider);
    picture_free(&p);
    ways_close(&w);
}

/* Nothing is appended, and what was there stays. */
static void others_have_no_entries(void **state)
{
    mr_random rnd = support_random();
    ways w = ways_open();
    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        jpeg_make k = {.width = 40, .height = 30, .components = 3, .progressive = true};
        picture p = i ? jpeg_draw(&rnd, i) : pixels_jpeg_make(&rnd, &k);
        mr_buf out = {0};
        if (i)
            jpeg_damage(&rnd, &p);
        mr_buf_add_text(&out, "here");
        mr_jpeg_outcome made = mr_jpeg_seek_make(w.d[0], p.bytes, p.len, 4, &out);
        if (made == MR_JPEG_DONE)
            assert_int_equal(mr_jpeg_check(w.d[0], p.bytes, p.len, UINT64_MAX), MR_JPEG_DONE);
        assert_true(out.len >= 4 && memcmp(out.data, "here", 4) == 0 && (made == MR_JPEG_DONE) == (out.len > 4));
        assert_true(i || made == MR_JPEG_LEFT);
        mr_buf_free(&out);
        picture_free(&p);
    }
    ways_close(&w);
}

/* ---- wrong entries ----------------------------------------------------------------------------------------------- */

/* Any bytes: read within bounds, and a region is made or left. */
static void damaged_entries_are_read_within_bounds(void **state)
{
    mr_random rnd = support_random();
    ways w = ways_open();
    unsigned left = 0, times = 0;
    (void)state;
    for (unsigned i = 0; i < 1500; i++, times++) {
        picture p = jpeg_draw(&rnd, i), other = jpeg_draw(&rnd, i);
        mr_image_facts f = pixels_facts(p);
        mr_buf seek = make(&w, i % 4 ? p : other, spacings[i % MR_COUNT(spacings)]);
        picture bad = picture_copy(seek.len ? seek.data : (const uint8_t *)"x", seek.len ? seek.len : 1);
        if (i % 4)
            jpeg_damage(&rnd, &bad);
        mr_region r = pixels_region(&rnd, f.width, f.height);
        uint8_t *a, *b;
        mr_jpeg_outcome one = region(w.d[0], p, &f, r, bad.bytes, bad.len, &a);
        assert_int_equal(one, region(w.d[1], p, &f, r, bad.bytes, bad.len, &b));
        if (one == MR_JPEG_DONE)
            assert_memory_equal(a, b, (size_t)r.width * r.height * 3);
        left += one == MR_JPEG_LEFT;
        free(a);
        free(b);
        mr_buf_free(&seek);
        picture_free(&bad);
        picture_free(&p);
        picture_free(&other);
    }
    assert_true(left > times / 2);
    ways_close(&w);
}

/* Damage to the file after good entries: as the file says from there on, or left; never what memory holds. */
static void damaged_files_are_left(void **state)
{
    mr_random rnd = support_random();
    ways w = ways_open();
    unsigned left = 0;
    (void)state;
    for (unsigned i = 0; i < 1500; i++) {
        picture p = jpeg_draw(&rnd, i);
        mr_image_facts f = pixels_facts(p);
        mr_buf seek = make(&w, p, spacings[i % MR_COUNT(spacings)]);
        jpeg_damage(&rnd, &p);
        picture exact = picture_copy(p.bytes, p.len);
        uint8_t *rgb;
        mr_region r = pixels_region(&rnd, f.width, f.height);
        if (seek.len)
            left += region(w.d[i & 1], exact, &f, r, seek.data, seek.len, &rgb) == MR_JPEG_LEFT, free(rgb);
        mr_buf_free(&seek);
        picture_free(&exact);
        picture_free(&p);
    }
    assert_true(left > 500);
    ways_close(&w);
}

/* One entry that is wrong by the least: all parts that begin or end there are left, all others are as before. */
static void one_wrong_entry_is_found(void **state)
{
    mr_random rnd = support_random();
    ways w = ways_open();
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        const jpeg_coded k = {.width = 100 + i % 28,
                              .height = 60,
                              .components = 3,
                              .h = 1 + i % 2,
                              .v = 1 + i / 2 % 2,
                              .ladder = 1 + i % 8,
                              .dc_bits = 8,
                              .ac_bits = 8,
                              .density = 60,
                              .quant = 4};
        picture p = jpeg_coded_make(&rnd, &k);
        mr_image_facts f = pixels_facts(p);
        mr_buf seek = make(&w, p, 4), bad = {0};
        mr_jpeg_grid g;
        mr_jpeg_header h;
        assert_true(seek.len && mr_jpeg_parse(p.bytes, p.len, &h));
        assert_true(mr_jpeg_entries_grid(seek.data, seek.len, &h, &g));
        mr_jpeg_entry *entries = pixels_take((g.count + 1) * sizeof *entries);
        assert_true(mr_jpeg_entries_unpack(seek.data, seek.len, &g, UINT64_MAX / 2, entries));
        size_t n = 1 + mr_random_below(&rnd, g.count - 1);
        if (mr_random_below(&rnd, 2))
            entries[n].at += mr_random_below(&rnd, 2) ? 1 : (uint64_t)-1;
        else
            entries[n].dc[mr_random_below(&rnd, 3)] += mr_random_below(&rnd, 2) ? 1 : -1;
        mr_jpeg_entries_pack(&g, entries, &bad);
        uint32_t mcu = mr_jpeg_grid_mcu(&g, n), side = 8;
        mr_region all = {0, 0, f.width, f.height};
        /* A pixel of the MCU after the entry, and one of the MCU before it; no neighbour's. */
        mr_region at = {mcu % g.wide * side * k.h + 2, mcu / g.wide * side * k.v + 2, 1, 1};
        mr_region before = {(mcu - 1) % g.wide * side * k.h + 2, (mcu - 1) / g.wide * side * k.v + 2, 1, 1};
        uint8_t *rgb;
        if (before.left >= f.width)
            before.left = f.width - 1;
        for (int way = 0; way < WAYS; way++) {
            assert_int_equal(region(w.d[way], p, &f, at, bad.data, bad.len, &rgb), MR_JPEG_LEFT);
            free(rgb);
            assert_int_equal(region(w.d[way], p, &f, before, bad.data, bad.len, &rgb), MR_JPEG_LEFT);
            free(rgb);
            if (mcu % g.wide) /* others are not begun or ended at by a region of whole rows */
                same_region(&w, p, &f, all, &bad, 4);
        }
        free(entries);
        mr_buf_free(&seek);
        mr_buf_free(&bad);
        picture_free(&p);
    }
    ways_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_of_every_size_and_sampling),
        cmocka_unit_test(streams_that_no_encoder_makes),
        cmocka_unit_test(real_files),
        cmocka_unit_test(entries_are_few_bytes),
        cmocka_unit_test(others_have_no_entries),
        cmocka_unit_test(damaged_entries_are_read_within_bounds),
        cmocka_unit_test(damaged_files_are_left),
        cmocka_unit_test(one_wrong_entry_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_coded.c - weights of axes that are kept, and slabs that do not depend on what was described before.
 * Invariant tested: kept weights are those that the resizer computes; equal pictures in another planner, or after other
 * pictures, give equal slabs.
 * Covers coded/weights.c, coded/plan.c, coded/pack.c. */
#include <stdlib.h>
#include <string.h>

#include "image/coded/weights.h"
#include "image/jpeg/seek.h"
#include "tests/support/images/coded.h"
#include "tests/support/images/jpeg.h"
#include "tests/support/images/pixels.h"

static const float mean[3] = {0.5F, 0.5F, 0.5F}, std[3] = {0.25F, 0.5F, 0.75F};

static void expect_weights(mr_coded_weights *w, mr_resize_axis *fresh, const mr_resize_side *side)
{
    mr_error err;
    const mr_coded_axis *kept;
    assert_int_equal(mr_resize_axis_set(fresh, side, &err), MR_OK);
    assert_int_equal(mr_coded_weights_get(w, side, &kept, &err), MR_OK);
    assert_int_equal(kept->taps, 2 * fresh->pairs);
    assert_memory_equal(kept->starts, fresh->start, fresh->outputs * sizeof *fresh->start);
    for (size_t i = 0; i < fresh->outputs * fresh->pairs * 2; i++) {
        const int16_t *pair = fresh->k + i / 2 * 4 + i % 2;
        assert_int_equal(kept->weights[i], pair[2] * (1 << MR_RESIZE_SPLIT) + pair[0]);
    }
}

/* Few sizes, so that most are met again; some so large that they are not kept, or that all others are dropped. */
static void kept_weights_are_those_of_the_resizer(void **state)
{
    (void)state;
    mr_random rnd = support_random();
    mr_coded_weights *w = mr_coded_weights_new();
    mr_resize_axis fresh = {.start = NULL};
    assert_non_null(w);
    for (int i = 0; i < 3000; i++) {
        uint32_t out = 1 + (uint32_t)mr_random_below(&rnd, 6), in = 1 + (uint32_t)mr_random_below(&rnd, 12);
        if (i % 100 == 99)
            in = 40000 * in;
        if (i % 50 == 49)
            out = 1000 + out;
        mr_resize_side s = {.in = in, .out = out, .count = out, .bicubic = i & 1, .mirrored = i & 2};
        s.first = (uint32_t)mr_random_below(&rnd, out);
        s.count = out - s.first;
        s.held = mr_resize_side_needs(&s);
        expect_weights(w, &fresh, &s);
    }
    mr_resize_axis_free(&fresh);
    mr_coded_weights_free(w);
}

enum { SIZE = 9, PICTURES = 6 };

static void describe(coded_batch *b, unsigned seed)
{
    mr_error err;
    mr_random rnd;
    bool taken;
    mr_jpeg_decoder *jpeg = mr_jpeg_decoder_new();
    mr_random_seed(&rnd, seed);
    assert_int_equal(coded_begin(b, SIZE, &err), MR_OK);
    for (unsigned i = 0; i < PICTURES; i++) {
        picture file = jpeg_draw(&rnd, i);
        mr_image_facts f = pixels_facts(file);
        mr_buf seek = {0};
        mr_jpeg_seek_make(jpeg, file.bytes, file.len, i % 4, &seek);
        mr_coded_picture d = {.bytes = file.bytes, .len = file.len, .seek = seek.data, .seek_len = seek.len};
        d.width = f.width;
        d.height = f.height;
        d.region = pixels_region(&rnd, f.width, f.height);
        d.orientation = 1;
        d.resize = (mr_resize_job){.in_width = d.region.width, .in_height = d.region.height};
        d.resize.out_width = d.resize.out_height = d.resize.crop_width = d.resize.crop_height = SIZE;
        assert_int_equal(coded_add(b, &d, &taken, &err), MR_OK);
        mr_buf_free(&seek);
        picture_free(&file);
    }
    assert_int_equal(coded_end(b, mean, std, &err), MR_OK);
    mr_jpeg_decoder_free(jpeg);
}

static void expect_same_section(const coded_batch *a, const coded_batch *b, uint64_t at, uint64_t bytes)
{
    assert_memory_equal(a->slab.data + at, b->slab.data + at, bytes);
}

static void equal_pictures_give_equal_slabs(void **state)
{
    (void)state;
    coded_batch a = {.count = 0}, b = {.count = 0};
    describe(&a, 1);
    for (unsigned other = 2; other < 9; other++)
        describe(&b, other);
    describe(&b, 1);
    const mr_coded *h = coded_head(&a);
    assert_int_equal(a.bytes, b.bytes);
    assert_int_equal(a.bytes, h->bytes);
    assert_memory_equal(h, coded_head(&b), sizeof *h);
    assert_true(h->images > 2 && h->records_at % 64 == 0 && h->sections_at >= h->records_at + h->records_bytes);
    expect_same_section(&a, &b, h->records_at, h->records_bytes);
    expect_same_section(&a, &b, h->images_at, h->images * sizeof(mr_coded_image));
    expect_same_section(&a, &b, h->parts_at, h->parts * sizeof(mr_coded_part));
    expect_same_section(&a, &b, h->codes_at, h->codes * sizeof(mr_coded_codes));
    expect_same_section(&a, &b, h->quants_at, h->quants * (64 * sizeof(int16_t)));
    expect_same_section(&a, &b, h->weights_at, h->weights * sizeof(int32_t));
    expect_same_section(&a, &b, h->starts_at, h->starts * sizeof(uint32_t));
    expect_same_section(&a, &b, h->norm_at, 3 * 256 * sizeof(float));
    expect_same_section(&a, &b, h->pieces_at, h->pieces * sizeof(mr_coded_piece));
    expect_same_section(&a, &b, h->slots_at, h->slots * sizeof(mr_coded_slot));
    coded_free(&a);
    coded_free(&b);
}

/* Descriptions by their sizes alone. */
static void pictures_of_one_piece_are_alike(void **state)
{
    (void)state;
    mr_error err;
    coded_batch b = {.count = 0};
    assert_int_equal(coded_begin(&b, SIZE, &err), MR_OK);
    for (b.count = 0; b.count < CODED_MOST; b.count++) {
        uint64_t pixels = b.count == 5 ? 4000000 : 100000;
        b.slots[b.count] = (mr_coded_slot){.kind = MR_CODED_IMAGE};
        b.descriptions[b.count] = (mr_coded_description){.rgb = 3 * pixels, .lines = 3 * 100 * SIZE};
    }
    assert_int_equal(coded_end(&b, mean, std, &err), MR_OK);
    const mr_coded *h = coded_head(&b);
    const mr_coded_piece *p = (const mr_coded_piece *)(const void *)(b.slab.data + h->pieces_at);
    uint64_t items = 0;
    uint32_t images = 0;
    assert_true(h->pieces > 1 && h->pieces < 5);
    for (uint32_t i = 0; i < h->pieces; i++) {
        assert_int_equal(p[i].first_image, images);
        images += p[i].images;
        items += (uint64_t)p[i].images * p[i].most_pixels;
    }
    assert_int_equal(images, CODED_MOST);
    assert_true(items <= 4 * (4000000 + (uint64_t)(CODED_MOST - 1) * 100000) + (1 << 22));
    coded_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_weights_are_those_of_the_resizer),
        cmocka_unit_test(equal_pictures_give_equal_slabs),
        cmocka_unit_test(pictures_of_one_piece_are_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

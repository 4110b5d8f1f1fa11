/* test_blend.c - mixup and cutmix: shares, boxes and pixels, alone and in batches.  Covers loader/augment/blend.c.
 * Invariant tested: pairs and shares depend on seed, epoch and place alone, so any number of ranks gets the same;
 * pixels are those of a plain computation on the loader's own batches without mixing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "loader/augment/blend.h"
#include "tests/support/shards/loader.h"
#include "tests/support/support.h"

enum { DRAWS = 20000 };

/* Mean and variance of Beta(a, a): 1/2, and 1 / (4 (2 a + 1)). */
static void shares_are_beta(void **state)
{
    (void)state;
    static const float alphas[] = {0.01f, 0.2f, 1, 8, 1000};
    mr_random r = support_random();
    uint64_t seed = mr_random_below(&r, UINT64_MAX);
    for (size_t k = 0; k < MR_COUNT(alphas); k++) {
        double sum = 0, squares = 0, variance = 0.25 / (2 * (double)alphas[k] + 1);
        for (uint64_t i = 0; i < DRAWS; i++) {
            mr_blend b = mr_blend_draw(alphas[k], 0, seed, 3, i, 32, 32);
            assert_true(!b.boxed && b.share >= 0 && b.share <= 1);
            sum += (double)b.share;
            squares += ((double)b.share - 0.5) * ((double)b.share - 0.5);
        }
        if (fabs(sum / DRAWS - 0.5) > 6 * sqrt(variance / DRAWS) ||
            fabs(squares / DRAWS - variance) > 0.05 * variance + 0.002)
            fail_msg("alpha %g: mean %g, variance %g", (double)alphas[k], sum / DRAWS, squares / DRAWS);
    }
}

static void boxes_are_within_and_of_the_rest_of_the_area(void **state)
{
    (void)state;
    mr_random r = support_random();
    uint64_t seed = mr_random_below(&r, UINT64_MAX), boxed = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        uint32_t width = 1 + (uint32_t)mr_random_below(&r, 300), height = 1 + (uint32_t)mr_random_below(&r, 300);
        mr_blend b = mr_blend_draw(i % 2 ? 0.5f : 0, 1, seed, i, i, width, height);
        boxed += i % 2 && b.boxed;
        if (!b.boxed)
            continue;
        assert_true(b.left + b.width <= width && b.top + b.height <= height);
        assert_true(fabs((double)b.share - (1 - (double)b.width * b.height / ((double)width * height))) < 1e-6);
    }
    assert_in_range(boxed, DRAWS / 4 - 400, DRAWS / 4 + 400); /* of both, each has a half */
}

/* One pair of a batch, as it would be without mixing. */
static double plain(const mr_blend *b, const float *own, const float *other, size_t at, uint32_t side)
{
    uint32_t x = (uint32_t)(at % side), y = (uint32_t)(at / side % side);
    bool within = x >= b->left && x < b->left + b->width && y >= b->top && y < b->top + b->height;
    if (b->boxed)
        return (double)(within ? other[at] : own[at]);
    return (double)b->share * (double)own[at] + (1 - (double)b->share) * (double)other[at];
}

static void check_pair(const mr_batch *mixed, const mr_batch *as_is, uint64_t i, const mr_loader_options *o)
{
    size_t count = (size_t)3 * 24 * 24;
    const float *one = (const float *)as_is->data + i * count, *other = one + count;
    const float *found = (const float *)mixed->data + i * count;
    const mr_sample_facts *a = &mixed->samples[i], *b = a + 1;
    const mr_blend drawn =
        mr_blend_draw(o->mixup, o->cutmix, o->seed, mixed->epoch, (mixed->step * o->global_batch + i) / 2, 24, 24);
    bool skipped = !(a->weight > 0 && b->weight > 0);
    assert_true(a->share == (skipped ? 1 : drawn.share) && b->share == a->share);
    assert_int_equal(a->other, skipped ? a->sample : b->sample);
    assert_int_equal(a->other_label, skipped ? -1 : b->label);
    assert_int_equal(b->other_label, skipped ? -1 : a->label);
    for (size_t k = 0; k < count; k++) {
        double first = skipped ? (double)one[k] : plain(&drawn, one, other, k, 24);
        double second = skipped ? (double)other[k] : plain(&drawn, other, one, k, 24);
        assert_true(fabs((double)found[k] - first) < 1e-5 && fabs((double)found[count + k] - second) < 1e-5);
    }
}

static void batches_are_mixed_in_pairs(void **state)
{
    (void)state;
    static const float ways[][2] = {{0.3f, 0}, {0, 1}, {0.4f, 0.8f}};
    char *dir = support_tmpdir();
    make_pictures(dir, 37, 9, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    for (size_t w = 0; w < MR_COUNT(ways); w++) {
        mr_loader_options o = usual_options(MR_DELIVER_F32_NCHW, MR_TAIL_PAD);
        mr_loader *as_is = open_loader(ds, &o);
        o.struct_size = sizeof o;
        o.mixup = ways[w][0];
        o.cutmix = ways[w][1];
        mr_loader *mixing = open_loader(ds, &o);
        const mr_batch *a, *b;
        while (mr_loader_next(as_is, &a, NULL) == MR_OK) {
            assert_int_equal(mr_loader_next(mixing, &b, NULL), MR_OK);
            for (uint64_t i = 0; i < a->count; i += 2)
                check_pair(b, a, i, &o);
            mr_batch_release(as_is, a);
            mr_batch_release(mixing, b);
        }
        mr_loader_free(as_is);
        mr_loader_free(mixing);
        seen_list one = run_ranks(ds, o, 1, 0, 0), four = run_ranks(ds, o, 4, 2, 0);
        assert_same_seen(&one, 0, &four);
        seen_free(&one);
        seen_free(&four);
    }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* Formats other than float32: a box is exchanged byte by byte, and shares are those of the floats. */
static void other_formats(void **state)
{
    (void)state;
    enum { SIDE = 9, COUNT = 3 * SIDE * SIDE };
    const mr_blend box = {.boxed = 1, .left = 2, .top = 1, .width = 3, .height = 5}, mix = {.share = 0.25f};
    uint8_t one[COUNT], other[COUNT];
    memset(one, 10, sizeof one);
    memset(other, 201, sizeof other);
    mr_blend_apply(&box, MR_DELIVER_U8_NHWC, one, other, SIDE, SIDE);
    for (int i = 0; i < COUNT; i++) {
        int x = i / 3 % SIDE, y = i / 3 / SIDE;
        assert_int_equal(one[i], x >= 2 && x < 5 && y >= 1 && y < 6 ? 201 : 10);
        assert_int_equal(one[i] + other[i], 211);
    }
    memset(one, 10, sizeof one);
    memset(other, 201, sizeof other);
    mr_blend_apply(&mix, MR_DELIVER_U8_NHWC, one, other, SIDE, SIDE);
    assert_int_equal(one[7], 153);  /* 153.25 */
    assert_int_equal(other[7], 58); /* 57.75 */
    uint16_t half[COUNT], rest[COUNT];
    for (int i = 0; i < COUNT; i++) {
        half[i] = 0x3F80; /* 1 */
        rest[i] = 0xC000; /* -2 */
    }
    mr_blend_apply(&mix, MR_DELIVER_BF16_NCHW, half, rest, SIDE, SIDE);
    assert_int_equal(half[5], 0xBFA0); /* -1.25 */
    assert_int_equal(rest[5], 0x3E80); /* 0.25 */
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 8, 7, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader_options o = usual_options(MR_DELIVER_F32_NCHW, MR_TAIL_PAD);
    o.struct_size = sizeof o;
    o.mixup = 0.2f;
    o.global_batch = 7;
    expect_no_loader(ds, &o, MR_MISUSE, "must be even; the global batch is 7 on 1 rank");
    o.global_batch = 6;
    o.world = 2;
    expect_no_loader(ds, &o, MR_MISUSE, "must be even; the global batch is 6 on 2 ranks");
    o.global_batch = 8;
    o.tail = MR_TAIL_PARTIAL;
    expect_no_loader(ds, &o, MR_MISUSE, "a partial last batch would split pairs");
    o.tail = MR_TAIL_PAD;
    o.mixup = NAN;
    expect_no_loader(ds, &o, MR_MISUSE, "give alphas from 0 to 1000");
    o.mixup = 1;
    o.deliver = MR_DELIVER_CODED;
    expect_no_loader(ds, &o, MR_MISUSE, "mix pixels");
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_beta),
        cmocka_unit_test(boxes_are_within_and_of_the_rest_of_the_area),
        cmocka_unit_test(batches_are_mixed_in_pairs),
        cmocka_unit_test(other_formats),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_augment.c - crop boxes against torchvision's formulas: their distribution, their corner cases, their places.
 * Invariant tested: a view depends on seed, epoch and sample alone and lies inside the picture, whatever its size.
 * Numbers in tables were worked out with Python's own int(), round() and / from torchvision's source. */
#include "base/error.h"
#include "loader/order/augment.h"
#include "tests/support/support.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 20000 };

/* ---- distributions ---------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov: how far `values` are from even between low and high, in units of sqrt(count).  An even sample
 * stays below 1.95 in 999 of 1,000 cases. */
static double unevenness(double *values, size_t count, double low, double high)
{
    double worst = 0;
    qsort(values, count, sizeof *values, ascending);
    for (size_t i = 0; i < count; i++) {
        double even = (values[i] - low) / (high - low);
        worst = fmax(worst, fmax(fabs(even - (double)i / count), fabs(even - (double)(i + 1) / count)));
    }
    return worst * sqrt((double)count);
}

/* A square of 20,000 pixels with at most half of the area never refuses a try, so all four numbers are even. */
static void boxes_are_even(void **state)
{
    (void)state;
    enum { SIDE = 20000 };
    mr_transform t = {.scale_min = 0.08f, .scale_max = 0.5f};
    double *areas = calloc(DRAWS, 8), *ratios = calloc(DRAWS, 8), *lefts = calloc(DRAWS, 8), *tops = calloc(DRAWS, 8);
    double *sides = calloc(DRAWS, 8), together = 0, range = log(4.0 / 3);
    for (uint64_t i = 0; i < DRAWS; i++) {
        mr_view v = mr_view_train(&t, 5, 3, i, SIDE, SIDE);
        areas[i] = (double)v.width * v.height / SIDE / SIDE;
        ratios[i] = log((double)v.width / v.height);
        sides[i] = sqrt(areas[i]);
        lefts[i] = v.left / (double)(SIDE - v.width);
        tops[i] = v.top / (double)(SIDE - v.height);
        together += (areas[i] - 0.29) * ratios[i] / (0.42 / sqrt(12)) / (2 * range / sqrt(12));
        together += (lefts[i] - 0.5) * (tops[i] - 0.5) * 12;
    }
    assert_true(fabs(together) / sqrt(2.0 * DRAWS) < 4); /* independent of one another */
    assert_true(unevenness(areas, DRAWS, 0.08, 0.5) < 1.95);
    assert_true(unevenness(ratios, DRAWS, -range, range) < 1.95);
    assert_true(unevenness(lefts, DRAWS, 0, 1) < 1.95);
    assert_true(unevenness(tops, DRAWS, 0, 1) < 1.95);
    assert_true(unevenness(sides, DRAWS, sqrt(0.08), sqrt(0.5)) > 10); /* even sides would be seen */
    free(areas);
    free(ratios);
    free(sides);
    free(lefts);
    free(tops);
}

/* The formula once more, with other random numbers, and what it amounts to. */
typedef struct sums {
    double area, width, whole;
} sums;

static void reference_box(mr_random *r, double low, uint32_t width, uint32_t height, uint32_t *w, uint32_t *h)
{
    for (int i = 0; i < 10; i++) {
        double area = (double)width * height * mr_random_real(r, low, 1);
        double ratio = exp(mr_random_real(r, log(3.0 / 4), log(4.0 / 3)));
        *w = (uint32_t)lrint(sqrt(area * ratio));
        *h = (uint32_t)lrint(sqrt(area / ratio));
        if (*w > 0 && *w <= width && *h > 0 && *h <= height)
            return;
    }
    *w = (double)width / height > 4.0 / 3 ? (uint32_t)lrint(height * (4.0 / 3)) : width;
    *h = (double)width / height < 3.0 / 4 ? (uint32_t)lrint(width / (3.0 / 4)) : height;
}

static void add(sums *s, uint32_t w, uint32_t h, uint32_t width, uint32_t height)
{
    s->area += (double)w * h / width / height / DRAWS;
    s->width += (double)w / width / DRAWS;
    s->whole += (w == width || h == height) / (double)DRAWS;
}

static void refused_tries_are_tried_again(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{500, 375}, {375, 500}, {64, 64}, {300, 100}, {100, 220}, {9, 7}};
    static const float scales[] = {0.05f, 0.08f, 0.9f};
    mr_random r = support_random();
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < 3; k++) {
            uint32_t w = sizes[i][0], h = sizes[i][1], cw, ch;
            mr_transform t = {.scale_min = scales[k], .scale_max = 1};
            sums ours = {0}, theirs = {0};
            for (uint64_t n = 0; n < DRAWS; n++) {
                mr_view v = mr_view_train(&t, 1, n, n % 7, w, h);
                add(&ours, v.width, v.height, w, h);
                reference_box(&r, (double)scales[k], w, h, &cw, &ch);
                add(&theirs, cw, ch, w, h);
            }
            /* Shares of 20,000 draws differ by less than 0.005 * 5 by chance. */
            assert_true(fabs(ours.area - theirs.area) < 0.015);
            assert_true(fabs(ours.width - theirs.width) < 0.015);
            assert_true(fabs(ours.whole - theirs.whole) < 0.025);
        }
}

static void mirrors_as_often_as_asked(void **state)
{
    (void)state;
    static const float probabilities[] = {0, 0.3f, 0.5f, 1};
    for (size_t k = 0; k < 4; k++) {
        mr_transform t = {.flip = probabilities[k]};
        double p = (double)t.flip, flips = 0, pairs = 0;
        bool before = false;
        for (uint64_t i = 0; i < DRAWS; i++) {
            bool flip = mr_view_train(&t, 8, 0, i, 64, 64).flip;
            flips += flip;
            pairs += flip && before;
            before = flip;
        }
        assert_true(fabs(flips - DRAWS * p) <= 4 * sqrt(DRAWS * p * (1 - p)));
        assert_true(fabs(pairs - DRAWS * p * p) <= 5 * sqrt(DRAWS * p * p) * (1 - p) + (p == 1));
    }
}

/* ---- inside ----------------------------------------------------------------------------------------------------- */

static void check_inside(const mr_view *v, uint32_t width, uint32_t height)
{
    if (v->width < 1 || v->height < 1 || v->width > width || v->height > height || v->left > width - v->width ||
        v->top > height - v->height)
        fail_msg("%u x %u at %u, %u is not inside %u x %u", v->width, v->height, v->left, v->top, width, height);
}

static void check_view(const mr_transform *t, uint64_t n, uint32_t width, uint32_t height)
{
    uint32_t size = t->size ? t->size : 224;
    mr_view train = mr_view_train(t, n, n / 3, n, width, height), eval = mr_view_eval(t, width, height);
    check_inside(&train, width, height);
    assert_true(train.out_width == size && train.out_height == size && train.crop_left == 0 && train.crop_top == 0);
    check_inside(&eval, width, height);
    assert_true(eval.width == width && eval.height == height && !eval.flip);
    assert_true(eval.out_width >= size && eval.crop_left <= eval.out_width - size);
    assert_true(eval.out_height >= size && eval.crop_top <= eval.out_height - size);
}

static void views_are_inside(void **state)
{
    (void)state;
    static const uint32_t sides[] = {1, 2, 3, 5, 64, 65535, UINT32_MAX};
    mr_random r = support_random();
    for (uint64_t n = 0; n < 30000; n++) {
        mr_transform t = {.kind = (mr_transform_kind)(n % 3),
                          .size = (uint32_t)mr_random_below(&r, 300),
                          .resize = (uint32_t)mr_random_below(&r, 400),
                          .flip = 0.5f};
        t.scale_min = (float)mr_random_unit(&r);
        t.scale_max = n % 5 ? 1 : t.scale_min;
        check_view(&t, n, (uint32_t)mr_random_between(&r, 1, 1u << mr_random_below(&r, 17)),
                   (uint32_t)mr_random_between(&r, 1, 1u << mr_random_below(&r, 17)));
        check_view(&t, n, sides[n % 7], sides[n / 7 % 7]);
    }
}

/* What a side is resized to is counted up to a limit; beyond, it is not taken for another number. */
static void sides_beyond_counting(void **state)
{
    (void)state;
    static const uint32_t cases[][4] = {/* resize, longest side that fits, what it becomes, the next */
                                        {1, UINT32_MAX - 1, UINT32_MAX - 1, UINT32_MAX},
                                        {2, INT32_MAX, UINT32_MAX - 1, UINT32_MAX},
                                        {256, (1 << 24) - 1, UINT32_MAX - 255, UINT32_MAX},
                                        {16384, (1 << 18) - 1, UINT32_MAX - 16383, UINT32_MAX}};
    for (size_t i = 0; i < MR_COUNT(cases); i++)
        for (uint32_t more = 0; more < 2; more++) {
            const uint32_t *c = cases[i], side = c[1] + more;
            mr_transform t = {.kind = MR_TRANSFORM_CENTER, .size = 1, .resize = c[0]};
            mr_view tall = mr_view_eval(&t, 1, side), wide = mr_view_eval(&t, side, 1);
            assert_int_equal(tall.out_height, c[2 + more]);
            assert_int_equal(wide.out_width, c[2 + more]);
            assert_int_equal(mr_view_check(&tall, NULL), more ? MR_BAD_SAMPLE : MR_OK);
            assert_int_equal(mr_view_check(&wide, NULL), more ? MR_BAD_SAMPLE : MR_OK);
        }
}

/* The loader refuses such options; here they may give any box, but a box. */
static void senseless_numbers_give_a_box(void **state)
{
    (void)state;
    static const float numbers[] = {-1, 0, 1e-30f, FLT_MAX, (float)INFINITY, (float)NAN, -FLT_MAX};
    for (size_t i = 0; i < 7; i++)
        for (size_t k = 0; k < 7; k++) {
            mr_transform t = {.scale_min = numbers[i], .scale_max = numbers[k], .flip = numbers[k]};
            check_view(&t, i, 500, 375);
            check_view(&t, k, 1, UINT32_MAX);
        }
}

/* ---- corner cases ----------------------------------------------------------------------------------------------- */

static void falls_back_to_the_middle(void **state)
{
    (void)state;
    static const uint32_t cases[][6] = {
        /* picture, then left, top, width, height */
        {1, 1, 0, 0, 1, 1},         {1, 2, 0, 0, 1, 1},         {1, 1000, 0, 499, 1, 1},
        {1000, 1, 499, 0, 1, 1},    {7, 100, 0, 45, 7, 9},      {101, 6, 46, 0, 8, 6},
        {2, 65535, 0, 32766, 2, 3}, {65535, 2, 32766, 0, 3, 2}, {3, 4, 0, 0, 3, 4},
        {4, 3, 0, 0, 4, 3},         {40, 30, 0, 0, 40, 30},     {41, 30, 0, 0, 40, 30},
        {30, 41, 0, 0, 30, 40},     {9, 13, 0, 0, 9, 12},       {65535, 65535, 0, 0, 65535, 65535},
    };
    /* Four times the area fits nowhere, so all ten tries are refused. */
    mr_transform t = {.scale_min = 4, .scale_max = 4};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mr_view v = mr_view_train(&t, i, 0, 0, cases[i][0], cases[i][1]);
        assert_int_equal(v.left, cases[i][2]);
        assert_int_equal(v.top, cases[i][3]);
        assert_int_equal(v.width, cases[i][4]);
        assert_int_equal(v.height, cases[i][5]);
    }
    mr_transform usual = {0};
    for (uint64_t n = 0; n < 100; n++) {
        mr_view v = mr_view_train(&usual, 0, 0, n, 1, 1000);
        assert_true(v.left == 0 && v.top == 499 && v.width == 1 && v.height == 1);
        v = mr_view_train(&usual, 0, 0, n, 1, 1);
        assert_true(v.left == 0 && v.top == 0 && v.width == 1 && v.height == 1);
    }
}

static void center_is_torchvisions(void **state)
{
    (void)state;
    static const uint32_t cases[][8] = {
        /* picture, resize, size, then resized to, cropped at */
        {500, 375, 256, 224, 341, 256, 58, 16},
        {375, 500, 256, 224, 256, 341, 16, 58},
        {256, 256, 256, 224, 256, 256, 16, 16},
        {640, 480, 256, 224, 341, 256, 58, 16},
        {640, 481, 256, 224, 340, 256, 58, 16},
        {1, 1, 256, 224, 256, 256, 16, 16},
        {3, 2, 256, 224, 384, 256, 80, 16},
        {2, 3, 257, 224, 257, 385, 16, 80},
        {333, 500, 256, 224, 256, 384, 16, 80},
        {501, 334, 257, 224, 385, 257, 80, 16},
        {1000, 1, 232, 224, 232000, 232, 115888, 4},
        {1, 1000, 232, 224, 232, 232000, 4, 115888},
        {224, 225, 224, 224, 224, 225, 0, 0},
        {224, 226, 224, 224, 224, 226, 0, 1},
        {224, 227, 224, 224, 224, 227, 0, 2},
        {224, 229, 224, 224, 224, 229, 0, 2},
        {224, 231, 224, 224, 224, 231, 0, 4},
        {3000, 4000, 438, 384, 438, 584, 27, 100},
        {65535, 65535, 256, 224, 256, 256, 16, 16},
        {65535, 2, 256, 223, 8388480, 256, 4194128, 16},
        {17, 19, 35, 30, 35, 39, 2, 4},
        {17, 20, 35, 32, 35, 41, 2, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t *c = cases[i];
        mr_transform t = {.kind = MR_TRANSFORM_CENTER, .resize = c[2], .size = c[3], .flip = 1};
        mr_view v = mr_view_eval(&t, c[0], c[1]);
        if (v.out_width != c[4] || v.out_height != c[5] || v.crop_left != c[6] || v.crop_top != c[7])
            fail_msg("%u x %u: %u x %u at %u, %u", c[0], c[1], v.out_width, v.out_height, v.crop_left, v.crop_top);
        assert_true(v.width == c[0] && v.height == c[1] && v.left == 0 && v.top == 0 && !v.flip);
    }
    /* Defaults, and a resize that would leave an edge to pad. */
    mr_transform t = {.kind = MR_TRANSFORM_CENTER};
    mr_view v = mr_view_eval(&t, 500, 375), small;
    assert_true(v.out_width == 341 && v.out_height == 256 && v.crop_left == 58 && v.crop_top == 16);
    t.size = 384;
    assert_int_equal(mr_view_eval(&t, 600, 600).out_width, 438);
    t.resize = 100;
    small = mr_view_eval(&t, 600, 600);
    assert_true(small.out_width == 384 && small.out_height == 384 && small.crop_left == 0 && small.crop_top == 0);
}

static void square_keeps_no_ratio(void **state)
{
    (void)state;
    mr_transform t = {.kind = MR_TRANSFORM_SQUARE, .size = 160, .resize = 999, .flip = 1};
    mr_view v = mr_view_eval(&t, 3, 4000);
    assert_true(v.left == 0 && v.top == 0 && v.width == 3 && v.height == 4000 && v.out_width == 160 &&
                v.out_height == 160 && v.crop_left == 0 && v.crop_top == 0 && !v.flip);
    t.size = 0;
    assert_int_equal(mr_view_eval(&t, 3, 4000).out_height, 224);
}

/* ---- keyed by seed, epoch and sample ---------------------------------------------------------------------------- */

static bool same(const mr_view *a, const mr_view *b)
{
    return a->left == b->left && a->top == b->top && a->width == b->width && a->height == b->height &&
           a->flip == b->flip;
}

static void depends_on_its_key_alone(void **state)
{
    (void)state;
    mr_transform t = {.flip = 0.5f};
    unsigned alike = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        mr_view v = mr_view_train(&t, 1, 2, i, 500, 375), again = mr_view_train(&t, 1, 2, i, 500, 375);
        mr_view seed = mr_view_train(&t, 2, 2, i, 500, 375), epoch = mr_view_train(&t, 1, 3, i, 500, 375);
        mr_view sample = mr_view_train(&t, 1, 2, i + 1, 500, 375), swapped = mr_view_train(&t, 2, 1, i, 500, 375);
        assert_true(same(&v, &again));
        alike += same(&v, &seed) + same(&v, &epoch) + same(&v, &sample) + same(&v, &swapped);
    }
    assert_true(alike <= 2);
}

static void stays_as_published(void **state)
{
    (void)state;
    static const mr_view expected[] = {
        {.left = 71, .top = 9, .width = 265, .height = 333, .flip = true},
        {.left = 0, .top = 31, .width = 391, .height = 296, .flip = true},
        {.left = 237, .top = 35, .width = 227, .height = 277, .flip = true},
        {.left = 10, .top = 95, .width = 250, .height = 238, .flip = false},
    };
    mr_transform t = {.flip = 0.5f};
    for (uint64_t i = 0; i < 4; i++) {
        mr_view v = mr_view_train(&t, 1, 2, i, 500, 375);
        assert_true(same(&v, &expected[i]));
    }
}

/* The default scale given in full is the default scale. */
static void defaults_are_themselves(void **state)
{
    (void)state;
    mr_transform zero = {0}, full = {.size = 224, .resize = 256, .scale_min = 0.08f, .scale_max = 1};
    for (uint64_t i = 0; i < 1000; i++) {
        mr_view a = mr_view_train(&zero, 3, 1, i, 640, 480), b = mr_view_train(&full, 3, 1, i, 640, 480);
        assert_true(same(&a, &b) && a.out_width == b.out_width);
    }
}

/* Ratios that are given, also where no try fits, and one that is the usual one gives the usual views. */
/* Each of the 9 x 9 places of 32 pixels in 32 with 4 around them is as likely, and independent of the mirror. */
static void patches_are_even(void **state)
{
    (void)state;
    enum { SIDE = 32, PADDING = 4, PLACES = 2 * PADDING + 1 };
    const mr_transform t = {.kind = MR_TRANSFORM_PATCH, .size = SIDE, .resize = PADDING, .flip = 0.5f};
    unsigned counts[PLACES][PLACES][2] = {{{0}}};
    for (uint64_t i = 0; i < DRAWS; i++) {
        const mr_view v = mr_view_patch(&t, SIDE, 5, 3, i, SIDE, SIDE);
        assert_true(v.left + v.width <= SIDE && v.top + v.height <= SIDE && v.width && v.height);
        assert_true((v.left == 0 || v.pad_left == 0) && (v.top == 0 || v.pad_top == 0));
        counts[v.top + PADDING - v.pad_top][v.left + PADDING - v.pad_left][v.flip]++;
    }
    const double share = 1.0 / (PLACES * PLACES * 2), deviation = sqrt(DRAWS * share * (1 - share));
    for (unsigned i = 0; i < PLACES * PLACES * 2; i++)
        assert_true(fabs(counts[i / 2 / PLACES][i / 2 % PLACES][i % 2] - DRAWS * share) < 5 * deviation);
}

/* An image with less than the patch is in its middle. */
static void small_images_are_in_the_middle_of_a_patch(void **state)
{
    (void)state;
    const mr_transform t = {.kind = MR_TRANSFORM_PATCH, .size = 100, .resize = 4};
    for (uint64_t i = 0; i < 100; i++) {
        const mr_view v = mr_view_patch(&t, 90, 1, 0, i, 41, 95);
        assert_int_equal(v.left, 0);
        assert_int_equal(v.width, 41);
        assert_int_equal(v.pad_left, 29);
        assert_int_equal(v.height, v.out_height);
        assert_true(v.height >= 86 && v.height <= 90 && v.top + v.height <= 95);
    }
}

static void test_ratios(void **state)
{
    (void)state;
    mr_transform wide = {.ratio_min = 2, .ratio_max = 3, .scale_min = 0.05f, .scale_max = 0.1f};
    mr_transform fixed = {.ratio_min = 0.01f, .ratio_max = 0.01f, .scale_min = 1, .scale_max = 1};
    for (uint64_t i = 0; i < 200; i++) {
        mr_view v = mr_view_train(&wide, 1, 2, i, 400, 300);
        assert_true(v.width >= 1.9 * v.height && v.width <= 3.1 * v.height);
        v = mr_view_train(&fixed, 1, 2, i, 400, 300);
        assert_true(v.width == 3 && v.height == 300 && v.left == 198);
        v = mr_view_train(&fixed, 1, 2, i, 1, 7);
        assert_true(v.width == 1 && v.height == 7);
        v = mr_view_train(&fixed, 1, 2, i, 9, 7);
        assert_true(v.width == 1 && v.height == 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ratios),
        cmocka_unit_test(boxes_are_even),
        cmocka_unit_test(refused_tries_are_tried_again),
        cmocka_unit_test(mirrors_as_often_as_asked),
        cmocka_unit_test(patches_are_even),
        cmocka_unit_test(small_images_are_in_the_middle_of_a_patch),
        cmocka_unit_test(views_are_inside),
        cmocka_unit_test(sides_beyond_counting),
        cmocka_unit_test(senseless_numbers_give_a_box),
        cmocka_unit_test(falls_back_to_the_middle),
        cmocka_unit_test(center_is_torchvisions),
        cmocka_unit_test(square_keeps_no_ratio),
        cmocka_unit_test(depends_on_its_key_alone),
        cmocka_unit_test(stays_as_published),
        cmocka_unit_test(defaults_are_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

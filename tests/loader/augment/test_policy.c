/* test_policy.c - operations of RandAugment and TrivialAugment, and the blur, against plain computations.
 * Invariant tested: amounts are those of the papers' tables, each operation is drawn as often as the others, and a
 * picture of any size is changed within its bounds alone.
 * Covers loader/augment/tone.c, loader/augment/warp.c, loader/augment/blur.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "loader/augment/changes.h"
#include "tests/support/support.h"

enum { WIDTH = 31, HEIGHT = 23, BYTES = 3 * WIDTH * HEIGHT, DRAWS = 14000 };

static void draw_bytes(mr_random *r, uint8_t *out, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(20 + mr_random_below(r, 200));
}

static void amounts_are_those_of_the_tables(void **state)
{
    (void)state;
    /* RandAugment's at magnitude 15, half of 30; the most of TrivialAugment's. */
    static const float half[MR_POLICY_KINDS] = {0,     0.15f, 0.15f, 50, 25,     15, 0.45f,
                                                0.45f, 0.45f, 0.45f, 6,  127.5f, 0,  0};
    static const float most[MR_POLICY_KINDS] = {0, 0.99f, 0.99f, 32, 32, 135, 0.99f, 0.99f, 0.99f, 0.99f, 8, 255, 0, 0};
    const mr_augment rand = {.randaugment = 2, .magnitude = 15}, trivial = {.trivial = 1};
    unsigned kinds[MR_POLICY_KINDS] = {0}, negative = 0, with_sign = 0;
    float seen[MR_POLICY_KINDS] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) {
        mr_policy_op ops[MR_POLICY_MOST], again[MR_POLICY_MOST];
        mr_stream numbers = mr_stream_of(1, 2, 3, i), same = numbers;
        assert_int_equal(mr_policy_draw(&rand, &numbers, 221, 111, ops), 2);
        assert_int_equal(mr_policy_draw(&rand, &same, 221, 111, again), 2);
        for (int k = 0; k < 2; k++) {
            assert_true(ops[k].kind == again[k].kind && ops[k].amount == again[k].amount);
            assert_true(fabsf(fabsf(ops[k].amount) - half[ops[k].kind]) < 1e-5f);
            kinds[ops[k].kind]++;
            with_sign += half[ops[k].kind] != 0 && ops[k].kind < MR_POLICY_POSTERIZE;
            negative += ops[k].amount < 0;
        }
        assert_int_equal(mr_policy_draw(&trivial, &numbers, 221, 111, ops), 1);
        assert_true(fabsf(ops[0].amount) <= most[ops[0].kind] + 1e-5f);
        seen[ops[0].kind] = fmaxf(seen[ops[0].kind], fabsf(ops[0].amount));
    }
    for (int k = 0; k < MR_POLICY_KINDS; k++) {
        assert_true(abs((int)kinds[k] - 2 * DRAWS / MR_POLICY_KINDS) < 250); /* 5.7 sigma */
        assert_true(fabsf(seen[k] - most[k]) < 1e-5f);
    }
    assert_true(abs((int)(2 * negative) - (int)with_sign) < 700);
}

static void tables_are_plain_arithmetic(void **state)
{
    (void)state;
    mr_random r = support_random();
    uint8_t before[BYTES], after[BYTES];
    draw_bytes(&r, before, sizeof before);
    for (unsigned bits = 2; bits <= 8; bits++) {
        memcpy(after, before, sizeof after);
        mr_posterize(bits, after, BYTES / 3);
        for (size_t i = 0; i < BYTES; i++)
            assert_int_equal(after[i], before[i] >> (8 - bits) << (8 - bits));
    }
    memcpy(after, before, sizeof after);
    mr_solarize(100.5f, after, BYTES / 3);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(after[i], before[i] >= 101 ? 255 - before[i] : before[i]);
    memcpy(after, before, sizeof after);
    mr_solarize(255, after, BYTES / 3);
    assert_memory_equal(after, before, sizeof after);
    memcpy(after, before, sizeof after);
    mr_autocontrast(after, BYTES / 3);
    for (size_t c = 0; c < 3; c++) {
        int low = 255, high = 0;
        for (size_t i = c; i < BYTES; i += 3) {
            low = before[i] < low ? before[i] : low;
            high = before[i] > high ? before[i] : high;
        }
        for (size_t i = c; i < BYTES; i += 3)
            assert_true(fabs(after[i] - floor((before[i] - low) * 255.0 / (high - low))) <= 1);
    }
    memset(after, 77, sizeof after); /* of one colour */
    mr_autocontrast(after, BYTES / 3);
    mr_equalize(after, BYTES / 3);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(after[i], 77);
}

/* Every level is there once: an equalized ramp is itself; of two levels one becomes 0, as in Pillow. */
static void levels_are_equalized(void **state)
{
    (void)state;
    uint8_t ramp[3 * 256 * 4], two[3 * 1000];
    for (size_t i = 0; i < sizeof ramp; i++)
        ramp[i] = (uint8_t)(i / 12);
    mr_equalize(ramp, sizeof ramp / 3);
    for (size_t i = 0; i < sizeof ramp; i++)
        assert_true(abs((int)ramp[i] - (int)(i / 12)) <= 1);
    for (size_t i = 0; i < sizeof two; i++)
        two[i] = i < 1500 ? 90 : 100;
    mr_equalize(two, sizeof two / 3);
    assert_true(two[0] == 0 && two[1500] == 255);
}

static void pictures_are_moved(void **state)
{
    (void)state;
    mr_random r = support_random();
    uint8_t before[BYTES], after[BYTES], scratch[BYTES];
    draw_bytes(&r, before, sizeof before);
    memcpy(after, before, sizeof after);
    mr_policy_apply(&(mr_policy_op){MR_POLICY_TRANSLATE_X, 5}, after, WIDTH, HEIGHT, scratch);
    mr_policy_apply(&(mr_policy_op){MR_POLICY_TRANSLATE_Y, -3}, after, WIDTH, HEIGHT, scratch);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            for (int c = 0; c < 3; c++)
                assert_int_equal(after[3 * (y * WIDTH + x) + c],
                                 x >= 5 && y + 3 < HEIGHT ? before[3 * ((y + 3) * WIDTH + x - 5) + c] : 0);
    memcpy(after, before, sizeof after);
    for (int i = 0; i < 2; i++) /* half a turn twice */
        mr_policy_apply(&(mr_policy_op){MR_POLICY_ROTATE, 180}, after, WIDTH, HEIGHT, scratch);
    assert_memory_equal(after, before, sizeof after);
    mr_policy_apply(&(mr_policy_op){MR_POLICY_SHEAR_X, 1}, after, WIDTH, HEIGHT, scratch);
    for (int y = 1; y < HEIGHT; y++) /* row y moves by y and a half pixel */
        for (int x = 0; x + y + 2 < WIDTH; x++) {
            const uint8_t *p = after + 3 * (y * WIDTH + x), *in = before + 3 * (y * WIDTH + x + y);
            assert_true(memcmp(p, in, 3) == 0 || memcmp(p, in + 3, 3) == 0);
        }
}

static void sharpness_is_plain_arithmetic(void **state)
{
    (void)state;
    mr_random r = support_random();
    uint8_t before[BYTES], after[BYTES], scratch[BYTES];
    draw_bytes(&r, before, sizeof before);
    for (int n = 0; n < 4; n++) {
        double factor = (const double[]){0.1, 1, 1.5, 1.99}[n];
        memcpy(after, before, sizeof after);
        mr_sharpen((float)factor, after, WIDTH, HEIGHT, scratch);
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < 3 * WIDTH; x++) {
                int at = 3 * y * WIDTH + x, sum = 4 * before[at];
                bool edge = !y || y == HEIGHT - 1 || x < 3 || x >= 3 * WIDTH - 3;
                for (int i = -1; i <= 1 && !edge; i++)
                    for (int k = -1; k <= 1; k++)
                        sum += before[at + 3 * (i * WIDTH + k)];
                double want = edge ? before[at] : factor * before[at] + (1 - factor) * sum / 13;
                assert_true(fabs(after[at] - fmin(fmax(want, 0), 255)) < 2);
            }
    }
    uint8_t small[12] = {9, 200, 0};
    memcpy(after, small, sizeof small);
    mr_sharpen(2, small, 2, 2, scratch);
    assert_memory_equal(small, after, sizeof small);
}

static long mirror(long at, long side)
{
    at = labs(at);
    return at < side ? at : 2 * (side - 1) - at;
}

static void blur_plainly(const uint8_t *in, long width, long height, double sigma, double *out)
{
    long radius_x = lround(fmin(ceil(3 * sigma), (double)width - 1)),
         radius_y = lround(fmin(ceil(3 * sigma), (double)height - 1));
    for (long at = 0; at < 3 * width * height; at++) {
        long x = at / 3 % width, y = at / 3 / width;
        double sum = 0, all = 0;
        for (long i = -radius_y; i <= radius_y; i++)
            for (long k = -radius_x; k <= radius_x; k++) {
                double weight = exp(-(double)(i * i + k * k) / (2 * sigma * sigma));
                sum += weight * in[3 * (mirror(y + i, height) * width + mirror(x + k, width)) + at % 3];
                all += weight;
            }
        out[at] = sum / all;
    }
}

static void blurs_are_plain_sums(void **state)
{
    (void)state;
    static const struct {
        uint32_t width, height;
    } sizes[] = {{WIDTH, HEIGHT}, {1, 1}, {1, HEIGHT}, {WIDTH, 2}, {5, 5}};
    mr_random r = support_random();
    for (size_t n = 0; n < MR_COUNT(sizes); n++)
        for (int k = 0; k < 4; k++) {
            float sigma = (const float[]){0.05f, 0.4f, 1.3f, 10}[k], scratch[BYTES];
            uint8_t picture[BYTES];
            double want[BYTES];
            draw_bytes(&r, picture, sizeof picture);
            blur_plainly(picture, sizes[n].width, sizes[n].height, (double)sigma, want);
            mr_blur(sigma, picture, sizes[n].width, sizes[n].height, scratch);
            for (size_t i = 0; i < 3 * (size_t)sizes[n].width * sizes[n].height; i++)
                assert_true(fabs(picture[i] - want[i]) <= 0.51);
        }
}

/* A blur is drawn as often as it is asked for, and changes nothing that other options draw. */
static void blurs_are_drawn_apart(void **state)
{
    (void)state;
    static const float mean[3] = {0.5f, 0.5f, 0.5f};
    const mr_augment plain = {.brightness = {0.5f, 1.5f}, .grey = 0.2f, .erase = 0.5f};
    mr_augment more = plain;
    more.blur = 0.3f;
    more.randaugment = 2;
    unsigned blurred = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        mr_changes a = mr_changes_draw(&plain, 1, 2, i, 32, 32, mean),
                   b = mr_changes_draw(&more, 1, 2, i, 32, 32, mean);
        assert_true(a.sigma == 0 && !a.op_count && b.op_count == 2 &&
                    (b.sigma == 0 || (b.sigma >= 0.1f && b.sigma <= 2)));
        assert_memory_equal(a.amount, b.amount, sizeof a.amount);
        assert_true(a.grey == b.grey && a.left == b.left && a.top == b.top && a.width == b.width);
        blurred += b.sigma > 0;
    }
    assert_true(fabs(blurred / (double)DRAWS - 0.3) < 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts_are_those_of_the_tables),
        cmocka_unit_test(tables_are_plain_arithmetic),
        cmocka_unit_test(levels_are_equalized),
        cmocka_unit_test(pictures_are_moved),
        cmocka_unit_test(sharpness_is_plain_arithmetic),
        cmocka_unit_test(blurs_are_plain_sums),
        cmocka_unit_test(blurs_are_drawn_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_bf16.c - base/bf16.h: numbers of 16 bits narrow to the nearest, ties to even.
 * Invariant tested: every number of bf16 is the same after widening and narrowing. */
#include "base/bf16.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "tests/support/support.h"

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void narrowing_rounds_to_even(void **state)
{
    static const struct {
        float x;
        uint16_t half;
    } cases[] = {{0, 0},
                 {-0.0F, 0x8000},
                 {1, 0x3f80},
                 {1.00390625F, 0x3f80},  /* 1 + 2^-8, a tie: to even, down */
                 {1.01171875F, 0x3f82},  /* 1 + 3 * 2^-8, a tie: to even, up */
                 {1.003906369F, 0x3f81}, /* just above the first */
                 {3.4028235e38F, 0x7f80},
                 {INFINITY, 0x7f80},
                 {-INFINITY, 0xff80},
                 {1e-40F, 0x0001}};
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++)
        assert_int_equal(mr_bf16_of(cases[i].x), cases[i].half);
    for (uint32_t low = 1; low < 1U << 23; low = low * 2 + 1) { /* NaNs, also those whose digits are all low */
        uint32_t bits = 0x7f800000 | low;
        float x;
        memcpy(&x, &bits, sizeof x);
        assert_true(isnan(mr_bf16_float(mr_bf16_of(x))));
    }
    for (uint32_t half = 0; half < 1U << 16; half++) {
        float x = mr_bf16_float((uint16_t)half);
        assert_int_equal(bits_of(x), half << 16);
        if (!isnan(x))
            assert_int_equal(mr_bf16_of(x), half);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(narrowing_rounds_to_even)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

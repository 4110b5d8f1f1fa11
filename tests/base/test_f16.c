/* test_f16.c - half precision: every half comes back, and every float32 becomes the nearest one.
 * Invariant tested: of two halves the nearer is taken, of equally near ones that with an even last bit. */
#include <math.h>

#include "base/f16.h"
#include "base/random.h"
#include "tests/support/support.h"

static void every_half_comes_back(void **state)
{
    (void)state;
    for (uint32_t half = 0; half <= 0xFFFF; half++) {
        float x = mr_f16_float((uint16_t)half);
        uint16_t back = mr_f16_of(x);
        if ((half & 0x7FFF) > 0x7C00)
            assert_true(isnan(x) && (back & 0x7FFF) > 0x7C00);
        else
            assert_int_equal(back, half);
    }
    assert_true(mr_f16_float(0x3C00) == 1 && mr_f16_float(0x0001) == 0x1p-24f && mr_f16_float(0x7BFF) == 65504);
}

static void floats_become_the_nearest(void **state)
{
    (void)state;
    mr_random r = support_random();
    for (uint32_t half = 0; half < 0x7BFF; half++) {
        float low = mr_f16_float((uint16_t)half), high = mr_f16_float((uint16_t)(half + 1)), middle = (low + high) / 2;
        float part = low + (high - low) * (float)mr_random_unit(&r);
        uint16_t even = (uint16_t)(half & 1 ? half + 1 : half);
        assert_int_equal(mr_f16_of(middle), even);
        assert_int_equal(mr_f16_of(-middle), even | 0x8000);
        assert_int_equal(mr_f16_of(nextafterf(middle, 0)), half);
        assert_int_equal(mr_f16_of(nextafterf(middle, 1e9f)), half + 1);
        if (part != middle)
            assert_int_equal(mr_f16_of(part), part < middle ? half : half + 1);
    }
    assert_true(mr_f16_of(65519) == 0x7BFF && mr_f16_of(65520) == 0x7C00 && mr_f16_of(1e30f) == 0x7C00);
    assert_true(mr_f16_of(0x1p-26f) == 0 && mr_f16_of(-INFINITY) == 0xFC00 && mr_f16_of(-0.0f) == 0x8000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_comes_back),
        cmocka_unit_test(floats_become_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_bench_turns.c - medians and quartiles of turns whose figures are known. */
#include "tests/support/support.h"

#include <math.h>
#include <string.h>

#include "loader/bench/bench_turns.h"

/* `count` turns of 10 images, in mixed order, that take 1, 2, ... milliseconds of CPU per image. */
static mr_bench_result summed(size_t count)
{
    mr_bench_turn turns[16];
    mr_bench_result r;
    mr_error err;
    memset(turns, 0, sizeof turns);
    memset(&r, 0, sizeof r);
    for (size_t i = 0; i < count; i++) {
        double ms = (double)((i * 7) % count + 1);
        turns[i].images = 10;
        turns[i].product.cpu = ms * 10e-3;
        turns[i].product.wall = 1;
        turns[i].limit = turns[i].product;
    }
    assert_int_equal(mr_bench_turns_sum(turns, count, &r, &err), MR_OK);
    return r;
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

static void medians_and_quartiles(void **state)
{
    (void)state;
    mr_bench_result odd = summed(5), even = summed(4), one = summed(1);
    assert_true(near(odd.product.cpu_ms, 3) && near(odd.cpu_low_ms, 2) && near(odd.cpu_high_ms, 4));
    assert_true(near(even.product.cpu_ms, 2.5) && near(even.cpu_low_ms, 1.75) && near(even.cpu_high_ms, 3.25));
    assert_true(near(one.product.cpu_ms, 1) && near(one.cpu_low_ms, 1) && near(one.cpu_high_ms, 1));
    assert_int_equal(odd.images, 50);
    assert_true(near(odd.cpu_ratio, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians_and_quartiles),
    };
    return cmocka_run_group_tests_name("bench_turns", tests, NULL, NULL);
}

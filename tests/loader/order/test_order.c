/* test_order.c - the order is a bijection for every count, and windows hold neighbours together.
 * Invariant tested: proven for every count from 0 to 2,000; test_order_fair.c is about chance. */
#include "loader/order/order.h"
#include "tests/support/support.h"

#include <stdlib.h>
#include <string.h>

#include "loader/order/mix.h"

/* ---- bijections ------------------------------------------------------------------------------------------------- */

static mr_order make(mr_shuffle kind, uint64_t samples, uint64_t seed, uint64_t window)
{
    mr_order o;
    mr_error err;
    if (mr_order_make(kind, samples, seed, window * 1000, 1000, &o, &err) != MR_OK)
        fail_msg("%s", err.text);
    return o;
}

static void check_all(const mr_order *o, uint64_t epoch, uint8_t *seen)
{
    memset(seen, 0, o->samples);
    for (uint64_t i = 0; i < o->samples; i++) {
        uint64_t n = mr_order_at(o, epoch, i);
        if (n >= o->samples || seen[n]++)
            fail_msg("kind %d, %llu samples: position %llu gives %llu%s", (int)o->kind, (unsigned long long)o->samples,
                     (unsigned long long)i, (unsigned long long)n, n < o->samples ? " again" : "");
    }
}

static void every_count_is_a_bijection(void **state)
{
    (void)state;
    uint8_t seen[2048];
    for (uint64_t n = 0; n <= 2000; n++) {
        mr_order full = make(MR_SHUFFLE_FULL, n, n * 31, 0), none = make(MR_SHUFFLE_NONE, n, 5, 0);
        mr_order window = make(MR_SHUFFLE_WINDOW, n, 7, 1 + n * 7 % 200);
        check_all(&full, n % 5, seen);
        check_all(&none, 0, seen);
        check_all(&window, n % 3, seen);
        if (n)
            assert_int_equal(mr_order_at(&none, 3, n - 1), n - 1);
    }
}

static void the_way_back_is_the_inverse(void **state)
{
    (void)state;
    mr_random r = support_random();
    for (int i = 0; i < 20000; i++) {
        uint64_t count = mr_random_between(&r, 1, (uint64_t)1 << mr_random_between(&r, 0, 40));
        uint64_t key = mr_random_u64(&r), tweak = mr_random_u64(&r), n = mr_random_below(&r, count);
        uint64_t to = mr_permute(count, key, tweak, n);
        assert_true(to < count);
        assert_int_equal(mr_unpermute(count, key, tweak, to), n);
        assert_int_equal(mr_permute(count, key, tweak, mr_unpermute(count, key, tweak, n)), n);
    }
}

static void the_largest_split_costs_no_more(void **state)
{
    (void)state;
    uint64_t samples = (uint64_t)1 << 40;
    mr_order full = make(MR_SHUFFLE_FULL, samples, 1, 0), window = make(MR_SHUFFLE_WINDOW, samples - 1, 1, 1 << 20);
    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t at = mr_mix(i) % (samples - 1);
        assert_true(mr_order_at(&full, i, at) < samples);
        assert_true(mr_order_at(&window, i, at) < samples - 1);
    }
    assert_int_not_equal(mr_order_at(&full, 0, samples - 1), mr_order_at(&full, 1, samples - 1));
}

static void epochs_differ(void **state)
{
    (void)state;
    for (int kind = MR_SHUFFLE_FULL; kind <= MR_SHUFFLE_WINDOW; kind += MR_SHUFFLE_WINDOW) {
        mr_order o = make((mr_shuffle)kind, 1000, 1, 100);
        unsigned same = 0;
        for (uint64_t epoch = 0; epoch < 20; epoch++)
            for (uint64_t i = 0; i < 1000; i++)
                same += mr_order_at(&o, epoch, i) == mr_order_at(&o, epoch + 1, i);
        assert_in_range(same, 1, 60); /* by chance about 20: one an epoch */
    }
}

/* Orders are a promise: a run resumed by a later version must go on as it began. */
static void stays_as_published(void **state)
{
    (void)state;
    static const uint16_t full[] = {602, 956, 137, 712, 367, 451, 21, 431};
    static const uint16_t window[] = {572, 558, 840, 360, 754, 845, 126, 182};
    mr_order a = make(MR_SHUFFLE_FULL, 1000, 1, 0), b = make(MR_SHUFFLE_WINDOW, 1000, 1, 100);
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(mr_order_at(&a, 2, i), full[i]);
        assert_int_equal(mr_order_at(&b, 2, i), window[i]);
    }
}

/* ---- windows ---------------------------------------------------------------------------------------------------- */

/* A block never reaches over more than two windows that touch, so the disk's cache of two windows is enough. */
static void check_windows(uint64_t samples, uint64_t window, uint64_t epoch)
{
    mr_order o = make(MR_SHUFFLE_WINDOW, samples, 3, window);
    uint64_t blocks = samples / o.block + 1, runs = 0, last = 0, *low = calloc(blocks, 8), *high = calloc(blocks, 8);
    assert_int_equal(o.window, window);
    assert_int_equal(o.block, window / 16 ? window / 16 : 1);
    memset(low, 0xFF, blocks * sizeof *low);
    for (uint64_t i = 0; i < samples; i++) {
        uint64_t n = mr_order_at(&o, epoch, i), block = n / o.block, w = i / window;
        low[block] = w < low[block] ? w : low[block];
        high[block] = w > high[block] ? w : high[block];
        runs += i > 0 && n == last + 1;
        last = n;
    }
    for (uint64_t i = 0; i < blocks; i++)
        assert_true(low[i] == UINT64_MAX || high[i] - low[i] <= 1);
    if (window > 16 && samples > 16)
        assert_true(runs < samples / 8); /* shuffled inside, too */
    free(low);
    free(high);
}

static void windows_hold_their_blocks(void **state)
{
    (void)state;
    static const uint64_t samples[] = {1, 2, 99, 1000, 4096, 10007}, windows[] = {1, 2, 16, 33, 100, 1024, 20000};
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < 7; k++)
            for (uint64_t epoch = 0; epoch < 3; epoch++)
                check_windows(samples[i], windows[k], epoch);
}

/* Blocks come from everywhere: the same place of two windows that touch holds samples far apart. */
static void windows_are_shuffled(void **state)
{
    (void)state;
    mr_order o = make(MR_SHUFFLE_WINDOW, 16000, 9, 160);
    uint64_t far = 0;
    for (uint64_t i = 0; i + 160 < 16000; i++) {
        uint64_t a = mr_order_at(&o, 0, i), b = mr_order_at(&o, 0, i + 160);
        far += (a > b ? a - b : b - a) > 16000 / 4;
    }
    /* Two places drawn at random lie more than a quarter apart in 9 of 16 cases. */
    assert_in_range(far, 16000 * 9 / 16 - 1500, 16000 * 9 / 16 + 1500);
}

static void refuses_what_it_cannot_order(void **state)
{
    (void)state;
    mr_order o = {.samples = 77};
    mr_error err;
    assert_int_equal(mr_order_make(MR_SHUFFLE_FULL, ((uint64_t)1 << 40) + 1, 0, 0, 0, &o, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "2^40"));
    assert_int_equal(mr_order_make(MR_SHUFFLE_WINDOW, 10, 0, 0, 1, &o, NULL), MR_MISUSE);
    assert_int_equal(o.samples, 77);
    assert_int_equal(mr_order_make(MR_SHUFFLE_WINDOW, 10, 0, 5, 100, &o, NULL), MR_OK);
    assert_int_equal(o.window, 1);
    assert_int_equal(mr_order_make(MR_SHUFFLE_WINDOW, 0, 0, 5, 0, &o, NULL), MR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_count_is_a_bijection),
        cmocka_unit_test(the_way_back_is_the_inverse),
        cmocka_unit_test(the_largest_split_costs_no_more),
        cmocka_unit_test(epochs_differ),
        cmocka_unit_test(stays_as_published),
        cmocka_unit_test(windows_hold_their_blocks),
        cmocka_unit_test(windows_are_shuffled),
        cmocka_unit_test(refuses_what_it_cannot_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_random.c - the generator gives the published numbers, evenly. */
#include "tests/support/support.h"

#include <string.h>

static void gives_the_published_numbers(void **state)
{
    (void)state;
    /* Reference outputs of xoshiro256** for the state {1, 2, 3, 4}. */
    static const uint64_t expected[] = {
        UINT64_C(11520),
        UINT64_C(0),
        UINT64_C(1509978240),
        UINT64_C(1215971899390074240),
        UINT64_C(1216172134540287360),
        UINT64_C(607988272756665600),
        UINT64_C(16172922978634559625),
    };
    mr_random r = {{1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(mr_random_u64(&r), expected[i]);
}

static void seeds_by_splitmix64(void **state)
{
    (void)state;
    /* Reference outputs of splitmix64 for the seed 1234567. */
    mr_random r;
    mr_random_seed(&r, 1234567);
    assert_int_equal(r.s[0], UINT64_C(6457827717110365317));
    assert_int_equal(r.s[1], UINT64_C(3203168211198807973));
    assert_int_equal(r.s[2], UINT64_C(9817491932198370423));
    assert_int_equal(r.s[3], UINT64_C(4593380528125082431));
}

static void streams_differ(void **state)
{
    (void)state;
    mr_random a, b, c, again;
    mr_random_stream(&a, 1, 2);
    mr_random_stream(&b, 2, 1);
    mr_random_stream(&c, 1, 3);
    mr_random_stream(&again, 1, 2);
    assert_memory_equal(&a, &again, sizeof a);
    assert_memory_not_equal(&a, &b, sizeof a);
    assert_memory_not_equal(&a, &c, sizeof a);
}

static void bounded_numbers_are_even(void **state)
{
    (void)state;
    enum { BOUND = 7, DRAWS = 70000 };
    mr_random r = support_random();
    unsigned seen[BOUND] = {0};
    for (int i = 0; i < DRAWS; i++) {
        uint64_t n = mr_random_below(&r, BOUND);
        assert_true(n < BOUND);
        seen[n]++;
    }
    /* 10,000 expected each, standard deviation 93; six of them are out of the reach of any honest seed. */
    for (int i = 0; i < BOUND; i++)
        assert_in_range(seen[i], 10000 - 560, 10000 + 560);
    assert_int_equal(mr_random_below(&r, 0), 0);
    assert_int_equal(mr_random_below(&r, 1), 0);
}

static void ranges_include_both_ends(void **state)
{
    (void)state;
    mr_random r = support_random();
    bool low = false, high = false;
    for (int i = 0; i < 1000; i++) {
        uint64_t n = mr_random_between(&r, 3, 5);
        assert_in_range(n, 3, 5);
        low |= n == 3;
        high |= n == 5;
        double x = mr_random_real(&r, -2, 2);
        assert_true(x >= -2 && x < 2);
    }
    assert_true(low && high);
    assert_int_equal(mr_random_between(&r, 9, 9), 9);
    mr_random copy = r;
    assert_int_equal(mr_random_between(&r, 0, UINT64_MAX), mr_random_u64(&copy));
}

static void shuffling_keeps_every_item(void **state)
{
    (void)state;
    mr_random r = support_random();
    uint32_t items[100];
    for (uint32_t i = 0; i < 100; i++)
        items[i] = i;
    mr_random_shuffle(&r, items, 100, sizeof *items);
    bool seen[100] = {0};
    unsigned moved = 0;
    for (uint32_t i = 0; i < 100; i++) {
        assert_true(items[i] < 100 && !seen[items[i]]);
        seen[items[i]] = true;
        moved += items[i] != i;
    }
    assert_true(moved > 80);
    mr_random_shuffle(&r, items, 0, sizeof *items);
}

static void bytes_of_any_length(void **state)
{
    (void)state;
    uint8_t bytes[20], longer[20];
    for (size_t len = 0; len < 19; len++) {
        mr_random a = support_random(), b = support_random();
        memset(bytes, 0xa5, sizeof bytes);
        mr_random_bytes(&a, bytes, len);
        mr_random_bytes(&b, longer, sizeof longer);
        assert_memory_equal(bytes, longer, len);
        assert_int_equal(bytes[len], 0xa5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_the_published_numbers),
        cmocka_unit_test(seeds_by_splitmix64),
        cmocka_unit_test(streams_differ),
        cmocka_unit_test(bounded_numbers_are_even),
        cmocka_unit_test(ranges_include_both_ends),
        cmocka_unit_test(shuffling_keeps_every_item),
        cmocka_unit_test(bytes_of_any_length),
    };
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}

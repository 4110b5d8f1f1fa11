/* test_pool.c - many items, a few threads.
 * Invariant tested: each item runs once, on a worker whose number no other thread has, and of several failures the one
 * with the lowest number is reported. */
#include <stdatomic.h>

#include "base/system/pool.h"
#include "tests/support/support.h"

enum { ITEMS = 500, JOBS = 4 };

typedef struct run {
    atomic_uint times[ITEMS], busy[JOBS], collisions;
    size_t fails_from; /* items that fail: this one and all later ones */
} run;

static mr_status count(void *ctx, size_t item, unsigned worker, mr_error *err)
{
    run *r = ctx;
    if (atomic_fetch_add(&r->busy[worker], 1) != 0)
        atomic_fetch_add(&r->collisions, 1);
    atomic_fetch_add(&r->times[item], 1);
    atomic_fetch_sub(&r->busy[worker], 1);
    return item < r->fails_from ? MR_OK : mr_fail(err, MR_BAD_DATA, "item %zu", item);
}

static void test_each_item_runs_once(void **state)
{
    (void)state;
    for (unsigned jobs = 0; jobs <= JOBS; jobs++) {
        run r = {.fails_from = ITEMS};
        mr_error err;
        assert_int_equal(mr_pool_run(ITEMS, jobs, count, &r, &err), MR_OK);
        for (size_t i = 0; i < ITEMS; i++)
            assert_int_equal(r.times[i], 1);
        assert_int_equal(r.collisions, 0);
    }
}

static void test_more_jobs_than_items(void **state)
{
    (void)state;
    run r = {.fails_from = ITEMS};
    mr_error err;
    assert_int_equal(mr_pool_run(2, JOBS, count, &r, &err), MR_OK);
    assert_int_equal(r.times[0] + r.times[1], 2);
    assert_int_equal(mr_pool_run(0, JOBS, count, &r, &err), MR_OK);
    assert_int_equal(r.times[0] + r.times[1], 2);
}

static void test_the_first_failure_is_reported(void **state)
{
    (void)state;
    for (unsigned jobs = 1; jobs <= JOBS; jobs++) {
        run r = {.fails_from = 123};
        mr_error err;
        unsigned after = 0;
        assert_int_equal(mr_pool_run(ITEMS, jobs, count, &r, &err), MR_BAD_DATA);
        assert_string_equal(err.text, "item 123");
        for (size_t i = 0; i < ITEMS; i++) {
            assert_true(r.times[i] == (i <= 123) || i > 123);
            after += i > 123 ? r.times[i] : 0;
        }
        assert_true(after < jobs); /* only what other threads were at work on */
        assert_int_equal(mr_pool_run(ITEMS, jobs, count, &r, NULL), MR_BAD_DATA);
    }
}

static void times_carry(void **state)
{
    struct timespec t = {.tv_sec = 7, .tv_nsec = 999500000};
    (void)state;
    mr_time_add(&t, 0);
    assert_true(t.tv_sec == 7 && t.tv_nsec == 999500000);
    mr_time_add(&t, 2500);
    assert_true(t.tv_sec == 10 && t.tv_nsec == 499500000);
    mr_time_add(&t, 500);
    assert_true(t.tv_sec == 10 && t.tv_nsec == 999500000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_item_runs_once),
        cmocka_unit_test(test_more_jobs_than_items),
        cmocka_unit_test(test_the_first_failure_is_reported),
        cmocka_unit_test(times_carry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

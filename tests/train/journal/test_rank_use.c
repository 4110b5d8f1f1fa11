/* test_rank_use.c - the shares of each rank's time, over a run and between two of its lines. */
#include "journal/rank_use.h"
#include "support/support.h"

static const char *text_of(void (*add)(const mr_rank_uses *, const mr_rank_uses *, mr_buf *), const mr_rank_uses *now,
                           const mr_rank_uses *before, mr_buf *out)
{
    mr_buf_clear(out);
    add(now, before, out);
    return out->len ? mr_buf_text(out) : "";
}

static void ranges_are_of_the_time_between(void **state)
{
    mr_rank_use first[] = {{.seconds = 10, .wait = 10}, {.seconds = 10, .exchange = 10}};
    mr_rank_use later[] = {{.seconds = 20, .wait = 11, .exchange = 0.44}, {.seconds = 20, .wait = 1, .exchange = 13}};
    const mr_rank_uses none = {0}, one = {.each = first, .world = 1}, two = {.each = first, .world = 2};
    const mr_rank_uses now = {.each = later, .world = 2};
    mr_buf out = {0};
    (void)state;
    assert_string_equal(text_of(mr_rank_uses_ranges, &none, &none, &out), "");
    assert_string_equal(text_of(mr_rank_uses_ranges, &one, &none, &out), " compute=0% wait=100% exchange=0%");
    assert_string_equal(text_of(mr_rank_uses_ranges, &one, &one, &out), ""); /* no time has passed */
    assert_string_equal(text_of(mr_rank_uses_ranges, &two, &none, &out), " compute=0% wait=0-100% exchange=0-100%");
    assert_string_equal(text_of(mr_rank_uses_ranges, &now, &two, &out), " compute=60-86% wait=10% exchange=4-30%");
    assert_string_equal(text_of(mr_rank_uses_members, &now, &two, &out),
                        ", \"rank_compute\": [0.856, 0.600], \"rank_wait\": [0.100, 0.100], "
                        "\"rank_exchange\": [0.044, 0.300]");
    mr_buf_free(&out);
}

/* The rank that others wait for is the one that waits least. */
static void the_slowest_waits_least(void **state)
{
    mr_rank_use each[] = {{.seconds = 10, .exchange = 6}, {.seconds = 10, .wait = 4, .exchange = 1}};
    const mr_rank_uses uses = {.each = each, .world = 2};
    (void)state;
    assert_int_equal(mr_rank_uses_slowest(&uses), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_of_the_time_between),
        cmocka_unit_test(the_slowest_waits_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

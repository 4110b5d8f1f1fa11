/* test_rank_use.c - the shares of each rank's time, over a run and between two of its lines. */
#include "train/journal/rank_use.h"
#include "tests/support/support.h"

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
                        "\"rank_exchange\": [0.044, 0.300], \"rank_read\": [0.000, 0.000], "
                        "\"rank_decode\": [0.000, 0.000]");
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

/* The wait of an update is divided as the loader's work since the one before. */
static void waits_are_divided_as_the_work(void **state)
{
    mr_rank_use u = {.seconds = 0};
    (void)state;
    mr_rank_use_add(&u, 10, 4, 1, &(mr_loader_spent){.reading = 3, .decoding = 1});
    mr_rank_use_add(&u, 10, 2, 1, &(mr_loader_spent){.reading = 3, .decoding = 2});
    mr_rank_use_add(&u, 10, 1, 0, &(mr_loader_spent){.reading = 3, .decoding = 2});
    assert_true(u.seconds == 30 && u.wait == 7 && u.exchange == 2 && u.read == 3 && u.decode == 3);
}

static void the_slowest_has_a_cause(void **state)
{
    static const struct {
        mr_rank_use slow, other;
        const char *line;
    } cases[] = {
        {{.seconds = 10, .wait = 6, .read = 5, .decode = 1, .exchange = 1},
         {.seconds = 10, .wait = 1, .decode = 1, .exchange = 6},
         "Slowest: rank 1, because of reading (compute 30.0 %, reading 50.0 %, decoding 10.0 %, for other ranks 10.0 "
         "%); the "
         "others spend 60.0 % of the time waiting for ranks\n"},
        {{.seconds = 10, .wait = 6, .read = 2, .decode = 4},
         {.seconds = 10, .wait = 2, .read = 1, .decode = 1, .exchange = 5},
         "Slowest: rank 1, because of decoding (compute 40.0 %, reading 20.0 %, decoding 40.0 %, for other ranks 0.0 "
         "%); the "
         "others spend 50.0 % of the time waiting for ranks\n"},
        {{.seconds = 10, .wait = 6},
         {.seconds = 10, .wait = 2, .exchange = 5},
         "Slowest: rank 1, because of waiting for data (compute 40.0 %, waiting for data 60.0 %, for other ranks 0.0 "
         "%); the "
         "others spend 50.0 % of the time waiting for ranks\n"},
        {{.seconds = 10, .wait = 1, .read = 1},
         {.seconds = 10, .wait = 1, .decode = 1, .exchange = 5},
         "Slowest: rank 1, because of compute (compute 90.0 %, reading 10.0 %, decoding 0.0 %, for other ranks 0.0 %); "
         "the "
         "others spend 50.0 % of the time waiting for ranks\n"},
        {{.seconds = 10, .exchange = 2},
         {.seconds = 10, .exchange = 2.4},
         "Ranks: even; each waits about 20.0 % of the time for the others\n"},
    };
    mr_ranks *ranks;
    (void)state;
    assert_int_equal(mr_ranks_begin(&ranks, NULL), MR_OK);
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        mr_rank_use each[] = {cases[i].other, cases[i].slow};
        const mr_rank_uses uses = {.each = each, .world = 2, .ranks = ranks};
        mr_buf out = {0};
        mr_rank_uses_line(&uses, &out);
        assert_string_equal(mr_buf_text(&out), cases[i].line);
        mr_buf_free(&out);
    }
    mr_ranks_end(ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_of_the_time_between),
        cmocka_unit_test(the_slowest_waits_least),
        cmocka_unit_test(waits_are_divided_as_the_work),
        cmocka_unit_test(the_slowest_has_a_cause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_stall.c - which rank holds up a run, by beats and ticks alone.
 * Invariant tested: a rank that works or waits is never a stall, however long; one that is silent or idle is, after
 * `limit` ticks and not before. */
#include <string.h>

#include "base/ranks/stall.h"
#include "tests/support/support.h"

enum { WORLD = 3, LIMIT = 10 };

static mr_stalls stalls;
static mr_beat beats[WORLD];

static int set_up(void **state)
{
    (void)state;
    memset(beats, 0, sizeof beats);
    return mr_stalls_begin(&stalls, WORLD, LIMIT, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    mr_stalls_end(&stalls);
    return 0;
}

/* A tick in which all ranks but `silent` (-1: none) beat. */
static mr_stall tick(int silent)
{
    for (int i = 0; i < WORLD; i++)
        if (i != silent)
            mr_stalls_hear(&stalls, (unsigned)i, &beats[i]);
    return mr_stalls_tick(&stalls);
}

static void all_work(void)
{
    for (int i = 0; i < WORLD; i++)
        beats[i].work++;
}

static void expect(mr_stall stall, mr_stall_kind kind, unsigned rank, bool early)
{
    assert_int_equal(stall.kind, kind);
    assert_int_equal(stall.rank, rank);
    assert_int_equal(stall.early, early);
}

static void test_work_is_no_stall(void **state)
{
    (void)state;
    for (int t = 0; t < 20 * LIMIT; t++, all_work())
        expect(tick(-1), MR_STALL_NONE, 0, false);
}

/* One rank reads for an hour, the others wait for it. */
static void test_waiting_for_a_rank_that_works(void **state)
{
    (void)state;
    beats[0].waits = beats[2].waits = true;
    for (int t = 0; t < 20 * LIMIT; t++) {
        beats[1].work += t % LIMIT == 0; /* little, but some */
        expect(tick(-1), MR_STALL_NONE, 0, false);
    }
}

static void test_a_silent_rank(void **state)
{
    (void)state;
    tick(-1);
    for (int t = 1; t < LIMIT; t++, all_work())
        expect(tick(1), t == LIMIT / 2 ? MR_STALL_SILENT : MR_STALL_NONE, t == LIMIT / 2, t == LIMIT / 2);
    expect(tick(1), MR_STALL_SILENT, 1, false);
}

/* A link that was down for less than the limit, again and again. */
static void test_short_silences(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) {
        unsigned early = 0;
        for (int t = 0; t < LIMIT - 1; t++, all_work()) {
            mr_stall s = tick(2);
            early += s.early;
            assert_true(s.kind == MR_STALL_NONE || s.early);
        }
        assert_int_equal(early, 1);
        expect(tick(-1), MR_STALL_NONE, 0, false);
    }
}

static void test_an_idle_rank(void **state)
{
    (void)state;
    beats[0].waits = beats[1].waits = true;
    tick(-1);
    for (int t = 1; t < LIMIT; t++)
        expect(tick(-1), MR_STALL_NONE, 0, false);
    expect(tick(-1), MR_STALL_IDLE, 2, false);
}

/* The reason before what follows from it: rank 0 may be idle because it uses what rank 2 provides. */
static void test_silence_is_named_before_idleness(void **state)
{
    (void)state;
    mr_stall last = {MR_STALL_NONE, 0, false};
    tick(-1);
    for (int t = 0; t < LIMIT + 2 && (last.kind == MR_STALL_NONE || last.early); t++)
        last = tick(2);
    expect(last, MR_STALL_SILENT, 2, false);
}

static void test_all_wait_for_one_another(void **state)
{
    (void)state;
    for (int i = 0; i < WORLD; i++)
        beats[i].waits = true;
    for (int t = 0; t < 5 * LIMIT; t++) {
        beats[t % WORLD].turns += t % 3 == 0; /* waits that end: progress */
        expect(tick(-1), MR_STALL_NONE, 0, false);
    }
    for (int t = 0; t < LIMIT - 1; t++)
        expect(tick(-1), MR_STALL_NONE, 0, false);
    for (int t = 0; t < 3; t++)
        tick(-1);
    expect(tick(-1), MR_STALL_LOCKED, 0, false);
}

static void test_a_rank_that_is_over(void **state)
{
    (void)state;
    beats[1].over = true;
    tick(-1);
    for (int t = 0; t < 5 * LIMIT; t++) {
        beats[0].work++;
        beats[2].work++;
        expect(tick(1), MR_STALL_NONE, 0, false);
    }
}

static void test_sentences(void **state)
{
    (void)state;
    mr_error err;
    assert_int_equal(mr_stall_explain(&(mr_stall){MR_STALL_SILENT, 7, false}, "node9", 60, &err), MR_SYSTEM);
    assert_non_null(strstr(err.text, "rank 7 on node9 has not been heard from for 60 s: "));
    mr_stall_explain(&(mr_stall){MR_STALL_SILENT, 7, true}, "node9", 60, &err);
    assert_string_equal(err.text, "rank 7 on node9 has not been heard from for 30 s; the run ends after 60 s");
    mr_stall_explain(&(mr_stall){MR_STALL_IDLE, 7, false}, "node9", 60, &err);
    assert_non_null(strstr(err.text, "rank 7 on node9 has made no progress for 60 s"));
    mr_stall_explain(&(mr_stall){MR_STALL_LOCKED, 0, false}, "node9", 60, &err);
    assert_non_null(strstr(err.text, "all ranks have been waiting for one another for 60 s"));
}

#define WITH_BEATS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BEATS(test_work_is_no_stall),
        WITH_BEATS(test_waiting_for_a_rank_that_works),
        WITH_BEATS(test_a_silent_rank),
        WITH_BEATS(test_short_silences),
        WITH_BEATS(test_an_idle_rank),
        WITH_BEATS(test_silence_is_named_before_idleness),
        WITH_BEATS(test_all_wait_for_one_another),
        WITH_BEATS(test_a_rank_that_is_over),
        cmocka_unit_test(test_sentences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

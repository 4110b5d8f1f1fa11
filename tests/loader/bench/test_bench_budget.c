/* test_bench_budget.c - how the seconds of a benchmark are shared out, on a clock that this test keeps.
 * Invariant tested: whatever pictures cost, the steps of a benchmark end within two seconds of what was asked, unless
 * the few pictures that nothing can be measured without take longer. */
#include "base/buf.h"
#include "loader/bench/bench_budget.h"
#include "tests/support/support.h"

typedef struct machine { /* wall seconds of one image, when all threads work */
    double open, read, product, limit, steps;
    unsigned threads; /* images that a probe takes at once */
} machine;

typedef struct outcome {
    double end;
    uint64_t batch, turns, batches;
} outcome;

/* What loader/bench/bench.c does, step by step; every guess that it makes of the future is off by this factor. */
static outcome run(const machine *m, double seconds, uint64_t most, double off)
{
    const mr_bench_budget b = {100, seconds};
    double now = 100 + m->open;
    mr_bench_probe probe = {m->threads, m->steps / off * m->threads, m->limit / off * m->threads};
    now += probe.steps + probe.limit;
    if (mr_bench_again(&b, now, &probe))
        now += probe.steps + probe.limit;
    outcome o = {.batch = mr_bench_batch(&b, now, most, &probe)};
    double images = (double)o.batch, turn = images * (m->read + m->product + m->limit + m->steps);
    now += (MR_BENCH_PREFETCH + 1) * images * m->product + turn; /* first batches, then the warm turn */
    double longest = m->product > m->limit ? m->product : m->limit;
    o.batches = mr_bench_batches(&b, now, turn, images * longest);
    for (double last = turn * (double)o.batches; mr_bench_another(&b, now, last); o.turns++)
        now += last;
    o.end = now + mr_bench_stages_seconds(&b, now) - 100;
    return o;
}

static void ends_in_time(void **state)
{
    (void)state;
    static const double seconds[] = {0.01, 0.1, 0.5, 1, 2, 5, 8, 60, 3600};
    for (size_t i = 0; i < MR_COUNT(seconds); i++)
        for (double ms = 0.001; ms < 4000; ms *= 1.7)
            for (unsigned threads = 1; threads <= 64; threads *= 4)
                for (double off = 0.5; off <= 2; off *= 2) {
                    double one = ms / 1e3 / threads;
                    const machine m = {0.05, one / 10, one, 2.5 * one, one, threads};
                    outcome o = run(&m, seconds[i], 64, off);
                    /* the probe, the first batches of one, the warm turn of one: less is not measured */
                    double least = m.threads * (m.steps + m.limit) / off + 4 * one + 3.6 * one;
                    double most = seconds[i] + 2 > least + 0.1 ? seconds[i] + 2 : least + 0.1;
                    if (o.end > most || o.batch < 1 || o.batch > 64 || o.batches < 1)
                        fail_msg("%g s, %g ms, %u threads, off %g: ends after %g s, batch %u, %u turns of %u",
                                 seconds[i], ms, threads, off, o.end, (unsigned)o.batch, (unsigned)o.turns,
                                 (unsigned)o.batches);
                }
}

/* Small pictures have whole batches, and several turns as long as a few seconds are given. */
static void small_pictures_lose_nothing(void **state)
{
    (void)state;
    static const double seconds[] = {1, 3, 8, 30};
    for (size_t i = 0; i < MR_COUNT(seconds); i++)
        for (double ms = 0.01; ms <= 1; ms *= 1.5) {
            const machine m = {0.02, ms / 2e4, ms / 1e3, 2.5 * ms / 1e3, ms / 1e3, 2};
            outcome o = run(&m, seconds[i], 64, 1);
            if (o.turns < 1 || (seconds[i] >= 3 && (o.batch != 64 || o.turns < MR_BENCH_MIN_TURNS)))
                fail_msg("%g s, %g ms: batch %u, %u turns", seconds[i], ms, (unsigned)o.batch, (unsigned)o.turns);
        }
}

static void wrong_clocks(void **state)
{
    (void)state;
    const mr_bench_budget b = {0, 1};
    const mr_bench_probe none = {0, 0, 0}, slow = {1, 100, 100};
    assert_int_equal(mr_bench_batch(&b, 0, 64, &none), 64);
    assert_int_equal(mr_bench_batch(&b, 0, 64, &slow), 1);
    assert_int_equal(mr_bench_batch(&b, 5, 64, &slow), 1); /* the time is up already */
    assert_int_equal(mr_bench_batches(&b, 0, 0, 0), MR_BENCH_MAX_BATCHES);
    assert_int_equal(mr_bench_batches(&b, 9, 1, 1), 1);
    assert_false(mr_bench_another(&b, 9, 0));
    assert_true(mr_bench_stages_seconds(&b, 9) == 0);
    assert_true(mr_bench_turns_end(&b) < mr_bench_end(&b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_in_time),
        cmocka_unit_test(small_pictures_lose_nothing),
        cmocka_unit_test(wrong_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_schedule_many_ranks.c - 1,024 ranks, each asked on its own, as in a run: who gets what.
 * Invariant tested: all ranks have the same number of steps, and an epoch holds each sample once, whatever the order
 * and the tail; of a billion samples, which take too long to count, in steps drawn at random.
 * Covers order/schedule.c. */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "loader/order/schedule.h"
#include "tests/support/support.h"

enum { RANKS = 1024, EACH = 32, BATCH = RANKS * EACH };

static const uint64_t window = (uint64_t)16 << 30, mean = 110000;

static mr_schedule make(mr_shuffle kind, uint64_t samples, mr_tail tail)
{
    mr_order order;
    mr_schedule s = {0};
    mr_error err;
    if (mr_order_make(kind, samples, 7, window, mean, &order, &err) != MR_OK ||
        mr_schedule_make(&order, BATCH, RANKS, tail, &s, &err) != MR_OK)
        fail_msg("%s", err.text);
    return s;
}

/* Marks what one rank sees in an epoch; returns how many samples of weight 1 that were.  The steps of a rank end where
 * it gets no more, as a rank finds out by itself. */
static uint64_t walk_rank(const mr_schedule *s, uint64_t epoch, unsigned rank, uint8_t *seen, uint64_t *steps)
{
    uint64_t samples = 0;
    for (*steps = 0; *steps < s->steps; ++*steps) {
        uint64_t count = mr_schedule_count(s, *steps, rank);
        if (s->tail != MR_TAIL_PARTIAL || *steps + 1 < s->steps)
            assert_int_equal(count, EACH);
        for (uint64_t i = 0; i < count; i++) {
            mr_slot slot = mr_schedule_slot(s, epoch, *steps, rank, i);
            assert_true(slot.sample < s->order.samples);
            if (slot.weight > 0) {
                assert_int_equal(seen[slot.sample], 0);
                seen[slot.sample] = 1;
                samples++;
            }
        }
    }
    return samples;
}

static void test_each_sample_once(void **state)
{
    (void)state;
    enum { SAMPLES = 400 * 1000 + 77 };
    static const mr_shuffle kinds[] = {MR_SHUFFLE_NONE, MR_SHUFFLE_FULL, MR_SHUFFLE_WINDOW};
    static const mr_tail tails[] = {MR_TAIL_DROP, MR_TAIL_PAD, MR_TAIL_PARTIAL};
    uint8_t *seen = malloc(SAMPLES);
    assert_non_null(seen);
    for (size_t i = 0; i < 9; i++) {
        mr_schedule s = make(kinds[i / 3], SAMPLES, tails[i % 3]);
        uint64_t steps, first = 0, samples = 0;
        memset(seen, 0, SAMPLES);
        for (unsigned rank = 0; rank < RANKS; rank++) {
            samples += walk_rank(&s, 3 + i, rank, seen, &steps);
            first = rank ? first : steps;
            assert_int_equal(steps, first);
        }
        assert_int_equal(samples, tails[i % 3] == MR_TAIL_DROP ? SAMPLES / BATCH * BATCH : SAMPLES);
    }
    free(seen);
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* All slots of 12 steps; one of them is the last, which is padded. */
static void walk_steps(const mr_schedule *s, uint64_t epoch, mr_random *random, uint64_t *found)
{
    enum { STEPS = 12 };
    uint64_t count = 0, cursor;
    for (unsigned i = 0; i < STEPS; i++) {
        /* One from each twelfth of the epoch, so that no step is drawn twice. */
        uint64_t from = s->steps * i / STEPS, to = s->steps * (i + 1) / STEPS;
        uint64_t step = i + 1 == STEPS ? s->steps - 1 : from + mr_random_below(random, to - from);
        mr_error err;
        /* Resuming there is arithmetic on the position alone. */
        assert_int_equal(mr_schedule_step_at(s, mr_schedule_position(s, step), &cursor, &err), MR_OK);
        assert_int_equal(cursor, step);
        for (unsigned rank = 0; rank < RANKS; rank++)
            for (uint64_t k = 0; k < mr_schedule_count(s, step, rank); k++) {
                mr_slot slot = mr_schedule_slot(s, epoch, step, rank, k);
                assert_true(slot.sample < s->order.samples);
                if (slot.weight > 0)
                    found[count++] = slot.sample;
            }
    }
    assert_int_equal(count, (STEPS - 1) * BATCH + s->order.samples % BATCH);
    qsort(found, count, sizeof *found, by_number);
    for (uint64_t i = 1; i < count; i++)
        assert_true(found[i - 1] < found[i]);
}

static void test_a_billion_samples(void **state)
{
    (void)state;
    static const mr_shuffle kinds[] = {MR_SHUFFLE_FULL, MR_SHUFFLE_WINDOW};
    mr_random random = support_random();
    uint64_t *found = malloc(12 * (size_t)BATCH * sizeof *found);
    assert_non_null(found);
    for (size_t i = 0; i < 2; i++) {
        mr_schedule s = make(kinds[i], 1000000000, MR_TAIL_PAD);
        assert_int_equal(s.steps, 1000000000 / BATCH + 1);
        walk_steps(&s, mr_random_below(&random, 1000), &random, found);
    }
    free(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_sample_once),
        cmocka_unit_test(test_a_billion_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

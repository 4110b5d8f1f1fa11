/* test_schedule.c - the same global batches for every world, each sample exactly once, the same steps on every rank.
 * Invariant tested: proven, not sampled, for splits of 0 to 300, 1 to 9 ranks, 1 to 8 samples a rank, all tails. */
#include "loader/order/schedule.h"
#include "tests/support/support.h"

#include <string.h>

typedef unsigned long long ull;

enum { MAX_SAMPLES = 300, MAX_WORLD = 9, MAX_SHARE = 8 };

static mr_schedule make(mr_shuffle kind, uint64_t samples, uint64_t batch, unsigned world, mr_tail tail)
{
    mr_order o;
    mr_schedule s = {0};
    mr_error err;
    if (mr_order_make(kind, samples, 11, 20, 1, &o, &err) != MR_OK ||
        mr_schedule_make(&o, batch, world, tail, &s, &err) != MR_OK)
        fail_msg("%llu samples, batch %llu, %u ranks: %s", (ull)samples, (ull)batch, world, err.text);
    return s;
}

/* ---- what an epoch has to be, told by an array ------------------------------------------------------------------ */

typedef struct epoch {
    uint64_t order[MAX_SAMPLES]; /* position -> sample */
    uint64_t samples, batch, steps;
    mr_tail tail;
} epoch;

static uint64_t expected_slots(const epoch *e, uint64_t step)
{
    uint64_t rest = e->samples - step * e->batch;
    return e->tail == MR_TAIL_PARTIAL && rest < e->batch ? rest : e->batch;
}

static mr_slot expected_slot(const epoch *e, uint64_t position)
{
    mr_slot slot = {e->order[position % e->samples], e->order[position % e->samples], position < e->samples};
    return slot;
}

static void wrong(const epoch *e, unsigned world, uint64_t step, const char *what)
{
    fail_msg("%llu samples, batch %llu, %u ranks, tail %d, step %llu: %s", (ull)e->samples, (ull)e->batch, world,
             (int)e->tail, (ull)step, what);
}

/* All ranks' slices of a step, joined, are the global batch; no rank has two more than another. */
static void check_step(const epoch *e, const mr_schedule *s, uint64_t number, uint64_t step, unsigned *seen,
                       double *weight)
{
    uint64_t at = step * e->batch, slots = expected_slots(e, step), most = 0, least = UINT64_MAX;
    for (unsigned rank = 0; rank < s->world; rank++) {
        uint64_t count = mr_schedule_count(s, step, rank);
        most = count > most ? count : most;
        least = count < least ? count : least;
        for (uint64_t i = 0; i < count; i++, at++) {
            mr_slot slot = mr_schedule_slot(s, number, step, rank, i), expected = expected_slot(e, at);
            if (slot.sample != expected.sample || slot.weight != expected.weight)
                wrong(e, s->world, step, "another sample or weight");
            seen[slot.sample] += slot.weight > 0;
            *weight += (double)slot.weight;
        }
    }
    if (at != step * e->batch + slots)
        wrong(e, s->world, step, "more or fewer samples than the global batch has");
    if (most > least + (slots < e->batch))
        wrong(e, s->world, step, "shared unevenly");
}

static void check_epoch(const epoch *e, const mr_schedule *s, uint64_t number)
{
    unsigned seen[MAX_SAMPLES + 1] = {0};
    double weight = 0;
    if (s->steps != e->steps)
        wrong(e, s->world, s->steps, "another number of steps");
    for (uint64_t step = 0; step < s->steps; step++)
        check_step(e, s, number, step, seen, &weight);
    for (unsigned rank = 0; rank < s->world; rank++)
        if (mr_schedule_count(s, s->steps, rank) != 0)
            wrong(e, s->world, s->steps, "a step after the last");
    uint64_t once = e->tail == MR_TAIL_DROP ? e->samples / e->batch * e->batch : e->samples, all = 0;
    for (uint64_t i = 0; i < e->samples; i++) {
        if (seen[i] > 1)
            wrong(e, s->world, 0, "a sample seen twice");
        all += seen[i];
    }
    if (all != once || weight != (double)once)
        wrong(e, s->world, 0, "weights or samples that do not add up");
}

static void check_worlds(mr_shuffle kind, uint64_t samples, uint64_t number)
{
    for (unsigned world = 1; world <= MAX_WORLD; world++)
        for (unsigned share = 1; share <= MAX_SHARE; share++)
            for (int tail = MR_TAIL_DROP; tail <= MR_TAIL_PARTIAL; tail++) {
                epoch e = {.samples = samples, .batch = world * share, .tail = (mr_tail)tail};
                mr_schedule s = make(kind, samples, e.batch, world, e.tail);
                for (uint64_t i = 0; i < samples; i++)
                    e.order[i] = mr_order_at(&s.order, number, i);
                e.steps = tail == MR_TAIL_DROP ? samples / e.batch : (samples + e.batch - 1) / e.batch;
                check_epoch(&e, &s, number);
            }
}

/* The order's own proofs are in test_order.c; without a shuffle there is time to try everything. */
static void every_size_world_batch_and_tail(void **state)
{
    (void)state;
    for (uint64_t samples = 0; samples <= MAX_SAMPLES; samples++)
        check_worlds(MR_SHUFFLE_NONE, samples, 0);
}

static void shuffled_too(void **state)
{
    (void)state;
    static const uint64_t samples[] = {1, 7, 64, 65, 300};
    for (size_t i = 0; i < 5; i++) {
        check_worlds(MR_SHUFFLE_FULL, samples[i], i);
        check_worlds(MR_SHUFFLE_WINDOW, samples[i], i);
    }
}

/* One rank's batches, laid beside those of every world that divides 72. */
static void worlds_agree(void **state)
{
    (void)state;
    static const unsigned worlds[] = {2, 3, 4, 6, 8, 9, 12, 72};
    for (int tail = MR_TAIL_DROP; tail <= MR_TAIL_PARTIAL; tail++) {
        mr_schedule one = make(MR_SHUFFLE_FULL, 1000, 72, 1, (mr_tail)tail);
        for (size_t w = 0; w < 8; w++) {
            mr_schedule many = make(MR_SHUFFLE_FULL, 1000, 72, worlds[w], (mr_tail)tail);
            assert_int_equal(one.steps, many.steps);
            for (uint64_t step = 0; step < one.steps; step++) {
                uint64_t at = 0;
                for (unsigned rank = 0; rank < worlds[w]; rank++)
                    for (uint64_t i = 0; i < mr_schedule_count(&many, step, rank); i++, at++) {
                        mr_slot a = mr_schedule_slot(&one, 5, step, 0, at);
                        mr_slot b = mr_schedule_slot(&many, 5, step, rank, i);
                        assert_int_equal(a.sample, b.sample);
                        assert_true(a.weight == b.weight);
                    }
                assert_int_equal(at, mr_schedule_count(&one, step, 0));
            }
        }
    }
}

static void padding_is_the_start_of_the_epoch(void **state)
{
    (void)state;
    mr_schedule s = make(MR_SHUFFLE_FULL, 3, 8, 2, MR_TAIL_PAD);
    assert_int_equal(s.steps, 1);
    for (uint64_t i = 0; i < 8; i++) {
        mr_slot slot = mr_schedule_slot(&s, 4, 0, (unsigned)(i / 4), i % 4);
        assert_int_equal(slot.sample, mr_order_at(&s.order, 4, i % 3));
        assert_true(slot.weight == (i < 3));
    }
}

static void partial_batches_are_shared_out(void **state)
{
    (void)state;
    mr_schedule s = make(MR_SHUFFLE_NONE, 26, 20, 4, MR_TAIL_PARTIAL);
    mr_schedule few = make(MR_SHUFFLE_NONE, 22, 20, 4, MR_TAIL_PARTIAL);
    static const uint64_t counts[] = {2, 2, 1, 1}, begins[] = {20, 22, 24, 25};
    for (unsigned rank = 0; rank < 4; rank++) {
        assert_int_equal(mr_schedule_count(&s, 1, rank), counts[rank]);
        assert_int_equal(mr_schedule_slot(&s, 0, 1, rank, 0).sample, begins[rank]);
        assert_int_equal(mr_schedule_count(&few, 1, rank), rank < 2);
        assert_int_equal(mr_schedule_count(&few, 0, rank), 5);
    }
    assert_int_equal(mr_schedule_count(&s, 0, 4), 0);
}

static void cursors_round_trip(void **state)
{
    (void)state;
    for (uint64_t samples = 0; samples <= 100; samples++)
        for (uint64_t batch = 1; batch <= 24; batch++)
            for (int tail = MR_TAIL_DROP; tail <= MR_TAIL_PARTIAL; tail++) {
                mr_schedule s = make(MR_SHUFFLE_FULL, samples, batch, 1, (mr_tail)tail);
                for (uint64_t position = 0; position <= samples + 2; position++) {
                    uint64_t step = 999;
                    bool begins = position <= samples && (position % batch == 0 || position == samples);
                    mr_status status = mr_schedule_step_at(&s, position, &step, NULL);
                    assert_int_equal(status, begins ? MR_OK : MR_MISUSE);
                    assert_int_equal(step, !begins ? 999 : position == samples ? s.steps : position / batch);
                }
                for (uint64_t k = 0; k <= s.steps; k++) {
                    uint64_t step = 999, position = mr_schedule_position(&s, k);
                    assert_true(position <= samples);
                    assert_int_equal(mr_schedule_step_at(&s, position, &step, NULL), MR_OK);
                    assert_int_equal(step, k);
                }
                assert_int_equal(mr_schedule_position(&s, UINT64_MAX), mr_schedule_position(&s, s.steps));
            }
}

static void the_largest_split(void **state)
{
    (void)state;
    uint64_t samples = (uint64_t)1 << 40, step;
    mr_schedule s = make(MR_SHUFFLE_FULL, samples, 4096, 64, MR_TAIL_DROP);
    assert_int_equal(s.steps, samples / 4096);
    assert_true(mr_schedule_slot(&s, 0, s.steps - 1, 63, 63).sample < samples);
    assert_int_equal(mr_schedule_step_at(&s, samples - 4096, &step, NULL), MR_OK);
    assert_int_equal(step, s.steps - 1);
    s = make(MR_SHUFFLE_NONE, samples, samples, 1, MR_TAIL_PAD);
    assert_int_equal(s.steps, 1);
}

static void refuse(uint64_t batch, unsigned world, mr_tail tail, const char *words)
{
    mr_order o;
    mr_schedule s = {.steps = 77};
    mr_error err;
    assert_int_equal(mr_order_make(MR_SHUFFLE_FULL, 100, 0, 0, 0, &o, &err), MR_OK);
    assert_int_equal(mr_schedule_make(&o, batch, world, tail, &s, &err), MR_MISUSE);
    assert_int_equal(s.steps, 77);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void refuses_what_cannot_be_shared(void **state)
{
    (void)state;
    refuse(64, 3, MR_TAIL_DROP, "the nearest that can are 63 and 66");
    refuse(5, 8, MR_TAIL_PAD, "the nearest that can is 8");
    refuse(0, 4, MR_TAIL_DROP, "global batch of 0");
    refuse(((uint64_t)1 << 40) + 1, 1, MR_TAIL_DROP, "2^40");
    refuse(8, 2, (mr_tail)9, "tail 9");
    mr_schedule s = make(MR_SHUFFLE_FULL, 100, 16, 2, MR_TAIL_PAD);
    mr_schedule alone = make(MR_SHUFFLE_FULL, 9, 3, 0, MR_TAIL_DROP);
    uint64_t step;
    mr_error err;
    assert_int_equal(alone.world, 1);
    assert_int_equal(mr_schedule_step_at(&s, 20, &step, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "the nearest are 16 and 32"));
    assert_int_equal(mr_schedule_step_at(&s, 98, &step, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "the nearest are 96 and 100"));
    assert_int_equal(mr_schedule_step_at(&s, 101, &step, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "100 samples"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_world_batch_and_tail),
        cmocka_unit_test(shuffled_too),
        cmocka_unit_test(worlds_agree),
        cmocka_unit_test(padding_is_the_start_of_the_epoch),
        cmocka_unit_test(partial_batches_are_shared_out),
        cmocka_unit_test(cursors_round_trip),
        cmocka_unit_test(the_largest_split),
        cmocka_unit_test(refuses_what_cannot_be_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_draw.c - how often samples are seen in an epoch of a split with weights.
 * Invariant tested: a group has exactly its items in every epoch, and over any run of epochs each of its samples is
 * seen as often as the others, within one; which ones an epoch takes is fair, and depends on the seed. Covers
 * loader/order/draw.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "loader/order/draw.h"
#include "tests/support/support.h"

enum { GROUPS = 4, MOST = 60, EPOCHS = 25 };

typedef struct drawn {
    mr_draw_group groups[GROUPS];
    uint32_t numbers[GROUPS * MOST];
    mr_draw draw;
    uint64_t samples;
} drawn;

/* Groups of 1 to MOST samples and up to three times as many items; every other one lists its numbers, backwards. */
static void draw_groups(drawn *d, mr_random *random)
{
    *d = (drawn){.samples = 0};
    for (size_t g = 0; g < GROUPS; g++) {
        uint64_t n = mr_random_between(random, 1, MOST);
        mr_draw_group *group = &d->groups[g];
        *group = (mr_draw_group){.samples = n,
                                 .items = mr_random_between(random, 1, 3 * n),
                                 .first_item = d->draw.items,
                                 .first = d->samples,
                                 .numbers = g % 2 ? &d->numbers[d->samples] : NULL};
        for (uint64_t i = 0; i < n; i++)
            d->numbers[d->samples + i] = (uint32_t)(d->samples + n - 1 - i);
        d->samples += n;
        d->draw.items += group->items;
    }
    d->draw.groups = d->groups;
    d->draw.group_count = GROUPS;
}

static size_t group_of(const drawn *d, uint64_t sample)
{
    size_t g = 0;
    while (sample - d->groups[g].first >= d->groups[g].samples)
        g++;
    return g;
}

static void samples_of_a_group_are_seen_equally(void **state)
{
    (void)state;
    mr_random random = support_random();
    for (int round = 0; round < 50; round++) {
        drawn d;
        draw_groups(&d, &random);
        uint64_t seed = mr_random_u64(&random), times[GROUPS * MOST] = {0}, first = mr_random_below(&random, 1000);
        for (uint64_t epoch = first; epoch < first + EPOCHS; epoch++) {
            uint64_t items[GROUPS] = {0};
            for (uint64_t i = 0; i < d.draw.items; i++) {
                uint64_t sample = mr_draw_sample(&d.draw, seed, epoch, i);
                assert_true(sample < d.samples);
                assert_int_equal(sample, mr_draw_sample(&d.draw, seed, epoch, i));
                items[group_of(&d, sample)]++;
                times[sample]++;
            }
            for (size_t g = 0; g < GROUPS; g++)
                assert_int_equal(items[g], d.groups[g].items);
        }
        for (size_t g = 0; g < GROUPS; g++) {
            uint64_t least = UINT64_MAX, most = 0;
            for (uint64_t i = 0; i < d.groups[g].samples; i++) {
                uint64_t t = times[d.groups[g].first + i];
                least = t < least ? t : least;
                most = t > most ? t : most;
            }
            /* The run may begin and end within a round: two partial rounds. */
            assert_true(most - least <= 2);
            if (first == 0)
                assert_true(most - least <= 1);
        }
    }
}

/* Half of a group in each epoch: over seeds, each sample is in an epoch half of the time, and so is each pair. */
static void which_are_taken_is_fair(void **state)
{
    (void)state;
    enum { SAMPLES = 20, SEEDS = 20000 };
    mr_draw_group group = {.samples = SAMPLES, .items = SAMPLES / 2};
    const mr_draw draw = {.groups = &group, .group_count = 1, .items = SAMPLES / 2};
    unsigned taken[SAMPLES] = {0}, both = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        bool in[SAMPLES] = {false};
        for (uint64_t i = 0; i < SAMPLES / 2; i++)
            in[mr_draw_sample(&draw, seed, 7, i)] = true;
        for (size_t n = 0; n < SAMPLES; n++)
            taken[n] += in[n];
        both += in[3] && in[4];
    }
    double sigma = sqrt(SEEDS * 0.25), pair = 0.5 * 9 / 19;
    for (size_t n = 0; n < SAMPLES; n++)
        assert_true(fabs(taken[n] - SEEDS / 2.0) < 5 * sigma);
    assert_true(fabs(both - SEEDS * pair) < 5 * sqrt(SEEDS * pair * (1 - pair)));
}

static void without_a_shuffle_each_is_seen_once(void **state)
{
    (void)state;
    mr_draw draw = {.items = 99};
    const mr_split split = {.samples = 10, .draw = &draw};
    assert_int_equal(mr_draw_items(&split, MR_SHUFFLE_NONE), 10);
    assert_null(mr_draw_of(&split, MR_SHUFFLE_NONE));
    assert_int_equal(mr_draw_items(&split, MR_SHUFFLE_FULL), 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_of_a_group_are_seen_equally),
        cmocka_unit_test(which_are_taken_is_fair),
        cmocka_unit_test(without_a_shuffle_each_is_seen_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

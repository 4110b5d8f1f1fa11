/* test_scores.c - average precision and F1 of several labels per sample.
 * Invariant tested: the numbers are those of scikit-learn (tests/device/oracle_losses.py), ties included, and the order
 * of the samples does not matter.
 * Covers evaluate/scores.c. */
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "train/evaluate/scores.h"
#include "tests/support/support.h"

enum { SAMPLES = 12, CLASSES = 3 };

typedef struct drawn {
    float logits[SAMPLES * CLASSES];
    uint64_t samples[SAMPLES], at[SAMPLES + 1];
    int32_t classes[SAMPLES * CLASSES];
    mr_targets targets;
} drawn;

static unsigned next(uint32_t *state)
{
    *state = (*state * 1103515245u + 12345u) & 0x7FFFFFFFu;
    return *state >> 16;
}

/* As in the oracle's script. */
static void draw(drawn *d)
{
    uint32_t state = 1;
    uint64_t total = 0;
    for (int i = 0; i < SAMPLES; i++) {
        d->samples[i] = (uint64_t)i;
        d->at[i] = total;
        for (int c = 0; c < CLASSES; c++) {
            if (next(&state) % 3 == 0)
                d->classes[total++] = c;
            double p = (double)(next(&state) % 10) / 10 + 0.05;
            d->logits[i * CLASSES + c] = (float)(log(p) - log(1 - p));
        }
    }
    d->at[SAMPLES] = total;
    d->targets = (mr_targets){.samples = SAMPLES, .at = d->at, .classes = d->classes};
}

static mr_scores_input input_of(const drawn *d, double threshold)
{
    return (mr_scores_input){.logits = d->logits,
                             .samples = d->samples,
                             .count = SAMPLES,
                             .classes = CLASSES,
                             .targets = &d->targets,
                             .threshold = threshold};
}

static mr_scores measure(const mr_scores_input *in)
{
    mr_scores s;
    mr_error err;
    assert_int_equal(mr_scores_measure(in, &s, &err), MR_OK);
    return s;
}

static void test_as_scikit_learn(void **state)
{
    static const double precision[CLASSES] = {0.710064935065, 0.541666666667, 0.2};
    static const double f1[CLASSES] = {0.615384615385, 0.714285714286, 0};
    (void)state;
    drawn d;
    draw(&d);
    const mr_scores_input in = input_of(&d, 0.5);
    mr_scores s = measure(&in);
    for (int c = 0; c < CLASSES; c++) {
        assert_true(fabs(s.each[c].average_precision - precision[c]) < 1e-10);
        assert_true(fabs(s.each[c].f1 - f1[c]) < 1e-10);
    }
    assert_true(fabs(s.mean_precision - 0.483910533911) < 1e-10);
    assert_true(fabs(s.f1 - 0.5) < 1e-10);
    assert_true(s.threshold == 0.5);
    mr_scores_release(&s);
}

static void test_the_order_does_not_matter(void **state)
{
    (void)state;
    drawn d, other;
    draw(&d);
    other = d;
    other.targets = (mr_targets){.samples = SAMPLES, .at = other.at, .classes = other.classes};
    mr_random r = support_random();
    for (size_t i = SAMPLES; i-- > 1;) {
        size_t k = (size_t)mr_random_below(&r, i + 1);
        uint64_t keep = other.samples[i];
        other.samples[i] = other.samples[k];
        other.samples[k] = keep;
        for (int c = 0; c < CLASSES; c++) {
            float logit = other.logits[i * CLASSES + (size_t)c];
            other.logits[i * CLASSES + (size_t)c] = other.logits[k * CLASSES + (size_t)c];
            other.logits[k * CLASSES + (size_t)c] = logit;
        }
    }
    const mr_scores_input in = input_of(&d, -1), shuffled = input_of(&other, -1);
    mr_scores a = measure(&in), b = measure(&shuffled);
    assert_true(a.mean_precision == b.mean_precision && a.f1 == b.f1 && a.threshold == b.threshold);
    mr_scores_release(&a);
    mr_scores_release(&b);
}

/* No threshold of any probability does better than the one that is chosen. */
static void test_the_chosen_threshold_is_the_best(void **state)
{
    (void)state;
    drawn d;
    draw(&d);
    mr_scores_input in = input_of(&d, -1);
    mr_scores best = measure(&in);
    for (int i = 1; i < 200; i++) {
        in.threshold = i / 200.0;
        mr_scores s = measure(&in);
        assert_true(s.f1 <= best.f1);
        mr_scores_release(&s);
    }
    in.threshold = best.threshold;
    mr_scores again = measure(&in);
    assert_true(again.f1 == best.f1);
    mr_scores_release(&again);
    mr_scores_release(&best);
}

/* The model's classes are the dataset's in another order, and it lacks one. */
static void test_classes_of_the_model(void **state)
{
    static const int32_t map[CLASSES] = {1, 0, -1};
    (void)state;
    drawn d;
    draw(&d);
    mr_scores_input in = input_of(&d, 0.5);
    mr_scores plain = measure(&in);
    float swapped[SAMPLES * CLASSES];
    for (int i = 0; i < SAMPLES; i++) {
        swapped[i * CLASSES] = d.logits[i * CLASSES + 1];
        swapped[i * CLASSES + 1] = d.logits[i * CLASSES];
        swapped[i * CLASSES + 2] = d.logits[i * CLASSES + 2];
    }
    in.logits = swapped;
    in.map = map;
    mr_scores mapped = measure(&in);
    assert_true(mapped.each[0].average_precision == plain.each[1].average_precision);
    assert_true(mapped.each[1].average_precision == plain.each[0].average_precision);
    assert_int_equal(mapped.each[2].positives, 0);
    assert_true(mapped.each[2].average_precision == -1);
    assert_true(mapped.mean_precision == (plain.each[1].average_precision + plain.each[0].average_precision) / 2);
    mr_scores_release(&plain);
    mr_scores_release(&mapped);
}

/* A model that has diverged. */
static void test_scores_that_are_not_numbers(void **state)
{
    (void)state;
    drawn d;
    draw(&d);
    for (int i = 0; i < SAMPLES * CLASSES; i++)
        d.logits[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
    const mr_scores_input in = input_of(&d, -1);
    mr_scores s = measure(&in);
    assert_true(s.mean_precision >= 0 && s.mean_precision <= 1);
    assert_true(s.threshold == 0.5);
    mr_scores_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_scikit_learn),
        cmocka_unit_test(test_the_order_does_not_matter),
        cmocka_unit_test(test_the_chosen_threshold_is_the_best),
        cmocka_unit_test(test_classes_of_the_model),
        cmocka_unit_test(test_scores_that_are_not_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_recompute.c - `train --recompute` through the program.
 * Invariant tested: what is computed twice is the same to the bit, on any number of ranks and across a resume.
 * Covers run/trainer_shape.c. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/training/train.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_dataset(dir, 120);
    *state = dir;
    return 0;
}

static void expect_same_weights(const char *dir, const char *run, const char *other)
{
    char *a = support_path("%s/%s/step-00000004/weights.npz", dir, run);
    char *b = support_path("%s/%s/step-00000004/weights.npz", dir, other);
    support_assert_same_file(a, b);
    free(a);
    free(b);
}

static void a_run_that_recomputes_learns_the_same(void **state)
{
    const char *dir = *state;
    for (unsigned ranks = 0; ranks <= 2; ranks += 2) {
        char *kept = support_path("kept-%u", ranks), *again = support_path("again-%u", ranks);
        train_expect(0, dir, ranks, "--steps", "4", "--eval-every", "0", "--layers", "3", "--output", kept,
                     (char *)NULL);
        train_expect(0, dir, ranks, "--steps", "4", "--eval-every", "0", "--layers", "3", "--output", again,
                     "--recompute", (char *)NULL);
        expect_same_weights(dir, kept, again);
        free(kept);
        free(again);
    }
}

/* It is a matter of memory, so a run may resume with or without it. */
static void a_run_resumes_without_it(void **state)
{
    const char *dir = *state;
    train_expect(0, dir, 0, "--steps", "4", "--eval-every", "0", "--layers", "3", "--output", "whole", (char *)NULL);
    train_expect(0, dir, 0, "--steps", "4", "--eval-every", "0", "--layers", "3", "--output", "half", "--stop-after",
                 "2", "--recompute", (char *)NULL);
    support_result r =
        train_command(0, dir, 0, "train", "data", "--resume", "--output", "half", "--recompute=no", (char *)NULL);
    assert_null(strstr(r.out, "recompute:"));
    support_result_free(&r);
    expect_same_weights(dir, "whole", "half");
}

static void the_start_says_how_much_memory_it_saves(void **state)
{
    support_result r =
        train_run(*state, 0, "--steps", "1", "--eval-every", "0", "--layers", "3", "--recompute", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "\nrecompute: "));
    assert_non_null(strstr(r.out, " of activations per rank instead of "));
    support_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_recomputes_learns_the_same),
        cmocka_unit_test(a_run_resumes_without_it),
        cmocka_unit_test(the_start_says_how_much_memory_it_saves),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}

/* test_mixing.c - training with --augment, --mixup and --cutmix.
 * Invariant tested: a run is the same for one and two ranks and when it is resumed, and learns; what they cannot be
 * combined with is refused.  Covers train/run/trainer_open.c, train/feed/feed.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tests/support/training/train.h"

#define MIXED                                                                                                          \
    "--mixup", "0.2", "--cutmix", "1", "--augment", "brightness=0.4,hue=0.1,grey=0.2,erase=0.25", "--tail", "pad"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_dataset(dir, 60);
    train_expect(0, dir, 0, MIXED, "--batch", "8", "--steps", "9", "--output", "whole", "--log", "whole.jsonl",
                 (char *)NULL);
    *state = dir;
    return 0;
}

static int tear_down(void **state)
{
    support_tmpdir_remove(*state);
    return 0;
}

static void any_number_of_ranks(void **state)
{
    const char *dir = *state;
    IN(whole, "whole/step-00000009/weights.npz");
    IN(two, "two/step-00000009/weights.npz");
    IN(plain, "plain/step-00000009/weights.npz");
    train_expect(0, dir, 2, MIXED, "--batch", "4", "--steps", "9", "--output", "two", (char *)NULL);
    train_expect(0, dir, 0, "--tail", "pad", "--batch", "8", "--steps", "9", "--output", "plain", (char *)NULL);
    assert_true(train_weights_distance(whole, two) < 1e-5);
    assert_true(train_weights_distance(whole, plain) > 1e-4); /* it does something */
}

static void resumed(void **state)
{
    const char *dir = *state;
    IN(whole, "whole/step-00000009/weights.npz");
    IN(parted, "parted/step-00000009/weights.npz");
    train_expect(0, dir, 0, MIXED, "--batch", "8", "--steps", "9", "--stop-after", "4", "--output", "parted",
                 (char *)NULL);
    support_result r = train_command(0, dir, 0, "train", "data", "--output", "parted", "--resume", (char *)NULL);
    support_result_free(&r);
    assert_true(train_weights_distance(whole, parted) == 0);
}

static void several_labels(void **state)
{
    const char *dir = *state;
    train_expect(0, dir, 0, "--loss", "bce", "--mixup", "0.5", "--batch", "8", "--steps", "4", "--label-smoothing",
                 "0.1", "--output", "bce", (char *)NULL);
    support_result r =
        train_command(2, dir, 0, "train", "data", "--output", "bce", "--resume", "--mixup", "0.3", (char *)NULL);
    assert_non_null(strstr(r.err, "mixup"));
    support_result_free(&r);
}

static void what_cannot_be_is_refused(void **state)
{
    static const struct {
        const char *const option[6];
        const char *words;
    } ways[] = {
        {{"--mixup", "0.2", "--batch", "5"}, "the batch of each rank must be even"},
        {{"--mixup", "-1"}, "mixup"},
        {{"--augment", "mirror=3"}, "--augment mirror=3: expected brightness=X"},
        {{"--cutmix", "1", "--decode-on", "device"},
         "--decode-on device: --augment, --mixup and --cutmix change pixels on the host"},
    };
    const char *dir = *state;
    for (size_t i = 0; i < MR_COUNT(ways); i++) {
        const char *const *o = ways[i].option;
        support_result r = train_run(dir, 0, o[0], o[1], o[2], o[3], (char *)NULL);
        if (r.status != 2 || !strstr(r.err, ways[i].words))
            fail_msg("%d: %s", r.status, r.err);
        support_result_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_ranks),
        cmocka_unit_test(resumed),
        cmocka_unit_test(several_labels),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* test_device.c - runs on a device whose memory the host cannot touch.
 * Invariant tested: the same arithmetic gives the same bits on isolated memory: feeding, gradients and negatives of
 * other ranks, checkpoints both ways, evaluation, predictions.
 * Covers run/gradients.c.  The program is millrace_isolated. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/training/train.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_pairs(dir);
    TRAIN_PATH(labels, dir, "labels");
    train_make_dataset(labels, 40);
    *state = dir;
    return 0;
}

static int tear_down(void **state)
{
    support_tmpdir_remove(*state);
    return 0;
}

static void expect_same(const char *dir, const char *a, const char *b, const char *file)
{
    char *one = support_path("%s/%s/%s", dir, a, file), *other = support_path("%s/%s/%s", dir, b, file);
    support_assert_same_file(one, other);
    free(one);
    free(other);
}

static void labels_on_one_rank_and_on_two(void **state)
{
    static const struct {
        unsigned ranks;
        const char *exchange, *accumulate, *dropout;
    } cases[] = {{0, "flat", "2", "0.1"}, {2, "flat", "1", "0"}, {2, "buckets", "2", "0.1"}};
    TRAIN_PATH(dir, *state, "labels");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const char *const devices[] = {"cpu", "isolated"};
        char *outputs[2];
        for (size_t d = 0; d < 2; d++) {
            outputs[d] = support_path("%s-%zu", devices[d], i);
            train_expect(0, dir, cases[i].ranks, "--steps", "6", "--output", outputs[d], "--exchange",
                         cases[i].exchange, "--grad-accum", cases[i].accumulate, "--dropout", cases[i].dropout,
                         "--device", devices[d], (char *)NULL);
        }
        expect_same(dir, outputs[0], outputs[1], "step-00000006/weights.npz");
        expect_same(dir, outputs[0], outputs[1], "step-00000006/optimizer.npz");
        free(outputs[0]);
        free(outputs[1]);
    }
}

static void pairs_alone_and_with_negatives_of_all_ranks(void **state)
{
    const char *dir = *state;
    train_pairs_expect(0, dir, 0, "--steps", "4", "--output", "c1", "--dropout", "0.1", (char *)NULL);
    train_pairs_expect(0, dir, 0, "--steps", "4", "--output", "a1", "--dropout", "0.1", "--device", "isolated",
                       (char *)NULL);
    expect_same(dir, "c1", "a1", "step-00000004/model.safetensors");
    train_pairs_expect(0, dir, 2, "--steps", "4", "--output", "c2", "--gather-negatives", "--unique-images",
                       (char *)NULL);
    train_pairs_expect(0, dir, 2, "--steps", "4", "--output", "a2", "--gather-negatives", "--unique-images", "--device",
                       "isolated", (char *)NULL);
    expect_same(dir, "c2", "a2", "step-00000004/model.safetensors");
    expect_same(dir, "c2", "a2", "step-00000004/optimizer.npz");
}

/* Three updates on one device, three on the other. */
static void checkpoints_move_between_devices(void **state)
{
    static const char *const from[] = {"cpu", "isolated"}, *const to[] = {"isolated", "cpu"};
    TRAIN_PATH(dir, *state, "labels");
    train_expect(0, dir, 0, "--steps", "6", "--output", "whole", (char *)NULL);
    for (size_t i = 0; i < 2; i++) {
        train_expect(0, dir, 0, "--steps", "6", "--stop-after", "3", "--output", from[i], "--device", from[i],
                     (char *)NULL);
        support_result r =
            train_command(0, dir, 0, "train", "data", "--resume", "--output", from[i], "--device", to[i], (char *)NULL);
        support_result_free(&r);
        expect_same(dir, "whole", from[i], "step-00000006/weights.npz");
        expect_same(dir, "whole", from[i], "step-00000006/optimizer.npz");
    }
}

/* `millrace ARG ...` prints the same on both devices. */
static void expect_same_output(const char *dir, const char *command, const char *option, const char *run)
{
    support_result cpu = train_command(0, dir, 0, command, "data", run, option, "--device", "cpu", (char *)NULL);
    support_result other = train_command(0, dir, 0, command, "data", run, option, "--device", "isolated", (char *)NULL);
    char *seconds = strstr(cpu.out, "\"seconds\""), *others = strstr(other.out, "\"seconds\"");
    if (seconds && others)
        *seconds = *others = '\0';
    assert_string_equal(cpu.out, other.out);
    assert_true(cpu.out_len > 20);
    support_result_free(&cpu);
    support_result_free(&other);
}

static void evaluations_and_predictions_are_the_same(void **state)
{
    TRAIN_PATH(labels, *state, "labels");
    train_expect(0, labels, 0, "--steps", "2", "--output", "kept", (char *)NULL);
    expect_same_output(labels, "eval", "--json", "kept");
    expect_same_output(labels, "predict", "--max-bad=1", "kept");
    train_pairs_expect(0, *state, 0, "--steps", "2", "--output", "kept", (char *)NULL);
    expect_same_output(*state, "eval", "--json", "kept");
    expect_same_output(*state, "predict", "--max-bad=1", "kept");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_on_one_rank_and_on_two),
        cmocka_unit_test(pairs_alone_and_with_negatives_of_all_ranks),
        cmocka_unit_test(checkpoints_move_between_devices),
        cmocka_unit_test(evaluations_and_predictions_are_the_same),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

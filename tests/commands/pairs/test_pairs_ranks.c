/* test_pairs_ranks.c - pictures and text on several ranks: negatives of all ranks, resuming on another number
 * of ranks.
 * Invariant tested: with --gather-negatives the division among ranks changes nothing but rounding. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/training/train.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    TRAIN_PATH(captions, dir, "coco");
    train_make_pairs(dir);
    train_make_captions(captions);
    *state = dir;
    return 0;
}

/* ---- negatives of all ranks -------------------------------------------------------------------------------------- */

/* Weights are compared after SGD: AdamW makes a whole step of a gradient of next to nothing, which is rounding. */
static void negatives_of_all_ranks_are_a_larger_batch(void **state)
{
    const char *dir = *state;
    IN(alone, "g1.jsonl");
    IN(two, "g2.jsonl");
    IN(apart, "g0.jsonl");
    IN(whole, "g1/step-00000012/model.safetensors");
    IN(halves, "g2/step-00000012/model.safetensors");
    train_pairs_expect(0, dir, 0, "--steps", "12", "--batch", "16", "--optimizer", "sgd", "--log", "g1.jsonl",
                       "--output", "g1", "--unique-images", "--dropout", "0.1", (char *)NULL);
    train_pairs_expect(0, dir, 2, "--steps", "12", "--batch", "8", "--optimizer", "sgd", "--log", "g2.jsonl",
                       "--output", "g2", "--unique-images", "--dropout", "0.1", "--gather-negatives", (char *)NULL);
    assert_true(train_log_distance(alone, two, "loss") < 1e-5);
    assert_true(train_log_distance(alone, two, "grad_norm") < 1e-3);
    assert_true(train_tensors_distance(whole, halves, NULL, NULL) < 1e-5);
    train_pairs_expect(0, dir, 2, "--steps", "12", "--batch", "8", "--optimizer", "sgd", "--log", "g0.jsonl",
                       "--unique-images", "--dropout", "0.1", (char *)NULL);
    assert_true(train_log_distance(alone, apart, "loss") > 0.1); /* half as many negatives */
}

/* 50 captions by 24: in an epoch's last step rank 2 has none.  By 16: in the second micro-step of its last update. */
static void a_rank_may_have_no_sample(void **state)
{
    static const struct {
        unsigned ranks;
        const char *alone, *each, *accumulate;
    } cases[] = {
        {3, "24", "8", "1"},
        {4, "16", "4", "2"},
    };
    TRAIN_PATH(dir, *state, "coco");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *one = support_path("one-%zu.jsonl", i), *many = support_path("many-%zu.jsonl", i);
        IN(one_log, one);
        IN(many_log, many);
        train_pairs_expect(0, dir, 0, "--batch", cases[i].alone, "--grad-accum", cases[i].accumulate, "--epochs", "2",
                           "--log", one, "--expand-captions", "--optimizer", "sgd", (char *)NULL);
        train_pairs_expect(0, dir, cases[i].ranks, "--batch", cases[i].each, "--grad-accum", cases[i].accumulate,
                           "--epochs", "2", "--log", many, "--expand-captions", "--optimizer", "sgd",
                           "--gather-negatives", (char *)NULL);
        assert_true(train_log_distance(one_log, many_log, "loss") < 1e-5);
        free(one);
        free(many);
    }
}

static void another_world_goes_on(void **state)
{
    const char *dir = *state;
    IN(whole, "w1/step-00000012/model.safetensors");
    IN(parts, "w2/step-00000012/model.safetensors");
    IN(apart, "w3/step-00000012/model.safetensors");
    IN(joined, "w4/step-00000012/model.safetensors");
    train_pairs_expect(0, dir, 0, "--steps", "12", "--batch", "16", "--optimizer", "sgd", "--output", "w1",
                       "--gather-negatives", (char *)NULL);
    train_pairs_expect(0, dir, 2, "--steps", "12", "--batch", "8", "--optimizer", "sgd", "--output", "w2",
                       "--gather-negatives", "--stop-after", "5", (char *)NULL);
    support_result r = train_command(0, dir, 0, "train", "data", "--resume", "--output", "w2", "--batch", "16",
                                     "--threads", "1", "--eval-every", "0", (char *)NULL);
    support_result_free(&r);
    assert_true(train_tensors_distance(whole, parts, NULL, NULL) < 1e-5);
    /* Without them a rank's batch has to stay as it is: two ranks by 8 are one that takes 8 twice. */
    train_pairs_expect(0, dir, 2, "--steps", "12", "--optimizer", "sgd", "--output", "w3", (char *)NULL);
    train_pairs_expect(0, dir, 2, "--steps", "12", "--optimizer", "sgd", "--output", "w4", "--stop-after", "5",
                       (char *)NULL);
    r = train_command(2, dir, 0, "train", "data", "--resume", "--output", "w4", "--batch", "16", (char *)NULL);
    assert_non_null(strstr(r.err, "--batch is 16, and the negatives of this run are those of 8 samples"));
    support_result_free(&r);
    r = train_command(0, dir, 0, "train", "data", "--resume", "--output", "w4", "--batch", "8", "--grad-accum", "2",
                      "--threads", "1", "--eval-every", "0", (char *)NULL);
    support_result_free(&r);
    assert_true(train_tensors_distance(apart, joined, NULL, NULL) < 1e-5);
}

static void the_same_world_gives_the_same_bits(void **state)
{
    const char *dir = *state;
    IN(a, "bits-a/step-00000009/model.safetensors");
    IN(b, "bits-b/step-00000009/model.safetensors");
    train_pairs_expect(0, dir, 3, "--steps", "9", "--batch", "4", "--output", "bits-a", "--gather-negatives",
                       (char *)NULL);
    train_pairs_expect(0, dir, 3, "--steps", "9", "--batch", "4", "--output", "bits-b", "--gather-negatives",
                       "--exchange", "buckets", (char *)NULL);
    support_assert_same_file(a, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(negatives_of_all_ranks_are_a_larger_batch),
        cmocka_unit_test(a_rank_may_have_no_sample),
        cmocka_unit_test(another_world_goes_on),
        cmocka_unit_test(the_same_world_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}

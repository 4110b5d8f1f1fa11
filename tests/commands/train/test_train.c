/* test_train.c - whole training runs through the program: results, ranks, resuming, messages.
 * Invariant tested: a run is a function of its options; ranks, micro-steps and interruptions change nothing in it.
 * Covers run/trainer.c, run/trainer_update.c, run/trainer_open.c, run/trainer_prepare.c, run/trainer_shape.c,
 * evaluate/evaluation.c, train/plan.c. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/training/train.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_dataset(dir, 120); /* train 84, val 36 */
    *state = dir;
    return 0;
}

/* ---- one run ----------------------------------------------------------------------------------------------------- */

static void a_run_leaves_what_the_help_says(void **state)
{
    const char *dir = *state;
    IN(log, "a.jsonl");
    IN(results, "a/train_results.json");
    IN(weights, "a/step-00000022/weights.npz");
    IN(list, "a");
    support_result r = train_run(dir, 0, "--epochs", "2", "--batch", "8", "--eval-every", "11", "--log", "a.jsonl",
                                 "--output", "a", "--logging-steps", "5", (char *)NULL);
    support_assert_status(&r, 0);
    /* 84 samples by 8: 11 updates per epoch, the last one of 4 samples. */
    assert_non_null(strstr(r.out, "84 samples, 8 per update, 11 updates per epoch, 22 in total"));
    assert_non_null(strstr(r.out, "Training (20 / 22 Steps) (loss="));
    assert_non_null(strstr(r.out, "Validation Results / Global Steps: 22"));
    assert_non_null(strstr(r.out, "tensorboard --logdir a/tensorboard"));
    support_result_free(&r);
    json_t *updates = train_log(log, "loss"), *evaluations = train_log(log, "eval_loss");
    assert_int_equal(json_array_size(updates), 22);
    assert_int_equal(json_array_size(evaluations), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(evaluations, 1), "samples")), 36);
    /* The head starts at zero and the first update has a rate of 0: ln 10 twice, to rounding. */
    assert_float_equal(json_number_value(json_object_get(json_array_get(updates, 0), "loss")), 2.302585, 1e-5);
    assert_float_equal(json_number_value(json_object_get(json_array_get(updates, 0), "lr")), 0, 0);
    json_decref(updates);
    json_decref(evaluations);
    assert_true(support_exists(results));
    assert_true(support_exists(weights));
    char *files = support_list(list);
    assert_non_null(strstr(files, "step-00000011/state.json"));
    assert_non_null(strstr(files, "tensorboard/events.out.tfevents."));
    assert_null(strstr(files, ".tmp"));
    free(files);
}

static void accumulation_is_a_larger_batch(void **state)
{
    const char *dir = *state;
    IN(one, "acc1.jsonl");
    IN(two, "acc2.jsonl");
    IN(four, "acc4.jsonl");
    train_expect(0, dir, 0, "--steps", "25", "--batch", "12", "--log", "acc1.jsonl", "--dropout", "0.2", (char *)NULL);
    train_expect(0, dir, 0, "--steps", "25", "--batch", "6", "--grad-accum", "2", "--log", "acc2.jsonl", "--dropout",
                 "0.2", (char *)NULL);
    train_expect(0, dir, 0, "--steps", "25", "--batch", "3", "--grad-accum", "4", "--log", "acc4.jsonl", "--dropout",
                 "0.2", (char *)NULL);
    assert_true(train_log_distance(one, two, "loss") < 1e-5);
    assert_true(train_log_distance(one, four, "loss") < 1e-5);
    assert_true(train_log_distance(one, four, "grad_norm") < 1e-4);
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

static void ranks_share_the_work_and_change_nothing(void **state)
{
    static const struct {
        unsigned ranks;
        const char *batch, *log;
    } worlds[] = {
        {2, "8", "w2.jsonl"},
        {4, "4", "w4.jsonl"},
        {8, "2", "w8.jsonl"},
    };
    const char *dir = *state;
    IN(alone, "w1.jsonl");
    train_expect(0, dir, 0, "--steps", "20", "--batch", "16", "--eval-every", "10", "--log", "w1.jsonl", (char *)NULL);
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        IN(log, worlds[i].log);
        train_expect(0, dir, worlds[i].ranks, "--steps", "20", "--batch", worlds[i].batch, "--eval-every", "10",
                     "--log", worlds[i].log, "--exchange", i % 2 ? "flat" : "buckets", (char *)NULL);
        assert_true(train_log_distance(alone, log, "loss") < 1e-5);
        assert_true(train_log_distance(alone, log, "eval_accuracy") == 0);
        assert_true(train_log_distance(alone, log, "eval_loss") < 1e-5);
    }
}

static void the_same_world_gives_the_same_bits(void **state)
{
    const char *dir = *state;
    IN(a, "bits-a/step-00000012/weights.npz");
    IN(b, "bits-b/step-00000012/weights.npz");
    train_expect(0, dir, 3, "--steps", "12", "--batch", "4", "--output", "bits-a", (char *)NULL);
    train_expect(0, dir, 3, "--steps", "12", "--batch", "4", "--output", "bits-b", "--exchange", "buckets",
                 (char *)NULL);
    support_assert_same_file(a, b);
}

/* ---- resume ------------------------------------------------------------------------------------------------------ */

static void ten_and_ten_are_twenty(void **state)
{
    const char *dir = *state;
    IN(whole, "r20/step-00000020/weights.npz");
    IN(parts, "r10/step-00000020/weights.npz");
    IN(whole_state, "r20/step-00000020/optimizer.npz");
    IN(parts_state, "r10/step-00000020/optimizer.npz");
    IN(whole_log, "r20.jsonl");
    IN(parts_log, "r10.jsonl");
    train_expect(0, dir, 0, "--steps", "20", "--batch", "8", "--eval-every", "0", "--output", "r20", "--log",
                 "r20.jsonl", (char *)NULL);
    train_expect(0, dir, 0, "--steps", "20", "--batch", "8", "--eval-every", "0", "--output", "r10", "--log",
                 "r10.jsonl", "--stop-after", "10", (char *)NULL);
    train_expect(2, dir, 0, "--steps", "20", "--batch", "8", "--output", "r10", (char *)NULL);
    train_expect(0, dir, 0, "--batch", "8", "--eval-every", "0", "--output", "r10", "--log", "r10.jsonl", "--resume",
                 (char *)NULL);
    support_assert_same_file(whole, parts);
    support_assert_same_file(whole_state, parts_state);
    assert_true(train_log_distance(whole_log, parts_log, "loss") == 0);
}

static void another_world_goes_on(void **state)
{
    const char *dir = *state;
    IN(whole, "m20/step-00000020/weights.npz");
    IN(parts, "m10/step-00000020/weights.npz");
    train_expect(0, dir, 0, "--steps", "20", "--batch", "8", "--eval-every", "0", "--output", "m20", (char *)NULL);
    train_expect(0, dir, 2, "--steps", "20", "--batch", "4", "--eval-every", "0", "--output", "m10", "--stop-after",
                 "10", (char *)NULL);
    train_expect(0, dir, 0, "--batch", "2", "--grad-accum", "4", "--eval-every", "0", "--output", "m10", "--resume",
                 (char *)NULL);
    assert_true(train_weights_distance(whole, parts) < 1e-6);
}

static void resume_refuses_another_run(void **state)
{
    const char *dir = *state;
    train_expect(0, dir, 0, "--steps", "4", "--batch", "8", "--output", "other", "--stop-after", "2", (char *)NULL);
    support_result r = train_run(dir, 0, "--batch", "8", "--output", "other", "--resume", "--seed", "7", (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "--seed: this run was started with '42'"));
    support_result_free(&r);
    r = train_run(dir, 0, "--batch", "3", "--output", "other", "--resume", (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "the run was started with 8 samples per update"));
    support_result_free(&r);
}

/* ---- what cannot be done ----------------------------------------------------------------------------------------- */

static void wrong_use_is_reported_at_once(void **state)
{
    static const struct {
        const char *option, *value, *words;
    } cases[] = {
        {"--heads", "3", "heads"},
        {"--patch", "48", "patch"},
        {"--optimizer", "adam", "use sgd or adamw; did you mean adamw?"},
        {"--model", "ViT-B_61", "ViT-B_16"},
        {"--model", "foo", "'vit' ('ViT-B_16' ...), 'bridgetower' ('bridgetower-large' ...)"},
        {"--patch", "0", "--model vit: is not a preset; give --patch too, or choose one of the presets: ViT-B_16"},
        {"--lr", "fast", "--lr fast: expected a number"},
        {"--batch", "0", "--batch 0: expected 1"},
        {"--eval-split", "tset", "has no such split"},
        {"--warmup", "99999", "--warmup 99999"},
        {"--pretrained", "missing.npz", "missing.npz"},
        {"--stepz", "3", "did you mean --steps?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        support_result r = train_run(*state, 0, cases[i].option, cases[i].value, (char *)NULL);
        if ((r.status != 2 && r.status != 3) || !strstr(r.err, cases[i].words))
            fail_msg("%s %s: status %d, said %s", cases[i].option, cases[i].value, r.status, r.err);
        assert_null(strstr(r.out, "Training ("));
        support_result_free(&r);
    }
}

static void a_bad_sample_ends_all_ranks(void **state)
{
    const char *dir = *state;
    IN(data, "data");
    IN(copy, "broken");
    const char *cp[] = {"cp", "-r", data, copy, NULL};
    support_result r = support_run(cp, NULL);
    support_assert_status(&r, 0);
    support_result_free(&r);
    /* Bytes in the middle of some images: their hashes no longer fit. */
    IN(shard, "broken/train-00000.mdb");
    size_t len;
    uint8_t *bytes = support_read(shard, &len);
    for (size_t at = len / 2; at < len / 2 + 16384; at += 512)
        bytes[at] ^= 1;
    support_write(shard, bytes, len);
    free(bytes);
    const char *argv[] = {support_millrace_path(),
                          "train",
                          "broken",
                          "--model",
                          "vit",
                          "--image-size",
                          "24",
                          "--patch",
                          "8",
                          "--hidden",
                          "16",
                          "--layers",
                          "1",
                          "--heads",
                          "2",
                          "--mlp",
                          "32",
                          "--batch",
                          "4",
                          "--threads",
                          "1",
                          "--epochs",
                          "2",
                          NULL,
                          NULL,
                          NULL};
    support_limits limits = {.directory = dir};
    r = support_mpirun_in(3, argv, &limits);
    assert_false(r.timed_out);
    support_assert_status(&r, 1);
    char *first = strstr(r.err, "train-00000");
    if (!first)
        first = strstr(r.out, "train-00000");
    assert_non_null(first);
    assert_null(strstr(first + 1, "millrace:")); /* said once */
    support_result_free(&r);
    argv[23] = "--max-bad";
    argv[24] = "40";
    r = support_run(argv, &limits);
    support_assert_status(&r, 0);
    support_result_free(&r);
}

static void the_plan_takes_no_step(void **state)
{
    const char *argv[] = {support_millrace_path(), "train", "data", "--model", "ViT-B_16", "--plan", NULL};
    support_limits limits = {.directory = *state};
    support_result r = support_run(argv, &limits);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "85,806,346")); /* the backbone's 85,798,656 and a head of ten */
    assert_non_null(strstr(r.out, "35.13 GFLOP forward, 105.1 GFLOP in training"));
    support_result_free(&r);
}

/* ---- eval and predict -------------------------------------------------------------------------------------------- */

static json_t *prediction_of(json_t *all, const char *source)
{
    for (size_t i = 0; i < json_array_size(all); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(all, i), "source")), source) == 0)
            return json_array_get(all, i);
    fail_msg("no prediction of %s", source);
    return NULL;
}

static json_t *lines_of(const char *text)
{
    json_t *all = json_array();
    char *copy = support_path("%s", text), *rest = copy;
    for (char *line; (line = strsep(&rest, "\n")) && *line;)
        json_array_append_new(all, json_loads(line, 0, NULL));
    free(copy);
    return all;
}

/* Every prediction of `some` is one of `all`, by source.  Batches of other sizes may round another way. */
static size_t expect_among(const char *some_text, const char *all_text)
{
    json_t *some = lines_of(some_text), *all = lines_of(all_text);
    size_t count = json_array_size(some);
    for (size_t i = 0; i < count; i++) {
        json_t *a = json_array_get(some, i), *b = prediction_of(all, json_string_value(json_object_get(a, "source")));
        json_t *x = json_array_get(json_object_get(a, "top"), 0), *y = json_array_get(json_object_get(b, "top"), 0);
        assert_true(json_equal(json_object_get(a, "label"), json_object_get(b, "label")));
        assert_true(json_equal(json_object_get(x, "class"), json_object_get(y, "class")));
        assert_float_equal(json_number_value(json_object_get(x, "probability")),
                           json_number_value(json_object_get(y, "probability")), 1e-4);
    }
    json_decref(some);
    json_decref(all);
    return count;
}

static void eval_and_predict_agree_with_training(void **state)
{
    const char *dir = *state;
    IN(log, "e.jsonl");
    IN(run, "e");
    IN(data, "data");
    train_expect(0, dir, 0, "--steps", "12", "--batch", "8", "--output", "e", "--log", "e.jsonl", (char *)NULL);
    json_t *evaluations = train_log(log, "eval_loss");
    double accuracy = json_number_value(json_object_get(json_array_get(evaluations, 0), "eval_accuracy"));
    json_decref(evaluations);
    support_result r = support_millrace("eval", data, run, "--json", "--threads", "1", (char *)NULL);
    support_assert_status(&r, 0);
    json_t *doc = json_loads(r.out, 0, NULL);
    assert_non_null(doc);
    assert_true(json_number_value(json_object_get(doc, "accuracy")) == accuracy);
    assert_int_equal(json_integer_value(json_object_get(doc, "samples")), 36);
    json_decref(doc);
    support_result_free(&r);
    r = support_millrace("predict", data, run, "--format", "json", "--top", "3", (char *)NULL);
    support_assert_status(&r, 0);
    unsigned right = 0, lines = 0;
    for (char *rest = r.out, *line; (line = strsep(&rest, "\n")) && *line; lines++) {
        json_t *one = json_loads(line, 0, NULL);
        assert_non_null(one);
        assert_int_equal(json_integer_value(json_object_get(one, "sample")), lines);
        json_t *top = json_object_get(one, "top");
        assert_int_equal(json_array_size(top), 3);
        right += strcmp(json_string_value(json_object_get(json_array_get(top, 0), "class")),
                        json_string_value(json_object_get(one, "label"))) == 0;
        json_decref(one);
    }
    assert_int_equal(lines, 36);
    assert_true((double)right / 36 == accuracy);
    support_result_free(&r);
    const char *argv[] = {support_millrace_path(), "predict", data, run, "--batch", "4", "--format", "json", NULL};
    support_result many = support_mpirun(3, argv);
    r = support_run(argv, NULL);
    support_assert_status(&r, 0);
    assert_int_equal(expect_among(r.out, many.out), 36);
    support_result_free(&r);
    support_result_free(&many);
    r = support_millrace("predict", data, run, (char *)NULL);
    assert_memory_equal(r.out, "sample,source,label,class_1,probability_1,", 42);
    support_result_free(&r);
}

/* The first class is missing here, so that all others have other numbers; then a class comes that the model never
 * saw. */
static void classes_meet_by_name(void **state)
{
    const char *dir = *state;
    IN(run, "names");
    IN(source, "source");
    IN(fewer, "fewer");
    IN(data, "fewer-data");
    IN(more, "fewer/imagenette2-160/val/n99999999/a.JPEG");
    IN(other, "other-data");
    train_expect(0, dir, 0, "--steps", "30", "--batch", "8", "--output", "names", (char *)NULL);
    const char *copy[] = {"sh",
                          "-c",
                          "cp -r \"$0\" \"$1\" && rm -r \"$1\"/*/train/n01440764 \"$1\"/*/val/n01440764 "
                          "\"$1\"/*/noisy_imagenette.csv",
                          source,
                          fewer,
                          NULL};
    support_result r = support_run(copy, NULL);
    support_assert_status(&r, 0);
    support_result_free(&r);
    support_expect(0, "ingest", fewer, data, "--quiet", (char *)NULL);
    IN(whole, "data");
    support_result all = support_millrace("predict", whole, run, "--format", "json", "--top", "1", (char *)NULL);
    support_result some = support_millrace("predict", data, run, "--format", "json", "--top", "1", (char *)NULL);
    support_assert_status(&all, 0);
    support_assert_status(&some, 0);
    assert_in_range(expect_among(some.out, all.out), 30, 35);
    support_result_free(&all);
    support_result_free(&some);
    char *picture = support_path("%s/picture.jpg", dir);
    support_expect(0, "show", data, "val", "0", "--image", picture, (char *)NULL);
    size_t len;
    uint8_t *bytes = support_read(picture, &len);
    support_write(more, bytes, len);
    support_expect(0, "ingest", fewer, other, "--quiet", (char *)NULL);
    r = support_millrace("eval", other, run, (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "has a class \"n99999999\""));
    support_result_free(&r);
    support_expect(0, "predict", other, run, "--no-labels", (char *)NULL);
    free(bytes);
    free(picture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_leaves_what_the_help_says),
        cmocka_unit_test(accumulation_is_a_larger_batch),
        cmocka_unit_test(ranks_share_the_work_and_change_nothing),
        cmocka_unit_test(the_same_world_gives_the_same_bits),
        cmocka_unit_test(ten_and_ten_are_twenty),
        cmocka_unit_test(another_world_goes_on),
        cmocka_unit_test(resume_refuses_another_run),
        cmocka_unit_test(wrong_use_is_reported_at_once),
        cmocka_unit_test(a_bad_sample_ends_all_ranks),
        cmocka_unit_test(the_plan_takes_no_step),
        cmocka_unit_test(eval_and_predict_agree_with_training),
        cmocka_unit_test(classes_meet_by_name),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}

/* test_pairs.c - whole training runs on pictures and text, through the program: results, resuming, options.
 * Invariant tested: such a run is a function of its options, and each option has the documented effect and no other.
 * Covers run/pairs.c. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/training/events.h"
#include "tests/support/training/train.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_pairs(dir);
    *state = dir;
    return 0;
}

static double number(const json_t *line, const char *member)
{
    const json_t *value = json_object_get(line, member);
    if (!json_is_number(value))
        fail_msg("there is no number \"%s\"", member);
    return json_number_value(value);
}

static double loss_of(const char *log, size_t update)
{
    json_t *updates = train_log(log, "loss");
    assert_true(update >= 1 && update <= json_array_size(updates));
    double loss = number(json_array_get(updates, update - 1), "loss");
    json_decref(updates);
    return loss;
}

/* ---- one run ----------------------------------------------------------------------------------------------------- */

static const char *const recalls[] = {
    "eval_text_to_image_recall_at_1", "eval_text_to_image_recall_at_5", "eval_text_to_image_recall_at_10",
    "eval_image_to_text_recall_at_1", "eval_image_to_text_recall_at_5", "eval_image_to_text_recall_at_10",
};

static void a_run_leaves_what_the_help_says(void **state)
{
    const char *dir = *state;
    IN(log, "a.jsonl");
    IN(results_path, "a/train_results.json");
    IN(list, "a");
    IN(board, "a/tensorboard");
    support_result r = train_pairs_run(dir, 0, "--epochs", "2", "--eval-every", "12", "--log", "a.jsonl", "--output",
                                       "a", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "Words from image_description, up to 16 tokens of each"));
    assert_non_null(strstr(r.out, "96 samples, 8 per update, 12 updates per epoch, 24 in total"));
    assert_non_null(strstr(r.out, "Training (20 / 24 Steps) (loss="));
    assert_non_null(strstr(r.out, "Validation Results / Global Steps: 24 / Valid Loss: "));
    assert_non_null(strstr(r.out, "Text>Image@1 @5 @10: "));
    support_result_free(&r);
    json_t *updates = train_log(log, "loss"), *evaluations = train_log(log, "eval_loss");
    assert_int_equal(json_array_size(updates), 24);
    assert_int_equal(json_array_size(evaluations), 2);
    json_t *last = json_array_get(evaluations, 1), *results = json_load_file(results_path, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(last, "samples")), 6);
    assert_true(number(results, "train_samples") == 192);
    size_t count;
    support_event *events = support_events_in(board, &count);
    for (size_t i = 0; i < sizeof recalls / sizeof *recalls; i++) {
        double recall = number(last, recalls[i]);
        assert_true(recall >= 0 && recall <= 1);
        assert_true(number(results, recalls[i]) == recall);
    }
    assert_float_equal(support_events_value(events, count, "test/loss", 24), number(last, "eval_loss"), 1e-6);
    assert_float_equal(support_events_value(events, count, "test/recall_at_1", 24),
                       (number(last, recalls[0]) + number(last, recalls[3])) / 2, 1e-6);
    assert_float_equal(support_events_value(events, count, "train/loss", 20), loss_of(log, 20), 1e-5);
    char *files = support_list(list);
    for (size_t i = 0; i < 5; i++) {
        static const char *const kept[] = {"config.json", "model.safetensors", "optimizer.npz", "state.json",
                                           "tokenizer.json"};
        char *name = support_path("step-00000024/%s\n", kept[i]);
        if (!strstr(files, name))
            fail_msg("there is no %s among\n%s", name, files);
        free(name);
    }
    assert_null(strstr(files, "weights.npz"));
    assert_null(strstr(files, ".tmp"));
    free(files);
    free(events);
    json_decref(updates);
    json_decref(evaluations);
    json_decref(results);
}

static void the_plan_takes_no_step(void **state)
{
    support_result r =
        train_command(0, *state, 0, "train", "data", "--model", "bridgetower-large", "--plan", (char *)NULL);
    assert_non_null(strstr(r.out, "865,563,137"));
    assert_non_null(strstr(r.out, "128 tokens of 50265, 6 cross layers, embeddings of 512"));
    support_result_free(&r);
}

/* ---- the same bits ----------------------------------------------------------------------------------------------- */

static void expect_same_checkpoint(const char *dir, const char *a, const char *b)
{
    static const char *const files[] = {"model.safetensors", "optimizer.npz", "tokenizer.json", "config.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *one = support_path("%s/%s/%s", dir, a, files[i]), *two = support_path("%s/%s/%s", dir, b, files[i]);
        support_assert_same_file(one, two);
        free(one);
        free(two);
    }
}

static void the_same_options_give_the_same_bits(void **state)
{
    const char *dir = *state;
    IN(first, "bits-a/step-00000020/model.safetensors");
    IN(other, "bits-c/step-00000020/model.safetensors");
    train_pairs_expect(0, dir, 0, "--steps", "20", "--dropout", "0.1", "--output", "bits-a", (char *)NULL);
    train_pairs_expect(0, dir, 0, "--steps", "20", "--dropout", "0.1", "--output", "bits-b", "--threads", "2",
                       (char *)NULL);
    train_pairs_expect(0, dir, 0, "--steps", "20", "--dropout", "0.1", "--output", "bits-c", "--seed", "7",
                       (char *)NULL);
    expect_same_checkpoint(dir, "bits-a/step-00000020", "bits-b/step-00000020");
    assert_true(train_tensors_distance(first, other, NULL, NULL) > 1e-3);
}

/* The tokenizer's file is gone when the run goes on: the checkpoint has it. */
static void ten_and_ten_are_twenty(void **state)
{
    const char *dir = *state;
    IN(tokenizer, "tok.json");
    IN(moved, "gone.json");
    IN(whole, "r20.jsonl");
    IN(parts, "r10.jsonl");
    train_pairs_expect(0, dir, 0, "--steps", "20", "--batch", "4", "--grad-accum", "3", "--dropout", "0.1", "--output",
                       "r20", "--log", "r20.jsonl", (char *)NULL);
    train_pairs_expect(0, dir, 0, "--steps", "20", "--batch", "4", "--grad-accum", "3", "--dropout", "0.1", "--output",
                       "r10", "--log", "r10.jsonl", "--stop-after", "10", (char *)NULL);
    assert_int_equal(rename(tokenizer, moved), 0);
    support_result r =
        train_command(0, dir, 0, "train", "data", "--resume", "--output", "r10", "--log", "r10.jsonl", "--batch", "4",
                      "--grad-accum", "3", "--eval-every", "0", "--threads", "1", (char *)NULL);
    assert_non_null(strstr(r.out, "Resuming from r10/step-00000010, 10 updates done"));
    support_result_free(&r);
    assert_int_equal(rename(moved, tokenizer), 0);
    expect_same_checkpoint(dir, "r20/step-00000020", "r10/step-00000020");
    assert_true(train_log_distance(whole, parts, "loss") == 0);
    r = train_command(2, dir, 0, "train", "data", "--resume", "--output", "r10", "--batch", "12", "--threads", "1",
                      (char *)NULL);
    assert_non_null(strstr(r.err, "--batch is 12, and the negatives of this run are those of 4 samples"));
    support_result_free(&r);
}

static void what_predict_reads_stays(void **state)
{
    const char *dir = *state;
    static const char weights[] = "r10/step-00000020/model.safetensors";
    IN(path, "r10/step-00000020/model.safetensors");
    uint64_t size = support_size(path);
    support_result r =
        train_command(2, dir, 0, "predict", "data", "r10", "--embeddings", weights, "--threads", "1", (char *)NULL);
    assert_non_null(strstr(r.err, "r10/step-00000020/model.safetensors: is the input (r10/step-00000020)"));
    assert_int_equal(support_size(path), size);
    support_result_free(&r);
}

/* The signal comes when the first checkpoint is there, wherever the run is then; to one that was faster it comes
 * again. */
static void a_stopped_run_continues(void **state)
{
    const char *dir = *state;
    static const char script[] = "for try in 1 2 3 4 5 6 7 8 9; do rm -rf t2; \"$0\" \"$@\" --output t2 & p=$!; "
                                 "until [ -e t2/step-00000003 ]; do kill -0 $p || break; sleep 0.01; done; "
                                 "kill -TERM $p; wait $p; r=$?; [ $r = 0 ] || break; done; exit $r";
    static const char *const run[] = {
        "train",   "data", "--model",        "bridgetower", "--tokenizer",  "tok.json", "--image-size", "32",
        "--patch", "16",   "--hidden",       "64",          "--layers",     "1",        "--heads",      "1",
        "--mlp",   "64",   "--cross-layers", "1",           "--embed",      "16",       "--max-text",   "16",
        "--batch", "8",    "--steps",        "60",          "--eval-every", "3",        "--threads",    "1",
        "--quiet",
    };
    enum { COUNT = sizeof run / sizeof *run };
    const char *argv[COUNT + 6] = {"sh", "-c", script, support_millrace_path()};
    memcpy(argv + 4, run, sizeof run);
    support_limits limits = {.directory = dir};
    support_result r = support_run(argv, &limits);
    support_assert_status(&r, 3);
    support_result_free(&r);
    r = train_command(0, dir, 0, "train", "data", "--resume", "--output", "t2", "--batch", "8", "--eval-every", "3",
                      "--threads", "1", (char *)NULL);
    support_result_free(&r);
    argv[2] = "\"$0\" \"$@\" --output t1";
    r = support_run(argv, &limits);
    support_assert_status(&r, 0);
    support_result_free(&r);
    expect_same_checkpoint(dir, "t1/step-00000060", "t2/step-00000060");
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* The contest's rows repeat a picture: with the whole split in a batch that must show in the first loss. */
static void equal_pictures_are_no_negatives(void **state)
{
    const char *dir = *state;
    IN(with, "u1.jsonl");
    IN(without, "u0.jsonl");
    IN(plain, "u3.jsonl");
    IN(unique, "u4.jsonl");
    train_pairs_expect(0, dir, 0, "--steps", "3", "--batch", "48", "--log", "u0.jsonl", (char *)NULL);
    train_pairs_expect(0, dir, 0, "--steps", "3", "--batch", "48", "--log", "u1.jsonl", "--unique-images",
                       (char *)NULL);
    for (size_t update = 1; update <= 3; update++)
        assert_true(loss_of(with, update) < loss_of(without, update) - 1e-3);
    /* In val no picture comes twice: then nothing changes. */
    train_pairs_expect(0, dir, 0, "--steps", "3", "--split", "val", "--eval-split", "test", "--log", "u3.jsonl",
                       (char *)NULL);
    train_pairs_expect(0, dir, 0, "--steps", "3", "--split", "val", "--eval-split", "test", "--log", "u4.jsonl",
                       "--unique-images", (char *)NULL);
    assert_true(train_log_distance(plain, unique, "loss") == 0);
}

/* Words that the towers' names begin with; what stands in no tower always learns. */
static void what_is_frozen_stays(void **state)
{
    static const struct {
        const char *word;
        bool text, images;
    } cases[] = {
        {"none", true, true},
        {"images", true, false},
        {"text", false, true},
        {"both", false, false},
    };
    static const struct {
        const char *prefix;
        int tower;
    } parts[] = {
        /* 0: none, 1: text, 2: images */
        {"bridgetower.text_model.", 1},
        {"bridgetower.vision_model.", 2},
        {"bridgetower.cross_modal_", 0},
        {"itc_", 0},
        {"logit_scale", 0},
    };
    const char *dir = *state;
    IN(start, "frozen-start/step-00000001");
    train_pairs_expect(0, dir, 0, "--steps", "1", "--output", "frozen-start", (char *)NULL);
    for (size_t i = 0; i < 4; i++) {
        char *output = support_path("frozen-%s", cases[i].word);
        char *end = support_path("%s/%s/step-00000004", dir, output);
        train_pairs_expect(0, dir, 0, "--steps", "4", "--output", output, "--freeze", cases[i].word, "--pretrained",
                           start, "--weight-decay", "0.1", "--lr", "0.01", (char *)NULL);
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
            bool learns = parts[k].tower == 1 ? cases[i].text : parts[k].tower == 2 ? cases[i].images : true;
            double moved = train_tensors_distance(start, end, parts[k].prefix, NULL);
            if (learns ? moved < 1e-3 : moved > 0)
                fail_msg("--freeze %s: %s moved by %g", cases[i].word, parts[k].prefix, moved);
        }
        free(output);
        free(end);
    }
}

/* With the folder of a checkpoint, which holds config.json and tokenizer.json, too. */
static void a_checkpoint_is_pretrained_weights(void **state)
{
    const char *dir = *state;
    IN(one, "p1.jsonl");
    IN(two, "p2.jsonl");
    IN(three, "p3.jsonl");
    IN(end, "p/step-00000013/model.safetensors");
    IN(begun, "p4/step-00000001/model.safetensors");
    /* Update 13 begins the second epoch.  An lr of next to nothing keeps the weights. */
    train_pairs_expect(0, dir, 0, "--steps", "13", "--warmup", "0", "--decay", "none", "--output", "p", (char *)NULL);
    train_pairs_expect(0, dir, 0, "--steps", "2", "--lr", "1e-30", "--pretrained", "p/step-00000013/model.safetensors",
                       "--log", "p1.jsonl", (char *)NULL);
    support_result r =
        train_command(0, dir, 0, "train", "data", "--model", "bridgetower", "--config", "p/step-00000013/config.json",
                      "--pretrained", "p/step-00000013", "--steps", "2", "--lr", "1e-30", "--batch", "8", "--threads",
                      "1", "--eval-every", "0", "--log", "p2.jsonl", (char *)NULL);
    assert_non_null(strstr(r.out, "up to 16 tokens of each")); /* of the positions that the file has */
    support_result_free(&r);
    assert_true(train_log_distance(one, two, "loss") == 0);
    train_pairs_expect(0, dir, 0, "--steps", "2", "--lr", "1e-30", "--log", "p3.jsonl", (char *)NULL);
    assert_true(train_log_distance(one, three, "loss") > 1e-2);
    train_pairs_expect(0, dir, 0, "--steps", "1", "--lr", "1e-30", "--pretrained", "p/step-00000013", "--output", "p4",
                       (char *)NULL);
    assert_true(train_tensors_distance(end, begun, NULL, NULL) == 0);
}

static void the_decoder_changes_nothing(void **state)
{
    const char *dir = *state;
    IN(own, "d1/step-00000006/weights.npz");
    IN(foreign, "d2/step-00000006/weights.npz");
    train_expect(0, dir, 0, "--steps", "6", "--batch", "8", "--output", "d1", (char *)NULL);
    train_expect(0, dir, 0, "--steps", "6", "--batch", "8", "--output", "d2", "--decoder", "libjpeg", (char *)NULL);
    support_assert_same_file(own, foreign);
    train_pairs_expect(0, dir, 0, "--steps", "3", "--output", "d3", (char *)NULL);
    train_pairs_expect(0, dir, 0, "--steps", "3", "--output", "d4", "--decoder", "libjpeg", (char *)NULL);
    expect_same_checkpoint(dir, "d3/step-00000003", "d4/step-00000003");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_leaves_what_the_help_says),
        cmocka_unit_test(the_plan_takes_no_step),
        cmocka_unit_test(the_same_options_give_the_same_bits),
        cmocka_unit_test(ten_and_ten_are_twenty),
        cmocka_unit_test(what_predict_reads_stays),
        cmocka_unit_test(a_stopped_run_continues),
        cmocka_unit_test(equal_pictures_are_no_negatives),
        cmocka_unit_test(what_is_frozen_stays),
        cmocka_unit_test(a_checkpoint_is_pretrained_weights),
        cmocka_unit_test(the_decoder_changes_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}

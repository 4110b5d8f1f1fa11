/* test_pairs_texts.c - which texts a run learns from, and what it reports where it cannot.
 * Invariant tested: a run sees every caption as often as asked; what is impossible is reported before the first
 * update, with the option and a value that works. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/training/checkpoint.h"
#include "tests/support/training/train.h"

/* DIR/start: a checkpoint of one update; DIR/coco the same kind of folder for captions. */
static int set_up(void **state)
{
    char *dir = support_tmpdir();
    TRAIN_PATH(captions, dir, "coco");
    train_make_pairs(dir);
    train_make_captions(captions);
    train_pairs_expect(0, dir, 0, "--steps", "1", "--output", "start", (char *)NULL);
    *state = dir;
    return 0;
}

/* ---- captions ---------------------------------------------------------------------------------------------------- */

/* Largest difference between the losses of three epochs and that of the first. */
static double between_epochs(const char *log)
{
    json_t *updates = train_log(log, "loss");
    double worst = 0, first = json_number_value(json_object_get(json_array_get(updates, 0), "loss"));
    assert_int_equal(json_array_size(updates), 3);
    for (size_t i = 1; i < json_array_size(updates); i++)
        worst = fmax(worst, fabs(json_number_value(json_object_get(json_array_get(updates, i), "loss")) - first));
    json_decref(updates);
    return worst;
}

/* One batch an epoch, and a rate of next to nothing: a loss tells which pairs the epoch had. */
static void each_caption_comes_as_often_as_asked(void **state)
{
    static const struct {
        const char *folder, *batch, *column, *expand;
        bool same;
    } cases[] = {
        {"coco", "50", "captions", "--expand-captions", true}, /* every pair, every epoch */
        {".", "96", "image_description", NULL, true},          /* there is one */
        {".", "96", "caption_choices", NULL, false},           /* one of five, another an epoch */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TRAIN_PATH(dir, *state, cases[i].folder);
        char *log = support_path("epochs-%zu.jsonl", i);
        IN(path, log);
        train_pairs_expect(0, dir, 0, "--batch", cases[i].batch, "--text-column", cases[i].column, "--epochs", "3",
                           "--lr", "1e-30", "--log", log, "--quiet", cases[i].expand, (char *)NULL);
        double moved = between_epochs(path);
        if (cases[i].same ? moved > 1e-5 : moved < 1e-4)
            fail_msg("%s: the losses of epochs differ by %g", cases[i].column, moved);
        free(log);
    }
}

static void expanded_runs_go_on(void **state)
{
    TRAIN_PATH(dir, *state, "coco");
    IN(whole, "x20/step-00000020/model.safetensors");
    IN(parts, "x10/step-00000020/model.safetensors");
    IN(results_path, "x20/train_results.json");
    train_pairs_expect(0, dir, 0, "--steps", "20", "--expand-captions", "--dropout", "0.1", "--output", "x20",
                       (char *)NULL);
    train_pairs_expect(0, dir, 0, "--steps", "20", "--expand-captions", "--dropout", "0.1", "--output", "x10",
                       "--stop-after", "10", (char *)NULL);
    support_result r = train_command(0, dir, 0, "train", "data", "--resume", "--output", "x10", "--batch", "8",
                                     "--threads", "1", "--eval-every", "0", (char *)NULL);
    support_result_free(&r);
    support_assert_same_file(whole, parts);
    json_t *results = json_load_file(results_path, 0, NULL);
    /* 7 updates per epoch, the last one of 2 pairs. */
    assert_int_equal(json_integer_value(json_object_get(results, "train_samples")), 50 + 50 + 6 * 8);
    json_decref(results);
}

/* ---- what cannot be done ----------------------------------------------------------------------------------------- */

static void expect_words(support_result r, int status, const char *words)
{
    if (r.status != status || !strstr(r.err, words))
        fail_msg("expected status %d and \"%s\", got %d and\n%s", status, words, r.status, r.err);
    assert_null(strstr(r.out, "Training ("));
    support_result_free(&r);
}

static void wrong_options_are_reported_at_once(void **state)
{
    static const struct {
        const char *option, *value;
        int status;
        const char *words;
    } cases[] = {
        {"--text-column", "nothing", 2,
         "--text-column nothing: no sample of train has text there; columns: "
         "caption_choices, entities, from_description, image_description, image_location, image_uncanny_description"},
        {"--text-column", "contest_number", 2, "--text-column contest_number: no sample of train has text"},
        {"--max-text", "1", 2, "--max-text 1: expected 2 to 65536"},
        {"--max-text", "65537", 2, "--max-text 65537: expected 2 to 65536"},
        {"--hidden", "32", 2, "--hidden 32 is not a multiple of 64"},
        {"--freeze", "towers", 2, "--freeze towers: bridgetower accepts none, images, text or both"},
        {"--scale-min", "0.5", 2,
         "--scale-min: is for classifiers, but --model bridgetower is trained on complete images"},
        {"--flip", NULL, 2, "--flip: is for classifiers"},
        {"--tokenizer", "missing.json", 2, "missing.json: no such file"},
        {"--tokenizer", "start/step-00000001/config.json", 1, "config.json"},
        {"--pretrained", "missing", 2, "missing: no such file or folder"},
        {"--pretrained", "data", 1, "data: has neither model.safetensors nor model.safetensors.index.json"},
        {"--config", "missing.json", 2, "missing.json: no such file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_words(train_pairs_run(*state, 0, "--steps", "1", cases[i].option, cases[i].value, (char *)NULL),
                     cases[i].status, cases[i].words);
    /* Options of pictures and words, to a classifier; of a checkpoint, too, they are expected. */
    static const char *const foreign[][2] = {
        {"--max-text", "16"},
        {"--text-column", "image_description"},
        {"--embed", "16"},
        {"--cross-layers", "1"},
        {"--tokenizer", "tok.json"},
        {"--unique-images", NULL},
        {"--gather-negatives", NULL},
        {"--expand-captions", NULL},
    };
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        char *words = support_path("%s: is for bridgetower, but --model vit is trained on labels alone", foreign[i][0]);
        expect_words(train_run(*state, 0, "--steps", "1", foreign[i][0], foreign[i][1], (char *)NULL), 2, words);
        free(words);
    }
    expect_words(train_run(*state, 0, "--steps", "1", "--config", "start/step-00000001/config.json", (char *)NULL), 1,
                 "config.json: model_type is bridgetower; this model is vit");
}

static support_result from_config(const char *dir, const char *config, const char *arg, const char *value)
{
    return train_pairs_run(dir, 0, "--steps", "1", "--config", config, arg, value, (char *)NULL);
}

static void edit(const char *from, const char *to, const char *what)
{
    support_result r =
        support_run((const char *[]){"sh", "-c", "sed \"$0\" \"$1\" > \"$2\"", what, from, to, NULL}, NULL);
    support_assert_status(&r, 0);
    support_result_free(&r);
}

static void shapes_that_do_not_fit_are_reported(void **state)
{
    const char *dir = *state;
    IN(config, "start/step-00000001/config.json");
    IN(fewer, "fewer.json");
    IN(other, "other.json");
    edit(config, fewer, "s/\"vocab_size\": 300/\"vocab_size\": 290/");
    edit(config, other, "s/\"model_type\": \"bridgetower\"/\"model_type\": \"clip\"/");
    expect_words(from_config(dir, fewer, NULL, NULL), 2,
                 "--tokenizer: has 300 tokens, and the model a vocabulary of 290");
    expect_words(from_config(dir, other, NULL, NULL), 1, "model_type is \"clip\"; only \"bridgetower\" is supported");
    expect_words(from_config(dir, config, "--max-text", "17"), 2, "--max-text 17: give a number from 2 to 16");
    expect_words(from_config(dir, config, "--pretrained", "start/step-00000001/optimizer.npz"), 1, "optimizer.npz: ");
    support_result r = train_command(2, dir, 0, "train", "data", "--model", "bridgetower", "--image-size", "32",
                                     "--patch", "16", "--hidden", "64", "--layers", "1", "--heads", "1", "--mlp", "64",
                                     "--cross-layers", "1", (char *)NULL);
    assert_non_null(
        strstr(r.err, "bridgetower: reads text, and no tokenizer was found beside --config or --pretrained; give one "
                      "with --tokenizer FILE ('millrace tokenizer' learns one from a dataset)"));
    support_result_free(&r);
    static const struct {
        const char *option, *value, *words;
    } cases[] = {
        {"--layers", "3",
         "has no 'bridgetower.text_model.encoder.layer.2.attention.self.query.weight' [64, 64] and 27 "
         "more"},
        {"--embed", "32", "'itc_text_head.fc.weight' has the shape [16, 64], this model needs [32, 64]"},
        {"--image-size", "64", "the file is for images of --image-size 32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_words(train_pairs_run(dir, 0, "--steps", "1", "--pretrained", "start/step-00000001/model.safetensors",
                                     cases[i].option, cases[i].value, (char *)NULL),
                     1, cases[i].words);
}

/* ---- ids --------------------------------------------------------------------------------------------------------- */

/* What a tokenizer of 300 tokens says once `what` is done to it, and what is said to that. */
static const struct {
    const char *what, *words;
} ids[] = {
    {"s/\"<pad>\":1,/\"<pad>\":50000,/; s/\"id\":1,/\"id\":50000,/", "<pad> has the id 50000; this model needs 1"},
    {"s/\"<pad>\":1,/\"<pad>\":310,/; s/\"id\":1,/\"id\":310,/", "<pad> has the id 310; this model needs 1"},
    {"s/<pad>/<x>/g; s/<unk>/<pad>/g; s/<x>/<unk>/g", "<pad> has the id 3; this model needs 1"},
    {"s/<s>/<x>/g; s/<unk>/<s>/g; s/<x>/<unk>/g; s/\\[\"<unk>\",0\\]/[\"<s>\",3]/",
     "<s> has the id 3; this model needs 0"},
    {"s/<.s>/<x>/g; s/<unk>/<\\/s>/g; s/<x>/<unk>/g; s/\\[\"<unk>\",2\\]/[\"<\\/s>\",3]/",
     "</s> has the id 3; this model needs 2"},
};

static void a_tokenizer_has_the_ids_of_the_model(void **state)
{
    const char *dir = *state;
    IN(from, "tok.json");
    IN(to, "ids.json");
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        edit(from, to, ids[i].what);
        expect_words(train_pairs_run(dir, 0, "--steps", "1", "--tokenizer", "ids.json", (char *)NULL), 1, ids[i].words);
    }
}

/* The same in a checkpoint, every digest and the seal right. */
static void ids_of_a_foreign_checkpoint_are_checked(void **state)
{
    const char *dir = *state;
    IN(start, "start");
    IN(from, "tok.json");
    IN(to, "ids.json");
    IN(run, "ids");
    for (size_t i = 0; i <= sizeof ids / sizeof *ids; i++) {
        bool last = i == sizeof ids / sizeof *ids;
        const char *words = last ? "its tokenizer has 400001 tokens, and its model 300" : ids[i].words;
        edit(from, to, last ? "s/\"<mask>\":299/\"<mask>\":400000/; s/\"id\":299,/\"id\":400000,/" : ids[i].what);
        mr_checkpoint c = read_checkpoint(start);
        size_t len;
        uint8_t *bytes = support_read(to, &len);
        mr_buf_clear(&c.tokenizer);
        mr_buf_add(&c.tokenizer, bytes, len);
        write_checkpoint(&c, run, 0);
        mr_checkpoint_release(&c);
        free(bytes);
        expect_words(train_command(1, dir, 0, "eval", "data", "ids", (char *)NULL), 1, words);
        expect_words(train_command(1, dir, 0, "train", "data", "--resume", "--output", "ids", (char *)NULL), 1, words);
    }
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

/* They are not pairs: not of an epoch, not damage.  Of the others a run that was cut sees what one that was not
 * sees. */
static void samples_without_text_are_left_out(void **state)
{
    TRAIN_PATH(dir, *state, "coco");
    IN(whole, "all-6/step-00000006/model.safetensors");
    IN(parts, "all-3/step-00000006/model.safetensors");
    IN(results_path, "all-6/train_results.json");
    support_result r = train_pairs_run(dir, 0, "--epochs", "3", "--dropout", "0.1", "--output", "all-6", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "\n1 sample without a caption is left out\n"));
    assert_non_null(strstr(r.out, "\n10 samples, 8 per update, 2 updates per epoch, 6 in total\n"));
    support_result_free(&r);
    train_pairs_expect(0, dir, 0, "--epochs", "3", "--dropout", "0.1", "--output", "all-3", "--stop-after", "3",
                       (char *)NULL);
    r = train_command(0, dir, 0, "train", "data", "--resume", "--output", "all-3", (char *)NULL);
    support_result_free(&r);
    support_assert_same_file(whole, parts);
    json_t *results = json_load_file(results_path, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(results, "train_samples")), 3 * 10);
    json_decref(results);
    train_pairs_expect(0, dir, 2, "--epochs", "1", "--batch", "4", "--gather-negatives", (char *)NULL);
    r = train_pairs_run(*state, 0, "--steps", "1", (char *)NULL);
    assert_null(strstr(r.out, "left out")); /* all have words */
    support_result_free(&r);
}

/* Pictures of COCO have no label of their own, which a classifier of one label needs and this model does not. */
static void labels_are_not_needed(void **state)
{
    TRAIN_PATH(dir, *state, "coco");
    support_result r = train_run(dir, 0, "--steps", "1", "--loss", "ce", (char *)NULL);
    assert_int_not_equal(r.status, 0);
    support_result_free(&r);
    train_pairs_expect(0, dir, 0, "--steps", "2", "--expand-captions", (char *)NULL);
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

static void damaged_checkpoints_are_named(void **state)
{
    static const struct {
        const char *file, *how, *words;
    } cases[] = {
        {"tokenizer.json", "printf x >>", "tokenizer.json: has "},
        {"tokenizer.json",
         "printf x | dd conv=notrunc bs=1 seek=9 status=none of=", "tokenizer.json: does not match its digest"},
        {"tokenizer.json", "rm ", "tokenizer.json: is missing; "},
        {"state.json", "printf x >>", "state.json: its seal does not match its text"},
        {"state.json", "rm ", "state.json: is missing"},
        {"model.safetensors",
         "printf x | dd conv=notrunc bs=1 seek=4000 status=none of=", "model.safetensors: does not match its digest"},
        {"config.json", "printf x >>", "config.json: has "},
    };
    const char *dir = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *script = support_path("rm -rf \"$0\"/x && cp -r \"$0\"/start \"$0\"/x && %s\"$0\"/x/step-00000001/%s",
                                    cases[i].how, cases[i].file);
        support_result r = support_run((const char *[]){"sh", "-c", script, dir, NULL}, NULL);
        support_assert_status(&r, 0);
        support_result_free(&r);
        r = train_command(1, dir, 0, "eval", "data", "x", (char *)NULL);
        if (!strstr(r.err, cases[i].words) || !strstr(r.err, "; name another checkpoint\n"))
            fail_msg("%s %s: said %s", cases[i].how, cases[i].file, r.err);
        support_result_free(&r);
        r = train_command(1, dir, 0, "train", "data", "--resume", "--output", "x", "--batch", "8", (char *)NULL);
        if (!strstr(r.err, cases[i].words) || !strstr(r.err, "; move x/step-00000001 away to continue without it\n"))
            fail_msg("%s %s: said %s", cases[i].how, cases[i].file, r.err);
        support_result_free(&r);
        free(script);
    }
}

/* A rate of 0 is the default of the model's kind, given or not. */
static void the_rate_that_is_zero(void **state)
{
    const char *dir = *state;
    static const char *const rates[] = {"0", "0.5"};
    for (unsigned i = 0; i < 2; i++) {
        IN(log, i ? "rate-1.jsonl" : "rate-0.jsonl");
        train_pairs_expect(0, dir, 0, "--steps", "1", "--lr", rates[i], "--warmup", "0", "--decay", "none", "--log",
                           log, (char *)NULL);
        json_t *lines = train_log(log, "lr");
        assert_float_equal(json_number_value(json_object_get(json_array_get(lines, 0), "lr")), i ? 0.5 : 1e-5, 1e-12);
        json_decref(lines);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_caption_comes_as_often_as_asked),
        cmocka_unit_test(expanded_runs_go_on),
        cmocka_unit_test(wrong_options_are_reported_at_once),
        cmocka_unit_test(shapes_that_do_not_fit_are_reported),
        cmocka_unit_test(a_tokenizer_has_the_ids_of_the_model),
        cmocka_unit_test(ids_of_a_foreign_checkpoint_are_checked),
        cmocka_unit_test(samples_without_text_are_left_out),
        cmocka_unit_test(labels_are_not_needed),
        cmocka_unit_test(damaged_checkpoints_are_named),
        cmocka_unit_test(the_rate_that_is_zero),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}

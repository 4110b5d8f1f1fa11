/* test_damage.c - damaged samples in the training and evaluation splits: what they cost, and how they are
 * reported.
 * Invariant tested: no update is lost because of a damaged sample of the evaluation split; skipped samples are
 * counted once and named in every output. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shards/dataset/dataset.h"
#include "tests/support/faults.h"
#include "tests/support/training/train.h"

enum { TRAIN_HIT = 7, TRAIN_HIT_TOO = 30, VAL_HIT = 5 };

static const char val_source[] = "val/";

/* One byte of the stored image of a sample. */
static void hurt(const char *data, const char *split, uint64_t n)
{
    mr_dataset *ds;
    mr_row row;
    mr_error err;
    int idx;
    if (mr_dataset_open(data, &ds, &err) != MR_OK)
        fail_msg("%s", err.text);
    const mr_shard *shard = mr_dataset_shard(mr_manifest_split(mr_dataset_manifest(ds), split), n);
    assert_int_equal(mr_dataset_open_file(ds, shard, "idx", &idx, &err), MR_OK);
    assert_int_equal(mr_dataset_row(idx, shard, n - shard->first, &row, &err), MR_OK);
    close(idx);
    char *path = support_path("%s/%s.mdb", data, shard->name);
    size_t len;
    uint8_t *bytes = support_read(path, &len);
    bytes[row.image_offset + row.image_len / 2] ^= 1;
    support_write(path, bytes, len);
    free(bytes);
    free(path);
    mr_dataset_free(ds);
}

/* data: whole; val-bad: one sample of val; bad: two of train beside it. */
static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_dataset(dir, 120); /* train 84, val 36 */
    support_shell(dir, "cp -r data val-bad && cp -r data bad");
    IN(val_bad, "val-bad");
    IN(bad, "bad");
    hurt(val_bad, "val", VAL_HIT);
    hurt(bad, "val", VAL_HIT);
    hurt(bad, "train", TRAIN_HIT);
    hurt(bad, "train", TRAIN_HIT_TOO);
    *state = dir;
    return 0;
}

#define TINY                                                                                                           \
    "--model", "vit", "--image-size", "24", "--patch", "8", "--hidden", "16", "--layers", "1", "--heads", "2",         \
        "--mlp", "32", "--threads", "1", "--batch", "16"

static void expect(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" does not mention \"%s\"", text, words);
}

static json_int_t number(const char *path, const char *key)
{
    json_error_t e;
    json_t *doc = json_load_file(path, 0, &e), *value = json_object_get(doc, key);
    if (!json_is_integer(value))
        fail_msg("%s: \"%s\" is not an integer", path, key);
    json_int_t n = json_integer_value(value);
    json_decref(doc);
    return n;
}

/* ---- the split that judges --------------------------------------------------------------------------------------- */

/* The updates are on disk when their evaluation fails; the message is the way on, and the evaluation is made up for. */
static void fails_and_goes_on(const char *dir, unsigned ranks, const char *run)
{
    const char *batch = ranks ? "8" : "16";
    char *log = support_path("%s.jsonl", run), *log_path = support_path("%s/%s", dir, log);
    char *weights = support_path("%s/%s/step-00000010/weights.npz", dir, run);
    char *results = support_path("%s/%s/train_results.json", dir, run);
    support_result r = train_command(1, dir, ranks, "train", "val-bad", TINY, "--batch", batch, "--steps", "10",
                                     "--output", run, "--log", log, (char *)NULL);
    char *words = support_path("val-00000.mdb: sample %d (%s", VAL_HIT, val_source);
    expect(r.err, words);
    expect(r.err, "--max-bad N skips");
    char *kept = support_path("the 10 updates done are saved in %s for --resume", run);
    expect(r.err, kept);
    support_result_free(&r);
    size_t len, len_later;
    uint8_t *before = support_read(weights, &len);

    r = train_command(0, dir, ranks, "train", "val-bad", "--output", run, "--log", log, "--resume", "--max-bad", "1",
                      (char *)NULL);
    expect(r.out, "Validation Results / Global Steps: 10");
    expect(r.out, "Damaged samples skipped: 0 in training, 1 in the last evaluation");
    expect(r.err, "val: 1 damaged sample skipped: 5 (val/");
    support_result_free(&r);
    uint8_t *after = support_read(weights, &len_later);
    assert_true(len == len_later && memcmp(before, after, len) == 0);
    assert_int_equal(number(results, "eval_damaged_samples"), 1);
    assert_int_equal(number(results, "eval_step"), 10);

    /* It was entered: nobody judges it again, and it is the best. */
    r = train_command(0, dir, ranks, "train", "val-bad", "--output", run, "--log", log, "--resume", (char *)NULL);
    assert_null(strstr(r.out, "Validation Results"));
    expect(r.out, "(step 10)");
    support_result_free(&r);
    json_t *evaluations = train_log(log_path, "eval_loss"), *updates = train_log(log_path, "loss");
    assert_int_equal(json_array_size(evaluations), 1);
    assert_int_equal(json_array_size(updates), 10);
    json_decref(evaluations);
    json_decref(updates);
    free(before);
    free(after);
    free(words);
    free(kept);
    free(log);
    free(log_path);
    free(weights);
    free(results);
}

static void an_evaluation_that_fails_costs_nothing(void **state)
{
    fails_and_goes_on(*state, 0, "alone");
    fails_and_goes_on(*state, 2, "two");
}

/* ---- what was passed over ---------------------------------------------------------------------------------------- */

static void training_counts_and_names(void **state)
{
    const char *dir = *state;
    IN(results, "counted/train_results.json");
    IN(two_results, "counted-two/train_results.json");
    static const char *const runs[] = {"counted", "counted-two"};
    for (unsigned i = 0; i < 2; i++) {
        support_result r = train_command(0, dir, i ? 2 : 0, "train", "bad", TINY, "--epochs", "3", "--max-bad", "2",
                                         "--output", runs[i], "-q", (char *)NULL);
        assert_string_equal(r.out, "");
        expect(r.err, "train: 2 damaged samples skipped: 7 (train/");
        expect(r.err, ", 30 (train/");
        expect(r.err, "val: 1 damaged sample skipped: 5 (val/");
        support_result_free(&r);
    }
    assert_int_equal(number(results, "damaged_samples"), 2);
    assert_int_equal(number(two_results, "damaged_samples"), 2);
    assert_int_equal(number(two_results, "eval_damaged_samples"), 1);
}

static void eval_and_predict_say_what_was_left_out(void **state)
{
    const char *dir = *state;
    support_result r =
        train_command(0, dir, 0, "train", "data", TINY, "--steps", "3", "--output", "judge", "-q", (char *)NULL);
    support_result_free(&r);
    r = train_command(1, dir, 0, "eval", "bad", "judge", "-q", (char *)NULL);
    expect(r.err, "--max-bad N skips");
    support_result_free(&r);
    r = train_command(0, dir, 0, "eval", "bad", "judge", "--max-bad", "5", (char *)NULL);
    expect(r.out, " of 35), loss ");
    expect(r.out, "; 1 damaged sample skipped\n");
    expect(r.err, "val: 1 damaged sample skipped: 5 (val/");
    support_result_free(&r);
    r = train_command(0, dir, 2, "eval", "bad", "judge", "--max-bad", "5", "--json", (char *)NULL);
    expect(r.out, "\"damaged\": 1");
    support_result_free(&r);

    r = train_command(0, dir, 0, "predict", "bad", "judge", "--max-bad", "5", "--top", "2", "-q", (char *)NULL);
    size_t lines = 0;
    for (char *rest = r.out, *line; (line = strsep(&rest, "\n")) && *line; lines++) {
        size_t commas = 0;
        for (const char *at = line; (at = strchr(at, ',')); at++)
            commas++;
        assert_int_equal(commas, 6); /* sample, source, label and two classes: no cell of these has one */
        if (strncmp(line, "5,", 2) == 0)
            assert_true(strncmp(line, "5,val/", 6) == 0 && strcmp(strrchr(line, 'G'), "G,,,,,") == 0);
    }
    assert_int_equal(lines, 37);
    expect(r.err, "val: 1 damaged sample skipped: 5 (val/");
    support_result_free(&r);
    r = train_command(0, dir, 0, "predict", "bad", "judge", "--max-bad", "5", "--format", "json", (char *)NULL);
    expect(r.out, "{\"sample\":5,\"source\":\"val/");
    expect(r.out, "\"label\":null,\"top\":[],\"damaged\":true}\n");
    support_result_free(&r);
}

/* A verdict on nothing would look like one. */
static void nothing_to_evaluate_on(void **state)
{
    const char *dir = *state;
    support_result r =
        train_command(0, dir, 0, "train", "data", TINY, "--steps", "1", "--output", "nothing", "-q", (char *)NULL);
    support_result_free(&r);
    r = train_command(1, dir, 0, "eval", "data", "nothing", "--max-pixels", "1", "--max-bad", "100", (char *)NULL);
    expect(r.err, "val: none of its samples could be evaluated");
    assert_string_equal(r.out, "");
    support_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_evaluation_that_fails_costs_nothing),
        cmocka_unit_test(training_counts_and_names),
        cmocka_unit_test(eval_and_predict_say_what_was_left_out),
        cmocka_unit_test(nothing_to_evaluate_on),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}

/* test_flags.c - how a run is divided, and where it writes: --eval-batch, --tail, --loader-threads,
 * --overwrite-output, and what each rank did.
 * Invariant tested: what does not change what is learned changes no bit of it; a run that cannot begin removes nothing.
 * Covers journal/memory.c, setup/head.c, setup/head_file.c, setup/known_classes.c, run/trainer_open.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "train/files/npz.h"
#include "tests/support/faults.h"
#include "tests/support/training/train.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_dataset(dir, 60); /* train 42, val 18 */
    train_expect(0, dir, 0, "--steps", "3", "--batch", "4", "--output", "plain", (char *)NULL);
    *state = dir;
    return 0;
}

static json_t *results_of(const char *dir, const char *run)
{
    char *path = support_path("%s/%s/train_results.json", dir, run);
    json_t *doc = json_load_file(path, 0, NULL);
    assert_non_null(doc);
    free(path);
    return doc;
}

static double number(const json_t *doc, const char *key)
{
    const json_t *value = json_object_get(doc, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void what_is_only_work_changes_nothing(void **state)
{
    static const char *const ways[][2] = {{"--eval-batch", "7"}, {"--eval-batch", "1"}, {"--loader-threads", "3"}};
    const char *dir = *state;
    IN(plain, "plain/step-00000003/weights.npz");
    json_t *usual = results_of(dir, "plain");
    for (size_t i = 0; i < MR_COUNT(ways); i++) {
        char *name = support_path("way-%zu", i), *weights = support_path("%s/%s/step-00000003/weights.npz", dir, name);
        train_expect(0, dir, 0, "--steps", "3", "--batch", "4", "--output", name, ways[i][0], ways[i][1], (char *)NULL);
        support_assert_same_file(plain, weights);
        json_t *found = results_of(dir, name);
        assert_true(number(found, "eval_accuracy") == number(usual, "eval_accuracy"));
        json_decref(found);
        free(name);
        free(weights);
    }
    json_decref(usual);
}

/* 42 samples in batches of 8: 5 are full, and 2 samples are left over. */
static void the_tail_of_an_epoch(void **state)
{
    static const struct {
        const char *word;
        int steps, samples;
    } ways[] = {{"partial", 12, 84}, {"pad", 12, 96}, {"drop", 10, 80}};
    const char *dir = *state;
    for (size_t i = 0; i < MR_COUNT(ways); i++) {
        train_expect(0, dir, 0, "--epochs", "2", "--batch", "8", "--eval-every", "0", "--output", ways[i].word,
                     "--tail", ways[i].word, (char *)NULL);
        json_t *doc = results_of(dir, ways[i].word);
        assert_int_equal(number(doc, "train_steps"), ways[i].steps);
        assert_int_equal(number(doc, "train_samples"), ways[i].samples);
        json_decref(doc);
    }
    /* Padding has no weight. */
    IN(partial, "partial/step-00000012/weights.npz");
    IN(pad, "pad/step-00000012/weights.npz");
    assert_true(train_weights_distance(partial, pad) < 1e-5);
}

static void an_older_run_is_replaced(void **state)
{
    const char *dir = *state;
    IN(mine, "old/mine.txt");
    IN(first, "old/step-00000001");
    IN(fifth, "old/step-00000005");
    IN(outcomes, "old/evaluation.jsonl");
    train_expect(0, dir, 0, "--steps", "5", "--batch", "4", "--eval-every", "2", "--keep", "0", "--output", "old",
                 (char *)NULL);
    support_shell(dir, "echo mine > old/mine.txt; echo mine > old/tensorboard/mine.txt");
    /* What cannot begin removes nothing. */
    train_expect(2, dir, 0, "--steps", "1", "--output", "old", (char *)NULL);
    train_expect(2, dir, 0, "--steps", "1", "--output", "old", "--overwrite-output", "--pretrained", "absent.npz",
                 (char *)NULL);
    assert_true(support_exists(fifth));
    train_expect(0, dir, 0, "--steps", "1", "--output", "old", "--overwrite-output", "--eval-split", "val",
                 (char *)NULL);
    assert_true(support_exists(mine) && support_exists(first) && support_exists(outcomes));
    assert_false(support_exists(fifth));
    support_shell(dir, "test \"$(ls old | tr '\\n' ' ')\" = 'evaluation.jsonl mine.txt step-00000001 tensorboard "
                       "train_results.json ' && test \"$(ls old/tensorboard | wc -l)\" = 2");
    /* Its own checkpoint may be the start. */
    train_expect(0, dir, 0, "--steps", "2", "--output", "old", "--overwrite-output", "--pretrained",
                 "old/step-00000001/weights.npz", (char *)NULL);
    assert_false(support_exists(first));
}

static void ranks_are_accounted_for(void **state)
{
    const char *dir = *state;
    support_result r = train_run(dir, 2, "--steps", "3", "--batch", "4", "--output", "two", (char *)NULL);
    support_assert_status(&r, 0);
    assert_true(strstr(r.out, "\nSlowest: rank ") || strstr(r.out, "\nRanks: even; "));
    assert_non_null(strstr(r.out, " available="));
    support_result_free(&r);
    json_t *doc = results_of(dir, "two"), *ranks = json_object_get(doc, "ranks");
    assert_int_equal(json_array_size(ranks), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *rank = json_array_get(ranks, i);
        double sum = number(rank, "share_compute") + number(rank, "share_wait") + number(rank, "share_exchange");
        assert_true(sum > 0.999 && sum < 1.001);
        double parts = number(rank, "share_read") + number(rank, "share_decode");
        assert_true(parts > 0 && parts < number(rank, "share_wait") + 0.001);
        assert_int_equal(number(rank, "rank"), i);
    }
    assert_true(number(doc, "memory_available_mb") > 0);
    json_decref(doc);
}

/* ---- --freeze ---------------------------------------------------------------------------------------------------- */

static double moved(const char *dir, const char *run, const char *prefix)
{
    char *a = support_path("%s/%s/step-00000004/weights.npz", dir, run);
    char *b = support_path("%s/start/step-00000001/weights.npz", dir);
    double distance = train_arrays_distance(a, b, prefix);
    free(a);
    free(b);
    return distance;
}

static void what_is_frozen_stays(void **state)
{
    static const char *const parts[] = {"embedding",
                                        "cls",
                                        "Transformer/posembed_input",
                                        "Transformer/encoderblock_0",
                                        "Transformer/encoderblock_1",
                                        "Transformer/encoderblock_2",
                                        "Transformer/encoder_norm"};
    static const struct {
        const char *word;
        size_t frozen; /* of `parts` */
    } cases[] = {{"none", 0}, {"1", 4}, {"2", 5}, {"3", 6}, {"backbone", 7}};
    const char *dir = *state;
    train_expect(0, dir, 0, "--layers", "3", "--steps", "1", "--output", "start", (char *)NULL);
    for (size_t i = 0; i < MR_COUNT(cases); i++)
        for (unsigned ranks = 0; ranks <= 2; ranks += 2) {
            char *run = support_path("frozen-%s-%u", cases[i].word, ranks);
            train_expect(0, dir, ranks, "--layers", "3", "--steps", "4", "--eval-every", "0", "--weight-decay", "0.1",
                         "--output", run, "--freeze", cases[i].word, "--pretrained", "start/step-00000001/weights.npz",
                         ranks ? "--exchange" : "--recompute=yes", ranks ? "buckets" : NULL, (char *)NULL);
            for (size_t k = 0; k < MR_COUNT(parts); k++)
                if ((moved(dir, run, parts[k]) == 0) != (k < cases[i].frozen))
                    fail_msg("%s: %s moved by %g", run, parts[k], moved(dir, run, parts[k]));
            assert_true(moved(dir, run, "head") > 0);
            free(run);
        }
}

/* What is frozen is spared its backward pass. */
static void a_frozen_model_costs_less(void **state)
{
    static const char *const words[] = {"none", "6", "backbone"};
    double memory[3];
    for (size_t i = 0; i < 3; i++) {
        support_result r = train_command(0, *state, 0, "train", "data", "--model", "ViT-B_16", "--plan", "--freeze",
                                         words[i], (char *)NULL);
        const char *at = strstr(r.out, "activations");
        assert_non_null(at);
        memory[i] = strtod(at + strlen("activations"), NULL) * (strstr(at, " GB") < strchr(at, '\n') ? 1000 : 1);
        support_result_free(&r);
    }
    assert_true(memory[0] > memory[1] && memory[1] > memory[2]);
}

/* ---- --pretrained RUN -------------------------------------------------------------------------------------------- */

enum { HIDDEN = 16, MOST = 32 };

/* head/kernel of a run's checkpoint, [HIDDEN, classes]. */
static void read_head(const char *dir, const char *run, float head[HIDDEN * MOST], size_t *classes)
{
    char *path = support_path("%s/%s/weights.npz", dir, run);
    mr_npz_reader *npz = NULL;
    const mr_npz_array *a;
    mr_error err;
    *classes = 0;
    assert_int_equal(mr_npz_open(path, &npz, &err), MR_OK);
    while (mr_npz_next(npz, &a, &err) == MR_OK)
        if (strcmp(a->name, "head/kernel") == 0) {
            *classes = (size_t)a->shape[1];
            assert_true(a->shape[0] == HIDDEN && *classes <= MOST);
            assert_int_equal(mr_npz_take(npz, head, (size_t)a->count * sizeof *head, &err), MR_OK);
        }
    mr_npz_reader_free(npz);
    free(path);
    assert_true(*classes > 0);
}

/* Two of the ten classes are in the next dataset, with other numbers, beside a new one. */
static void a_head_continues_by_name(void **state)
{
    const char *dir = *state;
    float older[HIDDEN * MOST], newer[HIDDEN * MOST];
    size_t count, fewer;
    IN(source, "few-source");
    IN(few, "few");
    support_shell(dir,
                  "for s in train val; do mkdir -p few-source/$s; cp -r source/*/$s/n01440764 source/*/$s/n03888257 "
                  "few-source/$s; cp -r source/*/$s/n03028079 few-source/$s/a-new-one; done");
    support_expect(0, "ingest", source, few, "--quiet", (char *)NULL);
    train_expect(0, dir, 0, "--steps", "3", "--lr", "0.1", "--output", "older", (char *)NULL);
    support_result r = train_command(0, dir, 0, "train", "few", "--model", "vit", "--image-size", "24", "--patch", "8",
                                     "--hidden", "16", "--layers", "2", "--heads", "2", "--mlp", "32", "--lr", "1e-9",
                                     "--steps", "1", "--pretrained", "older", "--output", "newer", (char *)NULL);
    assert_non_null(strstr(r.out, "2 of the 3 classes continue from the head of older/step-00000003, which knows their "
                                  "names; new: a-new-one\n"));
    support_result_free(&r);
    read_head(dir, "older/step-00000003", older, &count);
    read_head(dir, "newer/step-00000001", newer, &fewer);
    assert_int_equal(count, 10);
    assert_int_equal(fewer, 3); /* a-new-one, n01440764, n03888257 */
    for (size_t k = 0; k < HIDDEN; k++) {
        assert_true(fabsf(newer[3 * k]) < 1e-6F);
        assert_true(fabsf(newer[3 * k + 1] - older[10 * k]) < 1e-6F);
        assert_true(fabsf(newer[3 * k + 2] - older[10 * k + 9]) < 1e-6F);
    }
    /* Without a class in common, and of another kind of model. */
    support_shell(dir, "mkdir none; for s in train val; do mkdir -p none-source/$s; cp -r few-source/$s/a-new-one "
                       "none-source/$s; cp -r few-source/$s/a-new-one none-source/$s/another; done; rmdir none");
    IN(others, "none-source");
    IN(none, "none");
    support_expect(0, "ingest", others, none, "--quiet", (char *)NULL);
    r = train_command(2, dir, 0, "train", "none", "--model", "vit", "--image-size", "24", "--patch", "8", "--hidden",
                      "16", "--layers", "2", "--heads", "2", "--mlp", "32", "--steps", "1", "--pretrained", "older",
                      (char *)NULL);
    assert_non_null(strstr(r.err, "older/step-00000003: its head has none of the dataset's classes"));
    support_result_free(&r);
}

/* `older` and `few` of the test above; the same head as a file, and its classes as text. */
static void a_head_of_a_file_continues_by_name(void **state)
{
    static const struct {
        const char *names, *words;
    } wrong[] = {
        {"head -n 9 names.txt", "bad.txt: names 9 classes, and the head of w.npz has 10\n"},
        {"(cat names.txt; echo n01440764)", "bad.txt: line 11 names the class of line 1 again, \"n01440764\"\n"},
        {"(echo; cat names.txt)", "bad.txt: line 1 is empty; each line names one class of the head\n"},
    };
    const char *dir = *state;
    float older[HIDDEN * MOST], newer[HIDDEN * MOST];
    size_t count, fewer;
    support_shell(dir, "cp older/step-00000003/weights.npz w.npz; ls source/*/train | sort >names.txt");
    support_result r =
        train_command(0, dir, 0, "train", "few", "--model", "vit", "--image-size", "24", "--patch", "8", "--hidden",
                      "16", "--layers", "2", "--heads", "2", "--mlp", "32", "--lr", "1e-9", "--steps", "1",
                      "--pretrained", "w.npz", "--pretrained-classes", "names.txt", "--output", "named", (char *)NULL);
    assert_non_null(
        strstr(r.out, "2 of the 3 classes continue from the head of w.npz, which knows their names; new: a-new-one\n"));
    assert_null(strstr(r.out, "left out"));
    support_result_free(&r);
    read_head(dir, "older/step-00000003", older, &count);
    read_head(dir, "named/step-00000001", newer, &fewer);
    for (size_t k = 0; k < HIDDEN; k++) {
        assert_true(fabsf(newer[3 * k]) < 1e-6F);
        assert_true(fabsf(newer[3 * k + 1] - older[10 * k]) < 1e-6F);
        assert_true(fabsf(newer[3 * k + 2] - older[10 * k + 9]) < 1e-6F);
    }
    for (size_t i = 0; i < MR_COUNT(wrong); i++) {
        char *make = support_path("%s >bad.txt", wrong[i].names);
        support_shell(dir, make);
        r = train_command(1, dir, 0, "train", "few", "--model", "vit", "--image-size", "24", "--patch", "8", "--hidden",
                          "16", "--layers", "2", "--heads", "2", "--mlp", "32", "--steps", "1", "--pretrained", "w.npz",
                          "--pretrained-classes", "bad.txt", (char *)NULL);
        assert_non_null(strstr(r.err, wrong[i].words));
        support_result_free(&r);
        free(make);
    }
    r = train_command(2, dir, 0, "train", "few", "--model", "vit", "--pretrained", "older", "--pretrained-classes",
                      "names.txt", (char *)NULL);
    assert_non_null(strstr(r.err, "--pretrained-classes: names the classes of an .npz that --pretrained gives"));
    support_result_free(&r);
}

static void what_does_not_fit_is_refused(void **state)
{
    static const struct {
        const char *argv[6], *words;
    } cases[] = {
        {{"--tail", "drop", "--batch", "43"}, "the 42 samples of train do not fill one batch of 43"},
        {{"--overwrite-output"}, "--overwrite-output: give --output DIR"},
        {{"--overwrite-output", "--resume", "--output", "plain"}, "--overwrite-output starts a new run"},
        {{"--eval-batch", "9999999"}, "--eval-batch 9999999: expected 0 to 1048576"},
        {{"--freeze", "images"}, "--freeze images: vit accepts none, backbone, or a number of blocks from 1 to 2"},
        {{"--freeze", "3"}, "--freeze 3: vit accepts none, backbone, or a number of blocks from 1 to 2"},
        {{"--tail", "pad", "--model", "bridgetower-large"},
         "--tail pad: bridgetower-large would use the padding as negatives"},
    };
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        const char *const *a = cases[i].argv;
        support_result r = train_run(*state, 0, "--steps", "1", a[0], a[1], a[2], a[3], a[4], a[5], (char *)NULL);
        if (r.status != 2 || !strstr(r.err, cases[i].words))
            fail_msg("%zu: %d, %s", i, r.status, r.err);
        support_result_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_only_work_changes_nothing),
        cmocka_unit_test(the_tail_of_an_epoch),
        cmocka_unit_test(an_older_run_is_replaced),
        cmocka_unit_test(ranks_are_accounted_for),
        cmocka_unit_test(what_is_frozen_stays),
        cmocka_unit_test(a_frozen_model_costs_less),
        cmocka_unit_test(a_head_continues_by_name),
        cmocka_unit_test(a_head_of_a_file_continues_by_name),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}

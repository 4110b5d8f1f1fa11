/* test_labels.c - a classifier of one label per sample, on samples that do not have one.
 * Invariant tested: they are reported before the first update, for the training and the evaluation split, with their
 * number, the first of them and what to do.
 * Covers train/predict.c, setup/labels.c, run/model_session.c. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/faults.h"
#include "tests/support/training/train.h"

/* DIR/source: Roboflow's table of several labels, each picture with one of them: train 28, val 8, test 4. */
static int set_up(void **state)
{
    char *dir = support_tmpdir();
    TRAIN_PATH(source, dir, "source");
    support_expect(0, "sample", source, "--layout", "roboflow", "--variant", "multi-class", "--images", "40", "--size",
                   "32", "--quiet", (char *)NULL);
    /* Unlabeled, or nothing at all: the first class; several: the first of them. */
    support_shell(dir, "sed -i '2,$s/g, 1, 0/g, 0, 1/; 2,${/, 1/!s/g, 0, 0/g, 0, 1/}; 2,$s/, 1/, x/; 2,$s/, 1/, 0/g; "
                       "2,$s/, x/, 1/' source/*/_classes.csv");
    *state = dir;
    return 0;
}

/* RUN/data: of the source, the pictures in these lines of a split's table in all classes. */
static void make_data(const char *dir, const char *run, const char *split, const char *lines)
{
    TRAIN_PATH(folder, dir, run);
    TRAIN_PATH(source, folder, "source");
    TRAIN_PATH(data, folder, "data");
    char *command = support_path("mkdir %s && cp -r source %s && sed -i '%ss/, [01]/, 1/g' %s/source/%s/_classes.csv",
                                 run, run, lines, run, split);
    support_shell(dir, command);
    support_expect(0, "ingest", source, data, "--quiet", (char *)NULL);
    free(command);
}

static void a_few_are_counted(void **state)
{
    static const struct {
        const char *split, *lines, *option, *words;
    } cases[] = {
        {"train", "12", NULL,
         "of the 28 samples of train 1 is without a label of its own (the first is 9), and a "
         "classifier needs labels; leave it out with a view (millrace view OUT data --class NAMES), or train on "
         "several labels per sample with --loss "
         "bce"},
        {"train", "7,8", NULL, "of the 28 samples of train 2 are without a label of their own (the first is 5), and"},
        {"train", "12", "--max-bad", "of the 28 samples of train 1 is without a label of its own"},
        {"valid", "3", NULL,
         "of the 8 samples of val 1 is without a label of its own (the first is 1), and a "
         "classifier needs labels; leave it out with a view (millrace view OUT data --class NAMES), or choose another "
         "--eval-split, or train on several"},
        {"valid", "2,$", NULL,
         "no sample of val has a label of its own, and a classifier needs labels; "
         "choose another --eval-split"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *run = support_path("few-%zu", i);
        TRAIN_PATH(folder, *state, run);
        make_data(*state, run, cases[i].split, cases[i].lines);
        support_result r =
            train_run(folder, 0, "--steps", "1", "--batch", "4", "--loss", "ce", cases[i].option, "9", (char *)NULL);
        if (r.status != 2 || *r.out || !strstr(r.err, cases[i].words))
            fail_msg("%zu: status %d, said %s%s", i, r.status, r.out, r.err);
        support_result_free(&r);
        free(run);
    }
}

/* Images in one folder, without any label. */
static void none_at_all_is_said_first(void **state)
{
    TRAIN_PATH(folder, *state, "flat");
    TRAIN_PATH(source, folder, "source");
    TRAIN_PATH(data, folder, "data");
    support_shell(*state, "mkdir -p flat/source && cp source/train/*.jpg flat/source");
    support_expect(0, "ingest", source, data, "--quiet", "--layout", "flat", (char *)NULL);
    support_result r = train_run(folder, 0, "--steps", "1", (char *)NULL);
    static const char words[] =
        ": has no classes (layout flat), and a classifier needs labels; for captions use --model "
        "bridgetower\n";
    if (r.status != 2 || *r.out || !strstr(r.err, words))
        fail_msg("status %d, said %s%s", r.status, r.out, r.err);
    support_result_free(&r);
}

/* Each rank looks at some of the shards; together they say what one says. */
static void ranks_count_together(void **state)
{
    TRAIN_PATH(folder, *state, "ranks");
    make_data(*state, "ranks", "train", "7,8");
    support_shell(folder, "rm -r data && \"$MILLRACE_BIN\" ingest source data --shard-size 4KiB --quiet && "
                          "test -e data/train-00003.mdb");
    support_result r = train_run(folder, 3, "--steps", "1", "--batch", "4", "--loss", "ce", (char *)NULL);
    support_assert_status(&r, 2);
    char *both = support_path("%s%s", r.out, r.err);
    if (!strstr(both, "of the 28 samples of train 2 are without a label of their own (the first is 5), and"))
        fail_msg("%s", both);
    free(both);
    support_result_free(&r);
}

/* The way out leads out: test has labels. */
static void another_split_may_evaluate(void **state)
{
    TRAIN_PATH(folder, *state, "other");
    make_data(*state, "other", "valid", "3");
    train_expect(0, folder, 0, "--epochs", "1", "--batch", "4", "--eval-split", "test", (char *)NULL);
}

/* eval says the same before it loads anything; predict needs no labels. */
static void eval_counts_them_too(void **state)
{
    TRAIN_PATH(folder, *state, "judged");
    make_data(*state, "judged", "valid", "3,4");
    train_expect(0, folder, 0, "--steps", "1", "--batch", "4", "--eval-split", "test", "--output", "run", (char *)NULL);
    support_result r = train_command(2, folder, 0, "eval", "data", "run", "--split", "val", (char *)NULL);
    assert_string_equal(r.out, "");
    assert_non_null(strstr(
        r.err, "of the 8 samples of val 2 are without a label of their own (the first is 1), and a "
               "classifier needs labels; leave them out with a view (millrace view OUT data --class NAMES), or use "
               "'millrace predict', which needs no labels"));
    support_result_free(&r);
    r = train_command(0, folder, 0, "predict", "data", "run", "--split", "val", (char *)NULL);
    support_result_free(&r);
    r = train_command(0, folder, 0, "eval", "data", "run", "--split", "test", (char *)NULL);
    support_result_free(&r);
}

/* COCO's samples have objects and captions, but no label of their own. */
static void a_split_without_a_label_is_refused_at_once(void **state)
{
    TRAIN_PATH(folder, *state, "captions");
    assert_int_equal(mkdir(folder, 0777), 0);
    train_make_captions(folder);
    support_result r = train_run(folder, 0, "--steps", "1", "--loss", "ce", (char *)NULL);
    support_assert_status(&r, 2);
    assert_string_equal(r.out, "");
    assert_non_null(strstr(r.err, "no sample of train has a label of its own"));
    assert_non_null(strstr(r.err, "--model bridgetower"));
    support_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_few_are_counted),    cmocka_unit_test(none_at_all_is_said_first),
        cmocka_unit_test(ranks_count_together), cmocka_unit_test(another_split_may_evaluate),
        cmocka_unit_test(eval_counts_them_too), cmocka_unit_test(a_split_without_a_label_is_refused_at_once),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}

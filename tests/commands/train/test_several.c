/* test_several.c - training, evaluation and prediction of several labels per sample, through the program.
 * Invariant tested: the loss is chosen by what the labels mean, and said; ranks and resuming change nothing; eval finds
 * what the training found.
 * Covers run/learning.c, setup/labels.c, evaluate/evaluation.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tests/support/training/train.h"

/* Both sets at their simplest form: of up to two large figures, one at each side. */
static void make(const char *dir, const char *layout, const char *variant, const char *images, const char *name)
{
    TRAIN_PATH(data, dir, name);
    char *source = support_path("%s-source", data);
    support_expect(0, "sample", source, "--layout", layout, "--images", images, "--size", "32", "--simple", "--quiet",
                   variant ? "--variant" : NULL, variant, (char *)NULL);
    support_expect(0, "ingest", source, data, "--quiet", (char *)NULL);
    free(source);
}

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    make(dir, "coco", NULL, "1200", "coco");
    make(dir, "roboflow", "multi-class", "2400", "table");
    make(dir, "coco", NULL, "60", "data");
    make(dir, "roboflow", "folder", "40", "single");
    *state = dir;
    return 0;
}

/* ---- what is learned --------------------------------------------------------------------------------------------- */

static void drawn_sets_are_learned(void **state)
{
    static const char *const sets[] = {"coco", "table"};
    for (size_t i = 0; i < MR_COUNT(sets); i++) {
        support_result r =
            train_command(0, *state, 0, "train", sets[i], "--model", "vit", "--image-size", "32", "--patch", "16",
                          "--hidden", "64", "--layers", "2", "--heads", "4", "--mlp", "128", "--batch", "32",
                          "--scale-min", "0.9", "--lr", "0.3", "--steps", "800", "--eval-every", "0", (char *)NULL);
        const char *at = strstr(r.out, "Valid mAP: ");
        assert_non_null(strstr(r.out, "Several labels per sample (--loss bce): of "));
        assert_non_null(at);
        if (strtod(at + strlen("Valid mAP: "), NULL) < 0.5) /* 0.65 where it was measured; a guess has 0.13 */
            fail_msg("%s: %.40s", sets[i], at);
        support_result_free(&r);
    }
}

static void weights_and_smoothing_change_what_is_learned(void **state)
{
    static const char *const ways[][2] = {
        {"--class-weights", "balanced"}, {"--label-smoothing", "0.1"}, {"--loss", "auto"}};
    const char *dir = *state;
    for (size_t several = 0; several < 2; several++)
        for (size_t i = 0; i < MR_COUNT(ways); i++) {
            char *name = support_path("way-%zu-%zu", several, i);
            support_result r =
                train_run(dir, 0, several ? "--steps" : "--quiet", several ? "2" : "--steps=2", "--batch", "4",
                          "--eval-every", "0", "--output", name, ways[i][0], ways[i][1], (char *)NULL);
            support_assert_status(&r, 0);
            support_result_free(&r);
            free(name);
        }
    for (size_t i = 0; i < 2; i++) {
        char *way = support_path("%s/way-1-%zu/step-00000002/weights.npz", dir, i);
        IN(plain, "way-1-2/step-00000002/weights.npz");
        assert_true(train_weights_distance(way, plain) > 0);
        free(way);
    }
}

/* ---- ranks, resuming --------------------------------------------------------------------------------------------- */

static void ranks_learn_the_same(void **state)
{
    const char *dir = *state;
    IN(one, "one.jsonl");
    IN(two, "two.jsonl");
    train_expect(0, dir, 0, "--steps", "6", "--batch", "8", "--eval-every", "3", "--log", "one.jsonl", (char *)NULL);
    train_expect(0, dir, 2, "--steps", "6", "--batch", "4", "--eval-every", "3", "--log", "two.jsonl", (char *)NULL);
    assert_true(train_log_distance(one, two, "loss") < 1e-4);
    assert_true(train_log_distance(one, two, "eval_loss") < 1e-4);
}

static void a_run_resumes(void **state)
{
    const char *dir = *state;
    train_expect(0, dir, 0, "--steps", "4", "--batch", "4", "--eval-every", "2", "--output", "whole", "--class-weights",
                 "balanced", (char *)NULL);
    train_expect(0, dir, 0, "--steps", "4", "--batch", "4", "--eval-every", "2", "--output", "half", "--class-weights",
                 "balanced", "--stop-after", "2", (char *)NULL);
    support_result r = train_command(0, dir, 0, "train", "data", "--resume", "--output", "half", (char *)NULL);
    support_result_free(&r);
    IN(whole, "whole/step-00000004/weights.npz");
    IN(half, "half/step-00000004/weights.npz");
    support_assert_same_file(whole, half);
    IN(whole_state, "whole/step-00000004/state.json");
    json_t *facts = json_load_file(whole_state, 0, NULL);
    assert_true(json_real_value(json_object_get(facts, "threshold")) > 0);
    json_decref(facts);
}

/* ---- eval and predict -------------------------------------------------------------------------------------------- */

static void eval_finds_what_the_training_found(void **state)
{
    const char *dir = *state;
    IN(log, "judged.jsonl");
    train_expect(0, dir, 0, "--steps", "4", "--batch", "4", "--eval-every", "0", "--output", "judged", "--log",
                 "judged.jsonl", (char *)NULL);
    json_t *lines = train_log(log, "eval_loss");
    const json_t *last = json_array_get(lines, json_array_size(lines) - 1);
    for (unsigned ranks = 0; ranks <= 2; ranks += 2) {
        support_result r = train_command(0, dir, ranks, "eval", "data", "judged", "--json", (char *)NULL);
        json_t *doc = json_loads(r.out, 0, NULL);
        assert_non_null(doc);
        double map = json_real_value(json_object_get(doc, "mean_average_precision"));
        assert_true(fabs(map - json_real_value(json_object_get(last, "eval_mean_average_precision"))) < 1e-6);
        assert_true(fabs(json_real_value(json_object_get(doc, "f1")) -
                         json_real_value(json_object_get(last, "eval_f1"))) < 1e-6);
        assert_int_equal(json_array_size(json_object_get(doc, "classes")), 11);
        assert_null(json_object_get(doc, "accuracy"));
        json_decref(doc);
        support_result_free(&r);
    }
    json_decref(lines);
    support_result r = train_command(0, dir, 0, "eval", "data", "judged", "--threshold", "0.9999", (char *)NULL);
    assert_non_null(strstr(r.out, ", F1 0.00000 at probability 0.9999, loss "));
    assert_non_null(strstr(r.out, "\n  class     samples  average precision  precision  recall      F1\n"));
    support_result_free(&r);
}

static void predict_has_a_column_for_each_class(void **state)
{
    const char *dir = *state;
    train_expect(0, dir, 0, "--steps", "2", "--batch", "4", "--eval-every", "0", "--output", "seen", (char *)NULL);
    support_result r = train_command(0, dir, 0, "predict", "data", "seen", "--threshold", "0.000001", (char *)NULL);
    support_result two = train_command(0, dir, 2, "predict", "data", "seen", "--threshold", "0.000001", (char *)NULL);
    assert_string_equal(r.out, two.out);
    assert_non_null(strstr(r.out, "sample,source,labels,found,person,circle,square,triangle,star,ring,cross,hexagon,"
                                  "moon,heart,arrow\n0,val2017/"));
    assert_non_null(strstr(r.out, ",person;circle;square;triangle;star;ring;cross;hexagon;moon;heart;arrow,0."));
    support_result_free(&r);
    support_result_free(&two);
    r = train_command(0, dir, 0, "predict", "data", "seen", "--format", "json", "--threshold", "1", (char *)NULL);
    *strchr(r.out, '\n') = '\0';
    json_t *line = json_loads(r.out, 0, NULL);
    assert_non_null(line);
    assert_int_equal(json_object_size(json_object_get(line, "probabilities")), 11);
    assert_true(json_is_array(json_object_get(line, "labels")));
    assert_int_equal(json_array_size(json_object_get(line, "found")), 0);
    json_decref(line);
    support_result_free(&r);
}

/* ---- contradictions ---------------------------------------------------------------------------------------------- */

static void what_does_not_fit_is_refused(void **state)
{
    static const struct {
        const char *argv[8], *words;
    } cases[] = {
        {{"train", "data", "--loss", "ce", "--model", "ViT-B_16"},
         "no sample of train has a label of its own, and a classifier needs labels; train on several"},
        {{"train", "data", "--label-smoothing", "1", "--model", "ViT-B_16"}, "--label-smoothing 1: must be"},
        {{"train", "data", "--loss", "hinge"}, "hinge"},
        {{"train", "data", "--loss", "bce", "--model", "bridgetower-large"},
         "--loss: is for classifiers, but --model bridgetower-large is trained on"},
        {{"train", "data", "--class-weights", "balanced", "--model", "bridgetower"},
         "--class-weights: is for classifiers"},
        {{"eval", "single", "one-label", "--threshold", "0.5"}, "is not a multi-label model"},
        {{"predict", "data", "refusing", "--top", "3"}, "--top: refusing/step-00000001 is a multi-label model"},
        {{"predict", "data", "refusing", "--find", "images"}, "--embeddings and --find are for image-text models"},
    };
    const char *dir = *state;
    train_expect(0, dir, 0, "--steps", "1", "--eval-every", "0", "--output", "refusing", (char *)NULL);
    support_result one = train_command(0, dir, 0, "train", "single", "--model", "vit", "--image-size", "24", "--patch",
                                       "8", "--hidden", "16", "--layers", "1", "--heads", "2", "--mlp", "32", "--steps",
                                       "1", "--output", "one-label", (char *)NULL);
    support_result_free(&one);
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        const char *const *a = cases[i].argv;
        support_result r = train_command(2, dir, 0, a[0], a[1], a[2], a[3], a[4], a[5], (char *)NULL);
        if (!strstr(r.err, cases[i].words))
            fail_msg("%zu: %s", i, r.err);
        support_result_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_sets_are_learned),
        cmocka_unit_test(weights_and_smoothing_change_what_is_learned),
        cmocka_unit_test(ranks_learn_the_same),
        cmocka_unit_test(a_run_resumes),
        cmocka_unit_test(eval_finds_what_the_training_found),
        cmocka_unit_test(predict_has_a_column_for_each_class),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}

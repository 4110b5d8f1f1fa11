/* test_learning.c - training learns, and does not merely run.
 * Invariant tested: accuracies that a model that does not learn would almost never reach, on drawn pictures and on
 * photographs. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "tests/support/support.h"

/* The best accuracy of a run with these arguments. */
static double best_accuracy(const char *dir, const char *const *argv)
{
    support_limits limits = {.directory = dir};
    support_result r = support_run(argv, &limits);
    support_assert_status(&r, 0);
    support_result_free(&r);
    char *path = support_path("%s/run/train_results.json", dir);
    json_t *results = json_load_file(path, 0, NULL);
    assert_non_null(results);
    double best = json_number_value(json_object_get(results, "best_accuracy"));
    json_decref(results);
    free(path);
    return best;
}

/* In both precisions. */
static void drawn_shapes_are_learned(void **state)
{
    static const char *const precisions[] = {"float32", "bf16"};
    (void)state;
    char *dir = support_tmpdir(), *source = support_path("%s/source", dir), *data = support_path("%s/data", dir);
    support_expect(0, "sample", source, "--layout", "imagenette", "--simple", "--images", "3000", "--size", "32",
                   "--quiet", (char *)NULL);
    support_expect(0, "ingest", source, data, "--quiet", (char *)NULL);
    const char *argv[] = {support_millrace_path(),
                          "train",
                          "data",
                          "--model",
                          "vit",
                          "--image-size",
                          "32",
                          "--patch",
                          "8",
                          "--hidden",
                          "64",
                          "--layers",
                          "2",
                          "--heads",
                          "4",
                          "--mlp",
                          "128",
                          "--dropout",
                          "0",
                          "--flip",
                          "--optimizer",
                          "adamw",
                          "--lr",
                          "0.001",
                          "--scale-min",
                          "0.9",
                          "--epochs",
                          "15",
                          "--eval-every",
                          "0",
                          "--overwrite-output",
                          "--output",
                          "run",
                          "--precision",
                          NULL,
                          NULL};
    for (size_t i = 0; i < MR_COUNT(precisions); i++) {
        argv[MR_COUNT(argv) - 2] = precisions[i];
        double best = best_accuracy(dir, argv);
        /* Chance is 0.1, and 900 pictures are judged. */
        if (best < 0.5)
            fail_msg("accuracy %.3f in %s", best, precisions[i]);
    }
    free(source);
    free(data);
    support_tmpdir_remove(dir);
}

static void flowers_are_learned(void **state)
{
    (void)state;
    char *photographs = support_data("roboflow/folder_flowers");
    if (!photographs) {
        print_message("roboflow/folder_flowers is not there: learning from photographs is not tried\n");
        skip();
    }
    char *dir = support_tmpdir(), *data = support_path("%s/data", dir);
    support_expect(0, "ingest", photographs, data, "--split-map", "test=val", "--quiet", (char *)NULL);
    const char *argv[] = {support_millrace_path(),
                          "train",
                          "data",
                          "--model",
                          "vit",
                          "--image-size",
                          "64",
                          "--patch",
                          "8",
                          "--hidden",
                          "64",
                          "--layers",
                          "2",
                          "--heads",
                          "4",
                          "--mlp",
                          "128",
                          "--flip",
                          "--optimizer",
                          "adamw",
                          "--lr",
                          "0.001",
                          "--scale-min",
                          "0.3",
                          "--batch",
                          "20",
                          "--epochs",
                          "10",
                          "--eval-every",
                          "50",
                          "--output",
                          "run",
                          NULL};
    double best = best_accuracy(dir, argv);
    /* Chance is 0.5 with a standard deviation of 0.021 over 546 pictures. */
    if (best < 0.62)
        fail_msg("accuracy %.3f", best);
    free(photographs);
    free(data);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_shapes_are_learned),
        cmocka_unit_test(flowers_are_learned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_inspect_run.c - `millrace inspect RUN`, and what eval, predict and results say about where a model comes from.
 * Invariant tested: dataset, seed, order, options and version are those of the training, whatever became of its dataset
 * since.
 * Covers train/report/run_print.c, train/report/cmd_inspect.c, train/cmd_session.c. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/faults.h"
#include "tests/support/training/train.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_dataset(dir, 60);
    train_expect(0, dir, 0, "--steps", "3", "--batch", "4", "--seed", "9", "--output", "run", (char *)NULL);
    *state = dir;
    return 0;
}

static char *digest_of(const char *dir, const char *data)
{
    support_result r = train_command(0, dir, 0, "inspect", data, "--json", (char *)NULL);
    json_t *doc = json_loads(r.out, 0, NULL);
    char *digest = strdup(json_string_value(json_object_get(doc, "digest")));
    json_decref(doc);
    support_result_free(&r);
    return digest;
}

static void a_run_is_shown(void **state)
{
    char *digest = digest_of(*state, "data");
    support_result r = train_command(0, *state, 0, "inspect", "run", (char *)NULL);
    const char *updates = strstr(r.out, "  updates     3\n  evaluated   accuracy 0.");
    const char *rest = strstr(r.out, "  dataset     data\n");
    char *expected = support_path("  dataset     data\n"
                                  "  digest      %s\n"
                                  "  seed        9, order full\n"
                                  "  options     model=vit, image-size=24, patch=8, hidden=16, layers=2, heads=2, "
                                  "mlp=32, batch=4, steps=3, lr=0.05, seed=9, threads=1\n",
                                  digest);
    if (strncmp(r.out,
                "run: vit, 7,914 parameters, trained by millrace " MILLRACE_VERSION "\n"
                "  checkpoint  run/step-00000003\n",
                60) != 0 ||
        !updates || !rest || strcmp(rest, expected) != 0)
        fail_msg("%s", r.out);
    free(expected);
    free(digest);
    support_result_free(&r);
}

static void json_and_results_say_the_same(void **state)
{
    const char *dir = *state;
    IN(results, "run/train_results.json");
    char *digest = digest_of(dir, "data");
    support_result r = train_command(0, dir, 0, "inspect", "run/step-00000003", "--json", (char *)NULL);
    json_t *shown = json_loads(r.out, 0, NULL), *kept = json_load_file(results, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(shown, "dataset")), digest);
    assert_string_equal(json_string_value(json_object_get(kept, "dataset_digest")), digest);
    assert_string_equal(json_string_value(json_object_get(shown, "version")), MILLRACE_VERSION);
    assert_string_equal(json_string_value(json_object_get(kept, "version")), MILLRACE_VERSION);
    assert_string_equal(json_string_value(json_object_get(kept, "seed")), "9");
    assert_string_equal(json_string_value(json_object_get(kept, "order")), "full");
    assert_string_equal(json_string_value(json_object_get(json_object_get(shown, "options"), "batch")), "4");
    json_decref(shown);
    json_decref(kept);
    support_result_free(&r);
    free(digest);
}

static void what_is_for_datasets_is_refused(void **state)
{
    support_result r = train_command(2, *state, 0, "inspect", "run", "--classes", (char *)NULL);
    assert_non_null(strstr(r.err, "run: is a run; --croissant, --classes, "));
    support_result_free(&r);
}

static void another_dataset_is_named(void **state)
{
    const char *dir = *state;
    char *digest = digest_of(dir, "data");
    support_result r = train_command(0, dir, 0, "eval", "data", "run", (char *)NULL);
    assert_string_equal(r.err, "");
    support_result_free(&r);
    support_shell(dir, "mkdir more");
    IN(more, "more");
    train_make_dataset(more, 80);
    char *said =
        support_path("note: run/step-00000003 was trained on another dataset (digest %.16s...; this one's is ", digest);
    const char *const commands[] = {"eval", "predict"};
    for (size_t i = 0; i < 2; i++) {
        r = train_command(0, dir, 0, commands[i], "more/data", "run", (char *)NULL);
        assert_non_null(strstr(r.err, said));
        support_result_free(&r);
    }
    r = train_command(0, dir, 0, "eval", "more/data", "run", "--json", (char *)NULL);
    json_t *doc = json_loads(r.out, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(doc, "trained_on")), digest);
    assert_string_not_equal(json_string_value(json_object_get(doc, "dataset_digest")), digest);
    json_decref(doc);
    support_result_free(&r);
    free(said);
    free(digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_shown),
        cmocka_unit_test(json_and_results_say_the_same),
        cmocka_unit_test(what_is_for_datasets_is_refused),
        cmocka_unit_test(another_dataset_is_named),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}

/* test_sweep.c - `millrace sweep`: short runs of train in many ways, as a table and as JSON.
 * Invariant tested: a way that cannot work is in the table with its reason and ends nothing; the command that is
 * printed is one that works. Covers train/sweep.c, train/sweep_plan.c, train/sweep_process.c, train/cmd_sweep.c,
 * train/plan.c. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/pool.h"
#include "support/faults.h"
#include "support/train.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_dataset(dir, 60);
    *state = dir;
    return 0;
}

/* `millrace sweep data ... -- a tiny model`; the caller frees. */
static support_result sweep(int status, const char *dir, const char *a, const char *b, const char *c, const char *d)
{
    const char *more[] = {a, b, c, d};
    const char *argv[40] = {support_millrace_path(), "sweep", "data", "--threads", "1", "--seconds", "0.01",
                            "--recompute",           "no"};
    static const char *const model[] = {"--", "--model",  "vit", "--image-size", "16", "--patch", "8", "--hidden",
                                        "16", "--layers", "1",   "--heads",      "1",  "--mlp",   "16"};
    size_t n = 9;
    for (size_t i = 0; i < 4 && more[i]; i++)
        argv[n++] = more[i];
    for (size_t i = 0; i < MR_COUNT(model); i++)
        argv[n++] = model[i];
    support_limits limits = {.directory = dir};
    support_result r = support_run(argv, &limits);
    support_assert_status(&r, status);
    return r;
}

static json_t *sweep_json(const char *dir, const char *a, const char *b, const char *c)
{
    support_result r = sweep(0, dir, "--json", a, b, c);
    json_t *doc = json_loads(r.out, 0, NULL);
    assert_non_null(doc);
    support_result_free(&r);
    return doc;
}

static const char *skipped(const json_t *doc, size_t way)
{
    const char *why = json_string_value(json_object_get(json_array_get(json_object_get(doc, "ways"), way), "skipped"));
    return why ? why : "";
}

static void a_table_and_a_command(void **state)
{
    support_result r = sweep(0, *state, "--ranks=1", "--batch=2,4", NULL, NULL);
    char *rest = NULL;
    assert_int_equal(strncmp(r.out, "  ranks  threads  batch  samples/s", 34), 0);
    assert_non_null(strstr(r.out, "\n      1        1      2 "));
    assert_non_null(strstr(r.out, "\n      1        1      4 "));
    char *command = strstr(r.out, "samples/s:\n  millrace train data --model vit ");
    assert_non_null(command);
    command = strstr(command, "train data ");
    command[strcspn(command, "\n")] = '\0';
    rest = support_path("'%s' %s --steps 1 --quiet", support_millrace_path(), command);
    support_shell(*state, rest);
    free(rest);
    assert_string_equal(r.err, "");
    support_result_free(&r);
}

static void ways_that_cannot_work_are_skipped(void **state)
{
    char *threads = support_path("--threads=1,%u", mr_pool_processors() + 1);
    json_t *doc = sweep_json(*state, "--ranks=1", threads, "--batch=2");
    const char *command = json_string_value(json_object_get(doc, "command"));
    assert_int_equal(json_array_size(json_object_get(doc, "ways")), 2);
    assert_int_equal(strncmp(skipped(doc, 1), "more threads than the ", 22), 0);
    assert_non_null(strstr(command, " --threads 1 --batch 2"));
    json_decref(doc);
    free(threads);
    doc = sweep_json(*state, "--ranks=1,2", "--launcher=no-such-launcher -x", "--batch=2");
    if (mr_pool_processors() > 1)
        assert_non_null(strstr(skipped(doc, 1), "no-such-launcher: cannot be run"));
    assert_string_equal(skipped(doc, 0), "");
    json_decref(doc);
    doc = sweep_json(*state, "--ranks=1", "--decoder=auto,best", "--batch=2");
    assert_string_equal(skipped(doc, 1), "train: --decoder best: use auto or libjpeg");
    json_decref(doc);
    doc = sweep_json(*state, "--ranks=1", "--budget=0.001s", "--batch=2");
    assert_string_equal(skipped(doc, 0), "no time is left (--budget)");
    assert_null(json_object_get(doc, "best"));
    json_decref(doc);
}

static void what_no_way_accepts_is_an_error(void **state)
{
    static const struct {
        const char *option, *words;
    } cases[] = {
        {"--ranks=0", "millrace: --ranks 0: expected numbers from 1 to 1024\n"},
        {"--ranks=two", "millrace: --ranks two: expected numbers from 1 to 1024\n"},
        {"--batch=,", "millrace: --batch ,: gives no value\n"},
        {"--batch=-1", "millrace: train: --batch -1: "},
        {"--budget=soon", "millrace: --budget soon: expected a time such as 90s, 5m or 1h\n"},
    };
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        support_result r = sweep(2, *state, cases[i].option, NULL, NULL, NULL);
        if (strncmp(r.err, cases[i].words, strlen(cases[i].words)) != 0)
            fail_msg("%s: %s", cases[i].option, r.err);
        support_result_free(&r);
    }
    support_result r =
        train_command(2, *state, 0, "sweep", "data", "--ranks", "1", "--", "--modell", "x", (char *)NULL);
    assert_non_null(strstr(r.err, "train: unknown option --modell; did you mean --model?"));
    support_result_free(&r);
}

static void a_plan_as_json(void **state)
{
    static const char *const numbers[] = {"parameters",  "updates", "weights_and_gradients", "optimizer",
                                          "activations", "loader",  "memory_per_rank"};
    support_result r = train_run(*state, 0, "--plan=json", (char *)NULL);
    support_assert_status(&r, 0);
    json_t *doc = json_loads(r.out, 0, NULL);
    json_int_t sum = 0;
    for (size_t i = 0; i < MR_COUNT(numbers); i++) {
        json_int_t value = json_integer_value(json_object_get(doc, numbers[i]));
        assert_true(value > 0);
        sum += i >= 2 && i < 6 ? value : 0;
    }
    assert_int_equal(sum, json_integer_value(json_object_get(doc, "memory_per_rank")));
    assert_true(json_real_value(json_object_get(doc, "training_flops_per_sample")) > 0);
    json_decref(doc);
    support_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_and_a_command),
        cmocka_unit_test(ways_that_cannot_work_are_skipped),
        cmocka_unit_test(what_no_way_accepts_is_an_error),
        cmocka_unit_test(a_plan_as_json),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}

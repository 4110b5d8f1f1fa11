/* test_run_page.c - `millrace report RUN`: a page about a training run.
 * Covers train/report/run_page.c, train/report/confusion.c, train/report/class_scores.c, train/report/mistakes.c,
 * train/report/curve.c, shards/report/frame.c. Invariant tested: the page says what the run's files say; no text of a
 * run becomes markup; without its dataset it has no pictures, and says why. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/report/curve.h"
#include "tests/support/faults.h"
#include "tests/support/training/checkpoint.h"
#include "tests/support/support.h"

static void run_in(const char *dir, int status, const char *const *args)
{
    support_limits in = {.directory = dir};
    support_result r = support_millrace_under(args, &in);
    support_assert_status(&r, status);
    support_result_free(&r);
}

#define RUN(dir, status, ...) run_in(dir, status, (const char *const[]){__VA_ARGS__, NULL})

static char *read_in(const char *dir, const char *name)
{
    char *path = support_path("%s/%s", dir, name), *text = (char *)support_read(path, NULL);
    free(path);
    return text;
}

/* A dataset "ds" and a run "run" of 12 updates, evaluated after 6 and 12. */
static int set_up(void **state)
{
    if (support_tmpdir_set_up(state) != 0)
        return 1;
    RUN(*state, 0, "sample", "src", "--layout", "imagenette", "--simple", "--size", "32", "--images", "100", "-q");
    RUN(*state, 0, "ingest", "src", "ds", "-q");
    RUN(*state, 0, "train", "ds", "--model", "vit", "--image-size", "16", "--patch", "8", "--hidden", "16", "--layers",
        "1", "--heads", "1", "--mlp", "16", "--batch", "8", "--steps", "12", "--eval-every", "6", "--threads", "1",
        "--output", "run", "-q");
    return 0;
}

static void test_ticks(void **state)
{
    (void)state;
    static const double ranges[][2] = {{0, 1}, {0.3, 0.3001}, {-5, 7}, {1, 700}, {0, 1e9}, {1e-9, 3e-9}, {0, 3.4e38}};
    for (size_t i = 0; i < MR_COUNT(ranges); i++) {
        double ticks[5];
        size_t n = mr_ticks(ranges[i][0], ranges[i][1], 5, ticks);
        assert_in_range(n, 2, 5);
        for (size_t k = 0; k < n; k++) {
            double slack = (ranges[i][1] - ranges[i][0]) * 1e-6;
            assert_true(ticks[k] >= ranges[i][0] - slack && ticks[k] <= ranges[i][1] + slack);
            assert_true(k == 0 || ticks[k] > ticks[k - 1]);
        }
    }
}

static void test_chart(void **state)
{
    (void)state;
    mr_point points[1000], one = {5, 2};
    mr_curve curve = {.points = points, .count = 1000, .left_out = 3}, single = {.points = &one, .count = 1};
    mr_buf out = {0};
    for (size_t i = 0; i < 1000; i++)
        points[i] = (mr_point){i + 1, (float)(i % 2)};
    mr_chart_add(&out, &(mr_chart){.title = "Loss", .curves = {{"training", &curve}, {"evaluation", &single}}});
    const char *text = mr_buf_text(&out);
    assert_non_null(strstr(text, "aria-label=\"training: 0 after update 1, 1 after update 1,000. "
                                 "evaluation: 2 after update 5, 2 after update 5. \""));
    assert_non_null(strstr(text, "3 values are not finite and are left out."));
    const char *line = strstr(text, "<polyline class=\"l0\" points=\""), *end = strstr(line, "\"/>");
    assert_in_range(support_occurrences(line, ",") - support_occurrences(end, ","), 200, 300);
    mr_buf_clear(&out);
    mr_chart_add(&out, &(mr_chart){.title = "Accuracy", .curves = {{NULL, &single}}, .percent = true});
    assert_non_null(strstr(mr_buf_text(&out), "200 %"));
    assert_null(strstr(mr_buf_text(&out), "nan"));
    mr_buf_clear(&out);
    const mr_point fast[] = {{.step = 1, .value = 50000}, {.step = 2, .value = 120000}};
    mr_chart_add(&out, &(mr_chart){.title = "Images",
                                   .curves = {{NULL, &(mr_curve){.points = (mr_point *)(uintptr_t)fast, .count = 2}}},
                                   .from_zero = true});
    assert_non_null(strstr(mr_buf_text(&out), "text-anchor=\"end\">100 k</text>"));
    mr_buf_clear(&out);
    mr_chart_add(&out, &(mr_chart){.title = "None", .curves = {{NULL, &(mr_curve){0}}}});
    assert_int_equal(out.len, 0);
    mr_buf_free(&out);
}

static void test_page(void **state)
{
    RUN(*state, 0, "report", "run", "-o", "page.html", "-q");
    RUN(*state, 0, "report", "run/step-00000012", "-o", "step.html", "-q");
    RUN(*state, 0, "report", "run/", "-o", "again.html", "-q");
    char *page = read_in(*state, "page.html"), *again = read_in(*state, "again.html");
    assert_string_equal(page, again);
    static const char *const parts[] = {"<title>run - training report</title>",
                                        "A model trained by millrace",
                                        "<dt>Updates planned</dt><dd>12</dd>",
                                        "<b>Loss</b>",
                                        "<b>Accuracy</b>",
                                        "<section id=\"time\"",
                                        "Of the evaluation after update 12, on val.",
                                        "<code>--eval-every</code></th><td>6</td>",
                                        "<h3>Most confident mistakes</h3>",
                                        ", predicted "};
    for (size_t i = 0; i < MR_COUNT(parts); i++)
        if (!strstr(page, parts[i]))
            fail_msg("the page lacks %s", parts[i]);
    assert_int_equal(support_occurrences(page, "<figure class=\"chart\""), 5);
    assert_true(support_occurrences(page, "data:image/jpeg") >= 12);
    assert_int_equal(support_occurrences(page, "http"), 0);
    assert_int_equal(support_occurrences(page, "<circle"), 4 + 3 * 12 + 12);
    free(page);
    free(again);
}

/* The matrix and the tables of what evaluation.jsonl says. */
static void test_confusion(void **state)
{
    mr_buf lines = {0};
    for (int i = 0; i < 9; i++)
        mr_buf_printf(&lines,
                      "{\"step\": 12, \"split\": \"val\", \"sample\": %d, \"label\": \"n01440764\", \"predicted\": "
                      "\"%s\", \"probability\": 0.%d, \"loss\": 1}\n",
                      i, i < 5 ? "n02102040" : "n01440764", 9 - i);
    support_put(*state, "run/evaluation.jsonl", mr_buf_text(&lines));
    RUN(*state, 0, "report", "run", "-q");
    char *page = read_in(*state, "report.html");
    assert_non_null(strstr(page, "<tr><td>n01440764</td><td>n02102040</td><td class=\"n\">5</td></tr>"));
    assert_non_null(strstr(page, "<th scope=\"row\">1 n01440764</th><td class=\"n good\" style=\"--p:0.16\">4</td>"
                                 "<td class=\"n bad\" style=\"--p:0.19\">5</td>"));
    assert_non_null(
        strstr(page, "n01440764</th><td class=\"n\">9</td><td class=\"n\">44.4 %</td><td class=\"n\">100.0 %</td>"));
    assert_int_equal(support_occurrences(page, ", predicted n02102040 ("), 5);
    free(page);
    mr_buf_clear(&lines);
    mr_buf_add_text(&lines,
                    "{\"step\": 12, \"split\": \"<b>\", \"sample\": 1, \"words\": \"<script>alert(1)</script>\", "
                    "\"found\": [[99999999999, 0.5, true]]}\n");
    support_put(*state, "run/evaluation.jsonl", mr_buf_text(&lines));
    RUN(*state, 0, "report", "run", "-q");
    page = read_in(*state, "report.html");
    assert_int_equal(support_occurrences(page, "<script"), 1);
    assert_int_equal(support_occurrences(page, "<b>,") + support_occurrences(page, "on <b>"), 0);
    assert_non_null(strstr(page, "&lt;script&gt;alert(1)"));
    assert_non_null(strstr(page, "Found at rank 1."));
    free(page);
    mr_buf_free(&lines);
}

/* With several labels: by class, the lowest average precision first, classes without samples last. */
static void test_class_scores(void **state)
{
    support_put(*state, "run/evaluation.jsonl",
                "{\"step\": 12, \"split\": \"val\", \"class\": \"n01440764\", \"threshold\": 0.25, \"samples\": 1200, "
                "\"average_precision\": 0.75, \"precision\": 0.5, \"recall\": 1, \"f1\": 0.6666}\n"
                "{\"step\": 12, \"split\": \"val\", \"class\": \"n02102040\", \"threshold\": 0.25, \"samples\": 3, "
                "\"average_precision\": 0.125, \"precision\": 0.25, \"recall\": 0.5, \"f1\": 0.3333}\n"
                "{\"step\": 12, \"split\": \"val\", \"class\": \"unknown\", \"samples\": 3}\n");
    RUN(*state, 0, "report", "run", "-q");
    char *page = read_in(*state, "report.html");
    assert_non_null(strstr(page, "found from a probability of 0.25</caption>"));
    const char *low =
        strstr(page, "n02102040</th><td class=\"n\">3</td><td class=\"n\">12.5 %</td><td class=\"n\">25.0 %"
                     "</td><td class=\"n\">50.0 %</td><td class=\"n\">33.3 %</td>");
    const char *high = strstr(page, "n01440764</th><td class=\"n\">1,200</td><td class=\"n\">75.0 %</td>");
    const char *none = strstr(page, "</th><td class=\"n\">0</td><td class=\"n\">-</td>");
    assert_true(low && high && none && low < high && high < none);
    assert_int_equal(support_occurrences(page, "unknown"), 0);
    free(page);
}

static void test_without_the_dataset(void **state)
{
    RUN(*state, 0, "sample", "other", "--layout", "imagenette", "--simple", "--size", "32", "--images", "50", "-q");
    RUN(*state, 0, "ingest", "other", "other.mr", "-q");
    RUN(*state, 0, "report", "run", "-o", "other.html", "--dataset", "other.mr", "-q");
    char *page = read_in(*state, "other.html");
    assert_int_equal(support_occurrences(page, "data:image/jpeg"), 0);
    assert_non_null(strstr(page, "No images: other.mr is not the dataset that this run was trained on."));
    assert_true(support_occurrences(page, ", predicted ") > 5);
    free(page);
    char *ds = support_path("%s/ds", (char *)*state), *moved = support_path("%s/moved", (char *)*state);
    assert_int_equal(rename(ds, moved), 0);
    RUN(*state, 0, "report", "run", "-o", "none.html", "-q");
    page = read_in(*state, "none.html");
    assert_int_equal(support_occurrences(page, "data:image/jpeg"), 0);
    assert_non_null(strstr(page, "give the dataset&#39;s location with --dataset"));
    free(page);
    RUN(*state, 0, "report", "run", "-o", "moved.html", "--dataset", "moved", "-q");
    page = read_in(*state, "moved.html");
    assert_true(support_occurrences(page, "data:image/jpeg") >= 12);
    free(page);
    free(ds);
    free(moved);
}

/* What a run that was killed early has, and what was never a run. */
static void test_little_is_there(void **state)
{
    support_shell(*state, "cp -r run part; rm -r part/tensorboard part/*.json*");
    RUN(*state, 0, "report", "part", "-o", "part.html", "-q");
    char *page = read_in(*state, "part.html");
    assert_null(strstr(page, "<section id=\"curves\""));
    assert_null(strstr(page, "<section id=\"mistakes\""));
    assert_non_null(strstr(page, "<section id=\"options\""));
    free(page);
    support_shell(*state, "mkdir empty; cp run/train_results.json empty");
    RUN(*state, 2, "report", "empty", "-q");
    RUN(*state, 2, "report", "run", "--seed", "3", "-q");
    RUN(*state, 2, "report", "ds", "--dataset", "ds", "-q");
    RUN(*state, 2, "report", "run", "-o", "run/step-00000012/page.html", "-q");
    RUN(*state, 2, "report", "run", "--dataset", "ds", "-o", "ds/page.html", "-q");
    support_put(*state, "run/evaluation.jsonl", "{}\n");
    RUN(*state, 1, "report", "run", "-o", "page.html");
    char *path = support_path("%s/page.html", (char *)*state);
    assert_false(support_exists(path));
    free(path);
}

#define WITH_RUN(test) cmocka_unit_test_setup_teardown(test, set_up, support_tmpdir_tear_down)

/* A checkpoint that somebody else made: every text of its state is markup. */
static void test_a_hostile_state(void **state)
{
    static const char bad[] = "<script>alert(1)</script>";
    char *out = support_path("%s/hostile", (char *)*state);
    mr_error err;
    mr_checkpoint c = make_checkpoint(100, MR_SGD);
    json_decref(c.facts);
    c.facts =
        json_pack("{s:[s], s:{s:s, s:s, s:s, s:s}, s:s, s:s, s:s, s:s}", "classes", bad, "options", "lr", bad, "steps",
                  bad, "optimizer", bad, bad, bad, "dataset", bad, "dataset_path", bad, "loss", bad, "order", bad);
    assert_non_null(c.facts);
    if (mr_checkpoint_write(&c, out, 0, NULL, &err) != MR_OK)
        fail_msg("%s", err.text);
    mr_checkpoint_release(&c);
    RUN(*state, 0, "report", "hostile", "-q");
    char *page = read_in(*state, "report.html");
    assert_int_equal(support_occurrences(page, "<script"), 1);
    assert_non_null(strstr(page, "<dt>Dataset</dt><dd><code>&lt;script&gt;"));
    free(page);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks),       cmocka_unit_test(test_chart),   WITH_RUN(test_page),
        WITH_RUN(test_a_hostile_state),     WITH_RUN(test_confusion),       WITH_RUN(test_class_scores),
        WITH_RUN(test_without_the_dataset), WITH_RUN(test_little_is_there),
    };
    return cmocka_run_group_tests_name("run report", tests, NULL, NULL);
}

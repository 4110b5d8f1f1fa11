/* test_formats.c - what verify found, in the forms that CI services read.
 * Covers verify/formats.c, verify/junit.c, verify/github.c, verify/gitlab.c.
 * Invariant tested: whatever texts hold, a form stays what its readers expect, and lists end somewhere. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"
#include "shards/verify/formats.h"

/* A dataset with `count` damaged samples, one extra file and a warning. */
static mr_verify_report make_report(mr_verify_shard *shard, size_t count)
{
    mr_verify_report r = {.shards = shard, .shard_count = 1};
    mr_problem_add(&r.problems, MR_PROBLEM_EXTRA, NULL, MR_NO_SAMPLE, NULL, "100 %%, a:b\nnext <&>");
    for (size_t i = 0; i < count; i++)
        mr_problem_add(&shard->problems, MR_PROBLEM_RECORD, shard->name, i, "a,b.jpg", "its image differs");
    mr_problem_add(&r.warnings, MR_PROBLEM_MANIFEST, NULL, MR_NO_SAMPLE, NULL, "odd");
    return r;
}

static void release(mr_verify_report *r)
{
    mr_problems_free(&r->problems);
    mr_problems_free(&r->shards->problems);
    mr_problems_free(&r->warnings);
}

static void test_github(void **state)
{
    (void)state;
    mr_verify_shard shard = {.name = "train-00000", .samples = 40};
    mr_verify_report r = make_report(&shard, 2);
    mr_buf out = {0};
    assert_int_equal(mr_verify_github(&r, NULL, "./d,s/", &out, NULL), MR_OK);
    assert_string_equal(mr_buf_text(&out),
                        "::error file=d%2Cs/manifest.json,title=millrace verify%3A extra::100 %25, a:b%0Anext <&>\n"
                        "::error file=d%2Cs/train-00000.mdb,title=millrace verify%3A record::sample 0 (a,b.jpg): its "
                        "image differs\n"
                        "::error file=d%2Cs/train-00000.mdb,title=millrace verify%3A record::sample 1 (a,b.jpg): its "
                        "image differs\n"
                        "::warning file=d%2Cs/manifest.json,title=millrace verify%3A manifest::odd\n");
    release(&r);
    r = make_report(&shard, 30);
    mr_buf_clear(&out);
    assert_int_equal(mr_verify_github(&r, NULL, "ds", &out, NULL), MR_OK);
    assert_int_equal(support_occurrences(mr_buf_text(&out), "::error "), 10);
    assert_non_null(
        strstr(mr_buf_text(&out), "::error title=millrace verify::22 more; 'millrace verify --json' lists"));
    mr_buf_clear(&out);
    assert_int_equal(mr_verify_github(NULL, "no\ndataset", "ds", &out, NULL), MR_OK);
    assert_string_equal(mr_buf_text(&out), "::error title=millrace verify::no%0Adataset\n");
    release(&r);
    mr_buf_free(&out);
}

static json_t *load(mr_buf *out)
{
    json_error_t error;
    json_t *doc = json_loads(mr_buf_text(out), 0, &error);
    if (!doc)
        fail_msg("%s in %s", error.text, mr_buf_text(out));
    mr_buf_clear(out);
    return doc;
}

static const char *text_at(const json_t *doc, const char *key)
{
    return json_string_value(json_object_get(doc, key));
}

static void test_gitlab(void **state)
{
    (void)state;
    mr_verify_shard shard = {.name = "train-00000", .samples = 9999};
    mr_verify_report r = make_report(&shard, 1500);
    mr_buf out = {0};
    assert_int_equal(mr_verify_gitlab(&r, NULL, "ds", &out, NULL), MR_OK);
    json_t *doc = load(&out);
    assert_int_equal(json_array_size(doc), MR_FORMAT_MOST + 1);
    for (size_t i = 0; i < 20; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(text_at(json_array_get(doc, i), "fingerprint"),
                                    text_at(json_array_get(doc, k), "fingerprint"));
    const json_t *one = json_array_get(doc, 2);
    assert_string_equal(text_at(one, "check_name"), "record");
    assert_string_equal(text_at(one, "severity"), "critical");
    assert_string_equal(text_at(json_object_get(one, "location"), "path"), "ds/train-00000.mdb");
    assert_string_equal(text_at(json_array_get(doc, MR_FORMAT_MOST), "description"),
                        "502 more problems; 'millrace verify --json' lists all");
    json_decref(doc);
    assert_int_equal(mr_verify_gitlab(NULL, "no dataset", "ds", &out, NULL), MR_OK);
    doc = load(&out);
    assert_string_equal(text_at(json_array_get(doc, 0), "description"), "no dataset");
    json_decref(doc);
    release(&r);
    mr_buf_free(&out);
}

/* By the program: what is printed, and only that. */
static void test_command(void **state)
{
    support_limits in = {.directory = *state};
    const char *sample[] = {"sample", "src", "--layout", "imagenette", "--images", "12", "-q", NULL};
    const char *ingest[] = {"ingest", "src", "ds", "-q", NULL};
    support_result r = support_millrace_under(sample, &in);
    support_assert_status(&r, 0);
    support_result_free(&r);
    r = support_millrace_under(ingest, &in);
    support_assert_status(&r, 0);
    support_result_free(&r);
    SAYS(*state, 0, "[]\n", "", "verify", "ds", "--format", "gitlab");
    SAYS(*state, 0, "", "", "verify", "ds", "--format", "github", "-q");
    SAYS(*state, 2, "",
         "millrace verify: --json and --format gitlab exclude each other\nTry 'millrace verify --help'.\n", "verify",
         "ds", "--json", "--format", "gitlab");
    support_put(*state, "ds/val-00009.mdb", "x");
    const char *github[] = {"verify", "ds", "--format", "github", NULL};
    r = support_millrace_under(github, &in);
    support_assert_status(&r, 1);
    assert_non_null(strstr(r.out, "ds: intact, but 1 unexpected file\n")); /* people read the log, too */
    assert_non_null(strstr(r.out, "\n::error file=ds/manifest.json,title=millrace verify%3A extra::val-00009.mdb"));
    support_result_free(&r);
    const char *junit[] = {"verify", "nowhere", "--format", "junit", NULL};
    r = support_millrace_under(junit, &in);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.out, "errors=\"1\""));
    support_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_github),
        cmocka_unit_test(test_gitlab),
        IN_TMPDIR(test_command),
    };
    return cmocka_run_group_tests_name("formats", tests, NULL, NULL);
}

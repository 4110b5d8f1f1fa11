/* test_newer_format.c - a dataset that a later millrace made.
 * Invariant tested: every command says in one sentence that it is newer and what it needs, and ends with 2; nothing
 * calls it damaged, and no report for machines has a failed test or sample. */
#include <stdlib.h>
#include <string.h>

#include "millrace.h"
#include "tests/support/json.h"
#include "tests/support/shards/shard.h"

static const char words[] = "ds: manifest.json: its format 3 is newer and needs millrace 7.12 or "
                            "later; this is millrace ";

/* DS: the drawn dataset, of which the manifest says that it is of format 3, and `more`. */
static void make_newer(const char *dir, const char *more)
{
    char *ds = support_path("%s/ds", dir), *path = support_path("%s/manifest.json", ds);
    static const char format[] = "\"format\": 1,";
    support_write_text(path, "");
    draw_dataset(ds);
    char *text = (char *)support_read(path, NULL), *at = strstr(text, format);
    assert_non_null(at);
    char *newer = support_path("%.*s\"format\": 3,%s%s", (int)(at - text), text, more, at + strlen(format));
    support_write_text(path, newer);
    free(newer);
    free(text);
    free(path);
    free(ds);
}

static void every_command_says_so(void **state)
{
    const char *dir = *state;
    static const char *const commands[][6] = {
        {"verify", "ds"},
        {"verify", "ds", "--quick", "--json"},
        {"verify", "ds", "--decode"},
        {"inspect", "ds"},
        {"inspect", "ds", "--classes"},
        {"show", "ds", "train", "0"},
        {"export", "ds", "out"},
        {"report", "ds"},
        {"reindex", "ds"},
        {"seek", "ds"},
        {"seek", "ds", "--drop"},
        {"plan", "ds", "--global-batch", "8"},
        {"replay", "ds", "--global-batch", "8"},
        {"bench", "ds"},
        {"train", "ds", "--output", "run"},
        {"tokenizer", "ds"},
        {"ingest", "ds", "again"},
    };
    make_newer(dir, "\"needs\": \"7.12\",");
    for (size_t i = 0; i < MR_COUNT(commands); i++) {
        support_result r = support_millrace_under(commands[i], &(support_limits){.directory = dir});
        if (r.status != 2 || !strstr(r.err, words) || strstr(r.err, "damaged") || strstr(r.out, "damaged"))
            fail_msg("%s: status %d\n%s%s", commands[i][0], r.status, r.out, r.err);
        support_result_free(&r);
    }
}

static void reports_for_machines(void **state)
{
    const char *dir = *state;
    static const char *const formats[] = {"text", "json", "junit", "github", "gitlab"};
    char *junit = support_path("%s/junit.xml", dir);
    make_newer(dir, "\"needs\": \"7.12\",");
    for (size_t i = 0; i < MR_COUNT(formats); i++) {
        const char *const args[] = {"verify", "ds", "--format", formats[i], "--junit", "junit.xml", NULL};
        support_result r = support_millrace_under(args, &(support_limits){.directory = dir});
        support_assert_status(&r, 2);
        assert_non_null(strstr(r.err, words));
        assert_null(strstr(r.out, "damaged"));
        if (i > 1)
            assert_non_null(strstr(r.out, "its format 3 is newer and needs millrace 7.12"));
        char *xml = (char *)support_read(junit, NULL);
        assert_non_null(strstr(xml, "failures=\"0\" errors=\"1\""));
        assert_non_null(strstr(xml, "<error message=\"ds: manifest.json: its format 3 is newer"));
        assert_null(strstr(xml, "<failure"));
        free(xml);
        support_result_free(&r);
    }
    free(junit);
}

/* What a manifest says is needed is printed only if it is a version. */
static void what_it_needs_may_be_unknown(void **state)
{
    static const char *const more[] = {"", "\"needs\": 7,", "\"needs\": \"\",", "\"needs\": \"ours\\u001b[2J\",",
                                       "\"needs\": \"1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1\","};
    for (size_t i = 0; i < MR_COUNT(more); i++) {
        mr_dataset *opened = NULL;
        mr_error err;
        char *dir = support_path("%s/%zu", (char *)*state, i), *ds = support_path("%s/ds", dir);
        make_newer(dir, more[i]);
        assert_int_equal(mr_dataset_open(ds, &opened, &err), MR_MISUSE);
        assert_non_null(strstr(err.text, "format 3 is newer and needs the version that wrote it or later"));
        free(ds);
        free(dir);
    }
}

/* A folder whose manifest is gone is damaged still. */
static void a_lost_manifest_is_damage(void **state)
{
    char *ds = support_path("%s/ds", (char *)*state), *manifest = support_path("%s/manifest.json", ds);
    make_newer(*state, "");
    assert_int_equal(remove(manifest), 0);
    support_expect(1, "verify", ds, (char *)NULL);
    free(manifest);
    free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(every_command_says_so),
        IN_TMPDIR(reports_for_machines),
        IN_TMPDIR(what_it_needs_may_be_unknown),
        IN_TMPDIR(a_lost_manifest_is_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

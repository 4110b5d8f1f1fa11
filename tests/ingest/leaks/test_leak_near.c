/* test_leak_near.c - --near-duplicates of ingest and inspect: what is reported, where, and with which words.
 * Invariant: the same whatever the number of threads, and with or without --check decode.
 * Covers similar/similar.c, train/report/cmd_inspect_near_print.c. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tests/support/sources/leak.h"

/* A mirrored copy and a darker one under other names, a single tone, a file that is cut short, and others. */
static void draw(void)
{
    mr_picture photo = alike_photo(50, 200, 150), white = alike_tone(250, 250, 250);
    picture whole = alike_file(&photo, ALIKE_WEBP);
    leak_put("train/daisy/a.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("train/daisy/b.jpg", 1, (alike_edit){.gain = 0.8}, ALIKE_ROUGH_JPEG);
    leak_put("train/daisy/c.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    leak_put("train/rose/d.jpg", 3, (alike_edit){0}, ALIKE_JPEG);
    leak_put("valid/daisy/e.png", 2, (alike_edit){.mirror = true}, ALIKE_PNG);
    leak_put("valid/rose/f.jpg", 1, (alike_edit){.degrees = 1}, ALIKE_JPEG);
    leak_put("valid/rose/g.jpg", 4, (alike_edit){0}, ALIKE_JPEG);
    leak_put("valid/rose/same.jpg", 3, (alike_edit){0}, ALIKE_JPEG);
    leak_put_bytes("valid/rose/white.png", alike_file(&white, ALIKE_PNG));
    memset(whole.bytes + whole.len / 2, 0xA5, whole.len / 4);
    leak_put_bytes("valid/rose/damaged.webp", whole);
    mr_picture_free(&photo);
    mr_picture_free(&white);
}

static json_t *ingest(const char *check, const char *jobs)
{
    support_result r = support_millrace("ingest", leak_source, "--dry-run", "--json", "--near-duplicates", "--check",
                                        check, "--jobs", jobs, "--max-rejects", "1", (char *)NULL);
    support_assert_status(&r, 0);
    json_t *doc = json_loads(r.out, 0, NULL);
    support_result_free(&r);
    assert_non_null(doc);
    return doc;
}

static char *lines(json_t *doc, const char *kind)
{
    mr_buf text = {0};
    json_t *note;
    size_t i;
    json_array_foreach(json_object_get(doc, kind), i, note)
        mr_buf_printf(&text, "%s: %s\n", json_string_value(json_object_get(note, "file")),
                      json_string_value(json_object_get(note, "reason")));
    char *copy = strdup(mr_buf_text(&text));
    mr_buf_free(&text);
    return copy;
}

static void expect_lines(json_t *doc, const char *kind, const char *wanted)
{
    char *found = lines(doc, kind);
    assert_string_equal(found, wanted);
    free(found);
}

static void test_what_ingest_reports(void **state)
{
    (void)state;
    draw();
    static const char *const runs[][2] = {{"header", "1"}, {"header", "4"}, {"decode", "3"}};
    for (size_t i = 0; i < MR_COUNT(runs); i++) {
        json_t *doc = ingest(runs[i][0], runs[i][1]);
        expect_lines(doc, "leaks",
                     "valid/daisy/e.png: looks alike, in train and val: also train/daisy/c.jpg\n"
                     "valid/rose/f.jpg: looks alike (with different labels), in train and val: also "
                     "train/daisy/a.jpg\n"
                     "valid/rose/same.jpg: equal bytes, in train and val: also train/rose/d.jpg\n");
        expect_lines(doc, "duplicates", "train/daisy/b.jpg: looks alike, in train: also train/daisy/a.jpg\n");
        json_t *near = json_object_get(doc, "near_duplicates");
        assert_int_equal(json_integer_value(json_object_get(near, "single_tone")), 1);
        json_decref(doc);
    }
    support_expect(0, "ingest", leak_source, "--dry-run", "--quiet", "--max-rejects=1", (char *)NULL);
    support_expect(1, "ingest", leak_source, "--dry-run", "--quiet", "--near-duplicates", "--fail-on-leak=alike",
                   (char *)NULL);
    support_expect(2, "ingest", leak_source, "--dry-run", "--near-distance=4", (char *)NULL);
}

static void test_what_inspect_reports(void **state)
{
    (void)state;
    char *target = support_path("%s/dataset", leak_dir);
    draw();
    support_expect(0, "ingest", leak_source, target, "--quiet", (char *)NULL);
    support_expect(2, "inspect", target, "--near-distance", "4", (char *)NULL);
    support_result r = support_millrace("inspect", target, "--near-duplicates", "--json", "--jobs=3", (char *)NULL);
    support_assert_status(&r, 0);
    json_t *doc = json_loads(r.out, 0, NULL), *near = json_object_get(doc, "near_duplicates");
    assert_int_equal(json_integer_value(json_object_get(near, "equal_leaks")), 1);
    assert_int_equal(json_integer_value(json_object_get(near, "alike_leaks")), 2);
    assert_int_equal(json_integer_value(json_object_get(near, "alike_in_one_split")), 1);
    assert_int_equal(json_integer_value(json_object_get(near, "single_tone")), 1);
    json_t *leak = json_array_get(json_object_get(near, "leaks"), 1);
    assert_string_equal(json_string_value(json_object_get(leak, "source")), "valid/daisy/e.png");
    assert_string_equal(json_string_value(json_object_get(leak, "other_source")), "train/daisy/c.jpg");
    assert_string_equal(json_string_value(json_object_get(leak, "kind")), "looks alike");
    json_decref(doc);
    support_result_free(&r);
    r = support_millrace("inspect", target, "--near-duplicates", (char *)NULL);
    assert_non_null(strstr(r.out, "  leaks: similar images in two splits: 2\n"
                                  "    val 0 (valid/daisy/e.png): also train 2 (train/daisy/c.jpg)\n"));
    support_result_free(&r);
    free(target);
}

/* What the user can change comes first, with how; then the rest. */
static void test_decisions_come_first(void **state)
{
    (void)state;
    draw();
    leak_put_text("train/daisy/words.jpg", "words");
    leak_put_text("notes.txt", "words");
    support_result r = support_millrace("ingest", leak_source, "--dry-run", "--max-rejects", "1", (char *)NULL);
    static const char *const order[] = {"rejected: 1\n", "--max-rejects", "leaks between splits: 1\n", "--fail-on-leak",
                                        "layout ",       "  split  ",     "other files left out: 1\n"};
    const char *at = r.out;
    support_assert_status(&r, 0);
    for (size_t i = 0; i < MR_COUNT(order); i++)
        if (!(at = strstr(at, order[i])))
            fail_msg("%s is missing or in another place:\n%s", order[i], r.out);
    support_result_free(&r);
    r = support_millrace("ingest", leak_source, "--dry-run", "--json", "--max-rejects", "1", (char *)NULL);
    json_t *doc = json_loads(r.out, 0, NULL), *decide = json_object_get(doc, "decide");
    assert_int_equal(json_array_size(decide), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(decide, 0), "kind")), "rejects");
    json_decref(doc);
    support_result_free(&r);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, leak_set_up, leak_tear_down)
    const struct CMUnitTest tests[] = {TEST(test_what_ingest_reports), TEST(test_what_inspect_reports),
                                       TEST(test_decisions_come_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

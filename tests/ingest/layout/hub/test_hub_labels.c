/* test_hub_labels.c - labels and text of hub folders: which column makes classes, and the remarks about it. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/archive.h"
#include "tests/support/sources/hub.h"
#include "tests/support/images/image.h"

#define SCHEMA(label)                                                                                                  \
    "{\"rows\":%zu,\"image\":\"image\",\"columns\":[\"label\",\"Split\",\"fine_label\"],\"label\":" label "}"
#define TEXTS   SCHEMA("{\"column\":\"label\",\"kind\":\"texts\"}")
#define LISTS   SCHEMA("{\"column\":\"label\",\"kind\":\"names\",\"names\":[\"x\",\"y\"],\"list\":true}")
#define NUMBERS SCHEMA("{\"column\":\"label\",\"kind\":\"numbers\"}")

/* ---- labels and texts ----------------------------------------------------------------------------------------- */

static void test_labels(void **state)
{
    static const struct {
        const char *schema, *labels[3];
        int status;
        const char *words;
    } cases[] = {
        {TEXTS, {"\"b\"", "\"A\"", "null"}, 0, "2 classes: A, b"},
        {TEXTS, {"\"a text\"", "\"another\"", "\"b\""}, 0, "layout hub"},
        {NUMBERS, {"0", "2", "-1"}, 0, "3 classes: 0, 1, 2"},
        {NUMBERS, {"0", "2", "-1"}, 0, "label: rows without a label: 1 (-1: 1)"},
        {NUMBERS, {"0", "12345", "9"}, 0, "3 classes: 0, 9, 12345"},
        {NUMBERS, {"10.0", "9.0", "\"NaN\""}, 0, "11 classes: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"},
        {NUMBERS, {"0", "1.5", "1"}, 0, "3 classes: 0, 1, 1.5"},
        {NUMBERS, {"true", "false", "null"}, 0, "2 classes: false, true"},
        {NUMBERS, {"0", "[1]", "1"}, 1, "row 1: \"label\" is a list or an object, not a label"},
        {SCHEMA("null"),
         {"0", "1", "2"},
         0,
         "train.parquet: no column is called label: samples have none; "
         "--label-column accepts one of: label, fine_label"},
        {SCHEMA("null"),
         {"0", "1", "2"},
         0,
         "train.parquet: column Split is not read: a file's split is that of its name"},
        {SCHEMA("{\"column\":\"label\",\"kind\":\"names\",\"names\":[\"x\",\"y\"]}"),
         {"1", "null", "-1"},
         0,
         "2 classes: x, y"},
        {SCHEMA("{\"column\":\"label\",\"kind\":\"names\",\"names\":[\"x\",\"y\"]}"),
         {"1", "2", "0"},
         0,
         "train.parquet/000000001: label has no class of its list of names"},
        {LISTS, {"[1]", "[ 1, 0,1 ]", "null"}, 0, "label: rows without a label: 1 (empty: 1)"},
        {LISTS, {"[1]", "[2]", "[]"}, 0, "train.parquet/000000001: label has no class of its list of names"},
        {LISTS, {"[1]", "[-1]", "[]"}, 0, "train.parquet/000000001: label has no class of its list of names"},
        {LISTS, {"[1]", "[\"1\"]", "[]"}, 0, "train.parquet/000000001: label has no class of its list of names"},
        {SCHEMA("{\"column\":\"label\",\"kind\":\"names\",\"names\":[\"x\",\"x\"]}"),
         {"1", "0", "0"},
         1,
         "classes 0 and 1 have the same name, x"},
        {SCHEMA("{\"column\":\"label\",\"kind\":\"names\",\"names\":[]}"), {"1", "0", "0"}, 1, "has none"},
        {SCHEMA("{\"column\":\"label\",\"kind\":\"other\"}"), {"1", "0", "0"}, 1, "unknown kind of label \"other\""},
        {SCHEMA("{\"kind\":\"texts\"}"), {"1", "0", "0"}, 1, "column"},
        {"{\"rows\":-1}", {"1", "0", "0"}, 1, "rows"},
        {"{\"rows\":", {"1", "0", "0"}, 1, "schema.json: line 1"},
        {"", {"1", "0", "0"}, 1, "schema.json: is missing from the reader's output"},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        support_row rows[3];
        for (size_t k = 0; k < 3; k++)
            rows[k] =
                (support_row){.json = support_path("{\"label\":%s}", cases[i].labels[k]), .width = 4 + (unsigned)k};
        support_hub_file(hub_source, "train.parquet", cases[i].schema, rows, 3);
        hub_ingest(cases[i].status, cases[i].words, NULL, NULL);
        for (size_t k = 0; k < 3; k++)
            free((void *)(uintptr_t)rows[k].json);
        hub_start_again();
    }
}

/* Lists of classes: one is the label, several are a list, none says that the image shows none of them. */
static void test_lists_of_labels(void **state)
{
    static const char *const rows[] = {"[1]", "[ 1, 0,1 ]", "[]", "null"};
    static const char *const metas[] = {"\"label\":1,\"class\":\"y\"", "\"labels\":[0,1],\"classes\":[\"x\",\"y\"]",
                                        "\"labels\":[],\"classes\":[]", "\"columns\":{\"label\":null}"};
    (void)state;
    support_row made[MR_COUNT(rows)];
    for (unsigned i = 0; i < MR_COUNT(rows); i++)
        made[i] = (support_row){.json = support_path("{\"label\":%s}", rows[i]), .width = 4 + i};
    support_hub_file(hub_source, "train.parquet", LISTS, made, MR_COUNT(rows));
    hub_ingest(0, "2 classes: x, y", NULL, NULL);
    for (size_t i = 0; i < MR_COUNT(rows); i++) {
        char *number = support_path("%zu", i);
        support_result r = support_millrace("show", "--json", hub_target, "train", number, (char *)NULL);
        support_assert_status(&r, 0);
        if (!strstr(r.out, metas[i]))
            fail_msg("%s has not %s", r.out, metas[i]);
        support_result_free(&r);
        free(number);
        free((void *)(uintptr_t)made[i].json);
    }
}

/* What was asked for and gives no sample a label is wrong use; what was not is a remark. */
static void test_columns_without_labels(void **state)
{
    static const struct {
        const char *schema, *label, *option;
        int status;
        const char *words;
    } cases[] = {
        {NUMBERS, "null", "--label-column", 2, "--label-column label: no sample has a label there"},
        {NUMBERS, "null", NULL, 0, "no images rejected"},
        {TEXTS, "null", "--label-column", 2, "--label-column label: no row has a value there; choose one of: label"},
        {TEXTS, "null", NULL, 0, "no images rejected"},
        {TEXTS, "\"a text\"", "--label-column", 0, "1 class: a text"},
        {TEXTS, "\"a text\"", NULL, 0,
         "label: a column of strings: samples have no label; --label-column makes classes of it"},
        {SCHEMA("{\"column\":\"label\",\"kind\":\"none\"}"), "0.5", NULL, 0,
         "label: a column of neither integers nor strings: samples have no label"},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        char *json = support_path("{\"label\":%s}", cases[i].label);
        const support_row rows[] = {{.json = json, .width = 4}, {.json = json, .width = 5}};
        support_hub_file(hub_source, "train.parquet", cases[i].schema, rows, MR_COUNT(rows));
        hub_ingest(cases[i].status, cases[i].words, cases[i].option, "label");
        hub_start_again();
        free(json);
    }
}

static void test_files_that_disagree(void **state)
{
    (void)state;
    support_hub_rows(hub_source, "train.parquet", 3, 3, 4);
    support_hub_rows(hub_source, "test.parquet", 3, 2, 14);
    hub_ingest(1, "its labels (label) differ from those of the files before it (label), or have other class names",
               NULL, NULL);
}

static void test_captions(void **state)
{
    static const support_row rows[] = {
        {.json = "{\"label\":\"A\",\"t\":\"one \\\"text\\\" \\u0000\"}", .width = 4},
        {.json = "{\"label\":\"B\",\"t\":[\"two\",null,\"tw\xC3\xB6\"]}", .width = 5},
        {.json = "{\"label\":\"B\",\"t\":null}", .width = 6},
        {.json = "{\"label\":\"B\",\"t\":[\"x\",[\"deep\"]]}", .width = 7},
    };
    (void)state;
    support_hub_file(hub_source, "train.parquet", TEXTS, rows, 3);
    hub_ingest(0, NULL, "--text-column", "t");
    json_t *m = hub_meta("train", "1"), *wanted = json_pack("[ss]", "two", "tw\xC3\xB6");
    assert_true(json_equal(json_object_get(m, "captions"), wanted));
    json_decref(m);
    json_decref(wanted);
    m = hub_meta("train", "2");
    assert_null(json_object_get(m, "captions"));
    json_decref(m);
    support_result r = support_millrace("show", hub_target, "train", "0", "--json", (char *)NULL);
    assert_non_null(strstr(r.out, "one \\\"text\\\" \\u0000"));
    support_result_free(&r);
    hub_start_again();
    support_hub_file(hub_source, "train.parquet", TEXTS, rows, 4); /* a list of lists is not a text */
    hub_ingest(1, "train.parquet/000000003.json: column t", "--text-column", "t");
}

/* ---- rows without an image ------------------------------------------------------------------------------------- */

/* By turns: an image under a name that is left out, and none.  Their notes are more than were there before the rows. */
static void test_why_rows_have_no_image(void **state)
{
    enum { ROWS = 240 };
    static support_entry entries[2 * ROWS + 2];
    char *schema = support_path("{\"rows\":%d,\"image\":\"image\",\"columns\":[],\"label\":null}", ROWS + 1);
    char *names[2 * ROWS + 2], *file = support_path("%s/train.parquet", hub_source);
    picture p = make_png(4, 3, 2, 8, false);
    size_t n = 0, i;
    json_t *note;
    (void)state;
    names[n] = support_path("schema.json");
    entries[n++] = (support_entry){.bytes = schema, .len = strlen(schema)};
    for (i = 0; i <= ROWS; i++) {
        names[n] = support_path("%09zu.json", i);
        entries[n++] = (support_entry){.bytes = "{}", .len = 2};
        if (i % 2)
            continue;
        names[n] = support_path("%09zu/%s%zu.png", i, i < ROWS ? "._" : "", i);
        entries[n++] = (support_entry){.bytes = p.bytes, .len = p.len};
    }
    for (i = 0; i < n; i++)
        entries[i].path = names[i];
    support_write_text(file, "");
    support_archive(file, "tar", entries, n);
    support_result r =
        support_millrace("ingest", hub_source, hub_target, "--max-rejects", "100%", "--json", (char *)NULL);
    support_assert_status(&r, 0);
    json_t *doc = json_loads(r.out, 0, NULL), *rejects = json_object_get(doc, "rejects");
    assert_int_equal(json_array_size(rejects), ROWS);
    json_array_foreach(rejects, i, note)
    {
        char *row = support_path("train.parquet/%09zu", i);
        const char *why = json_string_value(json_object_get(note, "reason"));
        assert_string_equal(json_string_value(json_object_get(note, "file")), row);
        assert_int_equal(strncmp(why, i % 2 ? "the row has no image" : "the row's image is left out: ", 20), 0);
        free(row);
    }
    json_decref(doc);
    support_result_free(&r);
    for (i = 0; i < n; i++)
        free(names[i]);
    picture_free(&p);
    free(schema);
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_labels, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_columns_without_labels, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_lists_of_labels, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_files_that_disagree, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_captions, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_why_rows_have_no_image, hub_set_up, hub_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_newyorker.c - contest rows: configs, rows verbatim in the meta, every member that a row may lack.
 * Covers tables/jsonl.c. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "tests/support/json.h"

#define NEWYORKER &mr_layout_newyorker
#define IMAGES    "all_contest_images/"

static void put_images(const char *dir)
{
    support_put(dir, IMAGES "1.jpeg", "one");
    support_put(dir, IMAGES "2.jpg", "two");
    support_put(dir, IMAGES "30.png", "thirty");
}

/* A config with rows as people write them: blanks, CRLF, an empty line, numbers spelled oddly, no last newline. */
static char *matching_tree(void)
{
    char *dir = support_tmpdir();
    put_images(dir);
    support_put(dir, "matching/train.jsonl",
                "{\"contest_number\": 2, \"label\": \"E\", \"n\": 1.50, \"text\": \"a } \\u00e9\"}\r\n"
                "\r\n"
                "  {\"label\": \"A\", \"inner\": {\"contest_number\": 7, \"label\": 1}, \"contest_number\": 1}\t\n"
                "\n"
                "{\"contest_number\": 99, \"label\": \"C\"}\n"
                "{\"contest_number\": 2, \"label\": null, \"n\": 3}");
    support_put(dir, "matching/val.jsonl", "\xEF\xBB\xBF{\"contest_number\":1,\"label\":\"B\"}\n");
    support_put(dir, "matching/test.jsonl", "");
    return dir;
}

static void test_matching(void **state)
{
    (void)state;
    char *dir = matching_tree();
    support_plan p = support_plan_ok(NEWYORKER, dir, NULL);
    assert_int_equal(p.bid.score, 95);
    assert_string_equal(p.bid.refusal, "");
    assert_string_equal(p.plan.variant_text, "matching");
    support_assert_samples(&p, "train " IMAGES "2.jpg 2 0\ntrain " IMAGES "1.jpeg 0 0\ntrain " IMAGES "2.jpg -1 0\n"
                               "val " IMAGES "1.jpeg 1 0\n");
    assert_int_equal(p.plan.split_count, 2);
    assert_int_equal(p.plan.class_count, 3);
    assert_string_equal(p.plan.classes[0].name, "A");
    assert_string_equal(p.plan.classes[2].name, "E");
    support_assert_meta(&p, 0,
                        ",\"columns\":{\"contest_number\": 2, \"label\": \"E\", \"n\": 1.50, "
                        "\"text\": \"a } \\u00e9\"}");
    support_assert_meta(&p, 1,
                        ",\"columns\":{\"label\": \"A\", \"inner\": {\"contest_number\": 7, \"label\": 1}, "
                        "\"contest_number\": 1}");
    support_assert_meta(&p, 2, ",\"columns\":{\"contest_number\": 2, \"label\": null, \"n\": 3}");
    support_assert_meta(&p, 3, ",\"columns\":{\"contest_number\":1,\"label\":\"B\"}");
    assert_int_equal(support_notes(&p, MR_NOTE_MISSING), 1);
    assert_true(support_has_note(&p, MR_NOTE_MISSING, IMAGES "99.jpeg", "matching/train.jsonl line 5"));
    assert_int_equal(support_notes(&p, MR_NOTE_UNLISTED), 0);
    assert_true(support_has_note(&p, MR_NOTE_INFO, "all_contest_images",
                                 "images left out, as no row of the splits of matching uses them: 1"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void test_configs(void **state)
{
    (void)state;
    char *dir = matching_tree();
    support_put(dir, "ranking_from_pixels_3/validation.jsonl", "{\"contest_number\":1,\"label\":\"B\"}\n");
    support_put(dir, "other/rows.jsonl", "{\"contest_number\":1}\n");
    mr_layout_options options = {0};
    support_plan_fails(NEWYORKER, dir, NULL, MR_MISUSE, "--config: matching, ranking_from_pixels_3");
    options.config = "explanation";
    support_plan_fails(NEWYORKER, dir, &options, MR_MISUSE, "choose one of: matching, ranking_from_pixels_3");
    options.config = "ranking_from_pixels_3";
    support_plan p = support_plan_ok(NEWYORKER, dir, &options);
    assert_string_equal(p.plan.variant_text, "ranking_from_pixels_3");
    support_assert_samples(&p, "val " IMAGES "1.jpeg 0 0\n");
    support_plan_done(&p);
    support_tmpdir_remove(dir);

    dir = support_tmpdir();
    put_images(dir);
    support_put(dir, "train.jsonl", "{\"contest_number\":30}\n");
    p = support_plan_ok(NEWYORKER, dir, NULL);
    assert_string_equal(p.plan.variant_text, "default");
    support_assert_samples(&p, "train " IMAGES "30.png -1 0\n");
    assert_int_equal(p.plan.class_count, 0);
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void test_split_map(void **state)
{
    (void)state;
    char *dir = matching_tree();
    mr_split_map maps[] = {{"train", ""}, {"val", "test"}};
    mr_layout_options options = {.maps = maps, .map_count = 2};
    support_plan p = support_plan_ok(NEWYORKER, dir, &options);
    support_assert_samples(&p, "test " IMAGES "1.jpeg 0 0\n");
    assert_true(support_has_note(&p, MR_NOTE_INFO, "train", "--split-map"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void test_bad_rows(void **state)
{
    (void)state;
    static const struct {
        const char *row, *why;
    } cases[] = {
        {"{\"label\":\"A\"}", "no \"contest_number\""},
        {"{\"contest_number\":\"1\"}", "is not an integer"},
        {"{\"contest_number\":1.0}", "is not an integer"},
        {"{\"contest_number\":null}", "is not an integer"},
        {"{\"contest_number\":99999999999999999999}", "is not an integer"},
        {"{\"contest_number\":1,\"contest_number\":2}", "duplicate key \"contest_number\""},
        {"{\"contest_number\":1,\"label\":\"A\",\"label\":\"B\"}", "duplicate key \"label\""},
        {"[{\"contest_number\":1}]", "not a JSON object"},
        {"\"contest_number\"", "not a JSON object"},
        {"{\"contest_number\":1", "not JSON"},
        {"{\"contest_number\":1}}", "not JSON"},
        {"{\"contest_number\":1}{\"contest_number\":1}", "not JSON"},
        {"{\"contest_number\":1,\"x\":\"\xFF\"}", "not JSON"},
        {"{'contest_number':1}", "not JSON"},
        {"{\"contest_number\":1} \"x", "other text follows after its end"},
        {"{\"contest_number\":1,\f\"x\":1}", "form feed"},
        {"{\"contest_number\":1,\"x\":\"\xC0\x80\"}", "not UTF-8"},
    };
    char *dir = support_tmpdir();
    put_images(dir);
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        char *text = support_path("{\"contest_number\":1}\n\n%s\n{\"contest_number\":1}\n", cases[i].row);
        support_put(dir, "m/train.jsonl", text);
        support_plan_fails(NEWYORKER, dir, NULL, MR_BAD_DATA, cases[i].why);
        support_plan_fails(NEWYORKER, dir, NULL, MR_BAD_DATA, "m/train.jsonl: line 3: ");
        free(text);
    }
    mr_buf deep = {0};
    mr_buf_add_text(&deep, "{\"contest_number\":1,\"x\":");
    for (int i = 0; i < 50000; i++)
        mr_buf_add_text(&deep, "[");
    support_put(dir, "m/train.jsonl", mr_buf_text(&deep));
    support_plan_fails(NEWYORKER, dir, NULL, MR_BAD_DATA, "line 1: byte 224: nested more than 200");
    mr_buf_free(&deep);
    support_tmpdir_remove(dir);
}

/* Rows of every length around the 256 KiB that are read at once. */
static void test_long_rows(void **state)
{
    (void)state;
    static const int lengths[] = {1, 262100, 7, 262144, 600000, 3, 100000, 162000, 262143};
    char *dir = support_tmpdir();
    mr_buf text = {0};
    char *rows[MR_COUNT(lengths)];
    put_images(dir);
    for (size_t i = 0; i < MR_COUNT(lengths); i++) {
        rows[i] = support_path("{\"contest_number\":1,\"pad\":\"%0*zu\"}", lengths[i], i);
        mr_buf_printf(&text, "%s%s", rows[i], i % 2 ? "\n" : "\r\n");
    }
    support_put(dir, "m/train.jsonl", mr_buf_text(&text));
    support_plan p = support_plan_ok(NEWYORKER, dir, NULL);
    assert_int_equal(p.plan.sample_count, MR_COUNT(lengths));
    for (size_t i = 0; i < MR_COUNT(lengths); i++) {
        char *expected = support_path(",\"columns\":%s", rows[i]);
        support_assert_meta(&p, i, expected);
        assert_int_equal(p.plan.samples[i].meta_bytes, strlen(rows[i]));
        free(expected);
        free(rows[i]);
    }
    support_plan_done(&p);
    mr_buf_free(&text);
    support_tmpdir_remove(dir);
}

static void test_bids(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "m/train.jsonl", "{\"contest_number\":1}\n");
    support_plan p = support_plan_at(NEWYORKER, dir, "", NULL);
    assert_int_equal(p.bid.score, 60);
    assert_non_null(strstr(p.bid.refusal, "all_contest_images.zip is missing"));
    support_plan_done(&p);
    support_put(dir, "m/train.jsonl", "{\"number\":1}\n{\"contest_number\":1}\n");
    p = support_plan_at(NEWYORKER, dir, "", NULL);
    assert_int_equal(p.bid.score, 0);
    support_plan_done(&p);
    support_put(dir, "m/train.jsonl", "");
    p = support_plan_at(NEWYORKER, dir, "", NULL);
    assert_int_equal(p.bid.score, 0);
    support_plan_done(&p);
    support_tmpdir_remove(dir);

    dir = support_tmpdir();
    put_images(dir);
    p = support_plan_at(NEWYORKER, dir, "", NULL);
    assert_int_equal(p.bid.score, 60);
    assert_non_null(strstr(p.bid.refusal, "matching.zip"));
    assert_int_equal(p.status, MR_BAD_DATA);
    support_plan_done(&p);
    support_put(dir, "m/train.jsonl", "");
    p = support_plan_at(NEWYORKER, dir, "", NULL);
    assert_int_equal(p.bid.score, 60);
    assert_non_null(strstr(p.bid.refusal, "the files of m hold no row with contest_number"));
    support_plan_done(&p);
    support_put(dir, "m/val.jsonl", "{\"contest_number\":1}\n");
    p = support_plan_at(NEWYORKER, dir, "", NULL);
    assert_int_equal(p.bid.score, 95);
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

/* A row with the declared columns of a config: JSON of any type will do, but for contest_number and label. */
static void put_config(const char *dir, const char *name, const json_t *info)
{
    const char *split, *column;
    json_t *columns = json_object_get(info, "features");
    const json_t *part, *feature;
    json_t *splits = json_object_get(info, "splits");
    json_object_foreach(splits, split, part)
    {
        char *path = support_path("%s/%s.jsonl", name, split);
        mr_buf row = {0};
        mr_buf_add_text(&row, "{\"contest_number\":30");
        json_object_foreach(columns, column,
                            feature) if (strcmp(column, "contest_number") != 0 && strcmp(column, "image") != 0)
            mr_buf_printf(&row, ",\"%s\":%s", column,
                          strcmp(column, "label") != 0  ? "[\"x\"]"
                          : strstr(name, "explanation") ? "\"The pun is on him.\""
                                                        : "\"B\"");
        mr_buf_add_text(&row, "}\n");
        support_put(dir, path, mr_buf_text(&row));
        mr_buf_free(&row);
        free(path);
    }
}

/* Every config that the hub's script declares. */
static void test_declared_configs(void **state)
{
    (void)state;
    char *data = support_data("newyorker/hf_dataset_infos_v1.0.0/dataset_infos.json");
    if (!data)
        skip();
    char *dir = support_tmpdir();
    size_t len;
    char *text = (char *)support_read(data, &len);
    const char *name;
    json_t *infos, *info;
    mr_error err;
    assert_int_equal(mr_json_parse(text, len, "infos", &infos, &err), MR_OK);
    put_images(dir);
    json_object_foreach(infos, name, info) put_config(dir, name, info);
    json_object_foreach(infos, name, info)
    {
        mr_layout_options options = {.config = name};
        support_plan p = support_plan_ok(NEWYORKER, dir, &options);
        assert_int_equal(p.bid.score, 95);
        assert_int_equal(p.plan.sample_count, json_object_size(json_object_get(info, "splits")));
        assert_int_equal(p.plan.class_count, strstr(name, "explanation") ? 0 : 1);
        for (size_t i = 0; i < p.plan.split_count; i++)
            assert_string_not_equal(p.plan.splits[i].name, "validation");
        support_plan_done(&p);
    }
    json_decref(infos);
    free(text);
    free(data);
    support_tmpdir_remove(dir);
}

/* The hub's zips as downloaded. */
static void test_real_zips(void **state)
{
    (void)state;
    char *data = support_data("newyorker/newyorker_shaped");
    if (!data)
        skip();
    mr_layout_options options = {.config = "matching"};
    support_plan p = support_plan_ok(NEWYORKER, data, &options);
    assert_int_equal(p.bid.score, 95);
    assert_true(p.plan.sample_count > 0);
    for (size_t i = 0; i < p.plan.sample_count; i++) {
        char *meta = support_plan_meta(&p, i), *doc = support_path("{%s}", meta + 1), *image;
        json_t *json;
        if (mr_json_parse(doc, strlen(doc), "meta", &json, &p.err) != MR_OK)
            fail_msg("%s", p.err.text);
        json_t *columns = json_object_get(json, "columns");
        size_t len;
        const char *path = mr_tree_path(&p.tree, p.plan.samples[i].entry, &len);
        image = support_path(IMAGES "%lld.", (long long)json_integer_value(json_object_get(columns, "contest_number")));
        assert_memory_equal(path, image, strlen(image));
        assert_string_equal(p.plan.classes[p.plan.samples[i].label].name,
                            json_string_value(json_object_get(columns, "label")));
        json_decref(json);
        free(image);
        free(meta);
        free(doc);
    }
    support_plan_done(&p);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matching),         cmocka_unit_test(test_configs),   cmocka_unit_test(test_split_map),
        cmocka_unit_test(test_bad_rows),         cmocka_unit_test(test_long_rows), cmocka_unit_test(test_bids),
        cmocka_unit_test(test_declared_configs), cmocka_unit_test(test_real_zips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

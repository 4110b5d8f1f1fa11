/* test_captions.c - captions from metas.
 * Invariant tested: texts are those that a JSON parser reads, for each layout's form; bytes that are not UTF-8 do no
 * harm. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/text.h"
#include "tests/support/support.h"
#include "shards/dataset/captions.h"

/* A copy without a byte after it, so that a look beyond the end is seen. */
static char *copy_of(const char *text, size_t len)
{
    char *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    return copy;
}

/* All captions, with '|' between; or '!' and the message. */
static char *all(const char *column, const char *text, size_t len)
{
    char *meta = copy_of(text, len);
    mr_buf out = {0};
    mr_error err;
    size_t count = 0;
    mr_status status = mr_captions_count(column, meta, len, &count, &err);
    for (size_t i = 0; i < count && status == MR_OK; i++) {
        mr_buf_add_text(&out, i ? "|" : "");
        status = mr_captions_get(column, meta, len, i, &out, &err);
    }
    if (status == MR_OK) { /* none is left */
        mr_buf none = {0};
        assert_int_equal(mr_captions_get(column, meta, len, count, &none, &err), MR_BAD_SAMPLE);
        assert_int_equal(none.len, 0);
    } else {
        assert_int_equal(status, MR_BAD_DATA);
        assert_true(strncmp(err.text, "meta: ", 6) == 0);
        mr_buf_clear(&out);
        mr_buf_printf(&out, "!%s", err.text);
    }
    free(meta);
    char *result = strdup(mr_buf_text(&out));
    mr_buf_free(&out);
    return result;
}

typedef struct trial {
    const char *column, *meta, *want;
} trial;

static void run(const trial *trials, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *got = all(trials[i].column, trials[i].meta, strlen(trials[i].meta));
        if (strcmp(got, trials[i].want) != 0)
            fail_msg("%s of %s: \"%s\"", trials[i].column, trials[i].meta, got);
        free(got);
    }
}

static void test_forms(void **state)
{
    (void)state;
    static const trial trials[] = {
        {"image_description", "{\"columns\":{\"image_description\":\"A dog in a bar.\"}}", "A dog in a bar."},
        {"text", "{\"columns\":{\"a\":[1,{\"text\":\"no\"}],\"text\":[\"b\",\"\",null,\"c\"],\"n\":-1e9}}", "b|c"},
        {"captions",
         "{\"captions\":[{\"id\":3,\"caption\":\"two dogs\"},{\"caption\":\"\"},"
         "{\"caption\":\"a, \\\"b\\\"\"}]}",
         "two dogs|a, \"b\""},
        {"caption", "{\"captions\":[\"a daisy\"]}", "a daisy"},
        {"caption", "{\"captions\":[\"list\"],\"columns\":{\"caption\":\"column\"}}", "column"},
        {"captions", "{\"captions\":[\"list\"],\"columns\":{\"caption\":\"column\"}}", "list"},
        {"captions", "{\"captions\":[\"list\"],\"columns\":{\"captions\":null}}", ""},
        {"t", "{\"captions\":[\"list\"],\"columns\":{\"caption\":\"column\"},\"t\":\"no column\"}", ""},
        {"t", "{}", ""},
        {"t", "{\"columns\":{}}", ""},
        {"t", "{\"columns\":[\"t\"]}", ""},
        {"captions", "{\"captions\":\"x\"}", ""},
        {"captions", "{\"captions\":[]}", ""},
        {"t", "{\"columns\":{\"t\":\"\"}}", ""},
        {"t", "{\"columns\":{\"t\":null}}", ""},
        {"t", "{\"columns\":{\"t\":17}}", ""},
        {"t", "{\"columns\":{\"t\":[[\"deep\"],{\"other\":\"x\"},3,true]}}", ""},
        {"t", " {\n\"columns\" : {\t\"t\" :\r\"x\" } } \n", "x"},
        {"", "{\"columns\":{\"\":\"nameless\"}}", "nameless"},
        {"a\"b", "{\"columns\":{\"a\":\"1\",\"a\\\"b\":\"2\",\"a\\\"\":\"3\"}}", "2"},
        {"\xC3\xA4", "{\"columns\":{\"\\u00e4\":\"umlaut\"}}", "umlaut"},
        {"t", "{\"col\\u0075mns\":{\"\\u0074\":\"x\"}}", "x"},
        {"t", "{\"columns\":{\"t\":\"\\\\\"},\"x\":\"\\\\\\\"\"}", "\\"},
        {"t", "{\"columns\":{\"t\":\"\\/\\b\\f\\n\\r\\t\\u0041\\u00df\\u20AC\\ud83d\\uDE00\"}}",
         "/\b\f\n\r\tA\xC3\x9F\xE2\x82\xAC\xF0\x9F\x98\x80"},
        /* halves of pairs */
        {"t", "{\"columns\":{\"t\":\"\\ud83d\"}}", "\xEF\xBF\xBD"},
        {"t", "{\"columns\":{\"t\":\"\\ud83dx\\ude00\\ud83d\\ud83d\\ude00\\ud83d\\u0041\"}}",
         "\xEF\xBF\xBDx\xEF\xBF\xBD\xEF\xBF\xBD\xF0\x9F\x98\x80\xEF\xBF\xBD"
         "A"},
    };
    run(trials, MR_COUNT(trials));
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const trials[] = {
        "",
        " ",
        "1",
        "null",
        "\"a\"",
        "[]",
        "[{}]",
        "{",
        "{\"",
        "{\"a",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "{a:1}",
        "{\"a\":[}",
        "{\"a\":[",
        "{\"a\":\"\\\"}",
        "{}{}",
        "{} x",
        "{\"columns\":{\"t\":1",
        "{\"columns\":{\"t\":\"a\"},\"columns\":{}}",
        "{\"captions\":[],\"captions\":[]}",
        "{\"columns\":{\"t\":\"a\",\"\\u0074\":\"b\"}}",
        "{\"columns\":{\"t\"}}",
        "{\"columns\":{\"t\":[\"a\" \"b\"]}}",
        "{\"columns\":{\"t\":[\"a\",]}}",
        "{\"columns\":{\"t\":[,\"a\"]}}",
        "{\"columns\":{\"t\":\"\\x\"}}",
        "{\"columns\":{\"t\":\"\\u12\"}}",
        "{\"columns\":{\"t\":\"\\u12g4\"}}",
        "{\"columns\":{\"t\":\"\xff\"}}",
        "{\"columns\":{\"t\":\"\xC3\"}}",
        "{\"columns\":{\"t\":\"\xED\xA0\x80\"}}",
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *got = all("t", trials[i], strlen(trials[i]));
        if (*got != '!' || strchr(got, '\n'))
            fail_msg("%s was taken: \"%s\"", trials[i], got);
        free(got);
    }
}

static void test_messages(void **state)
{
    (void)state;
    static const char meta[] = "{\"columns\":{\"title\":\"x\",\"n\":1,\"a\\nb\":[\"y\"],\"empty\":\"\"},"
                               "\"captions\":[\"z\"]}";
    mr_buf out = {0};
    mr_error err;
    assert_int_equal(mr_captions_get("txt", meta, sizeof meta - 1, 0, &out, &err), MR_BAD_SAMPLE);
    assert_string_equal(err.text, "meta: no caption in column \"txt\"; there is text in title, a\\x0Ab, captions "
                                  "(see --text-column)");
    assert_int_equal(mr_captions_get("title", meta, sizeof meta - 1, 1, &out, &err), MR_BAD_SAMPLE);
    assert_string_equal(err.text, "meta: column \"title\" has 1 caption, but not number 1");
    assert_int_equal(mr_captions_get("t", "{}", 2, 0, &out, &err), MR_BAD_SAMPLE);
    assert_string_equal(err.text, "meta: no caption in column \"t\"; no column has text in it");
    assert_int_equal(out.len, 0);
    mr_buf_free(&out);
}

static void expect_guess(const char *meta, const char *column, const char *names)
{
    mr_buf known = {0};
    char *copy = copy_of(meta, strlen(meta));
    const char *got = mr_captions_guess(copy, strlen(meta), &known);
    bool same = got && column ? strcmp(got, column) == 0 : got == column;
    if (!same || strcmp(mr_buf_text(&known), names) != 0)
        fail_msg("%s: %s of \"%s\"", meta, got ? got : "none", mr_buf_text(&known));
    free(copy);
    mr_buf_free(&known);
}

static void test_guess(void **state)
{
    (void)state;
    expect_guess("{\"columns\":{\"a\":\"x\",\"image_description\":\"y\"},\"captions\":[\"z\"]}", "image_description",
                 "a, image_description, captions");
    expect_guess("{\"columns\":{\"image_description\":null}}", "image_description", "");
    expect_guess("{\"captions\":[{\"caption\":\"z\"}]}", "captions", "captions");
    expect_guess("{\"captions\":[]}", "captions", "");
    expect_guess("{\"columns\":{\"captions\":[\"z\"]},\"captions\":[\"z\"]}", "captions", "captions");
    expect_guess("{\"columns\":{\"t\":\"x\",\"n\":3}}", NULL, "t");
    expect_guess("{}", NULL, "");
    expect_guess("[", NULL, "");
}

/* Names that are foreign: long, many, cut within an escape or a character. */
static void test_many_names(void **state)
{
    (void)state;
    mr_buf meta = {0}, known = {0};
    mr_buf_add_text(&meta, "{\"columns\":{\"");
    for (int i = 0; i < 1000; i++)
        mr_buf_add_text(&meta, "\\u00e4\xC3\xA4");
    mr_buf_add_text(&meta, "\":\"x\"");
    for (int i = 0; i < 10000; i++)
        mr_buf_printf(&meta, ",\"column %d\":\"x\"", i);
    mr_buf_add_text(&meta, "}}");
    assert_null(mr_captions_guess((const char *)meta.data, meta.len, &known));
    const char *text = mr_buf_text(&known);
    assert_true(known.len < 700 && mr_utf8_valid(text, known.len));
    assert_non_null(strstr(text, "..., column 0, column 1, "));
    assert_string_equal(text + known.len - 3, "...");
    mr_buf_free(&meta);
    mr_buf_free(&known);
}

/* 64 MiB of brackets, of quotes, of backslashes: no memory, no stack, no time beyond a look at each byte. */
static void test_hostile_sizes(void **state)
{
    (void)state;
    static const char *const junk[][2] = {{"[", "]"}, {"{\"\":", "}"}, {"\"\\\\\\\"\",", ""}, {"0,", ""}};
    size_t size = support_sanitized() ? 4 << 20 : 64 << 20;
    for (size_t k = 0; k < MR_COUNT(junk); k++) {
        mr_buf meta = {0};
        size_t a = strlen(junk[k][0]), b = strlen(junk[k][1]), times = size / (a + b);
        mr_buf_add_text(&meta, "{\"junk\":[");
        for (size_t i = 0; i < times; i++)
            mr_buf_add(&meta, junk[k][0], a);
        mr_buf_add_text(&meta, "0");
        for (size_t i = 0; i < times; i++)
            mr_buf_add(&meta, junk[k][1], b);
        mr_buf_add_text(&meta, "],\"captions\":[\"found\"]}");
        assert_int_equal(mr_buf_status(&meta, NULL, ""), MR_OK);
        char *got = all("captions", (const char *)meta.data, meta.len);
        assert_string_equal(got, "found");
        free(got);
        got = all("captions", (const char *)meta.data, meta.len - 2);
        assert_int_equal(*got, '!');
        free(got);
        mr_buf_free(&meta);
    }
}

/* ---- against a parser -------------------------------------------------------------------------------------------- */

static const char *const keys[] = {"columns", "captions", "caption", "t", "\xC3\xA4", "\"", "x y"};

static json_t *random_value(mr_random *r, int depth)
{
    static const char *const texts[] = {"", "a dog", "\xC3\xA4\"\\", "\xF0\x9F\x98\x80\n", "{\"captions\":[\"x\"]}",
                                        "]"};
    uint64_t kind = mr_random_below(r, depth > 3 ? 4 : 7);
    json_t *v = kind == 0   ? json_null()
                : kind == 1 ? json_integer(5)
                : kind == 5 ? json_object()
                : kind == 6 ? json_array()
                            : json_string(texts[mr_random_below(r, MR_COUNT(texts))]);
    for (uint64_t n = mr_random_below(r, 5); n > 0 && kind == 5; n--)
        json_object_set_new(v, keys[mr_random_below(r, MR_COUNT(keys))], random_value(r, depth + 1));
    for (uint64_t n = mr_random_below(r, 4); n > 0 && kind == 6; n--)
        json_array_append_new(v, random_value(r, depth + 1));
    return v;
}

static void add_text(mr_buf *out, const json_t *v)
{
    if (json_is_object(v))
        v = json_object_get(v, "caption");
    if (json_string_length(v))
        mr_buf_printf(out, "%s%s", out->len ? "|" : "", json_string_value(v));
}

static char *expected(const json_t *meta, const char *column)
{
    mr_buf out = {0};
    const json_t *v = json_object_get(json_object_get(meta, "columns"), column);
    const json_t *list = json_object_get(meta, "captions");
    if (!v && strncmp(column, "caption", 7) == 0 && json_is_array(list))
        v = list;
    if (json_is_string(v))
        add_text(&out, v);
    for (size_t i = 0; i < json_array_size(v); i++)
        add_text(&out, json_array_get(v, i));
    char *text = strdup(mr_buf_text(&out));
    mr_buf_free(&out);
    return text;
}

static void test_against_a_parser(void **state)
{
    (void)state;
    static const size_t styles[] = {JSON_COMPACT, JSON_INDENT(3), JSON_ENSURE_ASCII};
    mr_random r = support_random();
    size_t found = 0;
    for (int i = 0; i < 3000; i++) {
        json_t *meta = json_object();
        json_object_set_new(meta, "source", random_value(&r, 3));
        json_object_set_new(meta, "columns", json_object());
        for (int k = 0; k < 4; k++)
            json_object_set_new(json_object_get(meta, "columns"), keys[mr_random_below(&r, MR_COUNT(keys))],
                                random_value(&r, 1));
        json_object_set_new(meta, "captions", random_value(&r, 1));
        char *text = json_dumps(meta, styles[i % 3]);
        static const char *const columns[] = {"captions", "caption", "t", "\xC3\xA4", "\""};
        for (size_t k = 0; k < MR_COUNT(columns); k++) {
            char *got = all(columns[k], text, strlen(text)), *want = expected(meta, columns[k]);
            if (strcmp(got, want) != 0)
                fail_msg("%s of %s: \"%s\" for \"%s\"", columns[k], text, got, want);
            found += *want != '\0';
            free(got);
            free(want);
        }
        free(text);
        json_decref(meta);
    }
    assert_true(found > 2000);
}

/* Every truncation and every changed byte of a meta: refused, or taken, and nothing read beyond it. */
static void test_damage(void **state)
{
    (void)state;
    static const char meta[] = "{\"a\":{\"b\":[1,\"\\\"\"]},\"columns\":{\"t\":[\"x\\u00e4\",{\"caption\":"
                               "\"y\\ud83d\\ude00\"}],\"u\":\"\\n\"},\"captions\":[{\"id\":1,\"caption\":\"z\"}]}";
    size_t len = sizeof meta - 1;
    for (size_t cut = 0; cut < len; cut++) {
        char *got = all("t", meta, cut);
        assert_int_equal(*got, '!');
        free(got);
    }
    for (size_t at = 0; at < len; at++)
        for (int with = 1; with < 256; with += with < 128 ? 1 : 37) {
            char *hurt = copy_of(meta, len);
            mr_buf known = {0};
            hurt[at] = (char)with;
            static const char *const columns[] = {"t", "u", "captions"};
            for (size_t k = 0; k < MR_COUNT(columns); k++)
                free(all(columns[k], hurt, len));
            mr_captions_guess(hurt, len, &known);
            assert_true(mr_utf8_valid(mr_buf_text(&known), known.len));
            mr_buf_free(&known);
            free(hurt);
        }
}

/* ---- real metas -------------------------------------------------------------------------------------------------- */

/* Each sample has captions, as many items, and what the guess says finds them. */
static void check_dataset(const char *path, const char *column, const char *word, bool all_have)
{
    mr_error err;
    mr_dataset *ds;
    assert_int_equal(mr_dataset_open(path, &ds, &err), MR_OK);
    uint64_t samples = mr_dataset_samples(ds, "train"), *items = NULL, count = 0, without = 0, at = 0, none = 0;
    if (mr_captions_expand(ds, "train", column, &items, &count, &without, &err) != MR_OK)
        fail_msg("%s", err.text);
    mr_sample_view v = {0};
    mr_buf text = {0}, known = {0};
    for (uint64_t n = 0; n < samples; n++) {
        size_t captions;
        assert_int_equal(mr_dataset_read_meta(ds, "train", n, &v, &err), MR_OK);
        assert_int_equal(mr_captions_count(column, v.meta, v.meta_len, &captions, &err), MR_OK);
        none += captions == 0;
        for (size_t k = 0; k < captions; k++) {
            assert_true(at < count && items[at++] == n);
            assert_int_equal(mr_captions_get(column, v.meta, v.meta_len, k, &text, &err), MR_OK);
        }
        if (captions) {
            mr_buf_clear(&known);
            assert_string_equal(mr_captions_guess(v.meta, v.meta_len, &known), column);
            assert_non_null(strstr(mr_buf_text(&known), column));
        }
    }
    assert_true(at == count && none == without && count > 0 && (none == 0 || !all_have));
    assert_non_null(strstr(mr_buf_text(&text), word));
    free(items);
    assert_int_equal(mr_captions_expand(ds, "nowhere", column, &items, &count, &without, &err), MR_MISUSE);
    mr_buf_free(&text);
    mr_buf_free(&known);
    mr_sample_view_free(&v);
    mr_dataset_free(ds);
}

static void test_drawn(void **state)
{
    static const struct {
        const char *layout, *variant, *column, *word;
    } layouts[] = {
        {"newyorker", NULL, "image_description", " "},
        {"coco", NULL, "captions", "circle"},
        {"roboflow", "clip", "captions", "circle"},
    };
    for (size_t i = 0; i < MR_COUNT(layouts); i++) {
        char *source = support_path("%s/%s", (char *)*state, layouts[i].layout);
        char *ds = support_path("%s/%zu", (char *)*state, i);
        if (layouts[i].variant)
            support_expect(0, "sample", "-q", source, "--layout", layouts[i].layout, "--variant", layouts[i].variant,
                           "--images", "40", "--size", "32:40", (char *)NULL);
        else
            support_expect(0, "sample", "-q", source, "--layout", layouts[i].layout, "--images", "40", "--size",
                           "32:40", (char *)NULL);
        support_expect(0, "ingest", source, ds, (char *)NULL);
        check_dataset(ds, layouts[i].column, layouts[i].word, false);
        free(source);
        free(ds);
    }
}

static void test_real(void **state)
{
    static const char *const real[][3] = {
        {"newyorker/newyorker_shaped", "image_description", "Cartoon of contest"},
        {"coco/coco2017_mini_free", "captions", "birthday cake"},
        {"roboflow/clip_flowers", "captions", "depicting a daisy"},
    };
    for (size_t i = 0; i < MR_COUNT(real); i++) {
        char *source = support_data(real[i][0]), *ds = support_path("%s/%zu", (char *)*state, i);
        if (source) {
            support_expect(0, "ingest", source, ds, (char *)NULL);
            check_dataset(ds, real[i][1], real[i][2], true);
        } else {
            print_message("%s is not there: skipped\n", real[i][0]);
        }
        free(source);
        free(ds);
    }
}

static void collect(void *ctx, const char *text, size_t len)
{
    mr_buf_printf(ctx, "[%.*s]", (int)len, text);
}

/* The public call: all captions of a meta, of the usual column or a given one. */
static void test_all_of_a_meta(void **state)
{
    static const struct {
        const char *meta, *column, *texts;
    } cases[] = {
        {"{\"captions\":[\"a\",{\"caption\":\"b\\u00e9\"},\"\"]}", NULL, "[a][b\xc3\xa9]"},
        {"{\"columns\":{\"image_description\":\"x\",\"c\":[\"y\",\"z\"]},\"captions\":[\"a\"]}", NULL, "[x]"},
        {"{\"columns\":{\"image_description\":\"x\",\"c\":[\"y\",\"z\"]},\"captions\":[\"a\"]}", "c", "[y][z]"},
        {"{\"columns\":{\"c\":1}}", "c", ""},
        {"{}", NULL, ""},
    };
    mr_error err;
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        mr_buf out = {0};
        assert_int_equal(mr_meta_captions(cases[i].meta, strlen(cases[i].meta), cases[i].column, collect, &out, &err),
                         MR_OK);
        assert_string_equal(mr_buf_text(&out), cases[i].texts);
        mr_buf_free(&out);
    }
    assert_int_equal(mr_meta_captions("[", 1, NULL, collect, NULL, &err), MR_BAD_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_of_a_meta),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_guess),
        cmocka_unit_test(test_many_names),
        cmocka_unit_test(test_hostile_sizes),
        cmocka_unit_test(test_against_a_parser),
        cmocka_unit_test(test_damage),
        IN_TMPDIR(test_drawn),
        IN_TMPDIR(test_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_json_oddity.c - what looks like JSON but is not: NaN, Python's words, comments, other encodings.
 * Invariant tested: every reader of JSON names it and its place, and a text that is not of that kind keeps the parser's
 * words. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/json/json_oddity.h"
#include "tests/support/json.h"

typedef struct odd {
    const char *value; /* in place of a value of an object */
    const char *words; /* NULL: the parser's own */
    size_t len;        /* 0: strlen */
} odd;

static const odd odds[] = {
    {"NaN", "JSON has no NaN: write null or a number", 0},
    {"nan", "JSON has no nan: ", 0},
    {"-NaN", "JSON has no -NaN: ", 0},
    {"Infinity", "JSON has no Infinity: ", 0},
    {"-Infinity", "JSON has no -Infinity: ", 0},
    {"+Inf", "JSON has no +Inf: ", 0},
    {"[1.5, 2e3, NaN]", "JSON has no NaN: ", 0},
    {"[\n\n 0,\n-Infinity ]", "JSON has no -Infinity: ", 0},
    {"True", "JSON has no True: write true", 0},
    {"None", "JSON has no None: write null", 0},
    {"undefined", "JSON has no undefined: write null", 0},
    {"'a'", "single quotes", 0},
    {"[1,]", "a comma before the closing bracket", 0},
    {"{\"a\":1,\n}", "a comma before the closing bracket", 0},
    {"1 // one\n", "a comment", 0},
    {"1 /* one */", "a comment", 0},
    {"1 # one\n", "a comment", 0},
    {"+1", "+1 is not a JSON number", 0},
    {".5", ".5 is not a JSON number", 0},
    {"1.", "1. is not a JSON number", 0},
    {"-01", "-01 is not a JSON number", 0},
    {"{a:1}", "a has no quotes", 0},
    {"yes", "yes has no quotes", 0},
    {"\"NaN \xFF\"", NULL, 0},
    {"\"a, nan\\q\"", NULL, 0},
    {"\"// a\tb\"", NULL, 0},
    {"\"it's # 'a'\n\"", NULL, 0},
    {"1 2", NULL, 0},
    {"1}", NULL, 0},
    {"*", NULL, 0},
};

static void check(const odd *o, const char *said, const char *place)
{
    static const char *const any[] = {"JSON has no ", "stands ", "how JSON writes"};
    if (o->words && (!strstr(said, o->words) || !strstr(said, place)))
        fail_msg("%s: expected \"%s\", \"%s\": %s", o->value, o->words, place, said);
    for (size_t i = 0; i < MR_COUNT(any) && !o->words; i++)
        if (strstr(said, any[i]))
            fail_msg("%s: %s", o->value, said);
}

/* Where the odd thing stands in "...,VALUE..." is where it begins: after blanks, names and brackets. */
static size_t offset_of(const odd *o)
{
    static const char *const marks[] = {"NaN", "nan", "-Infinity", "Infinity", "/", "#"};
    if (o->words && (strstr(o->words, "comma")))
        return strcspn(o->value, "]}");
    if (o->words && strstr(o->words, "a has no quotes"))
        return 1;
    for (size_t i = 0; i < MR_COUNT(marks); i++) {
        const char *found = strstr(o->value, marks[i]);
        if (found)
            return (size_t)(found - o->value) - (found > o->value && (found[-1] == '-' || found[-1] == '+'));
    }
    return 0;
}

static void documents_of_jansson(void **state)
{
    (void)state;
    static const char head[] = "{\"a\": [1,\n2],\n  \"b\": ";
    for (size_t i = 0; i < MR_COUNT(odds); i++) {
        char *text = support_path("%s%s}", head, odds[i].value);
        size_t at = sizeof head - 1 + offset_of(&odds[i]);
        mr_json_line line = mr_json_line_of(text, at);
        char *place =
            support_path("x.json: line %u, column %u: not JSON: ", (unsigned)line.line, (unsigned)line.column);
        json_t *doc;
        mr_error err;
        assert_int_equal(mr_json_parse(text, strlen(text), "x.json", &doc, &err), MR_BAD_DATA);
        check(&odds[i], err.text, place);
        free(place);
        free(text);
    }
}

/* What COCO's reader takes as a value that it cannot use (ingest/tables/json_repair.h). */
static bool is_repaired(const char *value)
{
    return !strcmp(value, "nan") || strstr(value, "NaN") || strstr(value, "Infinity") || strchr(value, '\xFF');
}

static void annotations_of_coco(void **state)
{
    (void)state;
    static const char head[] = "{\"images\":[{\"id\":1,\"file_name\":\"1.jpg\",\"x\":";
    for (size_t i = 0; i < MR_COUNT(odds); i++)
        for (int lines = 0; lines < 2; lines++) {
            char *text = support_path("%s%s%s}]}", lines ? "\n\n  " : "", head, odds[i].value);
            size_t at = 4 * (size_t)lines + sizeof head - 1 + offset_of(&odds[i]);
            mr_json_line line = mr_json_line_of(text, at);
            char *place = line.line > 1 ? support_path("a.json: byte %zu (line %u, column %u): not JSON: ", at + 1,
                                                       (unsigned)line.line, (unsigned)line.column)
                                        : support_path("a.json: byte %zu: not JSON: ", at + 1);
            support_coco o = support_coco_text(text);
            if (o.status != (is_repaired(odds[i].value) ? MR_OK : MR_BAD_DATA))
                fail_msg("%s: status %d", odds[i].value, o.status);
            if (o.status != MR_OK)
                check(&odds[i], o.err.text, place);
            support_coco_done(&o);
            free(place);
            free(text);
        }
}

/* The file is read in pieces of 256 KiB; the word may stand across two, and lines are counted through all. */
static void across_chunks(void **state)
{
    (void)state;
    enum { CHUNK = 256 << 10 };
    for (size_t shift = 0; shift < 5; shift++) {
        mr_buf text = {0};
        char place[100];
        mr_buf_add_text(&text, "{\"images\":[],\n\"info\":[0");
        while (text.len < CHUNK - 3 - shift)
            mr_buf_add_text(&text, text.len % 1000 ? " " : "\n");
        size_t at = text.len + 1;
        mr_buf_add_text(&text, ",undefined]}");
        mr_json_line line = mr_json_line_of((char *)text.data, at);
        snprintf(place, sizeof place, "byte %zu (line %u, column %u): not JSON: JSON has no undefined: ", at + 1,
                 (unsigned)line.line, (unsigned)line.column);
        support_coco o = support_coco_parse(text.data, text.len);
        assert_int_equal(o.status, MR_BAD_DATA);
        if (!strstr(o.err.text, place))
            fail_msg("expected %s in %s", place, o.err.text);
        support_coco_done(&o);
        mr_buf_free(&text);
    }
}

static void rows_of_lines(void **state)
{
    static const char head[] = "{\"contest_number\":1,\"x\":";
    for (size_t i = 0; i < MR_COUNT(odds); i++) {
        if (strchr(odds[i].value, '\n'))
            continue;
        char *text = support_path("{\"contest_number\":1}\n\n%s%s}\n", head, odds[i].value);
        char *place = support_path("m/train.jsonl: line 3: byte %zu: not JSON: ", sizeof head + offset_of(&odds[i]));
        support_put(*state, "all_contest_images/1.jpeg", "");
        support_put(*state, "m/train.jsonl", text);
        support_plan p = support_plan_at(&mr_layout_newyorker, *state, "", NULL);
        assert_int_equal(p.status, MR_BAD_DATA);
        check(&odds[i], p.err.text, place);
        support_plan_done(&p);
        free(place);
        free(text);
    }
}

/* What the whole file is. */
static void other_files(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        const char *words;
    } files[] = {
        {"\xFF\xFE{\0\"\0a\0", 8, "this is UTF-16: save it as UTF-8"},
        {"\xFE\xFF\0{\0\"\0a", 8, "this is UTF-16: save it as UTF-8"},
        {"{\0\"\0a\0\"\0", 8, "this is UTF-16: save it as UTF-8"},
        {"\x1F\x8B\x08\x00", 4, "this is gzip-compressed: decompress it"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", 56, "git lfs pull"},
        {"\n<!DOCTYPE html>\n<html>", 23, "a web page"},
    };
    for (size_t i = 0; i < MR_COUNT(files); i++) {
        json_t *doc;
        mr_error err;
        assert_int_equal(mr_json_parse(files[i].bytes, files[i].len, "x.json", &doc, &err), MR_BAD_DATA);
        if (!strstr(err.text, files[i].words) || !strstr(err.text, "x.json: line 1, column 1: not JSON: "))
            fail_msg("%s: %s", files[i].words, err.text);
        support_coco o = support_coco_parse(files[i].bytes, files[i].len);
        assert_int_equal(o.status, MR_BAD_DATA);
        if (!strstr(o.err.text, files[i].words))
            fail_msg("%s: %s", files[i].words, o.err.text);
        support_coco_done(&o);
    }
    json_t *doc;
    mr_error err;
    assert_int_equal(mr_json_parse("\xEF\xBB\xBF{}", 5, "x.json", &doc, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "byte order mark"));
    assert_int_equal(mr_json_parse("{\"a\":1,\"a\":NaN}", 15, "x.json", &doc, &err), MR_BAD_DATA);
    assert_int_equal(mr_json_parse("{\"NaN\":1,\"NaN\":2}", 17, "x.json", &doc, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "duplicate"));
}

/* Any bytes, any place: nothing is read outside of the window, and the place stays inside. */
static void any_window(void **state)
{
    (void)state;
    static const char set[] = "{}[]:,'\"/*#-+.019naNIifTrueNone \n\\\x00\xFF\xFE";
    mr_random r = support_random();
    for (int n = 0; n < 200000; n++) {
        size_t len = mr_random_below(&r, 24);
        char *bytes = malloc(len + 1), out[MR_JSON_ODDITY];
        for (size_t i = 0; i < len; i++)
            bytes[i] = set[mr_random_below(&r, sizeof set - 1)];
        char *window = memcpy(malloc(len + !len), bytes, len);
        mr_json_place p = {window, len, mr_random_below(&r, len + 2), mr_random_below(&r, 2), mr_random_below(&r, 2)};
        if (mr_json_oddity(&p, out))
            assert_true(p.at <= len && strlen(out) > 0 && strlen(out) < MR_JSON_ODDITY);
        free(window);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_of_jansson), cmocka_unit_test(annotations_of_coco),
        cmocka_unit_test(across_chunks),        IN_TMPDIR(rows_of_lines),
        cmocka_unit_test(other_files),          cmocka_unit_test(any_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_coco_json.c - COCO annotation files, streamed: places, texts, refusals.
 * Covers tables/json_file.c. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "tests/support/json.h"

static void assert_annotations(const support_coco *o, size_t n, const char *expected)
{
    mr_buf text = {0};
    mr_error err;
    assert_int_equal(mr_coco_annotations(o->source, o->file, n, &text, &err), MR_OK);
    assert_string_equal(mr_buf_text(&text), expected);
    mr_buf_free(&text);
}

static void assert_image(const support_coco *o, size_t n, const char *expected)
{
    mr_buf text = {0};
    mr_error err;
    assert_int_equal(mr_coco_image_text(o->source, o->file, n, &text, &err), MR_OK);
    assert_string_equal(mr_buf_text(&text), expected);
    mr_buf_free(&text);
}

/* Annotations before images, members in any order, ids out of order and negative, numbers as odd as JSON allows. */
static const char whole[] =
    "{\"info\": {\"id\": \"x\", \"images\": [1]}, \"annotations\": [\n"
    " {\"id\": 1.5, \"image_id\": 9, \"category_id\": 44, \"bbox\": [1.50, 2E+1, -0.0, 1e-7], "
    "\"n\": {\"image_id\": \"deep\"}},\n"
    " {\"caption\": \"a } in \\\"it\\\" \\u00e9\", \"image_id\": -3},\n"
    " {\"image_id\": 9, \"segmentation\": {\"counts\": [12345678901234567890123], \"size\": [1, 2]}, "
    "\"category_id\": 1},\n"
    " {\"image_id\": 1000, \"category_id\": 1}],\n"
    "\"licenses\": [], \"extra\": [[[{}]], null, true],\n"
    "\"images\": [{\"file_name\": \"b\\u002fc.jpg\", \"id\": 9 , \"height\": 1.0},"
    "{\"id\":-3,\"file_name\":\"a.jpg\"}, \n"
    " {\"id\": 9223372036854775807, \"file_name\": \"\xC3\xA9.png\"}],\n"
    "\"categories\": [{\"id\": 44, \"name\": \"bottle\"}, "
    "{\"supercategory\": \"p\", \"name\": \"person\", \"id\": 1}]}\n";

static void assert_whole(const support_coco *o)
{
    assert_int_equal(o->status, MR_OK);
    assert_int_equal(o->file->image_count, 3);
    assert_int_equal(o->file->annotation_count, 4);
    assert_int_equal(o->file->category_count, 2);
    assert_int_equal(o->file->orphans, 1);
    assert_string_equal(o->file->images[0].file_name, "a.jpg");
    assert_string_equal(o->file->images[1].file_name, "b/c.jpg");
    assert_int_equal(o->file->images[1].name_len, 7);
    assert_string_equal(o->file->images[2].file_name, "\xC3\xA9.png");
    assert_true(o->file->images[2].id == INT64_MAX);
    assert_int_equal(o->file->images[1].count, 2);
    assert_int_equal(o->file->images[2].count, 0);
    assert_true(o->file->annotations[o->file->images[0].first].category_id == INT64_MIN);
    assert_int_equal(o->file->annotations[o->file->images[1].first].category_id, 44);
    assert_string_equal(o->file->categories[0].name, "bottle");
    assert_int_equal(o->file->categories[1].id, 1);
    assert_image(o, 1, "{\"file_name\": \"b\\u002fc.jpg\", \"id\": 9 , \"height\": 1.0}");
    assert_annotations(o, 0, "[{\"caption\": \"a } in \\\"it\\\" \\u00e9\", \"image_id\": -3}]");
    assert_annotations(o, 1,
                       "[{\"id\": 1.5, \"image_id\": 9, \"category_id\": 44, \"bbox\": [1.50, 2E+1, -0.0, 1e-7], "
                       "\"n\": {\"image_id\": \"deep\"}},"
                       "{\"image_id\": 9, \"segmentation\": {\"counts\": [12345678901234567890123], \"size\": [1, 2]}, "
                       "\"category_id\": 1}]");
    assert_annotations(o, 2, "[]");
}

static void test_whole_file(void **state)
{
    (void)state;
    support_coco o = support_coco_text(whole);
    assert_whole(&o);
    support_coco_done(&o);
}

/* Chunks are of 256 KiB: a blank run before the file moves every byte of it over the border, one after another. */
static void test_chunk_borders(void **state)
{
    (void)state;
    enum { CHUNK = 256 << 10 };
    char *text = malloc(CHUNK + sizeof whole);
    size_t inside_e = (size_t)(strchr(whole, '\xC3') - whole) + 1; /* the border cuts a character in two */
    for (size_t n = 0; n <= sizeof whole / 7 + 1; n++) {
        size_t over = n ? (n - 1) * 7 : inside_e;
        memset(text, ' ', CHUNK);
        memcpy(text + CHUNK - over, whole, sizeof whole - 1);
        support_coco o = support_coco_parse(text, CHUNK - over + sizeof whole - 1);
        assert_whole(&o);
        support_coco_done(&o);
    }
    free(text);
}

static void test_byte_order_mark(void **state)
{
    (void)state;
    char text[sizeof whole + 3] = "\xEF\xBB\xBF";
    memcpy(text + 3, whole, sizeof whole);
    support_coco o = support_coco_text(text);
    assert_whole(&o);
    support_coco_done(&o);
}

static void test_only_images(void **state)
{
    (void)state;
    support_coco o = support_coco_text("{\"images\":[{\"id\":1,\"file_name\":\"a\"}]}");
    assert_int_equal(o.status, MR_OK);
    assert_int_equal(o.file->annotation_count + o.file->category_count, 0);
    assert_annotations(&o, 0, "[]");
    support_coco_done(&o);
    o = support_coco_text("{\"images\":[]}");
    assert_int_equal(o.status, MR_OK);
    assert_int_equal(o.file->image_count, 0);
    support_coco_done(&o);
}

/* A name with a NUL is the layout's to refuse: nothing after the NUL is lost. */
static void test_nul_in_name(void **state)
{
    (void)state;
    support_coco o = support_coco_text("{\"images\":[{\"id\":1,\"file_name\":\"a\\u0000b\"}]}");
    assert_int_equal(o.status, MR_OK);
    assert_int_equal(o.file->images[0].name_len, 3);
    assert_memory_equal(o.file->images[0].file_name, "a\0b", 4);
    support_coco_done(&o);
}

#define IMAGES(x) "{\"images\":[" x "]}"
#define ANNOTATION(members)                                                                                            \
    "{\"images\":[{\"id\":1,\"file_name\":\"a\"}],\"annotations\":[{\"image_id\":1," members "}]}"
#define ONE "{\"id\":1,\"file_name\":\"a\"}"

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "premature"},
        {"   ", "premature"},
        {"{", "premature"},
        {"{\"images\":[", "premature"},
        {"nonsense", "not JSON"},
        {"7", "single value"},
        {"null", "single value"},
        {"[]", "COCO *result* file"},
        {"[{\"image_id\":42,\"score\":0.2}]", "COCO *result* file"},
        {"{}", "no \"images\""},
        {"{\"annotations\":[]}", "no \"images\""},
        {IMAGES("") "{}", "trailing garbage"},
        {IMAGES("") "x", "not JSON"},
        {IMAGES("") " \"x", "not JSON: other text follows after its end"},
        {IMAGES("") " tru", "not JSON: other text follows after its end"},
        {"{\f\"images\":[]}", "form feed"},
        {IMAGES("") "\v", "vertical tab"},
        {"{\"images\":[],\"images\":[]}", "duplicate key \"images\" in an object"},
        {"{\"annotations\":[],\"images\":[],\"annotations\":[]}", "duplicate key \"annotations\" in an object"},
        {"{\"info\":1,\"info\":2,\"images\":[]}", "duplicate key \"info\" in an object"},
        {"{\"images\":{}}", "\"images\" is not a list"},
        {"{\"images\":null}", "\"images\" is not a list"},
        {"{\"images\":[],\"categories\":3}", "\"categories\" is not a list"},
        {IMAGES("{\"id\":1,\"id\":1,\"file_name\":\"a\"}"), "duplicate key \"id\" in an object"},
        {IMAGES(ONE "," ONE), "image id 1 twice, at bytes 11 and 36"},
        {IMAGES(ONE ",{\"id\":\"1\",\"file_name\":\"b\"}"), "image id 1 twice"},
        {IMAGES("{\"id\":\"a b\",\"file_name\":\"a\"},{\"id\":\"a b\",\"file_name\":\"b\"}"), "image id \"a b\" twice"},
        {"{\"images\":[],\"categories\":[{\"id\":1,\"name\":\"a\"},{\"id\":1,\"name\":\"a\"}]}", "category id 1 twice"},
    };
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        support_coco o = support_coco_text(cases[i].text);
        if (o.status != MR_BAD_DATA || !strstr(o.err.text, cases[i].why) || strncmp(o.err.text, "a.json: ", 8))
            fail_msg("%s\n gave %d: %s\n expected: %s", cases[i].text, o.status, o.err.text, cases[i].why);
        support_coco_done(&o);
    }
}

/* A value that cannot be what it should be spoils its element, and no other. */
static void test_bad_values(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {IMAGES("1"), "not an object"},
        {IMAGES("[]"), "not an object"},
        {IMAGES("{}"), "an element of \"images\" has no \"id\""},
        {IMAGES("{\"id\":1}"), "has no \"file_name\""},
        {IMAGES("{\"id\":1,\"file_name\":3}"), "\"file_name\" is not a string"},
        {IMAGES("{\"id\":\"\",\"file_name\":\"a\"}"), "\"id\" is a string of 0 bytes"},
        {IMAGES("{\"id\":9223372036854775808,\"file_name\":\"a\"}"), "64-bit integers"},
        {IMAGES("{\"id\":-9223372036854775807,\"file_name\":\"a\"}"), "64-bit integers"},
        {IMAGES("{\"id\":null,\"file_name\":\"a\"}"), "\"id\" is neither a number nor a string"},
        {IMAGES("{\"id\":[1],\"file_name\":\"a\"}"), "\"id\" is neither"},
        {IMAGES("{\"id\":{\"id\":1},\"file_name\":\"a\"}"), "\"id\" is neither"},
        {"{\"images\":[],\"annotations\":[{\"id\":1}]}", "has no \"image_id\""},
        {"{\"images\":[],\"annotations\":[{\"image_id\":true}]}", "\"image_id\" is neither"},
        {"{\"images\":[],\"annotations\":[{\"image_id\":1,\"category_id\":2.5}]}", "\"category_id\" is 2.5"},
        {IMAGES("null"), "not an object"},
        {"{\"images\":[],\"categories\":[null]}", "not an object"},
        {"{\"images\":[],\"categories\":[{\"id\":1,\"name\":\"caf\xE9\"}]}", "text that is not UTF-8"},
        {"{\"images\":[],\"categories\":[{\"id\":1,\"name\":\"a\\u0000\"}]}", "NUL"},
        {"{\"images\":[],\"categories\":[{\"id\":1}]}", "has no \"name\""},
        {IMAGES("{\"id\":1,\"file_name\":\"\xED\xA0\x80\"}"), "text that is not UTF-8"},
        {IMAGES("{\"id\":1,\"file_name\":\"\xFF\"}"), "text that is not UTF-8"},
        {IMAGES("{\"id\":NaN,\"file_name\":\"a\"}"), "NaN or Infinity"},
        {IMAGES("{\"id\":1,\"file_name\":\"a\",\"x\":[-Infinity]}"), "NaN or Infinity"},
        {ANNOTATION("\"category_id\":null"), "\"category_id\" is neither a number nor a string"},
        {ANNOTATION("\"category_id\":NaN"), "NaN or Infinity"},
        {ANNOTATION("\"bbox\":[1,NaN,3,4]"), "\"bbox\" holds something that is not a number"},
        {ANNOTATION("\"bbox\":[1,\"2\",3,4]"), "\"bbox\" holds something that is not a number"},
        {ANNOTATION("\"bbox\":[1,2,3,null]"), "\"bbox\" holds something that is not a number"},
        {ANNOTATION("\"bbox\":[1,2,3]"), "\"bbox\" has 3 numbers, not four"},
        {ANNOTATION("\"bbox\":[1,2,3,4,5]"), "\"bbox\" has 5 numbers, not four"},
        {ANNOTATION("\"bbox\":7"), "\"bbox\" is not a list"},
        {ANNOTATION("\"caption\":\"caf\xE9\""), "text that is not UTF-8"},
        {ANNOTATION("\"area\":NaN"), "NaN or Infinity"},
    };
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        support_coco o = support_coco_text(cases[i].text);
        if (o.status != MR_OK || o.file->bad_count != 1 || !strstr(o.file->bads[0].why, cases[i].why))
            fail_msg("%s\n gave %d %s: %zu bad, %s\n expected: %s", cases[i].text, o.status, o.err.text,
                     o.file ? o.file->bad_count : 0, o.file && o.file->bad_count ? o.file->bads[0].why : "",
                     cases[i].why);
        support_coco_done(&o);
    }
}

static void test_bad_values_of_one_image(void **state)
{
    (void)state;
    support_coco o = support_coco_text(
        "{\"info\":{\"score\":NaN},\"categories\":[{\"id\":1.0,\"name\":7,\"supercategory\":NaN}],\"images\":["
        "{\"id\":3,\"file_name\":\"NaN.jpg\"},{\"id\":2e0,\"file_name\":\"b.jpg\"},{\"id\":1,\"coco_url\":\"http://a/"
        "c\"}],"
        "\"annotations\":[{\"image_id\":2.0,\"category_id\":1},{\"image_id\":3,\"bbox\":[0,0,Infinity,1]},"
        "{\"image_id\":2,\"bbox\":[]},{\"image_id\":3,\"bbox\":null}]}");
    assert_int_equal(o.status, MR_OK);
    assert_true(o.file->repaired);
    assert_int_equal(o.file->bad_count, 1);
    assert_int_equal(o.file->bads[0].image_id, 3);
    assert_int_equal(o.file->image_count, 3);
    assert_string_equal(o.file->images[0].file_name, "http://a/c");
    assert_int_equal(o.file->images[0].bad + o.file->images[1].bad, 0);
    assert_int_equal(o.file->images[2].bad, 1);
    assert_string_equal(o.file->images[2].file_name, "NaN.jpg");
    assert_int_equal(o.file->images[1].count, 2);
    assert_string_equal(o.file->categories[0].name, "7");
    support_coco_done(&o);
    o = support_coco_text(
        "{\"annotations\":[{\"image_id\":2,\"category_id\":5}],\"categories\":[{\"id\":5,\"name\":NaN},"
        "{\"id\":6,\"name\":\"b\"}],\"images\":[{\"id\":1,\"file_name\":\"a\"},"
        "{\"id\":2,\"file_name\":\"b\"}]}");
    assert_int_equal(o.status, MR_OK);
    assert_int_equal(o.file->category_count, 1);
    assert_int_equal(o.file->images[0].bad, 0);
    assert_int_equal(o.file->images[1].bad, 1);
    assert_true(o.file->bads[0].used);
    assert_non_null(strstr(o.file->bads[0].why, "NaN or Infinity"));
    support_coco_done(&o);
    o = support_coco_text("{\"images\":[{\"id\":NaN,\"file_name\":\"a\"},{\"id\":2,");
    assert_int_equal(o.status, MR_BAD_DATA);
    assert_non_null(strstr(o.err.text, "premature"));
    support_coco_done(&o);
}

/* The root is level one. */
static support_coco nested(unsigned levels)
{
    mr_buf text = {0};
    mr_buf_add_text(&text, "{\"images\":[],\"x\":");
    for (unsigned i = 1; i < levels; i++)
        mr_buf_add_text(&text, "[");
    for (unsigned i = 1; i < levels; i++)
        mr_buf_add_text(&text, "]");
    mr_buf_add_text(&text, "}");
    support_coco o = support_coco_parse(text.data, text.len);
    mr_buf_free(&text);
    return o;
}

static void test_depth(void **state)
{
    (void)state;
    support_coco o = nested(200);
    assert_int_equal(o.status, MR_OK);
    support_coco_done(&o);
    o = nested(201);
    assert_int_equal(o.status, MR_BAD_DATA);
    assert_non_null(strstr(o.err.text, "nested more than 200"));
    support_coco_done(&o);
    o = nested(100000);
    assert_int_equal(o.status, MR_BAD_DATA);
    support_coco_done(&o);
}

/* Every cut and many flips: accepted with readable texts, or refused with a sentence. */
static void test_damage(void **state)
{
    (void)state;
    mr_random random = support_random();
    char copy[sizeof whole];
    for (size_t len = 0; len < sizeof whole - 2; len += 3) {
        support_coco o = support_coco_parse(whole, len);
        assert_int_equal(o.status, MR_BAD_DATA);
        assert_true(o.err.text[0]);
        support_coco_done(&o);
    }
    for (int trial = 0; trial < 300; trial++) {
        memcpy(copy, whole, sizeof whole);
        copy[mr_random_below(&random, sizeof whole - 1)] = "{}[]\",:0x\\"[mr_random_below(&random, 10)];
        support_coco o = support_coco_parse(copy, sizeof whole - 1);
        assert_true(o.status == MR_OK || (o.status == MR_BAD_DATA && o.err.text[0]));
        for (size_t i = 0; o.status == MR_OK && i < o.file->image_count; i++) {
            mr_buf text = {0};
            assert_int_equal(mr_coco_annotations(o.source, o.file, i, &text, &o.err), MR_OK);
            assert_int_equal(mr_coco_image_text(o.source, o.file, i, &text, &o.err), MR_OK);
            mr_buf_free(&text);
        }
        support_coco_done(&o);
    }
}

/* A file that changes after it was parsed is noticed, not copied. */
static void test_changed_file(void **state)
{
    (void)state;
    support_coco o = support_coco_text(whole);
    char *path = support_path("%s/a.json", o.dir), *blank = malloc(sizeof whole);
    mr_buf text = {0};
    memset(blank, ' ', sizeof whole - 1);
    support_write(path, blank, sizeof whole - 1);
    assert_int_equal(mr_coco_image_text(o.source, o.file, 0, &text, &o.err), MR_BAD_DATA);
    assert_int_equal(mr_coco_annotations(o.source, o.file, 0, &text, &o.err), MR_BAD_DATA);
    mr_buf_free(&text);
    free(path);
    free(blank);
    support_coco_done(&o);
}

/* Many annotations of few images, scattered and side by side: every text comes back once, in the file's order. */
static void test_many_annotations(void **state)
{
    (void)state;
    enum { N = 20000, IMAGES_N = 7 };
    mr_random random = support_random();
    mr_buf text = {0}, expected[IMAGES_N] = {0};
    mr_buf_add_text(&text, "{\"images\":[");
    for (int i = 0; i < IMAGES_N; i++) {
        mr_buf_printf(&text, "%s{\"id\":%d,\"file_name\":\"%d\"}", i ? "," : "", i, i);
        mr_buf_add_text(&expected[i], "[");
    }
    mr_buf_add_text(&text, "],\"annotations\":[");
    for (int n = 0, image = 0; n < N; n++) {
        char one[200], pad[121];
        memset(pad, 'p', sizeof pad);
        pad[mr_random_below(&random, 120) + 1] = '\0';
        if (mr_random_below(&random, 3) == 0)
            image = (int)mr_random_below(&random, IMAGES_N);
        snprintf(one, sizeof one, "{\"image_id\":%d,\"id\":%d,\"pad\":\"%.120s\"}", image, n, pad);
        mr_buf_printf(&text, "%s%s", n ? ",\n" : "", one);
        mr_buf_printf(&expected[image], "%s%s", expected[image].len > 1 ? "," : "", one);
    }
    mr_buf_add_text(&text, "]}");
    support_coco o = support_coco_parse(text.data, text.len);
    assert_int_equal(o.status, MR_OK);
    assert_int_equal(o.file->annotation_count, N);
    for (int i = 0; i < IMAGES_N; i++) {
        mr_buf_add_text(&expected[i], "]");
        assert_annotations(&o, (size_t)i, mr_buf_text(&expected[i]));
        mr_buf_free(&expected[i]);
    }
    mr_buf_free(&text);
    support_coco_done(&o);
}

/* The real files, against a parser that builds the whole tree. */
static void compare(const mr_source *s, uint32_t entry)
{
    mr_buf text = {0};
    mr_error err;
    mr_coco_ids ids = {0};
    mr_coco_file *file;
    json_t *doc, *list;
    assert_int_equal(mr_source_read(s, entry, &text, &err), MR_OK);
    assert_int_equal(mr_json_parse(text.data, text.len, "real", &doc, &err), MR_OK);
    if (mr_coco_parse(s, entry, &ids, &file, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_int_equal(file->image_count, json_array_size(json_object_get(doc, "images")));
    assert_int_equal(file->annotation_count, json_array_size(json_object_get(doc, "annotations")));
    assert_int_equal(file->category_count, json_array_size(json_object_get(doc, "categories")));
    size_t seen = 0;
    for (size_t i = 0; i < file->image_count; i++) {
        mr_buf_clear(&text);
        assert_int_equal(mr_coco_annotations(s, file, i, &text, &err), MR_OK);
        assert_int_equal(mr_json_parse(text.data, text.len, "real", &list, &err), MR_OK);
        assert_int_equal(json_array_size(list), file->images[i].count);
        for (size_t k = 0; k < json_array_size(list); k++)
            assert_true(json_integer_value(json_object_get(json_array_get(list, k), "image_id")) == file->images[i].id);
        seen += json_array_size(list);
        json_decref(list);
    }
    assert_int_equal(seen + file->orphans, file->annotation_count);
    json_decref(doc);
    mr_coco_free(file);
    mr_coco_ids_free(&ids);
    mr_buf_free(&text);
}

static void test_real_files(void **state)
{
    (void)state;
    char *data = support_data("coco/coco2017_mini_free/annotations");
    if (!data)
        skip();
    mr_notes notes = {0};
    mr_source_options options = {.quiet = true};
    mr_source *source;
    mr_error err;
    assert_int_equal(mr_source_open(&data, 1, -1, &options, &notes, &source, &err), MR_OK);
    assert_true(mr_source_count(source) > 0);
    for (uint32_t i = 0; i < mr_source_count(source); i++)
        compare(source, i);
    mr_source_free(source);
    mr_notes_free(&notes);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_file),      cmocka_unit_test(test_chunk_borders),
        cmocka_unit_test(test_byte_order_mark), cmocka_unit_test(test_only_images),
        cmocka_unit_test(test_nul_in_name),     cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bad_values),      cmocka_unit_test(test_bad_values_of_one_image),
        cmocka_unit_test(test_depth),           cmocka_unit_test(test_damage),
        cmocka_unit_test(test_changed_file),    cmocka_unit_test(test_many_annotations),
        cmocka_unit_test(test_real_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

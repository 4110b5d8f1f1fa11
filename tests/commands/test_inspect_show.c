/* test_inspect_show.c - `inspect` and `show`.
 * Invariant tested: jSON output contains what was put in, character by character, including the numbers of the
 * source. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/shards/dataset_maker.h"

typedef struct state {
    char *dir, *ds;
    picture p[2];
} state;

#define MORE  MORE_WITH("\xc2\x9b\x7f")
#define SHOWN MORE_WITH("\\u009b\\u007f") /* as no terminal obeys it */
#define MORE_WITH(controls)                                                                                            \
    ",\"label\":2,\"columns\":{\"big\":123456789012345678901234567890,\"x\":1.50,\"e\":[],\"o\":{},"                   \
    "\"list\":[1, 2,3e400],\"text\":\"a\\\"b\\\\ " controls "\"}"

static int set_up(void **out)
{
    state *s = calloc(1, sizeof *s);
    s->dir = support_tmpdir();
    s->ds = support_path("%s/ds", s->dir);
    s->p[0] = make_png(7, 5, 2, 8, false);
    s->p[1] = make_jpeg((jpeg_kind){.width = 20, .height = 10, .components = 1, .progressive = true});
    const made train[3] = {{"t/\\\\xFF.png", s->p[0], MORE, false, 0},
                           {"t/b.jpg", s->p[1], ",\"labels\":[0,1]", false, 0},
                           {"t/c.jpg", s->p[1], ",\"label\":2", true, 1}};
    const made val[1] = {{"v/d.jpg", s->p[1], NULL, false, 0}};
    const made_split splits[2] = {{"train", train, 3, 3}, {"val", val, 1, 1}};
    mkdir(s->ds, 0777);
    dataset_make(s->ds, splits, 2);
    *out = s;
    return 0;
}

static int tear_down(void **out)
{
    state *s = *out;
    support_tmpdir_remove(s->dir);
    picture_free(&s->p[0]);
    picture_free(&s->p[1]);
    free(s->ds);
    free(s);
    return 0;
}

static json_t *run_json(const char *command, const char *a, const char *b, const char *c, const char *d)
{
    support_result r = support_millrace(command, a, b, c, d, (char *)NULL);
    support_assert_status(&r, 0);
    json_t *doc = json_loadb(r.out, r.out_len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(doc);
    support_result_free(&r);
    return doc;
}

static json_int_t number(const json_t *doc, const char *key)
{
    assert_true(json_is_integer(json_object_get(doc, key)));
    return json_integer_value(json_object_get(doc, key));
}

static void test_inspect_json(void **out)
{
    const state *s = *out;
    json_t *doc = run_json("inspect", "--json", "--classes", s->ds, NULL);
    assert_int_equal(number(doc, "format"), 1);
    assert_string_equal(json_string_value(json_object_get(doc, "layout")), "imagenette");
    const json_t *train = json_object_get(json_object_get(doc, "splits"), "train");
    assert_int_equal(number(train, "samples"), 3);
    assert_int_equal(number(train, "images"), 2);
    assert_int_equal(number(train, "bytes"), s->p[0].len + s->p[1].len);
    assert_int_equal(number(train, "shards"), 1);
    const json_t *classes = json_object_get(doc, "classes");
    assert_int_equal(json_array_size(classes), 3);
    assert_string_equal(json_string_value(json_array_get(classes, 1)), "bee");
    const json_t *counts = json_object_get(json_object_get(doc, "class_counts"), "train");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(counts, "classes"), 2)), 2);
    assert_int_equal(number(counts, "several_labels"), 1);
    char *path = support_path("%s/manifest.json", s->ds), hex[65];
    size_t len;
    uint8_t *text = support_read(path, &len), digest[32];
    mr_sha256(text, len, digest);
    mr_hex(digest, 32, hex);
    assert_string_equal(json_string_value(json_object_get(doc, "digest")), hex);
    support_expect(0, "verify", "--expect", hex, s->ds, (char *)NULL);
    free(text);
    free(path);
    json_decref(doc);
}

static void test_inspect_words(void **out)
{
    const state *s = *out;
    support_result r = support_millrace("inspect", s->ds, (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "train"));
    assert_non_null(strstr(r.out, "ant, bee, cat"));
    support_result_free(&r);
    r = support_millrace("inspect", s->ds, "--classes", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "(several labels)"));
    support_result_free(&r);
    support_expect(2, "inspect", (char *)NULL);
    support_expect(2, "inspect", s->dir, (char *)NULL);
    char *path = support_path("%s/manifest.json", s->ds);
    support_write_text(path, "{");
    support_expect(1, "inspect", s->ds, (char *)NULL);
    free(path);
}

/* Past what a parser that reads numbers would give back. */
static void test_show_json(void **out)
{
    const state *s = *out;
    support_result r = support_millrace("show", "--json", s->ds, "train", "0", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "\"meta\":{\"source\":\"t/\\\\xFF.png\"" SHOWN "}}\n"));
    support_result_free(&r);
    json_t *doc = run_json("show", "--json", s->ds, "train", "2");
    assert_string_equal(json_string_value(json_object_get(doc, "source")), "t/c.jpg");
    assert_string_equal(json_string_value(json_object_get(doc, "class")), "cat");
    assert_string_equal(json_string_value(json_object_get(doc, "codec")), "JPEG");
    assert_int_equal(number(doc, "width"), 20);
    assert_int_equal(number(doc, "components"), 1);
    assert_int_equal(number(doc, "bytes"), s->p[1].len);
    assert_int_equal(json_array_size(json_object_get(doc, "flags")), 2); /* same-bytes, progressive */
    json_decref(doc);
}

static void test_show_words(void **out)
{
    const state *s = *out;
    support_result r = support_millrace("show", s->ds, "train", "0", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "PNG, 7 x 5, 3 colours, 8 bits"));
    assert_non_null(strstr(r.out, "2 (cat)"));
    assert_non_null(strstr(r.out, "        \"big\": 123456789012345678901234567890,\n        \"x\": 1.50,\n"
                                  "        \"e\": [],\n        \"o\": {},\n        \"list\": [1, 2, 3e400],\n"));
    assert_non_null(strstr(r.out, "\"a\\\"b\\\\ \\u009b\\u007f\"\n      }\n    }\n"));
    support_result_free(&r);
    support_expect(2, "show", s->ds, "train", "3", (char *)NULL);
    support_expect(2, "show", s->ds, "train", "-1", (char *)NULL);
    support_expect(2, "show", s->ds, "train", "x", (char *)NULL);
    support_expect(2, "show", s->ds, "train", (char *)NULL);
    support_expect(2, "show", s->dir, "train", "0", (char *)NULL);
    r = support_millrace("show", s->ds, "test", "0", (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "train, val"));
    support_result_free(&r);
}

static void test_show_image(void **out)
{
    const state *s = *out;
    char *file = support_path("%s/x.png", s->dir);
    support_expect(0, "show", s->ds, "train", "0", "--image", file, (char *)NULL);
    size_t len;
    uint8_t *bytes = support_read(file, &len);
    assert_int_equal(len, s->p[0].len);
    assert_memory_equal(bytes, s->p[0].bytes, len);
    free(bytes);
    support_expect(2, "show", s->ds, "train", "1", "--image", file, (char *)NULL);
    assert_int_equal(support_size(file), s->p[0].len);
    support_expect(0, "show", s->ds, "train", "1", "--image", file, "--force", (char *)NULL);
    assert_int_equal(support_size(file), s->p[1].len);
    support_write_text(file, "notes");
    support_expect(2, "show", s->ds, "train", "1", "--image", file, "--force", (char *)NULL);
    assert_int_equal(support_size(file), 5);
    support_result r = support_millrace("show", s->ds, "val", "0", "--image", "-", (char *)NULL);
    support_assert_status(&r, 0);
    assert_int_equal(r.out_len, s->p[1].len);
    assert_memory_equal(r.out, s->p[1].bytes, r.out_len);
    support_result_free(&r);
    free(file);
}

/* NAME.tmp is a name as good as any for a file of one's own, or a folder. */
static void test_show_image_beside_others(void **out)
{
    const state *s = *out;
    char *file = support_path("%s/x.jpg", s->dir), *own = support_path("%s.tmp", file);
    char *temp = support_path("%s.millrace.tmp", file), *said = support_path("%s: ", temp);
    support_write_text(own, "mine");
    support_expect(0, "show", s->ds, "train", "2", "--image", file, (char *)NULL);
    uint8_t *bytes = support_read(own, NULL);
    assert_string_equal((char *)bytes, "mine");
    assert_int_equal(support_size(file), s->p[1].len);
    assert_int_equal(mkdir(temp, 0777), 0);
    support_result r = support_millrace("show", s->ds, "train", "0", "--force", "--image", file, (char *)NULL);
    support_assert_status(&r, 3);
    assert_non_null(strstr(r.err, said));
    assert_int_equal(support_size(file), s->p[1].len);
    support_result_free(&r);
    free(bytes);
    free(said);
    free(temp);
    free(own);
    free(file);
}

static void test_show_damage(void **out)
{
    const state *s = *out;
    char *path = support_path("%s/train-00000.mdb", s->ds), *file = support_path("%s/x.jpg", s->dir);
    size_t len;
    uint8_t *bytes = support_read(path, &len), *at = memmem(bytes, len, s->p[1].bytes, s->p[1].len);
    at[30] ^= 1;
    support_write(path, bytes, len);
    support_expect(1, "show", s->ds, "train", "2", "--image", file, (char *)NULL);
    assert_false(support_exists(file));
    support_expect(0, "show", s->ds, "train", "0", (char *)NULL);
    free(bytes);
    free(path);
    free(file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_inspect_json),
        TEST(test_inspect_words),
        TEST(test_show_json),
        TEST(test_show_words),
        TEST(test_show_image),
        TEST(test_show_damage),
        TEST(test_show_image_beside_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

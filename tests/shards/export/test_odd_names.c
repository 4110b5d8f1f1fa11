/* test_odd_names.c - classes and files whose names XML, YAML, CSV and file systems have no place for.
 * Covers formats/voc.c, formats/yolo.c, formats/hub_yaml.c.
 * Invariant tested: every file of an export is well-formed, and what a format can hold comes back as it was. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/scope.h"
#include "base/text.h"
#include "tests/support/images/image.h"
#include "tests/support/support.h"

/* As YAML writes them between double quotes. */
static const char *const names[] = {
    "a\\uFFFE", "b\\uFFFFb", "c\\x01",           "d\\x85d", "e: {#}", "f\\u2028f",    "g \\\" h", "h, h",       "i\\ni",
    "j\\x80",   "k\\uFEFF",  "l <&> ' ]]> \\\\", "m\\x7Fm", "- n",    "o\\U0001FFFE", "\\u2029",  "\\U0001F600"};

/* A tree of YOLO with an object of each class, and a picture whose name is odd as well. */
static void make(const char *dir)
{
    mr_buf yaml = {0}, label = {0};
    picture p = make_png(20, 20, 2, 8, false);
    char *image = support_path("%s/src/train/images/p\xEF\xBF\xBE,q.png", dir);
    char *text = support_path("%s/src/train/labels/p\xEF\xBF\xBE,q.txt", dir);
    char *data = support_path("%s/src/data.yaml", dir);
    mr_buf_add_text(&yaml, "train: train/images\nnames:\n");
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        mr_buf_printf(&yaml, "  %zu: \"%s\"\n", i, names[i]);
        mr_buf_printf(&label, "%zu 0.5 0.5 0.%zu 0.5\n", i, 10 + i);
    }
    support_write(image, p.bytes, p.len);
    support_write(text, label.data, label.len);
    support_write(data, yaml.data, yaml.len);
    char *src = support_path("%s/src", dir), *ds = support_path("%s/ds", dir);
    support_expect(0, "ingest", src, ds, "--layout", "yolo", "-q", (char *)NULL);
    mr_buf_free(&yaml);
    mr_buf_free(&label);
    picture_free(&p);
    free(image);
    free(text);
    free(data);
    free(src);
    free(ds);
}

static json_t *classes_of(const char *ds)
{
    support_result r = support_millrace("inspect", ds, "--json", (char *)NULL);
    support_assert_status(&r, 0);
    json_t *doc = json_loads(r.out, 0, NULL), *classes = json_incref(json_object_get(doc, "classes"));
    assert_true(json_array_size(classes) == MR_COUNT(names));
    json_decref(doc);
    support_result_free(&r);
    return classes;
}

/* Exports, and ingests that again. */
static void there_and_back(const char *dir, const char *format, const char *layout)
{
    char *ds = support_path("%s/ds", dir), *out = support_path("%s/%s", dir, format);
    char *again = support_path("%s/%s-ds", dir, format);
    support_expect(0, "export", ds, out, "--to", format, "-q", (char *)NULL);
    support_expect(0, "ingest", out, again, "--layout", layout, "-q", (char *)NULL);
    free(ds);
    free(out);
    free(again);
}

static void expect_same_classes(const char *dir, const char *format)
{
    char *ds = support_path("%s/ds", dir), *again = support_path("%s/%s-ds", dir, format);
    json_t *want = classes_of(ds), *got = classes_of(again);
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        const char *name = json_string_value(json_array_get(want, i));
        if (!strstr(name, "\\x")) /* control characters are \xHH in every format */
            assert_string_equal(json_string_value(json_array_get(got, i)), name);
    }
    json_decref(want);
    json_decref(got);
    free(ds);
    free(again);
}

/* What every reader takes: the printable characters of YAML 1.1, and those of XML 1.0. */
static void expect_clean(const char *path)
{
    size_t len;
    char *text = (char *)support_read(path, &len);
    assert_true(mr_utf8_valid(text, len));
    for (size_t i = 0; i < len; i++) {
        bool c1 = text[i] == '\xC2' && (uint8_t)text[i + 1] < 0xA0;
        if (mr_text_is_no_character(text + i, len - i) ||
            ((uint8_t)text[i] < ' ' && text[i] != '\n' && text[i] != '\t'))
            fail_msg("%s: byte %zu is not allowed in XML", path, i);
        if (c1 && strstr(path, ".yaml"))
            fail_msg("%s: byte %zu is not printable in YAML", path, i);
    }
    free(text);
}

static void test_yaml_holds_all(void **state)
{
    make(*state);
    there_and_back(*state, "yolo", "yolo");
    expect_same_classes(*state, "yolo");
    char *yaml = support_path("%s/yolo/data.yaml", (char *)*state);
    expect_clean(yaml);
    free(yaml);
}

static void test_json_holds_all(void **state)
{
    make(*state);
    there_and_back(*state, "coco", "coco");
    expect_same_classes(*state, "coco");
}

static void test_xml_is_well_formed(void **state)
{
    char *dir = *state, *ds = support_path("%s/ds", dir), *out = support_path("%s/voc", dir);
    char *xml = support_path("%s/Annotations/p___,q.xml", out);
    make(dir);
    support_result r = support_millrace("export", ds, out, "--to", "voc", "--json", (char *)NULL);
    support_assert_status(&r, 0);
    json_t *doc = json_loads(r.out, 0, NULL), *lost = json_object_get(doc, "not_kept");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(lost, "class_names"), "count")), 2);
    expect_clean(xml);
    char *text = (char *)support_read(xml, NULL);
    assert_non_null(strstr(text, "<name>a\\xEF\\xBF\\xBE</name>"));
    assert_non_null(strstr(text, "<name>b\\xEF\\xBF\\xBFb</name>"));
    assert_non_null(strstr(text, "<name>l &lt;&amp;&gt; ' ]]&gt; \\</name>"));
    assert_int_equal(support_occurrences(text, "<object>"), MR_COUNT(names));
    json_decref(doc);
    support_result_free(&r);
    free(text);
    free(xml);
    free(out);
    free(ds);
}

static void test_pages_and_reports(void **state)
{
    char *dir = *state, *ds = support_path("%s/ds", dir), *page = support_path("%s/page.html", dir);
    make(dir);
    support_expect(0, "report", ds, "-o", page, "-q", (char *)NULL);
    expect_clean(page);
    support_result r = support_millrace("verify", ds, "--format", "junit", (char *)NULL);
    support_assert_status(&r, 0);
    support_write_text(page, r.out);
    expect_clean(page);
    support_result_free(&r);
    free(page);
    free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_yaml_holds_all),
        IN_TMPDIR(test_json_holds_all),
        IN_TMPDIR(test_xml_is_well_formed),
        IN_TMPDIR(test_pages_and_reports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

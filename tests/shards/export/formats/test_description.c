/* test_description.c - what describes an export: croissant.json, and the hub's README.md.
 * Covers formats/description.c, formats/croissant.c, formats/tars.c, formats/hub_card.c, formats/hub_yaml.c,
 * export/class_names.c.
 * Invariant tested: every file of an export is described with the SHA-256 that it has; names of strangers stay values,
 * whatever they hold; an export that fails leaves no description. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/scope.h"
#include "base/yaml.h"
#include "base/json/json.h"
#include "tests/support/shards/dataset_maker.h"

/* Ends a string, a code span, a cell, a line and a document; ends a comment; takes bytes that YAML refuses. */
static const char *const hostile[] = {"a\": \"b\\\", x: [`` | ``` ]\\|", "---",
                                      "- *alias &anchor !tag {{ x }} %d%n <script> --> # \\x0Aevil: 1",
                                      "\xE2\x80\xA8line\xC2\x85next\xEF\xBB\xBF\xEF\xBF\xBE\xF0\x9F\x90\x9D"};

static void make(const char *dir)
{
    picture p = make_png(40, 40, 2, 8, false), q = make_png(41, 40, 2, 8, false);
    const made train[3] = {
        {"a.png", p, ",\"label\":0,\"objects\":[{\"label\":1,\"box\":[1,1,4,4]}]", false, 0},
        {"b.png", q, ",\"label\":1,\"captions\":[\"one\\n\\\"two\\u2028\"],\"objects\":[]", false, 0},
        {"c.png", q, ",\"labels\":[0,2]", true, 1}};
    const made val[1] = {{"d.png", q, ",\"label\":2", false, 0}};
    const made_split splits[2] = {{"train", train, 3, 3}, {"val", val, 1, 1}};
    mkdir(dir, 0777);
    dataset_make(dir, splits, 2);
    picture_free(&p);
    picture_free(&q);
}

/* Three classes and the licence get these names. */
static void rename_all(const char *ds, const char *const names[3], const char *licence)
{
    char *path = support_path("%s/manifest.json", ds);
    json_t *doc = json_load_file(path, 0, NULL);
    assert_non_null(doc);
    json_object_set_new(doc, "licence", json_string(licence));
    json_object_del(doc, "seal");
    for (size_t i = 0; i < 3; i++) { /* classes with ids may share a name */
        json_t *class = json_array_get(json_object_get(doc, "classes"), i);
        json_object_set_new(class, "name", json_string(names[i]));
        json_object_set_new(class, "id", json_integer((json_int_t)i + 1));
    }
    assert_int_equal(json_dump_file(doc, path, 0), 0);
    dataset_seal(ds);
    json_decref(doc);
    free(path);
}

static void use_writer(const char *dir, const char *script)
{
    char *path = support_path("%s/writer", dir), *text = support_path("#!/bin/sh\n%s\n", script);
    support_write_text(path, text);
    chmod(path, 0777);
    setenv("MILLRACE_PARQUET_WRITER", path, 1);
    free(path);
    free(text);
}

static json_t *load(const char *folder)
{
    char *path = support_path("%s/croissant.json", folder);
    json_error_t why;
    json_t *doc = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!doc)
        fail_msg("%s: %s", path, why.text);
    free(path);
    return doc;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static const json_t *by_id(const json_t *list, const char *id)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(text_of(json_array_get(list, i), "@id"), id) == 0)
            return json_array_get(list, i);
    return NULL;
}

/* Every FileObject has the size and the hash of its file; returns their number. */
static size_t assert_files(const char *folder, const json_t *doc)
{
    const json_t *list = json_object_get(doc, "distribution");
    size_t files = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        if (strcmp(text_of(one, "@type"), "cr:FileObject") != 0)
            continue;
        char *path = support_path("%s/%s", folder, text_of(one, "contentUrl")), hex[65], size[32];
        uint8_t sha256[32];
        size_t len;
        uint8_t *bytes = support_read(path, &len);
        mr_sha256(bytes, len, sha256);
        mr_hex(sha256, 32, hex);
        assert_string_equal(text_of(one, "sha256"), hex);
        snprintf(size, sizeof size, "%zu B", len);
        if (json_object_get(one, "contentSize"))
            assert_string_equal(text_of(one, "contentSize"), size);
        free(bytes);
        free(path);
        files++;
    }
    return files;
}

/* Names of a record set's fields, a blank after each. */
static char *fields_of(const json_t *doc, const char *id)
{
    const json_t *set = by_id(json_object_get(doc, "recordSet"), id);
    assert_non_null(set);
    const json_t *fields = json_object_get(set, "field");
    char *list = support_path("%s", "");
    for (size_t i = 0; i < json_array_size(fields); i++) {
        char *longer = support_path("%s%s ", list, text_of(json_array_get(fields, i), "name"));
        free(list);
        list = longer;
    }
    return list;
}

/* ---- tars -------------------------------------------------------------------------------------------------------- */

static void tars_are_described(void **state)
{
    char *dir = *state, *ds = support_path("%s/ds", dir), *out = support_path("%s/out", dir);
    char *again = support_path("%s/again", dir), *rows = support_path("%s/__millrace__/train.jsonl", out);
    make(ds);
    support_expect(0, "export", ds, out, "--to", "tar", "--shard-size", "100", (char *)NULL);
    support_expect(0, "export", ds, again, "--to", "tar", "--shard-size", "100", (char *)NULL);
    assert_true(support_tree_hash(out) == support_tree_hash(again));
    char *names = support_list(out);
    assert_string_equal(names,
                        "README.md\n__millrace__/dataset.json\n__millrace__/train.jsonl\n__millrace__/val.jsonl\n"
                        "croissant.json\ntrain-000000.tar\ntrain-000001.tar\ntrain-000002.tar\nval-000000.tar\n");
    json_t *doc = load(out);
    assert_int_equal(assert_files(out, doc), 6);
    const json_t *set = by_id(json_object_get(doc, "distribution"), "train/files");
    assert_int_equal(json_array_size(json_object_get(set, "containedIn")), 3);
    char *fields = fields_of(doc, "train");
    assert_string_equal(fields, "file_name image split label labels captions objects ");
    char *text = (char *)support_read(rows, NULL);
    assert_string_equal(text,
                        "{\"file_name\":\"00000000.png\",\"label\":0,\"labels\":[0],\"captions\":[],\"objects\":{"
                        "\"bbox\":[[1.0,1.0,4.0,4.0]],\"categories\":[1],\"crowd\":[false]}}\n"
                        "{\"file_name\":\"00000001.png\",\"label\":1,\"labels\":[1],\"captions\":"
                        "[\"one\\n\\\"two\xE2\x80\xA8\"],\"objects\":{\"bbox\":[],\"categories\":[],\"crowd\":[]}}\n"
                        "{\"file_name\":\"00000002.png\",\"label\":null,\"labels\":[0,2],\"captions\":[],\"objects\":{"
                        "\"bbox\":[],\"categories\":[],\"crowd\":[]}}\n");
    char *card = support_path("%s/README.md", out);
    free(text);
    text = (char *)support_read(card, NULL);
    assert_non_null(strstr(text, "  - split: \"train\"\n    path: \"train-??????.tar\"\n"));
    assert_null(strstr(text, "dataset_info")); /* the hub finds the features of tars by looking */
    free(card);
    json_decref(doc);
    free(text);
    free(fields);
    free(names);
    free(rows);
    free(again);
    free(out);
    free(ds);
}

static void one_split_is_described_alone(void **state)
{
    char *dir = *state, *ds = support_path("%s/ds", dir), *out = support_path("%s/out", dir);
    make(ds);
    support_expect(0, "export", ds, out, "--to", "tar", "--shard-size", "1MB", "--split", "val", (char *)NULL);
    json_t *doc = load(out);
    assert_int_equal(assert_files(out, doc), 2);
    assert_null(by_id(json_object_get(doc, "recordSet"), "train"));
    const json_t *splits = by_id(json_object_get(doc, "recordSet"), "dataset/splits");
    assert_int_equal(json_array_size(json_object_get(splits, "data")), 1);
    assert_non_null(strstr(text_of(doc, "description"), "1 image of layout"));
    char *fields = fields_of(doc, "val");
    assert_string_equal(fields, "file_name image split label ");
    free(fields);
    json_decref(doc);
    free(out);
    free(ds);
}

static void damage_leaves_no_description(void **state)
{
    char *dir = *state, *ds = support_path("%s/ds", dir), *out = support_path("%s/out", dir);
    char *shard = support_path("%s/val-00000.mdb", ds);
    size_t len;
    make(ds);
    uint8_t *bytes = support_read(shard, &len);
    memset(bytes + len / 2, 0x55, len - len / 2);
    support_write(shard, bytes, len);
    use_writer(dir, "cat > \"$1\"");
    support_expect(1, "export", ds, out, "--to", "tar", "--shard-size", "100", (char *)NULL);
    support_expect(1, "export", ds, out, "--to", "parquet", (char *)NULL);
    char *names = support_list(dir);
    assert_null(strstr(names, "croissant.json"));
    assert_null(strstr(names, "README.md"));
    free(names);
    free(bytes);
    free(shard);
    free(out);
    free(ds);
}

/* ---- names of strangers ------------------------------------------------------------------------------------------ */

static void assert_class_names(const json_t *doc, const char *const names[3])
{
    const json_t *classes = json_object_get(by_id(json_object_get(doc, "recordSet"), "dataset/classes"), "data");
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(text_of(json_array_get(classes, i), "dataset/classes/name"), names[i]);
}

static const mr_yaml_node *at(const mr_yaml *y, const mr_yaml_node *node, const char *key)
{
    const mr_yaml_node *value = mr_yaml_get(y, node, key);
    if (!value)
        fail_msg("README.md: no %s", key);
    return value;
}

/* The front matter is YAML, and has these names. */
static void assert_front_matter(const char *text, const char *const names[3], const char *licence)
{
    MR_AUTO(mr_yaml_free) mr_yaml y = {0};
    mr_error err;
    assert_memory_equal(text, "---\n", 4);
    const char *end = strstr(text, "\n---\n");
    assert_non_null(end);
    if (mr_yaml_parse(text, (size_t)(end - text) + 1, "README.md", &y, &err) != MR_OK)
        fail_msg("%s", err.text);
    const mr_yaml_node *root = mr_yaml_root(&y), *info = at(&y, root, "dataset_info");
    assert_string_equal(mr_yaml_text(&y, at(&y, root, "license_name")), licence);
    const mr_yaml_node *label = mr_yaml_next(&y, mr_yaml_first(&y, at(&y, info, "features")));
    assert_string_equal(mr_yaml_text(&y, at(&y, label, "name")), "label");
    const mr_yaml_node *list = at(&y, at(&y, at(&y, label, "dtype"), "class_label"), "names");
    const char *const numbers[3] = {"0", "1", "2"};
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(mr_yaml_text(&y, at(&y, list, numbers[i])), names[i]);
    const mr_yaml_node *train = mr_yaml_first(&y, at(&y, info, "splits"));
    assert_string_equal(mr_yaml_text(&y, at(&y, train, "num_examples")), "3");
}

/* After the front matter: how many lines begin with WORD. */
static size_t lines(const char *text, const char *word)
{
    char *begin = support_path("\n%s", word);
    size_t count = support_occurrences(strstr(text, "\n---\n") + 4, begin);
    free(begin);
    return count;
}

static void names_of_strangers_stay_values(void **state)
{
    char *dir = *state, *ds = support_path("%s/ds", dir), *out = support_path("%s/out", dir);
    char *tars = support_path("%s/tars", dir), *card = support_path("%s/README.md", out);
    make(ds);
    rename_all(ds, (const char *const[3]){"plain", hostile[1], hostile[3]}, hostile[0]);
    use_writer(dir, "cat > \"$1\"");
    support_expect(0, "export", ds, out, "--to", "parquet", (char *)NULL);
    support_expect(0, "export", ds, tars, "--to", "tar", "--shard-size", "1MB", (char *)NULL);
    char *text = (char *)support_read(card, NULL);
    assert_front_matter(text, (const char *const[3]){"plain", hostile[1], hostile[3]}, hostile[0]);
    assert_int_equal(lines(text, "| 0 | `plain` | 2 | 0 |\n"), 1);
    assert_int_equal(lines(text, "| "), 2 + 2 + 2 + 3);
    assert_int_equal(lines(text, "---"), 0);
    json_t *doc = load(out), *other = load(tars);
    assert_class_names(doc, (const char *const[3]){"plain", hostile[1], hostile[3]});
    assert_class_names(other, (const char *const[3]){"plain", hostile[1], hostile[3]});
    assert_string_equal(text_of(doc, "license"), hostile[0]);
    assert_int_equal(assert_files(out, doc), 2);
    json_decref(doc);
    json_decref(other);
    free(text);

    rename_all(ds, (const char *const[3]){hostile[2], hostile[0], "plain"}, "CC BY 4.0");
    support_expect(0, "export", ds, out, "--to", "parquet", "--force", (char *)NULL);
    text = (char *)support_read(card, NULL);
    assert_non_null(strstr(text, "license: cc-by-4.0\n"));
    assert_int_equal(lines(text, "| "), 2 + 2 + 2 + 3);
    assert_non_null(strstr(text, "| 1 | ```` a\": \"b\\\", x: [`` \\| ``` ]\\\\| ```` | 2 | 0 |\n"));
    free(text);
    free(card);
    free(tars);
    free(out);
    free(ds);
}

/* The hub's library refuses a dataset two of whose classes have one name. */
static void classes_of_one_name_are_told_apart(void **state)
{
    char *dir = *state, *ds = support_path("%s/ds", dir), *out = support_path("%s/out", dir);
    char *card = support_path("%s/README.md", out);
    make(ds);
    rename_all(ds, (const char *const[3]){"cat", "cat", "cat (1)"}, "none");
    use_writer(dir, "cat > \"$1\"");
    const char *const argv[] = {"export", ds, out, "--to", "parquet", NULL};
    support_result r = support_millrace_under(argv, NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "class names"));
    support_result_free(&r);
    char *text = (char *)support_read(card, NULL);
    assert_front_matter(text, (const char *const[3]){"cat", "cat (1)", "cat (1) (2)"}, "none");
    free(text);
    free(card);
    free(out);
    free(ds);
}

/* ---- the dataset itself ------------------------------------------------------------------------------------------ */

static void a_dataset_describes_its_files(void **state)
{
    char *ds = support_path("%s/ds", (char *)*state), *path = support_path("%s/croissant.json", ds);
    make(ds);
    const char *const argv[] = {"inspect", "--croissant", ds, NULL};
    support_result r = support_millrace_under(argv, NULL);
    support_assert_status(&r, 0);
    support_write(path, r.out, r.out_len);
    support_result_free(&r);
    json_t *doc = load(ds);
    assert_int_equal(assert_files(ds, doc), 5);
    json_decref(doc);
    r = support_millrace("verify", ds, (char *)NULL);
    support_assert_status(&r, 0);
    assert_null(strstr(r.out, "croissant")); /* it may be there */
    support_result_free(&r);
    SAYS(NULL, 2, "", NULL, "inspect", ds, "--croissant", "--classes");
    free(path);
    free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(tars_are_described),
        IN_TMPDIR(one_split_is_described_alone),
        IN_TMPDIR(damage_leaves_no_description),
        IN_TMPDIR(names_of_strangers_stay_values),
        IN_TMPDIR(classes_of_one_name_are_told_apart),
        IN_TMPDIR(a_dataset_describes_its_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

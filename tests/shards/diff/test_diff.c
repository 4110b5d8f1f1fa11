/* test_diff.c - `millrace diff`: each kind of difference, found in edits of known number, whatever the order and the
 * shards. Covers shards/cmd_diff.c, shards/diff/diff.c, shards/diff/meta.c. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/random.h"
#include "tests/support/faults.h"
#include "tests/support/sources/leak.h"

enum { FILES = 24, CLASSES = 3 };

static char *path_of(const char *tree, unsigned class, unsigned file)
{
    return support_path("%s/%s/train/c%u/%u.png", leak_dir, tree, class, file);
}

static void put(const char *path, unsigned tone)
{
    mr_picture p = alike_tone((uint8_t)(tone % 250), (uint8_t)(tone / 250), 77);
    picture file = alike_file(&p, ALIKE_PNG);
    support_write(path, file.bytes, file.len);
    picture_free(&file);
    mr_picture_free(&p);
}

static void put_tree(const char *tree)
{
    for (unsigned c = 0; c < CLASSES; c++)
        for (unsigned i = 0; i < FILES; i++) {
            char *path = path_of(tree, c, i);
            put(path, c * FILES + i);
            free(path);
        }
    char *val = support_path("%s/%s/val/c0/v.png", leak_dir, tree);
    put(val, 5000);
    free(val);
}

static char *ingest(const char *tree, const char *name, const char *option, const char *value)
{
    char *source = support_path("%s/%s", leak_dir, tree), *target = support_path("%s/%s", leak_dir, name);
    support_expect(0, "ingest", source, target, "--quiet", option, value, (char *)NULL);
    free(source);
    return target;
}

static json_t *diff(int code, const char *a, const char *b)
{
    support_result r = support_millrace("diff", a, b, "--json", (char *)NULL);
    support_assert_status(&r, code);
    json_t *doc = json_loads(r.out, 0, NULL);
    assert_non_null(doc);
    assert_int_equal(json_is_true(json_object_get(doc, "equal")), code == 0);
    support_result_free(&r);
    return doc;
}

static json_int_t count(json_t *doc, const char *name, const char *in)
{
    json_t *counts = json_object_get(doc, "counts");
    return json_integer_value(json_object_get(in ? json_object_get(counts, name) : counts, in ? in : name));
}

static void order_and_shards_do_not_count(void **state)
{
    (void)state;
    put_tree("a");
    char *a = ingest("a", "one", "--shard-size", "256MiB"), *b = ingest("a", "other", "--shard-size", "4KiB");
    char *c = ingest("a", "mixed", "--shuffle", "7");
    json_decref(diff(0, a, b));
    json_decref(diff(0, b, c));
    support_result r = support_millrace("diff", a, c, (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "equal: all samples and the classes agree\n"));
    support_result_free(&r);
    free(a);
    free(b);
    free(c);
}

/* What happens to each file is drawn; the numbers are those of the edits. */
static void edits_are_counted(void **state)
{
    (void)state;
    mr_random rnd = support_random();
    enum { KEEP, REMOVE, REPLACE, RENAME, RELABEL, TO_VAL, KINDS };
    json_int_t done[KINDS] = {0}, added = 0;
    put_tree("a");
    put_tree("b");
    for (unsigned c = 0; c < CLASSES; c++)
        for (unsigned i = 0; i < FILES; i++) {
            char *path = path_of("b", c, i), *to = NULL;
            unsigned kind = (unsigned)mr_random_below(&rnd, KINDS);
            done[kind]++;
            if (kind == REMOVE)
                assert_int_equal(unlink(path), 0);
            else if (kind == REPLACE)
                put(path, 1000 + c * FILES + i);
            else if (kind == RENAME)
                to = support_path("%s/b/train/c%u/new%u.png", leak_dir, c, i);
            else if (kind == RELABEL)
                to = support_path("%s/b/train/c%u/other%u-%u.png", leak_dir, (c + 1) % CLASSES, c, i);
            else if (kind == TO_VAL)
                to = support_path("%s/b/val/c0/val%u-%u.png", leak_dir, c, i);
            if (to)
                assert_int_equal(rename(path, to), 0);
            free(path);
            free(to);
        }
    for (; added < 5; added++) {
        char *path = path_of("b", 1, 1000 + (unsigned)added);
        put(path, 3000 + (unsigned)added);
        free(path);
    }
    char *a = ingest("a", "old", "--jobs", "2"), *b = ingest("b", "new", "--jobs", "2");
    json_t *doc = diff(1, a, b), *back = diff(1, b, a);
    json_int_t moved = done[RENAME] + done[RELABEL] + done[TO_VAL];
    assert_int_equal(count(doc, "added", NULL), added);
    assert_int_equal(count(doc, "removed", NULL), done[REMOVE]);
    assert_int_equal(count(doc, "changed", NULL), done[REPLACE] + moved);
    assert_int_equal(count(doc, "changed_in", "image"), done[REPLACE]);
    assert_int_equal(count(doc, "changed_in", "source"), moved);
    assert_int_equal(count(doc, "changed_in", "split"), done[TO_VAL]);
    assert_in_range(count(doc, "changed_in", "label"), done[RELABEL], done[RELABEL] + done[TO_VAL]);
    assert_int_equal(count(back, "added", NULL), done[REMOVE]);
    assert_int_equal(count(back, "removed", NULL), added);
    assert_int_equal(count(back, "changed", NULL), count(doc, "changed", NULL));
    json_decref(doc);
    json_decref(back);
    free(a);
    free(b);
}

static void classes_objects_and_leaks(void **state)
{
    (void)state;
    put_tree("a");
    put_tree("b");
    char *from = path_of("b", 0, 3), *leak = support_path("%s/b/val/c0/3.png", leak_dir);
    char *old = support_path("%s/b/train/c2", leak_dir), *new = support_path("%s/b/train/fresh", leak_dir);
    put(leak, 3);
    assert_int_equal(rename(old, new), 0);
    char *a = ingest("a", "old", "--jobs", "1"), *b = ingest("b", "new", "--jobs", "1");
    json_t *doc = diff(1, a, b);
    assert_true(json_is_true(json_object_get(json_object_get(doc, "counts"), "classes_differ")));
    assert_int_equal(count(doc, "new_leaks", NULL), 1);
    assert_int_equal(count(doc, "changed_in", "label"), FILES);
    json_decref(doc);
    support_result r = support_millrace("diff", a, b, (char *)NULL);
    support_assert_status(&r, 1);
    static const char *const lines[] = {
        "classes only in A: c2\n",
        "classes only in B: fresh\n",
        "~ train/c2/0.png: label c2 -> fresh, now train/fresh/0.png\n",
        "  ... and 4 more like this; --json lists all\n",
        "+ val/c0/3.png (val, c0)\n",
        "1 added, 0 removed, 24 changed (24 in label, 24 moved)\n",
        "1 image in several splits of B, but not of A\n",
    };
    for (size_t i = 0; i < MR_COUNT(lines); i++)
        if (!strstr(r.out, lines[i]))
            fail_msg("\"%s\" is not in: %s", lines[i], r.out);
    support_result_free(&r);
    char *coco = support_path("%s/coco", leak_dir), *shapes = support_path("%s/shapes", leak_dir);
    support_expect(0, "sample", shapes, "--layout", "coco", "--images", "20", "--quiet", (char *)NULL);
    support_expect(0, "ingest", shapes, coco, "--quiet", (char *)NULL);
    support_shell(shapes, "sed -i 's/\"iscrowd\": *0/\"iscrowd\":1/' annotations/instances_train2017.json");
    char *edited = ingest("shapes", "coco-edited", "--jobs", "1");
    doc = diff(1, coco, edited);
    assert_true(count(doc, "changed_in", "objects") > 0);
    assert_int_equal(count(doc, "changed_in", "image") + count(doc, "added", NULL) + count(doc, "removed", NULL), 0);
    json_decref(doc);
    free(edited);
    free(coco);
    free(shapes);
    free(from);
    free(leak);
    free(old);
    free(new);
    free(a);
    free(b);
}

/* Labels that are not one class: several, or none for different reasons. */
static void other_labels_are_told_apart(void **state)
{
    static const struct {
        const char *old, *new, *words;
    } cases[] = {{"[\"x\",\"y\"]", "[\"x\"]", "label a list -> x, meta\n"},
                 {"[\"x\",\"y\"]", "[\"y\",\"z\"]", "label a list -> another, meta\n"},
                 {"[\"x\",\"y\"]", "[]", "label a list -> not annotated, meta\n"}};
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        char *sets[2];
        for (int side = 0; side < 2; side++) {
            char *tree = support_path("%zu-%d", i, side), *image = support_path("%s/%s/1.png", leak_dir, tree);
            char *rows = support_path("%s/%s/metadata.jsonl", leak_dir, tree);
            char *text = support_path("{\"file_name\":\"1.png\",\"labels\":%s}\n", side ? cases[i].new : cases[i].old);
            char *name = support_path("set-%s", tree);
            put(image, 1);
            support_write_text(rows, text);
            sets[side] = ingest(tree, name, "--jobs", "1");
            free(tree);
            free(image);
            free(rows);
            free(text);
            free(name);
        }
        support_result r = support_millrace("diff", sets[0], sets[1], (char *)NULL);
        support_assert_status(&r, 1);
        if (!strstr(r.out, cases[i].words))
            fail_msg("\"%s\" is not in: %s", cases[i].words, r.out);
        support_result_free(&r);
        free(sets[0]);
        free(sets[1]);
    }
}

static void what_is_no_dataset_is_refused(void **state)
{
    (void)state;
    put_tree("a");
    char *a = ingest("a", "one", "--jobs", "1"), *none = support_path("%s/none", leak_dir);
    support_expect(2, "diff", a, none, (char *)NULL);
    support_expect(2, "diff", a, (char *)NULL);
    free(a);
    free(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(order_and_shards_do_not_count, leak_set_up, leak_tear_down),
        cmocka_unit_test_setup_teardown(edits_are_counted, leak_set_up, leak_tear_down),
        cmocka_unit_test_setup_teardown(classes_objects_and_leaks, leak_set_up, leak_tear_down),
        cmocka_unit_test_setup_teardown(other_labels_are_told_apart, leak_set_up, leak_tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_dataset_is_refused, leak_set_up, leak_tear_down),
    };
    return cmocka_run_group_tests_name("diff", tests, NULL, NULL);
}

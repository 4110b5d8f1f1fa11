/* test_voc_splits.c - splits of any name as lists of Pascal VOC, and back.
 * Covers formats/voc.c, voc/sets.c.
 * Invariant tested: a dataset that is exported and ingested without an option has its splits, pictures and objects
 * again; the one name that VOC gives another meaning is counted as changed. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "tests/support/shards/dataset_maker.h"
#include "tests/support/support.h"

static const char *const names[] = {"default", "night.2", "train2"};

static void make(const char *dir, const char *const *splits, size_t count)
{
    picture p[3];
    made samples[3];
    made_split parts[3];
    for (size_t i = 0; i < count; i++) {
        p[i] = make_png((unsigned)(8 + i), 8, 2, 8, false);
        samples[i] =
            (made){"a.png", p[i], ",\"objects\":[{\"label\":0,\"class\":\"ant\",\"box\":[1,1,4,4]}]", false, 0};
        parts[i] = (made_split){splits[i], &samples[i], 1, 1};
    }
    dataset_make(dir, parts, count);
    for (size_t i = 0; i < count; i++)
        picture_free(&p[i]);
}

static char *json_of(const char *command, const char *a, const char *b, const char *c)
{
    support_result r = support_millrace(command, "--json", a, b, c, (char *)NULL);
    support_assert_status(&r, 0);
    char *text = strdup(r.out);
    support_result_free(&r);
    return text;
}

static void splits_come_back(void **state)
{
    const char *dir = *state;
    char *ds = support_path("%s/ds", dir), *tree = support_path("%s/tree", dir), *back = support_path("%s/back", dir);
    char *again = support_path("%s/again", dir);
    assert_int_equal(mkdir(ds, 0777), 0);
    make(ds, names, 3);
    free(json_of("export", ds, tree, "--to=voc"));
    support_expect(0, "ingest", "-q", tree, back, (char *)NULL);
    free(json_of("export", back, again, "--to=voc"));
    assert_int_equal(support_tree_hash(again), support_tree_hash(tree));
    char *text = json_of("inspect", back, "--objects", NULL);
    json_t *doc = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL), *objects = json_object_get(doc, "objects");
    assert_int_equal(json_object_size(objects), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(json_integer_value(json_object_get(json_object_get(objects, names[i]), "objects")), 1);
    json_decref(doc);
    free(text);
    free(ds);
    free(tree);
    free(back);
    free(again);
}

static void trainval_is_counted(void **state)
{
    const char *dir = *state, *const splits[] = {"train", "trainval"};
    char *ds = support_path("%s/ds", dir), *tree = support_path("%s/tree", dir);
    char *list = support_path("%s/ImageSets/Main/trainval_.txt", tree);
    assert_int_equal(mkdir(ds, 0777), 0);
    make(ds, splits, 2);
    char *text = json_of("export", ds, tree, "--to=voc");
    json_t *doc = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(json_object_get(json_object_get(doc, "not_kept"), "split_names"));
    assert_true(support_exists(list));
    json_decref(doc);
    free(text);
    free(ds);
    free(tree);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(splits_come_back), IN_TMPDIR(trainval_is_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

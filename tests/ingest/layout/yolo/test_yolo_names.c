/* test_yolo_names.c - who names the classes of a YOLO tree.
 * Covers yolo/name_lists.c and yolo/settings.c.
 * Invariant tested: every file that names classes is read, and two that contradict each other are both named. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/objects.h"

#define YOLO  &mr_layout_yolo
#define LABEL "1 0.5 0.5 0.2 0.4\n"
#define NOTES "{\"categories\":[{\"id\":1,\"name\":\"dog\"},{\"id\":0,\"name\":\"cat\"}],\"info\":{\"year\":2026}}"

static char *tree(void)
{
    char *dir = support_tmpdir();
    support_put(dir, "images/train/a.jpg", "");
    support_put(dir, "labels/train/a.txt", LABEL);
    support_put(dir, "images/val/b.JPG", "");
    support_put(dir, "labels/val/b.txt", LABEL);
    return dir;
}

/* "cat dog", and which of the files was used. */
static void expect_names(char *dir, const char *names, const char *file)
{
    support_plan p = support_plan_ok(YOLO, dir, NULL);
    char *found = support_path("%s", "");
    for (size_t i = 0; i < p.plan.class_count; i++) {
        char *more = support_path("%s%s%s", found, i ? " " : "", p.plan.classes[i].name);
        free(found);
        found = more;
    }
    assert_string_equal(found, names);
    if (file)
        assert_int_equal(p.plan.used[mr_tree_find(&p.tree, file, strlen(file))], MR_USE_TAKEN);
    assert_int_equal(p.plan.sample_count, 2);
    assert_int_equal(support_notes(&p, MR_NOTE_INFO), *names == '0');
    support_plan_done(&p);
    free(found);
}

static void lists_name_the_classes(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text;
    } trials[] = {
        {"classes.txt", "cat\ndog\n"},
        {"classes.txt", "\xEF\xBB\xBF"
                        "cat\r\ndog\r\n\r\n"},
        {"classes.txt", "cat\rdog"},
        {"Classes.txt", " cat \ndog"},
        {"labels/classes.txt", "cat\ndog\n"},
        {"labels/train/classes.txt", "cat\ndog\n"},
        {"obj.names", "cat\ndog\n"},
        {"images/train/classes.txt", "cat\ndog\n"},
        {"notes.json", NOTES},
        {"labels.txt", "cat\ndog\n"},
        {"predefined_classes.txt", "cat\ndog\n"},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = tree();
        expect_names(dir, "0 1", NULL);
        support_put(dir, trials[i].file, trials[i].text);
        expect_names(dir, "cat dog", trials[i].file);
        support_tmpdir_remove(dir);
    }
}

/* LabelImg adds a class to the list of the folder that it is working on. */
static void longer_lists_agree(void **state)
{
    (void)state;
    char *dir = tree();
    support_put(dir, "labels/train/classes.txt", "cat\ndog\n");
    support_put(dir, "labels/val/classes.txt", "cat\ndog\neel\n");
    expect_names(dir, "cat dog eel", "labels/train/classes.txt");
    support_put(dir, "notes.json", NOTES);
    expect_names(dir, "cat dog eel", "notes.json");
    support_put(dir, "data.yaml", "names: [cat, dog]\n");
    expect_names(dir, "cat dog", "labels/val/classes.txt");
    support_tmpdir_remove(dir);
}

static void contradictions_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text, *why;
    } trials[] = {
        {"classes.txt", "dog\ncat\n", "classes.txt: line 1: class 0 is \"dog\", in data.yaml it is \"cat\""},
        {"labels/classes.txt", "cat\nbird\n", "labels/classes.txt: line 2: class 1 is \"bird\", in data.yaml it is"},
        {"obj.names", "Cat\ndog\n", "obj.names: line 1: class 0 is \"Cat\""},
        {"classes.txt", "cat\n\ndog\n", "classes.txt: has a blank line before the last class"},
        {"notes.json", "{\"categories\":[{\"id\":0,\"name\":\"dog\"}]}",
         "notes.json: class 0 is \"dog\", in data.yaml"},
        {"notes.json", "{\"categories\":[{\"id\":3,\"name\":\"dog\"}]}", "notes.json: has 1 categories, but none with"},
        {"notes.json", "{\"categories\":[],\"categories\":[]}",
         "duplicate key in an object, near '\"categories\"': remove one of them"},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = tree();
        support_put(dir, "data.yaml", "names: [cat, dog]\n");
        support_put(dir, trials[i].file, trials[i].text);
        support_plan_fails(YOLO, dir, NULL, MR_BAD_DATA, trials[i].why);
        support_tmpdir_remove(dir);
    }
}

/* A file of categories without images is not of COCO, so that nothing is in doubt. */
static void label_studio(void **state)
{
    (void)state;
    char *dir = tree();
    support_put(dir, "notes.json", NOTES);
    support_put(dir, "classes.txt", "cat\ndog\n");
    support_plan p = support_plan_at(&mr_layout_coco, dir, "", NULL);
    assert_int_equal(p.bid.score, 0);
    support_plan_done(&p);
    expect_names(dir, "cat dog", "notes.json");
    support_tmpdir_remove(dir);
}

/* The root is the folder of images/ and labels/: what is above it would be left out. */
static void names_above_the_root(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text;
    } trials[] = {{"data.yaml", "train: images/train\nnames: [cat, dog]\n"},
                  {"set/classes.txt", "cat\ndog\n"},
                  {"obj.names", "cat\ndog\n"}};
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = support_tmpdir();
        support_put(dir, "set/v1/images/train/a.jpg", "");
        support_put(dir, "set/v1/labels/train/a.txt", LABEL);
        support_plan p = support_plan_at(YOLO, dir, "set/v1/", NULL);
        assert_int_equal(p.status, MR_OK);
        support_plan_done(&p);
        support_put(dir, trials[i].file, trials[i].text);
        p = support_plan_at(YOLO, dir, "set/v1/", NULL);
        assert_int_equal(p.status, MR_BAD_DATA);
        char *why = support_path("%s: is not in the dataset's root, set/v1/", trials[i].file);
        assert_non_null(strstr(p.err.text, why));
        support_plan_done(&p);
        free(why);
        support_tmpdir_remove(dir);
    }
}

/* A table of labels, or what something else calls so. */
static void other_notes_are_left(void **state)
{
    (void)state;
    char *dir = tree();
    support_put(dir, "notes.json", "{\"text\":\"remember\"}");
    support_plan p = support_plan_ok(YOLO, dir, NULL);
    assert_int_equal(p.plan.used[mr_tree_find(&p.tree, "notes.json", 10)], MR_USE_NONE);
    support_plan_done(&p);
    support_put(dir, "labels.txt", "a.jpg 0\nb.jpg 1\n");
    p = support_plan_ok(YOLO, dir, NULL);
    assert_int_equal(p.plan.used[mr_tree_find(&p.tree, "labels.txt", 10)], MR_USE_NONE);
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void settings_of_several_files(void **state)
{
    (void)state;
    char *dir = tree();
    support_put(dir, "hyp.yaml", "lr0: 0.01\n");
    support_put(dir, "pets.yml", "path: .\ntrain: images/train\nnames: [cat, dog]\n");
    expect_names(dir, "cat dog", "pets.yml");
    support_put(dir, "more.yaml", "names:\n  0: bird\n");
    support_plan_fails(YOLO, dir, NULL, MR_BAD_DATA, "more.yaml and pets.yml: both have dataset settings");
    support_put(dir, "data.yaml", "names: [cat, dog]\nnc: 2.0\n");
    expect_names(dir, "cat dog", "data.yaml");
    support_put(dir, "data.yaml", "names: [cat, dog]\nnc: 2.5\n");
    support_plan_fails(YOLO, dir, NULL, MR_BAD_DATA, "data.yaml: line 2: nc is not a number of classes");
    support_put(dir, "data.yaml", "train: images/train\nnames: [cat, dog]\ntrain: images/val\n");
    support_plan_fails(YOLO, dir, NULL, MR_BAD_DATA, "data.yaml: line 3: \"train\" occurs twice, first in line 1");
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_name_the_classes),    cmocka_unit_test(longer_lists_agree),
        cmocka_unit_test(contradictions_are_named),  cmocka_unit_test(other_notes_are_left),
        cmocka_unit_test(settings_of_several_files), cmocka_unit_test(label_studio),
        cmocka_unit_test(names_above_the_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

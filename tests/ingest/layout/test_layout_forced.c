/* test_layout_forced.c - --layout beside detection.
 * Invariant tested: a layout that detection chooses is found at the same root when it is asked for; where detection
 * finds one root, another layout asked for instead is looked for at that root. */
#include <stdlib.h>
#include <string.h>

#include "ingest/sample/sample.h"
#include "tests/support/sources/plan.h"

static void same_when_forced(const char *source, const char *layout)
{
    char *found = support_plan(source, NULL, NULL), *forced = support_plan(source, layout, NULL);
    if (strncmp(found, "layout ", 7) != 0 || strncmp(found + 7, layout, strlen(layout)) != 0)
        fail_msg("%s: detection says: %s", layout, found);
    assert_string_equal(forced, found);
    free(found);
    free(forced);
}

static void drawn_samples(void **state)
{
#define X(word) #word,
    static const char *const words[] = {MR_SKETCH_LAYOUTS(X)};
#undef X
    for (size_t i = 0; i < MR_COUNT(words); i++) {
        char *dir = support_path("%s/%s/deep", (char *)*state, words[i]),
             *above = support_path("%s/%s", (char *)*state, words[i]);
        support_expect(0, "sample", dir, "--layout", words[i], "--images", "40", "--quiet", (char *)NULL);
        same_when_forced(dir, words[i]);
        if (strcmp(words[i], "newyorker") != 0) /* archives are read at the top alone */
            same_when_forced(above, words[i]);
        free(above);
        free(dir);
    }
}

typedef struct tree {
    const char *forced, *expected; /* how the outcome begins */
    const char *const *files;
} tree;

static void check(const tree *trees, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *dir = support_tmpdir();
        support_touch(dir, trees[i].files);
        char *text = support_plan(dir, trees[i].forced, NULL);
        if (strncmp(text, trees[i].expected, strlen(trees[i].expected)) != 0)
            fail_msg("tree %zu: expected %s\ngot %s", i, trees[i].expected, text);
        free(text);
        support_tmpdir_remove(dir);
    }
}

/* Trees of class folders that detection gives to roboflow, by the marks of an export. */
static void an_export_as_class_folders(void **state)
{
    (void)state;
    const tree trees[] = {
        {"imagenette",
         "layout imagenette 49: variant image-folder, licence -, classes a b\n"
         "train train/a/1.jpg a - - -\ntrain train/b/2.jpg b - - -\nval valid/a/3.jpg a - - -\n",
         NAMES("train/a/1.jpg", "train/b/2.jpg", "valid/a/3.jpg", "valid/b/4.jpg")},
        {"imagenette",
         "layout imagenette 49: variant image-folder, licence -, classes a b\n"
         "train train/a/1.jpg a - - -\n",
         NAMES("top/x/train/a/1.jpg", "top/x/train/b/2.jpg", "top/x/valid/a/3.jpg", "top/x/valid/b/4.jpg")},
        {"imagenette", "layout imagenette 49: variant image-folder, licence -, classes a b\ntest test/a/",
         NAMES("test/a/1_jpg.rf.0123.jpg", "test/b/2_jpg.rf.0123.jpg")}, /* one split, and not "train" */
        {"imagenette", "layout imagenette 49: ",
         NAMES("README.roboflow.txt", "train/a/1.jpg", "train/b/1.jpg", "test/a/2.jpg", "test/b/2.jpg")},
        {"imagenette", "layout imagenette 49: ",
         NAMES("train/_tokenization.txt", "train/a/1.jpg", "train/b/1.jpg", "val/a/2.jpg", "val/b/2.jpg")},
        {"imagenette", "layout imagenette 89: variant imagenette",
         NAMES("noisy_imagenette.csv", "train/a/1.jpg", "train/b/1.jpg", "valid/a/2.jpg", "valid/b/2.jpg")},
    };
    check(trees, MR_COUNT(trees) - 1);
    /* the table is read, so it must be one */
    char *dir = support_tmpdir();
    support_touch(dir, trees[5].files);
    char *csv = support_path("%s/noisy_imagenette.csv", dir);
    support_write_text(csv, "path,noisy_labels_0\ntrain/a/1.jpg,a\n");
    char *text = support_plan(dir, "imagenette", NULL);
    assert_memory_equal(text, trees[5].expected, strlen(trees[5].expected));
    free(text);
    free(csv);
    support_tmpdir_remove(dir);
}

/* Its own evidence elsewhere counts more than a tree that it would leave to another. */
static void several_roots(void **state)
{
    (void)state;
    const tree trees[] = {
        {"imagenette", "layout imagenette 50: variant image-folder, licence -, classes c d\ntrain train/c/1.jpg",
         NAMES("one/train/a/1.jpg", "one/train/b/1.jpg", "one/valid/a/2.jpg", "two/train/c/1.jpg", "two/val/d/1.jpg")},
        {"roboflow", "layout roboflow 60: variant folder, licence -, classes a b\n",
         NAMES("one/train/a/1.jpg", "one/train/b/1.jpg", "one/valid/a/2.jpg", "two/train/c/1.jpg", "two/val/d/1.jpg")},
        /* imagenette in both; detection finds coco in the second */
        {"imagenette", "layout imagenette 50: variant image-folder, licence -, classes c d\n",
         NAMES("one/train/a/1.jpg", "one/val/b/1.jpg", "two/train/c/1.jpg", "two/val/d/1.jpg",
               "two/annotations/instances_train.json")},
        {"imagenette", "layout imagenette 50: variant image-folder, licence -, classes a b\n",
         NAMES("one/train/a/1.jpg", "one/val/b/1.jpg", "two/train/c/1.jpg", "two/val/d/1.jpg",
               "one/annotations/instances_train.json")},
        /* two that are equal to detection, too */
        {"imagenette", "choose: two places look like a dataset of layout imagenette: one/",
         NAMES("one/train/a/1.jpg", "one/val/b/1.jpg", "two/train/c/1.jpg", "two/val/d/1.jpg")},
        {NULL, "choose: two places look like a dataset of layout imagenette: one/",
         NAMES("one/train/a/1.jpg", "one/val/b/1.jpg", "two/train/c/1.jpg", "two/val/d/1.jpg")},
    };
    check(trees, MR_COUNT(trees));
}

/* "ROOT" or the sentence that says why there is none. */
static char *choose(char *dir, const char *forced)
{
    static const mr_source_options quiet = {.quiet = true};
    mr_notes notes = {0};
    mr_source *source;
    mr_choice choice = {0};
    mr_error err;
    assert_int_equal(mr_source_open(&dir, 1, -1, &quiet, &notes, &source, &err), MR_OK);
    mr_status status = mr_layout_choose(source, forced, &(mr_layout_options){0}, &choice, &err);
    char *out = status == MR_OK ? support_path("%.*s", (int)choice.tree.root_len, choice.tree.root)
                                : support_path("%s", err.text);
    mr_source_free(source);
    mr_notes_free(&notes);
    return out;
}

/* Whatever is asked for, where detection finds one place nobody is told of two. */
static void never_two_places_in_one(void **state)
{
    (void)state;
    const char *const *const trees[] = {
        NAMES("train/a/1.jpg", "train/b/1.jpg", "valid/a/1.jpg", "valid/b/1.jpg", "test/a/1.jpg", "test/b/1.jpg"),
        NAMES("train/a/1.jpg", "train/b/1.jpg", "val/a/1.jpg", "val/b/1.jpg", "noisy_imagenette.csv"),
        NAMES("train/a/1.jpg", "train/b/1.jpg", "val/a/1.jpg", "val/b/1.jpg"),
        NAMES("annotations/instances_train2017.json", "train2017/1.jpg", "val2017/1.jpg"),
        NAMES("annotations/instances_train.json", "images/train/a/1.jpg", "images/train/b/1.jpg", "images/val/a/1.jpg",
              "images/val/b/1.jpg"),
        NAMES("train/_annotations.coco.json", "train/1.jpg", "valid/_annotations.coco.json", "valid/1.jpg"),
        NAMES("train/_classes.csv", "train/1.jpg", "valid/_classes.csv", "valid/1.jpg"),
        NAMES("train/_tokenization.txt", "train/a/1.jpg", "train/b/1.jpg", "valid/_tokenization.txt", "valid/a/1.jpg",
              "valid/b/1.jpg"),
        NAMES("data/train-00000-of-00001.parquet", "data/test-00000-of-00001.parquet"),
        NAMES("a/1.jpg", "b/1.jpg"),
    };
    for (size_t i = 0; i < MR_COUNT(trees); i++) {
        char *dir = support_tmpdir(), *above = support_path("%s/in", dir);
        support_touch(above, trees[i]);
        char *found = choose(dir, NULL);
        assert_null(strstr(found, "two places"));
        for (const mr_layout *const *l = mr_layouts; *l; l++) {
            char *text = choose(dir, (*l)->name);
            if (strstr(text, "two places"))
                fail_msg("tree %zu, %s: %s", i, (*l)->name, text);
            free(text);
        }
        free(found);
        free(above);
        support_tmpdir_remove(dir);
    }
}

/* Other annotations that list images named like ImageNet's come before the missing tables of ImageNet. */
static void names_of_imagenet(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("val/ILSVRC2012_val_00000001.JPEG", "val/ILSVRC2012_val_00000002.JPEG"));
    plan_says(NULL, NULL, "no table has their labels: add LOC_val_solution.csv");
    plan_file("labels.csv", "file,label\nILSVRC2012_val_00000001.JPEG,cat\nILSVRC2012_val_00000002.JPEG,dog\n");
    plan_says(NULL, NULL, "val val/ILSVRC2012_val_00000002.JPEG dog ");
    plan_file(
        "annotations/instances_val.json",
        "{\"images\":[{\"id\":1,\"file_name\":\"ILSVRC2012_val_00000001.JPEG\"}],\"annotations\":[{\"image_id\":1,"
        "\"category_id\":3}],\"categories\":[{\"id\":3,\"name\":\"tench\"}]}");
    plan_says(NULL, NULL,
              "layout coco 90: variant labels, licence -, classes tench=3\nval val/ILSVRC2012_val_00000001.JPEG");
    plan_file("LOC_val_solution.csv", "ImageId,PredictionString\nILSVRC2012_val_00000001,n01440764 1 2 31 42\n");
    plan_says(NULL, NULL, "layout ilsvrc 92");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_of_imagenet, plan_set_up, plan_tear_down),
        IN_TMPDIR(drawn_samples),
        cmocka_unit_test(an_export_as_class_folders),
        cmocka_unit_test(several_roots),
        cmocka_unit_test(never_two_places_in_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

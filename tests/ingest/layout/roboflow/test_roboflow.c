/* test_roboflow.c - Roboflow exports: four formats are read, the others refused by name.
 * Covers common/roboflow_files.c. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/plan.h"

/* ---- folder --------------------------------------------------------------------------------------------------- */

static void folder_export(void **state)
{
    (void)state;
    support_touch(plan_dir,
                  NAMES("train/daisy/a_jpg.rf.0f.jpg", "train/daisy/a_jpg.rf.Not-Hex.jpg", "valid/rose/plain.jpg",
                        "valid/rose/.rf.00.jpg", "valid/rose/b.png.rf.1_jpg.rf.2.jpg", "README.roboflow.txt"));
    plan_file("README.dataset.txt", "# Flowers\r\nLicense: \r\nLicense: CC BY 4.0 \\ \xFF \r\nLicense: other\r\n");
    plan_is(NULL, "layout roboflow 95: variant folder, licence CC BY 4.0 \\\\ \\xFF, classes daisy rose\n"
                  "train train/daisy/a_jpg.rf.0f.jpg daisy a_jpg - -\n"
                  "train train/daisy/a_jpg.rf.Not-Hex.jpg daisy a_jpg - -\n"
                  "val valid/rose/b.png.rf.1_jpg.rf.2.jpg rose b.png - -\n"
                  "val valid/rose/plain.jpg rose - - -\n"
                  "note class_notes train: class rose has no image in split train\n"
                  "note class_notes val: class daisy has no image in split val\n"
                  "unused valid/rose/.rf.00.jpg\n");
}

static void a_folder_named_valid_is_mark_enough(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/a/1.jpg", "valid/a/2.jpg"));
    plan_says(NULL, NULL, "layout roboflow 60: variant folder, licence -, classes a\n");
}

static void the_test_split_can_be_the_validation(void **state)
{
    (void)state;
    const mr_split_map map = {"test", "val"};
    support_touch(plan_dir, NAMES("train/a/1_jpg.rf.0.jpg", "test/a/2_jpg.rf.0.jpg"));
    plan_is(&(mr_layout_options){.maps = &map, .map_count = 1},
            "layout roboflow 80: variant folder, licence -, classes a\n"
            "val test/a/2_jpg.rf.0.jpg a 2_jpg - -\n"
            "train train/a/1_jpg.rf.0.jpg a 1_jpg - -\n");
}

static void options_of_other_layouts_are_refused(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("valid/a/1.jpg"));
    plan_says(&(mr_layout_options){.label_column = "x"}, NULL,
              "plan -4: --label-column: not supported by layout roboflow");
    plan_says(&(mr_layout_options){.config = "x"}, NULL, "plan -4: --config: not supported by layout roboflow");
}

/* ---- multi-class ---------------------------------------------------------------------------------------------- */

static void multi_class_export(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/a_jpg.rf.1.jpg", "train/b.jpg", "train/c.jpg", "train/d.jpg", "train/e.jpg",
                                  "train/f.jpg", "train/.g.jpg"));
    plan_file("train/_classes.csv",
              "filename, stop, go \"x\", Unlabeled\nc.jpg, 1, 1, 0\nb.jpg, 0, 1, 0\nd.jpg, 0, 0, 0\n"
              "gone.jpg, 1, 0, 0\nb.jpg, 1, 0, 0\na_jpg.rf.1.jpg, 0, 0, 1\nf.jpg, 1, 0, 1");
    plan_is(NULL, "layout roboflow 95: variant multi-class, licence -, classes stop go \"x\"\n"
                  "train train/a_jpg.rf.1.jpg - a_jpg M ,\"labels\":[],\"classes\":[]\n"
                  "train train/b.jpg go \"x\" - - -\n"
                  "train train/c.jpg - - M ,\"labels\":[0,1],\"classes\":[\"stop\",\"go \\\"x\\\"\"]\n"
                  "train train/d.jpg - - M ,\"labels\":[],\"classes\":[]\n"
                  "train train/f.jpg - - M ,\"labels\":[0],\"classes\":[\"stop\"]\n"
                  "note missing train/gone.jpg: row 4 of train/_classes.csv names it\n"
                  "note collisions train/b.jpg: row 5 of train/_classes.csv names it again: row 2 is used\n"
                  "note unlisted train/e.jpg: not listed in _classes.csv\n"
                  "note notes f.jpg: row 7 of train/_classes.csv has classes and is Unlabeled, too\n"
                  "unused train/.g.jpg\n");
    plan_says(&(mr_layout_options){.keep_unlisted = true}, NULL, "\ntrain train/e.jpg - - U -\n");
}

static void headers_are_matched_by_name(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/1.jpg", "valid/2.jpg", "test/3.jpg"));
    plan_file("train/_classes.csv", "filename, b, a\n1.jpg, 0, 1\n");
    plan_file("valid/_classes.csv", "filename, a, b\n2.jpg, 0, 1\n");
    plan_file("test/_classes.csv", "filename, b, a\n3.jpg, 1, 0\n");
    plan_is(NULL, "layout roboflow 90: variant multi-class, licence -, classes b a\n"
                  "test test/3.jpg b - - -\n"
                  "train train/1.jpg a - - -\n"
                  "val valid/2.jpg b - - -\n");
    plan_file("test/_classes.csv", "filename, c, b\n3.jpg, 1, 0\n");
    plan_is(NULL, "layout roboflow 90: variant multi-class, licence -, classes b a c\n"
                  "test test/3.jpg c - - -\n"
                  "train train/1.jpg a - - -\n"
                  "val valid/2.jpg b - - -\n"
                  "note class_notes test/_classes.csv: class a is not a column of test/_classes.csv\n"
                  "note class_notes train/_classes.csv: class c is not a column of train/_classes.csv\n"
                  "note class_notes valid/_classes.csv: class c is not a column of valid/_classes.csv\n");
}

static void a_split_without_a_table_is_unlisted(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/1.jpg", "test/2.jpg"));
    plan_file("train/_classes.csv", "filename, a\n1.jpg, 1\n");
    plan_is(NULL, "layout roboflow 90: variant multi-class, licence -, classes a\n"
                  "train train/1.jpg a - - -\n"
                  "note unlisted test/2.jpg: not listed in _classes.csv\n");
}

static void tables_that_are_none_are_named(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"filename, a\n\n1.jpg, 2\n",
         "layout roboflow 90: variant multi-class, licence -, classes a\nnote rejects train/1.jpg: "
         "train/_classes.csv: row 1 (1.jpg), column a: \"2\" is neither 0 nor 1\n"},
        {"filename, a\n1.jpg,\n",
         "layout roboflow 90: variant multi-class, licence -, classes a\nnote rejects train/1.jpg: "
         "train/_classes.csv: row 1 (1.jpg), column a: \"\" is neither 0 nor 1\n"},
        {"filename, a,\n1.jpg, 0, 1\n", "plan -2: train/_classes.csv: column 3 holds zeros and ones, but has no name; "
                                        "name the class\n"},
        {"filename, a,\n1.jpg, 1, 0\n", "layout roboflow 90: variant multi-class, licence -, classes a\n"
                                        "train train/1.jpg a - - -\n"},
        {"filename, a\n1.jpg\n", "plan -2: train/_classes.csv: line 2: 1 cells, where the header has 2\n"},
        {"file, a\n1.jpg, 1\n", "plan -2: train/_classes.csv: no column is named \"filename\"\n"},
        {"filename, a, a\n", "plan -2: train/_classes.csv: line 1: the header names the column \"a\" twice: rename or "
                             "remove one of them\n"},
        {"Pixel Value, Class\n0, x\n", "plan -2: train/_classes.csv: this is a Roboflow export of segmentation masks, "
                                       "which millrace does not read: export it again as 'COCO Segmentation'\n"},
    };
    support_touch(plan_dir, NAMES("train/1.jpg"));
    for (size_t i = 0; i < MR_COUNT(wrong); i++) {
        plan_file("train/_classes.csv", wrong[i][0]);
        plan_is(NULL, wrong[i][1]);
    }
}

static void rows_never_lead_out_of_the_split(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/1.jpg", "valid/2.jpg"));
    plan_file("train/_classes.csv", "filename, a\n../valid/2.jpg, 1\n/1.jpg, 1\n./1.jpg, 1\n\"\", 1\n1.jpg, 1\n");
    plan_file("valid/_classes.csv", "filename, a\n2.jpg, 1\n");
    plan_is(NULL, "layout roboflow 90: variant multi-class, licence -, classes a\n"
                  "train train/1.jpg a - - -\n"
                  "val valid/2.jpg a - - -\n"
                  "note missing train/../valid/2.jpg: row 1 of train/_classes.csv names it\n"
                  "note collisions train/./1.jpg: row 3 of train/_classes.csv names it again: row 2 is used\n"
                  "note missing train/: row 4 of train/_classes.csv names it\n"
                  "note collisions train/1.jpg: row 5 of train/_classes.csv names it again: row 2 is used\n");
}

/* Images in folders below the table, named alone or by a path of another machine. */
static void images_below_their_table_are_found(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/a/1.jpg", "train/a/2.jpg", "train/b/2.jpg", "train/b/3.jpg"));
    plan_file("train/_classes.csv", "filename,x\n1.jpg,1.0\n2.jpg,1\nC:\\me\\3.jpg,1\n");
    plan_is(NULL, "layout roboflow 90: variant multi-class, licence -, classes x\n"
                  "train train/a/1.jpg x - - -\n"
                  "train train/b/3.jpg x - - -\n"
                  "note missing train/2.jpg: row 2 of train/_classes.csv names it, which may be train/a/2.jpg or "
                  "train/b/2.jpg\n"
                  "note unlisted train/a/2.jpg: not listed in _classes.csv\n"
                  "note unlisted train/b/2.jpg: not listed in _classes.csv\n");
    plan_tear_down(state);
    plan_set_up(state);
    support_touch(plan_dir, NAMES("train/a/1.jpg", "train/b/3.jpg"));
    plan_file("train/_annotations.coco.json",
              "{\"images\":[{\"id\":1,\"file_name\":\"1.jpg\"},{\"id\":2,\"file_name\":\"b\\\\3.jpg\"}],"
              "\"categories\":[],\"annotations\":[{\"image_id\":2,\"bbox\":[1,2,3]}]}");
    plan_is(NULL,
            "layout roboflow 90: variant coco, licence -, classes\n"
            "train train/a/1.jpg - - U "
            ",\"image\":{\"id\":1,\"file_name\":\"1.jpg\"},\"annotations\":[]\n"
            "note rejects train/b/3.jpg: train/_annotations.coco.json: byte 132: \"bbox\" has 3 numbers, not four "
            "(image id 2)\n");
}

/* ---- refusals ------------------------------------------------------------------------------------------------- */

static void other_exports_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *format, *names[4], *layout; /* that reads it */
    } exports[] = {
        {"YOLO", {"train/images/1.jpg", "train/labels/1.txt"}, "yolo"},
        {"YOLO", {"valid/images/1.jpg", "data.yaml"}, "yolo"},
        {"YOLO OBB", {"train/images/1.jpg", "train/labelTxt/1.txt", "data.yaml"}, "yolo"},
        {"YOLO Darknet", {"train/1.jpg", "train/1.txt", "train/_darknet.labels"}, "yolo"},
        {"YOLO Keras", {"train/1.jpg", "train/_annotations.txt"}, NULL},
        {"TFRecord", {"train/cells.tfrecord", "train/cells_label_map.pbtxt"}, NULL},
        {"object detection CSV", {"train/1.jpg", "train/_annotations.csv"}, "table"},
        {"JSONL", {"train/1.jpg", "train/_annotations.jsonl"}, NULL},
    };
    for (size_t i = 0; i < MR_COUNT(exports); i++) {
        char *inner = support_path("%s/%zu", plan_dir, i), *text;
        char *start = support_path("choose: this is a Roboflow %s export (", exports[i].format);
        support_touch(inner, exports[i].names);
        if (exports[i].layout && !strcmp(exports[i].layout, "table")) {
            support_put(inner, "train/_annotations.csv",
                        "filename,width,height,class,xmin,ymin,xmax,ymax\n1.jpg,9,9,a,1,2,3,4\n");
        }
        text = support_plan(inner, NULL, NULL);
        char *read = support_path("layout %s ", exports[i].layout ? exports[i].layout : "");
        char *hint = support_path(": --layout %s reads it", exports[i].layout ? exports[i].layout : "");
        if (exports[i].layout
                ? strncmp(text, read, strlen(read))
                : strncmp(text, start, strlen(start)) || !strstr(text, ": export it again as 'COCO' (boxes), or "))
            fail_msg("%s", text);
        free(text);
        text = support_plan(inner, "roboflow", NULL);
        assert_non_null(strstr(text, start));
        assert_true(!exports[i].layout || strstr(text, hint));
        free(read);
        free(hint);
        free(text);
        free(start);
        free(inner);
    }
    support_touch(plan_dir, NAMES("new/train/1.jpg", "new/train/1.abc", "new/README.roboflow.txt"));
    char *inner = support_path("%s/new", plan_dir), *text = support_plan(inner, NULL, NULL);
    assert_non_null(strstr(text, "choose: this is a Roboflow export of an unknown kind"));
    free(inner);
    free(text);
}

/* An annotation file wins: an export that somebody added a data.yaml and labels to is still one. */
static void what_is_read_wins(void **state)
{
    (void)state;
    support_touch(plan_dir,
                  NAMES("train/1.jpg", "train/1.xml", "data.yaml", "train/images/2.jpg", "train/labels/2.txt"));
    plan_file("train/_classes.csv", "filename, a\n1.jpg, 1\n");
    plan_says(NULL, NULL, "layout roboflow 90: variant multi-class, licence -, classes a\ntrain train/1.jpg a - - -\n");
}

/* ---- real samples --------------------------------------------------------------------------------------------- */

static void real_exports(void **state)
{
    (void)state;
    static const char synthetic[] = "roboflow/datumaro_synthetic_all_formats/roboflow_dataset";
    static const struct {
        const char *path, *starts; /* a '/' in front: under `synthetic` */
        const char *ends;
    } sets[] = {
        {"roboflow/folder_flowers",
         "layout roboflow 95: variant folder, licence Public Domain, classes daisy dandelion;",
         "; train 200, val 364, test 182; 0 notes, 0 unused\n"},
        {"roboflow/clip_flowers", "layout roboflow 95: variant clip, licence Public Domain, classes daisy dandelion;",
         "; train 40, val 40, test 40; 0 notes, 0 unused\n"},
        {"roboflow/coco_pens", "layout roboflow 95: variant coco, licence CC BY 4.0, classes pen=1;",
         "; train 18, val 5, test 2; 1 notes, 0 unused\n"},
        {"roboflow/multiclass_panneau", "layout roboflow 95: variant multi-class, licence CC BY 4.0, classes ArretBus ",
         " SensObligatoire; val 119, test 49; 0 notes, 0 unused\n"},
        {"/coco", "layout roboflow 90: variant coco, licence -, classes label_0=1 label_1=2;",
         "; train 2, val 1; 0 notes, 0 unused\n"},
        {"/multiclass", "layout roboflow 90: variant multi-class, licence -, classes label_0 label_1;",
         "; train 2, val 1; 0 notes, 0 unused\n"},
        {"roboflow/tfrecord_bccd", "choose: this is a Roboflow TFRecord export", "\n"},
        {"roboflow/yolov8_pakcoy", "layout yolo 89: variant detection, licence CC BY 4.0, classes Bok-Choy-Diseased=0;",
         "; val 9, test 118; 1 notes, 0 unused\n"},
        {"/yolo", "layout yolo 89: variant detection, licence -, classes label_0=0 label_1=1;",
         "; train 2, val 1; 1 notes, 0 unused\n"},
        {"/yolo_obb", "layout yolo 89: variant oriented boxes, licence -, classes label_0=0 label_1=1;",
         "; train 2, val 1; 1 notes, 0 unused\n"},
        {"/voc", "layout voc 88: variant beside, licence -, classes label_0 label_1;",
         "; train 2, val 1; 0 notes, 0 unused\n"},
        {"/createml", "layout createml 88: variant boxes, licence -, classes label_0 label_1;",
         "; train 2, val 1; 0 notes, 0 unused\n"},
        {"/tfrecord", "choose: this is a Roboflow TFRecord export", "\n"},
    };
    size_t found = 0;
    for (size_t i = 0; i < MR_COUNT(sets); i++) {
        char *sub = support_path("%s%s", sets[i].path[0] == '/' ? synthetic : "", sets[i].path);
        char *data = support_data(sub), *text = data ? support_plan_counts(data, NULL) : NULL;
        size_t starts = strlen(sets[i].starts), ends = strlen(sets[i].ends);
        if (text && (strncmp(text, sets[i].starts, starts) || strlen(text) < ends ||
                     strcmp(text + strlen(text) - ends, sets[i].ends)))
            fail_msg("%s: %s", sub, text);
        found += text != NULL;
        free(text);
        free(data);
        free(sub);
    }
    if (!found)
        skip();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, plan_set_up, plan_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(folder_export),
        TEST(a_folder_named_valid_is_mark_enough),
        TEST(the_test_split_can_be_the_validation),
        TEST(options_of_other_layouts_are_refused),
        TEST(multi_class_export),
        TEST(headers_are_matched_by_name),
        TEST(a_split_without_a_table_is_unlisted),
        TEST(tables_that_are_none_are_named),
        TEST(rows_never_lead_out_of_the_split),
        TEST(images_below_their_table_are_found),
        TEST(other_exports_are_refused_by_name),
        TEST(what_is_read_wins),
        TEST(real_exports),
    };
    return cmocka_run_group_tests_name("layouts_roboflow", tests, NULL, NULL);
}

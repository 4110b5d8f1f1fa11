/* test_table.c - noisy_imagenette.csv: columns for the meta, a column as the label. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/plan.h"

#define HEAD "layout imagenette 90: variant imagenette, licence -, classes a b\n"

static void csv_tree(const char *csv)
{
    support_touch(plan_dir, NAMES("train/a/1.jpg", "train/b/2.jpg", "val/a/3.jpg", "val/b/4.jpg", "other.csv"));
    plan_file("noisy_imagenette.csv", csv);
}

static void columns_go_into_the_meta(void **state)
{
    (void)state;
    csv_tree("path,noisy_labels_0,noisy_labels_25,is_valid\r\n"
             "val/b/4.jpg,b,a,True\r\n"
             "train/a/0.jpg,a,a,False\r\n"
             "./train/a/1.jpg,a,\"b\"\"\\\",False\r\n"
             "train/a/01.jpg,a,a,False\r\n"
             "train/a/02.jpg,a,a,False\r\n"
             "train/a/1.jpg,b,b,True\r\n"
             "train/a/03.jpg,a,a,False\r\n"
             "train/b/2.jpg,b,\xFF,False");
    plan_is(NULL,
            HEAD "train train/a/1.jpg a - - ,\"columns\":{\"noisy_labels_0\":\"a\",\"noisy_labels_25\":\"b\\\"\\\\\","
                 "\"is_valid\":\"False\"}\n"
                 "train train/b/2.jpg b - - ,\"columns\":{\"noisy_labels_0\":\"b\",\"noisy_labels_25\":\"\\\\xFF\","
                 "\"is_valid\":\"False\"}\n"
                 "val val/a/3.jpg a - - -\n"
                 "val val/b/4.jpg b - - ,\"columns\":{\"noisy_labels_0\":\"b\",\"noisy_labels_25\":\"a\","
                 "\"is_valid\":\"True\"}\n"
                 "note collisions train/a/1.jpg: row 6 of noisy_imagenette.csv names it again: row 3 is used\n"
                 "note notes noisy_imagenette.csv: images without a row: 1 of 4\n"
                 "note missing noisy_imagenette.csv: rows whose files are not here: 4 of 8 (train/a/0.jpg, "
                 "train/a/01.jpg, train/a/02.jpg ...)\n"
                 "unused other.csv\n");
}

static void a_column_can_be_the_label(void **state)
{
    (void)state;
    csv_tree("path,noisy_labels_25,is_valid\nval/b/4.jpg,a,True\ntrain/a/1.jpg,b,False\ntrain/b/2.jpg,b,False\n");
    char *text = support_plan(plan_dir, NULL, &(mr_layout_options){.label_column = "noisy_labels_25"});
    assert_non_null(strstr(text, "\ntrain train/a/1.jpg b - - ,"));
    assert_non_null(strstr(text, "\ntrain train/b/2.jpg b - - ,"));
    assert_non_null(strstr(text, "\nval val/a/3.jpg - - U -\n"));
    assert_non_null(strstr(text, "\nval val/b/4.jpg a - - ,"));
    assert_non_null(
        strstr(text, "\nnote unlisted val/a/3.jpg: not listed in noisy_imagenette.csv: kept without a label\n"));
    free(text);
    plan_is(&(mr_layout_options){.label_column = "noisy"},
            "plan -4: --label-column noisy: noisy_imagenette.csv has no such label column; it has: "
            "noisy_labels_25\n");
    plan_says(&(mr_layout_options){.label_column = "path"}, NULL, "plan -4: --label-column path: ");
    plan_is(
        &(mr_layout_options){.label_column = "is_valid"},
        "plan -4: --label-column is_valid: no cell of this column in noisy_imagenette.csv is a class of the dataset, "
        "one is \"False\"\n");
}

/* A part of the data: class c has no folder left, and one image has no label in the column. */
static void a_label_may_name_a_class_without_a_folder(void **state)
{
    (void)state;
    csv_tree("path,noisy\ntrain/a/1.jpg,c\ntrain/b/2.jpg,a\nval/a/3.jpg,\nval/b/4.jpg,b\n");
    char *text = support_plan(plan_dir, NULL, &(mr_layout_options){.label_column = "noisy"});
    assert_non_null(strstr(text, "classes a b c\n"));
    assert_non_null(strstr(text, "\ntrain train/a/1.jpg c - - "));
    assert_non_null(strstr(text, "\ntrain train/b/2.jpg a - - "));
    assert_non_null(strstr(text, "\nval val/a/3.jpg - - U "));
    assert_non_null(strstr(text, "\nval val/b/4.jpg b - - "));
    assert_non_null(strstr(text, "\nnote class_notes noisy_imagenette.csv: class c has no folder: column noisy names "
                                 "it\n"));
    assert_non_null(strstr(text, "\nnote unlisted val/a/3.jpg: no label in column noisy of noisy_imagenette.csv: kept "
                                 "without\n"));
    free(text);
}

#define WITHOUT "; --exclude noisy_imagenette.csv ingests with the folders as classes\n"

static void a_csv_that_is_none_is_named(void **state)
{
    (void)state;
    csv_tree("file,label\nx,y\n");
    plan_is(NULL, "plan -2: noisy_imagenette.csv: no column is named \"path\"" WITHOUT);
    csv_tree("path,label\nx\n");
    plan_is(NULL, "plan -2: noisy_imagenette.csv: line 2: 1 cells, where the header has 2" WITHOUT);
    csv_tree("");
    plan_is(NULL, "plan -2: noisy_imagenette.csv: empty: there is no header line" WITHOUT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, plan_set_up, plan_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(columns_go_into_the_meta),
        TEST(a_column_can_be_the_label),
        TEST(a_label_may_name_a_class_without_a_folder),
        TEST(a_csv_that_is_none_is_named),
    };
    return cmocka_run_group_tests_name("imagenette_table", tests, NULL, NULL);
}

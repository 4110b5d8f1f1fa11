/* test_table_rows.c - several rows of a picture, and rows that are damaged.
 * Covers table/place.c and table/header.c.  Invariant tested: every row is in a sample or in a note, and one bad row
 * costs its own picture, not the run. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/plan.h"

static void test_captions(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg", "2.jpg"));
    plan_file("c.csv", "image,caption\n1.jpg,\"a, b\"\n2.jpg,c\n1.jpg,d\n1.jpg,d\n2.jpg,\n");
    plan_is(NULL, "layout table 42: variant csv, licence -, classes\n"
                  "train 1.jpg - - U ,\"columns\":[{\"caption\":\"a, b\"},{\"caption\":\"d\"},{\"caption\":\"d\"}],"
                  "\"captions\":[\"a, b\",\"d\",\"d\"]\n"
                  "train 2.jpg - - U ,\"columns\":[{\"caption\":\"c\"},{\"caption\":\"\"}],\"captions\":[\"c\"]\n"
                  "note notes c.csv: rows identical to another row of the same image: 1; their captions are kept\n");
    plan_file("c.csv", "image_name| comment_number| comment\n1.jpg| 0| A dog, and a cat .\n1.jpg| 1| Two .\n"
                       "2.jpg| 0| Three ; four\n2.jpg| 1   five\n");
    plan_says(NULL, NULL, "\"captions\":[\"A dog, and a cat .\",\"Two .\"]\n");
    plan_says(NULL, NULL, "note rejects 2.jpg: c.csv: line 5: 2 cells, where the header has 3\n");
}

/* Tables that are called .txt: Flickr8k's captions and tokens, lists of paths and labels. */
static void test_texts(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("Images/1.jpg", "Images/2.jpg"));
    plan_file("README.txt", "image, of a dog\n");
    plan_file("captions.txt", "image,caption\n1.jpg,a\n1.jpg,\"b, c\"\n2.jpg,d\n");
    plan_says(NULL, NULL, "\"captions\":[\"a\",\"b, c\"]\n");
    plan_says(NULL, NULL, "unused README.txt\n");
    plan_file("captions.txt", "1.jpg#0\tA dog , red .\n1.jpg#1\tTwo dogs run .\n2.jpg#0\tThree dogs eat bones .\n");
    plan_says(NULL, NULL, "\"captions\":[\"A dog , red .\",\"Two dogs run .\"]\n");
    plan_file("captions.txt", "Images/1.jpg 10\nImages/2.jpg 9\n");
    plan_says(NULL, NULL, "classes 0 1 2 3 4 5 6 7 8 9 10\ntrain Images/1.jpg 10 - - ");
    plan_file("captions.txt", "Images/1.jpg\nImages/2.jpg\n"); /* no labels */
    plan_says(NULL, NULL, "no layout fits");
}

/* A row for each label: many pictures have several, so these do not contradict each other. */
static void test_a_row_for_each_label(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg", "2.jpg", "3.jpg", "4.jpg"));
    plan_file("a.csv", "image,label\n1,b\n1,a\n2,a\n3,c\n3,a\n3,c\n4,b\n");
    plan_says(NULL, NULL,
              "train 1.jpg - - M ,\"labels\":[0,1],\"classes\":[\"a\",\"b\"],\"columns\":[{\"label\":\"b\"},{\"label\":"
              "\"a\"}]\ntrain 2.jpg a - - ,\"columns\":{\"label\":\"a\"}\ntrain 3.jpg - - M ,\"labels\":[0,2]");
    plan_says(NULL, NULL, "a row for each label of an image: 2 of 4 images have several labels");
    plan_file("a.csv", "image,label\n1,b\n1,a\n2,a\n3,c\n4,b\n");
    plan_says(NULL, NULL, "note rejects 1.jpg: row 1 of a.csv and row 2 of a.csv give it different labels or splits");
    plan_file("a.csv", "image,label,by\n1,b,x\n1,b,y\n2,a,x\n3,c,x\n4,b,x\n");
    plan_says(&(mr_layout_options){.label_column = "label"}, NULL,
              "train 1.jpg b - - ,\"columns\":[{\"label\":\"b\",\"by\":\"x\"},{\"label\":\"b\",\"by\":\"y\"}]");
    plan_file("a.csv",
              "ImageID,Source,LabelName,Confidence\n1,v,/m/a,1\n1,v,/m/b,0\n2,v,/m/b,1\n2,v,/m/a,0.0\n3,v,/m/b,0\n");
    plan_says(NULL, NULL, "classes /m/a /m/b\ntrain 1.jpg /m/a - - ");
    plan_says(NULL, NULL, "rows of confidence 0, which say what an image does not show, and give it no label: 3");
    plan_says(NULL, NULL, "train 3.jpg - - U ");
    plan_file("a.csv", "image,x,y\n1,1,0\n1,0,1\n2,1,0\n2,0,1\n3,0,0\n4,1,1\n");
    plan_says(NULL, NULL, "note rejects 2.jpg: row 3 of a.csv and row 4 of a.csv give it different labels");
}

static void test_no_header(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("i/p0.jpg", "i/p1.jpg", "i/p2.jpg"));
    plan_file("a.csv", "p0.jpg,dog\np1.jpg,cat\np2.jpg,dog\n");
    plan_is(NULL, "layout table 42: variant csv, licence -, classes cat dog\n"
                  "train i/p0.jpg dog - - ,\"columns\":{\"label\":\"dog\"}\n"
                  "train i/p1.jpg cat - - ,\"columns\":{\"label\":\"cat\"}\n"
                  "train i/p2.jpg dog - - ,\"columns\":{\"label\":\"dog\"}\n"
                  "note notes a.csv: its first row names an image, so it has no header; its columns are called file, "
                  "label\n");
    plan_file("a.csv", "3;p0\n3;p1\n12;p2\n"); /* ids, in the second column */
    plan_says(NULL, NULL, "train i/p2.jpg 12 - - ,\"columns\":{\"label\":\"12\"}\n");
    plan_file("a.csv", "0,p0.jpg,dog,train\n1,p1.jpg,cat,val\n2,p2.jpg,dog,train\n");
    plan_says(NULL, NULL, "val i/p1.jpg cat - - ,\"columns\":{\"index\":\"1\",\"label\":\"cat\",\"split\":\"val\"}\n");
    plan_file("a.csv", "p0.jpg,0\np1.jpg,1\np2.jpg,2\n");
    plan_says(NULL, NULL, "train i/p2.jpg 2 - - ,\"columns\":{\"label\":\"2\"}\n");
    plan_file("a.csv", "p0.jpg,1,0\np1.jpg,0,0\np2.jpg,1,1\n");
    plan_says(NULL, NULL, "train i/p2.jpg - - M ,\"labels\":[0,1],\"classes\":[\"column 2\",\"column 3\"]");
    plan_file("a.csv", "p0.jpg,dog\n");
    plan_says(NULL, NULL, "train i/p0.jpg dog");
}

static void test_forms(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("i/1.jpg", "i/2.jpg", "i/3.jpg"));
    static const char *const forms[] = {
        "sep=;\r\nimage;label\r\n1;x\r\n2;\"y;,\"\r\n3;x\r\n",
        "\xEF\xBB\xBFimage\tlabel\n1\tx\n2\ty;,\n3\tx",
        "image,label\r1,x\r2,\"y;,\"\r3,x\r",
        "image|label|\n1|x|\n2|y;,|\n3|x|\n",
        "sep=,\n\nimage,label,\n1,x\n2,\"y;,\",\n3,x\n",
    };
    for (size_t i = 0; i < MR_COUNT(forms); i++) {
        plan_file("a.csv", forms[i]);
        plan_says(&(mr_layout_options){.label_column = "label", .label_separator = ""}, NULL,
                  "classes x y;,\ntrain i/1.jpg x - - ");
        plan_says(&(mr_layout_options){.label_column = "label", .label_separator = ""}, NULL, "train i/2.jpg y;, - - ");
    }
    plan_file("a.csv", "\xFF\xFEi");
    plan_says(NULL, NULL, "a.csv: the text is UTF-16; write it as UTF-8");
    plan_file("a.csv", "image,label,label\n1,x,y\n");
    plan_says(NULL, NULL, "a.csv: line 1: the header names the column \"label\" twice");
}

static void test_bad_rows(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("i/1.jpg", "i/2.jpg", "i/3.jpg", "i/4.jpg"));
    plan_file("a.csv", "image,label,split\n1,caf\xE9,train\n2,x,train\n3,x\n4,x,\n9,x,train,5\n");
    plan_is(NULL, "layout table 42: variant csv, licence -, classes x\n"
                  "train i/2.jpg x - - ,\"columns\":{\"label\":\"x\",\"split\":\"train\"}\n"
                  "note rejects i/1.jpg: a.csv: row 1: column label is not UTF-8\n"
                  "note rejects i/3.jpg: a.csv: line 4: 2 cells, where the header has 3\n"
                  "note rejects i/4.jpg: a.csv: row 4 has no split in column split\n"
                  "note rejects a.csv: line 6: 4 cells, where the header has 3\n");
}

/* CelebA's attributes are -1 and 1, and a table of its own has the splits. */
static void test_attributes(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg", "2.jpg", "3.jpg"));
    plan_file("list_attr.csv", "image_id,Bald,Young\n1.jpg,-1,1\n2.jpg,-1,-1\n3.jpg,1,1\n");
    plan_is(NULL, "layout table 42: variant csv, licence -, classes Bald Young\n"
                  "train 1.jpg Young - - ,\"columns\":{\"Bald\":\"-1\",\"Young\":\"1\"}\n"
                  "train 2.jpg - - M ,\"labels\":[],\"classes\":[],\"columns\":{\"Bald\":\"-1\",\"Young\":\"-1\"}\n"
                  "train 3.jpg - - M ,\"labels\":[0,1],\"classes\":[\"Bald\",\"Young\"],\"columns\":{\"Bald\":\"1\","
                  "\"Young\":\"1\"}\n");
    plan_file("list_eval_partition.csv", "image_id,partition\n1.jpg,0\n2.jpg,1\n3.jpg,2\n");
    plan_says(NULL, NULL, "train 1.jpg Young - - ");
    plan_says(NULL, NULL, "val 2.jpg - - M ");
    plan_says(NULL, NULL, "test 3.jpg - - M ");
    plan_says(NULL, NULL,
              "note notes list_eval_partition.csv: column partition gives the splits: rows with 0 are in train, 1 in "
              "val, 2 in test\n");
}

/* A partition is never a class. */
static void test_partitions(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg", "2.jpg"));
    plan_file("list_eval_partition.txt", "1.jpg 0\n2.jpg 2\n");
    plan_says(NULL, NULL, "classes\ntrain 1.jpg - - U ");
    plan_says(NULL, NULL, "test 2.jpg - - U ");
    plan_file("list_eval_partition.txt", "1.jpg 0\n2.jpg 3\n");
    plan_says(NULL, NULL, "column partition is not read as the split: \"0\" is not the name of one\n");
    plan_says(NULL, NULL, "classes\n");
}

static void test_a_table_of_splits(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg", "2.jpg", "3.jpg", "4.jpg"));
    plan_file("labels.csv", "image,label\n1,a\n2,b\n3,a\n");
    plan_file("divide.csv", "image,split\n1,train\n2,test\n4,test\n");
    const char *notes = "note notes divide.csv: it gives the images of the other tables their splits\n";
    plan_says(NULL, NULL, notes);
    plan_says(NULL, NULL, "classes a b\n");
    plan_says(NULL, NULL, "train 1.jpg a - - ,\"columns\":{\"label\":\"a\"}\n");
    plan_says(NULL, NULL, "test 2.jpg b - - ,\"columns\":{\"label\":\"b\"}\n");
    plan_says(NULL, NULL, "note unlisted 3.jpg: not in the table of splits\n");
    plan_says(NULL, NULL, "note unlisted 4.jpg: not in any table\n");
    const mr_layout_options all = {.keep_unlisted = true};
    plan_says(&all, NULL, "train 3.jpg - - U ");
    plan_says(&all, NULL, "note unlisted 3.jpg: not in the table of splits: kept without a label\n");
    plan_says(&all, NULL, "test 4.jpg - - U ");
    plan_file("divide.csv", "image,split\n1,train\n2,test\n1,test\n");
    plan_says(NULL, NULL, "divide.csv: row 1 and row 3 give 1.jpg different splits");
    plan_file("divide.csv", "image,split\n7,train\n");
    plan_says(NULL, NULL, "not read: none of its 2 columns names images of the source");
    plan_file("divide.csv", "image,split\n1,train\n2,test\n3,val\n");
    plan_file("other.csv", "image,split\n1,train\n2,train\n3,val\n"); /* which one divides? */
    plan_says(NULL, NULL, "both list images, and their names are not those of splits");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, plan_set_up, plan_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_captions),   TEST(test_texts),      TEST(test_a_row_for_each_label),
                                       TEST(test_no_header),  TEST(test_forms),      TEST(test_bad_rows),
                                       TEST(test_attributes), TEST(test_partitions), TEST(test_a_table_of_splits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_table.c - pictures with a CSV or TSV: which table, which columns, which pictures, and what is wrong with them.
 * Invariant tested: every row and every picture is a sample or in a note, and of two meanings none is chosen. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/plan.h"

static void test_ids_and_splits(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train_images/a1.png", "train_images/a2.jpg", "test_images/b1.png"));
    plan_file("train.csv", "\xEF\xBB\xBFid_code,diagnosis\r\na1,2\r\na2,0\r\n");
    plan_file("test.csv", "id_code\nb1\n");
    plan_file("sample_submission.csv", "id_code,diagnosis\nb1,0\n");
    plan_is(NULL, "layout table 42: variant csv, licence -, classes 0 1 2\n"
                  "test test_images/b1.png - - U ,\"columns\":{}\n"
                  "train train_images/a1.png 2 - - ,\"columns\":{\"diagnosis\":\"2\"}\n"
                  "train train_images/a2.jpg 0 - - ,\"columns\":{\"diagnosis\":\"0\"}\n"
                  "note notes sample_submission.csv: not read: the example of a submission\n");
}

static void test_split_column(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg", "2.jpg"));
    plan_file("list.tsv", "file\tlabel\tsplit\n1.jpg\ta b\tvalid\n./2.jpg\tc\ttrain\n");
    plan_is(NULL, "layout table 42: variant csv, licence -, classes a b c\n"
                  "val 1.jpg a b - - ,\"columns\":{\"label\":\"a b\",\"split\":\"valid\"}\n"
                  "train 2.jpg c - - ,\"columns\":{\"label\":\"c\",\"split\":\"train\"}\n");
}

static void test_split_flags(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg", "2.jpg"));
    plan_file("labels.csv", "fname,label,is_valid\n1.jpg,a,True\n2.jpg,b,False\n");
    plan_is(NULL,
            "layout table 42: variant csv, licence -, classes a b\n"
            "val 1.jpg a - - ,\"columns\":{\"label\":\"a\",\"is_valid\":\"True\"}\n"
            "train 2.jpg b - - ,\"columns\":{\"label\":\"b\",\"is_valid\":\"False\"}\n"
            "note notes labels.csv: column is_valid gives the splits: rows with 1 or true are in val, the others in "
            "train\n");
    plan_file("labels.csv", "file,label,Is Train\n1.jpg,a,0\n2.jpg,b,1\n");
    plan_says(NULL, NULL, "test 1.jpg a - - ");
    plan_says(NULL, NULL, "train 2.jpg b - - ");
    plan_file("labels.csv", "file,label,is_test\n1.jpg,a,0\n2.jpg,b,2\n"); /* no flags */
    plan_says(NULL, NULL, "train 2.jpg b - - ");
    plan_file("labels.csv", "file,label,partition\n1.jpg,a,train\n2.jpg,b,2\n");
    plan_says(NULL, NULL,
              "note notes labels.csv: column partition is not read as the split: \"2\" is not the name of one\n");
    plan_says(NULL, NULL, "train 2.jpg b - - ");
    plan_file("labels.csv", "file,label,is_good\n1.jpg,a,0\n2.jpg,b,1\n");
    plan_says(NULL, NULL, "train 2.jpg b - - ");
    plan_file("labels.csv", "file,label,is_valid,split\n1.jpg,a,1,train\n2.jpg,b,0,test\n");
    plan_says(NULL, NULL, "test 2.jpg b - - ");
    plan_file("labels.csv", "file,label,is_valid,is_test\n1.jpg,a,1,0\n2.jpg,b,0,0\n");
    plan_says(NULL, NULL, "labels.csv: the columns is_valid and is_test both say whether a row is in a split");
}

static void test_several_classes(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("i/1.jpg", "i/2.jpg", "i/3.jpg"));
    plan_file("a.csv", "image;x;y\n1;1;0\n2;1;1\n3;0;0\n");
    plan_says(NULL, NULL, "i/1.jpg x - - ,\"columns\":{\"x\":\"1\",\"y\":\"0\"}\n");
    plan_says(NULL, NULL, "i/2.jpg - - M ,\"labels\":[0,1],\"classes\":[\"x\",\"y\"],\"columns\"");
    plan_says(NULL, NULL, "i/3.jpg - - M ,\"labels\":[],\"classes\":[],\"columns\"");
    plan_file("a.csv", "image;x;y;z\n1;1;0;nan\n2;1;1;\n3;0;0;0\n"); /* z is a class that no picture has */
    plan_says(NULL, NULL, "classes x y z\ntrain i/1.jpg x - - ");
    plan_says(NULL, NULL, "note notes a.csv: column z: cells without a value, which count as 0: 2\n");
    plan_file("a.csv", "image,tags\n1,\"a b, c \"\n2,\"c,,a\"\n3,\n");
    plan_says(NULL, NULL, "classes a b, c c,,a\n");
    plan_says(&(mr_layout_options){.label_separator = ","}, NULL, "classes a a b c\n");
    plan_says(&(mr_layout_options){.label_separator = ","}, NULL, "\"labels\":[0,2],\"classes\":[\"a\",\"c\"]");
    plan_file("a.csv", "image,tags\n1,a|b|a\n2,b\n3,a\n");
    plan_says(NULL, NULL, "labels with '|' are several classes each");
    plan_says(NULL, NULL, "i/1.jpg - - M ,\"labels\":[0,1]");
    plan_says(&(mr_layout_options){.label_separator = ""}, NULL, "classes a a|b|a b\n");
}

static void test_several_columns(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg", "2.jpg"));
    plan_file("a.csv", "image,first,second,n\n1,cat,dog,5\n2,dog,,7\n");
    plan_says(&(mr_layout_options){.label_column = "first,second"}, NULL, "1.jpg - - M ,\"labels\":[0,1]");
    plan_says(&(mr_layout_options){.label_column = "first,second"}, NULL, "2.jpg dog - - ");
    plan_says(&(mr_layout_options){.label_column = "first,n"}, NULL, "row 1 of a.csv has \"5\" in column n");
    plan_says(&(mr_layout_options){.label_column = "first,no"}, NULL, "--label-column no: a.csv has no such column");
    plan_says(&(mr_layout_options){.label_column = "no"}, NULL, "--label-column no: no table has this column");
    plan_says(NULL, NULL, "--label-column accepts one or more of: first, second, n");
    plan_file("a.csv", "image,label,category\n1,a,b\n2,a,b\n");
    plan_says(NULL, NULL, "the columns label and category both look like labels");
}

static void test_captions(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg"));
    plan_file("a.csv", "image,caption\n1.jpg,\"A \"\"red\"\" box\"\n");
    plan_says(NULL, NULL, ",\"captions\":[\"A \\\"red\\\" box\"]\n");
    plan_says(&(mr_layout_options){.text_column = "nothing"}, NULL, "--text-column nothing: a.csv has no such column");
}

static void test_rows(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("i/1.jpg", "i/2.jpg", "i/3.jpg", "i/4.jpg"));
    plan_file("a.csv",
              "file,label\n1.jpg,a\n1.jpg,b\n2.jpg,a\n2.jpg,a\n../x.jpg,a\ni/../../4.jpg,a\n,b\nno.jpg,b\n3.jpg,\n");
    plan_is(&(mr_layout_options){.keep_unlisted = true},
            "layout table 42: variant csv, licence -, classes a b\n"
            "train i/2.jpg a - - ,\"columns\":{\"label\":\"a\"}\n"
            "train i/3.jpg - - U ,\"columns\":{\"label\":\"\"}\n"
            "train i/4.jpg - - U -\n"
            "note notes a.csv: column label: rows without a label: 1 (empty: 1), which are kept without one\n"
            "note collisions i/2.jpg: row 4 of a.csv names it again: row 3 of a.csv is used\n"
            "note bad_names ../x.jpg: row 5 of a.csv: leads out of the dataset\n"
            "note bad_names i/../../4.jpg: row 6 of a.csv: leads out of the dataset\n"
            "note missing a.csv: row 7 of a.csv names no image: the cell is empty\n"
            "note missing no.jpg: row 8 of a.csv names it\n"
            "note rejects i/1.jpg: row 1 of a.csv and row 2 of a.csv give it different labels or splits\n"
            "note unlisted i/4.jpg: not in any table: kept without a label\n");
}

/* Numbers are in numeric order whatever else is among them, and what stands for no label is counted. */
static void test_numbers(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg", "2.jpg", "3.jpg"));
    plan_file("a.csv", "image,label\n1,10.0\n2,9.0\n3,-1\n");
    plan_says(NULL, NULL, "classes 0 1 2 3 4 5 6 7 8 9 10\ntrain 1.jpg 10 - - ");
    plan_says(NULL, NULL, "train 3.jpg - - U ");
    plan_says(NULL, NULL, "a.csv: column label: rows without a label: 1 (-1: 1), which are kept");
    plan_file("a.csv", "image,label\n1,30500\n2,9\n3,nan\n");
    plan_says(NULL, NULL, "classes 9 30500\n");
    plan_file("a.csv", ",,id,label,\n0,0,1.0,2,\n1,1,2.0,1,\n2,2,3.0,1,\n"); /* ids of a column with a gap */
    plan_says(NULL, NULL, "train 1.jpg 2 - - ,\"columns\":{\"column 1\":\"0\",\"column 2\":\"0\",\"label\":\"2\",");
    plan_file("a.csv", "image,label\n1,10|x\n2,9\n3,x\n");
    plan_says(NULL, NULL, "classes 9 10 x\ntrain 1.jpg - - M ,\"labels\":[1,2]");
}

/* Texts that differ in each row do not become classes; sentences are captions. */
static void test_texts(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg", "2.jpg", "3.jpg", "4.jpg", "5.jpg"));
    plan_file("a.csv", "image,ground_truth\n1,a b c d\n2,e f g; h\n3,i j k l\n4,m n o p\n5,q r s t\n");
    plan_says(NULL, NULL,
              "classes\ntrain 1.jpg - - U ,\"columns\":{\"ground_truth\":\"a b c d\"},\"captions\":[\"a b c d\"]");
    plan_says(NULL, NULL, "used as captions, and samples have no class; --label-column 'ground_truth' makes classes");
    plan_says(&(mr_layout_options){.label_column = "ground_truth", .label_separator = ""}, NULL,
              "train 1.jpg a b c d - -");
    plan_file("a.csv", "image,label\n1,a\n2,b\n3,c\n4,d\n5,e\n");
    plan_says(NULL, NULL, "as many different values as rows: samples have no class; --label-column 'label' makes");
}

/* Paths of another machine: the longest end that is here, but neither another class's picture nor another split's. */
static void test_foreign_paths(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("cat/1.jpg", "cat/2.jpg", "images/3.jpg", "images/4.jpg"));
    plan_file("a.csv", "file,label\n/home/me/d/cat/1.jpg,a\n/home/me/d/dog/2.jpg,b\nC:\\d\\images\\3.jpg,a\n"
                       "/x/y/4.jpg,b\n");
    plan_says(NULL, NULL, "train cat/1.jpg a - - ");
    plan_says(NULL, NULL, "train images/3.jpg a - - ");
    plan_says(NULL, NULL, "train images/4.jpg b - - ");
    plan_says(NULL, NULL, "note missing /home/me/d/dog/2.jpg: row 2 of a.csv names it");
    plan_says(NULL, NULL, "a.csv: its paths are from another machine");
    plan_file("a.csv", "file,label\nhttps://x.org/images/3.jpg?w=64,a\nhttps://x.org/images/4.jpg,b\n");
    plan_says(NULL, NULL, "train images/3.jpg a - - ");
    plan_file("a.csv", "file,label\nimages\\3.jpg,a\nimages\\4.jpg,b\n");
    plan_says(NULL, NULL, "train images/3.jpg a - - ");
}

/* Paths that begin above the root, as CheXpert's do: at most the name of the source's own folder is cut off. */
static void test_paths_above(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("chest/train/1.jpg", "chest/train/2.jpg"));
    plan_file("chest/a.csv", "Path,label\nx/chest/train/1.jpg,a\nchest/train/2.jpg,b\n");
    plan_says(NULL, "table", "train train/1.jpg a - - ");
    plan_says(NULL, "table", "train train/2.jpg b - - ");
    plan_says(NULL, "table", "a.csv: its paths begin with x/chest/, which is taken for the folder of the table");
    plan_file("chest/a.csv", "Path,label\nchest/train/1.jpg,a\nlung/train/2.jpg,b\n");
    plan_says(NULL, "table", "note missing lung/train/2.jpg: row 2 of a.csv names it");
    support_touch(plan_dir, NAMES("p/1.jpg", "3.jpg"));
    plan_file("a.csv", "Path,label\nmine/p/1.jpg,a\ntest/p/1.jpg,b\nimages/p/1.jpg,b\nchest/p/1.jpg,b\nmine/3.jpg,b\n");
    plan_file("chest/a.csv", "");
    mr_layout_options top = {.root = "."};
    plan_says(&top, "table", "train p/1.jpg a - - ");
    plan_says(&top, "table", "note missing test/p/1.jpg");
    plan_says(&top, "table", "note missing images/p/1.jpg");
    plan_says(&top, "table", "note missing chest/p/1.jpg");
    plan_says(&top, "table", "note missing mine/3.jpg");
}

/* The number that is not a flag is named, not the first one. */
static void test_odd_flags(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg", "2.jpg"));
    plan_file("a.csv", "file,cat,dog\n1.jpg,1.0,0\n2.jpg,0,-1.0\n");
    plan_says(&(mr_layout_options){.label_column = "cat,dog"}, NULL,
              "or class names; row 2 of a.csv has \"-1.0\" in column dog");
    plan_file("a.csv", "file,cat,dog\n1.jpg,1,tall\n2.jpg,0,small\n");
    plan_says(&(mr_layout_options){.label_column = "cat,dog"}, NULL, "row 1 of a.csv has \"1\" in column cat");
}

/* Values that do not look like classes become classes, but not in silence. */
static void test_odd_labels(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg", "2.jpg", "3.jpg"));
    plan_file("a.csv", "file,label\n1.jpg,0.5\n2.jpg,0.5\n3.jpg,2\n");
    plan_says(NULL, NULL, "labels that are numbers with a fraction: 2 of 3; each different one is a class");
    plan_file("a.csv", "file,label\n1.jpg,\"['cat', 'dog']\"\n2.jpg,['cat']\n3.jpg,['cat']\n");
    plan_says(NULL, NULL, "labels such as ['cat', 'dog'] look like lists, and each different one is a class");
    plan_file("a.csv", "file,label\n1.jpg,1.0\n2.jpg,cat [big]\n3.jpg,2\n");
    plan_lacks("each different one is a class");
    plan_file("a.csv", "file,tags\n1.jpg,haze primary\n2.jpg,clear\n3.jpg,clear\n");
    plan_says(NULL, NULL,
              "column tags: labels such as haze primary are one class each; --label-separator ' ' makes several");
    plan_file("a.csv", "file,Labels\n1.jpg,\"haze, primary\"\n2.jpg,clear\n3.jpg,clear\n");
    plan_says(NULL, NULL,
              "column Labels: labels such as haze, primary are one class each; --label-separator ',' makes");
    plan_file("a.csv", "file,tags\n1.jpg,haze|primary\n2.jpg,very clear\n3.jpg,haze\n");
    plan_lacks("one class each");
    plan_file("a.csv", "file,label\n1.jpg,polar bear\n2.jpg,cat\n3.jpg,cat\n");
    plan_lacks("one class each");
    plan_file("a.csv", "file,Target\n1.jpg,16 0\n2.jpg,7\n3.jpg,16 0\n");
    plan_says(NULL, NULL, "column Target: labels such as 16 0 are one class each; --label-separator ' ' makes several");
    plan_file("a.csv", "file,Target\n1.jpg,16 mm\n2.jpg,7\n3.jpg,7\n");
    plan_lacks("one class each");
}

/* Encoded as in URLs; a file that has the name itself comes first. */
static void test_encoded_names(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("images/my cat.jpg", "images/a%20b.jpg", "images/a b.jpg"));
    plan_file("a.csv", "file,label\nmy%20cat.jpg,a\nimages/a%20b.jpg,b\nno%20dog.jpg,b\n");
    plan_says(NULL, NULL, "train images/my cat.jpg a - - ");
    plan_says(NULL, NULL, "train images/a%20b.jpg b - - ");
    plan_says(NULL, NULL, "note missing no%20dog.jpg: row 3 of a.csv names it");
}

/* In a folder of its own. */
static void test_apart(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("images/1.jpg", "images/2.jpg"));
    plan_file("annotations/labels.csv", "file,label\n../images/1.jpg,a\nimages//2.jpg,b\n");
    plan_says(NULL, NULL, "layout table 42: variant csv, licence -, classes a b\n");
    plan_file("annotations/labels.csv", "file,label\n1.jpg,a\n2.jpg,b\n");
    plan_says(NULL, NULL, "layout table 42: variant csv, licence -, classes a b\n");
}

static void test_two_meanings(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("i/1.jpg", "i/2.jpg", "o/1.jpg", "3.jpg"));
    plan_file("a.csv", "file,label\n1.jpg,a\n2.jpg,b\n");
    plan_says(NULL, "table", "row 1: \"1.jpg\" may be ");
    plan_file("a.csv", "file,label\ni/1.jpg,a\ni/2.jpg,b\n");
    plan_says(NULL, "table", "train i/1.jpg a");
    plan_file("a.csv", "left,right,label\n1.jpg,2.jpg,a\n2.jpg,3.jpg,b\n");
    plan_says(NULL, "table", "the columns left and right both name images");
    plan_says(&(mr_layout_options){.image_column = "right"}, "table", "train i/2.jpg a");
    plan_says(&(mr_layout_options){.image_column = "up"}, "table", "--image-column up: no table has this column");
    plan_file("b.csv", "right,label\n2.jpg,a\n");
    plan_says(&(mr_layout_options){.image_column = "right"}, "table", "a.csv and b.csv both list images");
}

/* A name or an id means the picture, not its mask; a column of masks is not one of labels. */
static void test_masks(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("images/1.jpg", "images/2.jpg", "masks/1.png", "masks/2.png"));
    plan_file("a.csv", "image_id,mask,label\n1,masks/1.png,a\n2,masks/2.png,b\n");
    plan_says(NULL, "table", "train images/1.jpg a - - ");
    plan_says(NULL, "table", "unused masks/1.png\n");
    plan_file("a.csv", "image,mask\nimages/1.jpg,masks/1.png\nimages/2.jpg,masks/2.png\n");
    plan_says(NULL, "table", "classes\ntrain images/1.jpg - - U ");
}

static void test_nothing_matches(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("i/1.jpg"));
    plan_file("a.csv", "file,label\nx.jpg,a\n");
    plan_says(NULL, NULL, "a.csv lists images, but no row names one");
    plan_file("a.csv", "file,label\nx.jpg\n");
    plan_says(NULL, NULL, "a.csv: line 2: 1 cells, where the header has 2");
}

/* Folders of classes have the better claim, unless the rows say something else: then the user decides. */
static void test_class_folders(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("cat/1.jpg", "dog/2.jpg"));
    plan_file("a.csv", "file,label\ncat/1.jpg,cat\ndog/2.jpg,dog\n");
    plan_says(NULL, NULL, "layout imagenette 20");
    plan_says(NULL, "table", "layout table 42");
    plan_file("a.csv", "file,label\ncat/1.jpg,u\ndog/2.jpg,v\n");
    plan_says(NULL, NULL, "fit equally well; choose one with --layout");
    plan_file("a.csv", "file,label,xmin,ymin,xmax,ymax\ncat/1.jpg,cat,1,2,3,4\ndog/2.jpg,dog,1,2,3,4\n");
    plan_says(NULL, NULL, "layout table 42: variant boxes,"); /* folders cannot say where */
    support_touch(plan_dir, NAMES("train/cat/1.jpg"));
    plan_file("a.csv", "file,label\ntrain/cat/1.jpg,u\n");
    plan_says(NULL, NULL, "layout imagenette 50");
}

static void test_two_splits(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("i/1.jpg", "i/2.jpg", "i/3.jpg"));
    plan_file("train.csv", "file,label\n1.jpg,a\n2.jpg,b\n");
    plan_file("val_labels.csv", "file,label\n2.jpg,b\n");
    plan_says(NULL, NULL, "note rejects i/2.jpg: row 2 of train.csv and row 1 of val_labels.csv give it different");
    plan_file("val_labels.csv", "a,b\nx,y\n");
    plan_file("train_more.csv", "file,width,url\n2.jpg,5,u\n3.jpg,6,v\n"); /* says nothing of labels */
    plan_says(NULL, NULL,
              "note collisions i/2.jpg: row 1 of train_more.csv names it again: row 2 of train.csv is used");
    plan_file("train_more.csv", "file,width,url\n2.jpg,5,u\n1.jpg,6,v\n");
    plan_says(
        NULL, NULL,
        "train_more.csv: 2 of the 2 images that it lists are in another table of the same split, too; leave one of "
        "the tables out with --exclude");
}

static void test_split_folders(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("x/train/1.jpg", "x/valid/1.jpg"));
    plan_file("x/train/labels.csv", "file,label\n1.jpg,a\n");
    plan_file("x/valid/labels.csv", "file,label\n1.jpg,b\n");
    plan_says(NULL, NULL,
              "\ntrain train/1.jpg a - - ,\"columns\":{\"label\":\"a\"}\n"
              "val valid/1.jpg b - - ,\"columns\":{\"label\":\"b\"}\n");
}

/* Several images may have the name in a row: the one in a folder of the table's split counts. */
static void test_table_of_a_split(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("cars_train/1.jpg", "cars_test/1.jpg", "cars_test/2.jpg"));
    plan_file("trainLabels.csv", "id,ClassId\n1,7\n");
    plan_file("sampleSubmission.csv", "id,ClassId\n1,0\n2,0\n");
    plan_says(NULL, NULL, "\ntrain cars_train/1.jpg 7 - - ");
    plan_says(NULL, NULL, "note notes sampleSubmission.csv: not read: the example of a submission\n");
    plan_says(NULL, NULL, "unlisted cars_test/1.jpg");
    plan_says(&(mr_layout_options){.keep_unlisted = true}, NULL, "\ntest cars_test/2.jpg - - ");
}

static void test_splits_in_longer_names(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("cars_train/1.jpg", "cars_test/1.jpg", "cars_test/2.jpg"));
    plan_file("labels.csv", "id,label\ncars_train/1,a\ncars_test/1,b\n2,a\n");
    plan_says(NULL, NULL, "\ntest cars_test/1.jpg b - - ");
    plan_says(NULL, NULL, "note notes cars_test: by its name, a folder of the split test\n");
    plan_says(NULL, "flat", "\ntest cars_test/2.jpg - - ");
}

/* Where no other folder is of the split train, a word in a folder's name is not a split's. */
static void test_splits_of_no_training_set(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("test_tubes/1.jpg", "cats/2.jpg"));
    plan_says(NULL, "flat", "\ntrain test_tubes/1.jpg - - ");
}

/* Rows longer than what a bid reads first, and a table of which only the last row's picture is here. */
static void test_large_tables(void **state)
{
    (void)state;
    mr_buf text = {0};
    support_touch(plan_dir, NAMES("i/1.jpg"));
    mr_buf_add_text(&text, "file,label,more\n1.jpg,a,");
    for (int i = 0; i < 20000; i++)
        mr_buf_add_text(&text, "words ");
    mr_buf_add_text(&text, "\n");
    plan_file("a.csv", mr_buf_text(&text));
    plan_says(&(mr_layout_options){.label_column = "label"}, NULL, "train i/1.jpg a");
    mr_buf_clear(&text);
    mr_buf_add_text(&text, "file,label\n");
    for (int i = 2; i < 9000; i++)
        mr_buf_printf(&text, "%d.jpg,a\n", i);
    mr_buf_add_text(&text, "1.jpg,b\n");
    plan_file("a.csv", mr_buf_text(&text));
    plan_says(NULL, NULL, "train i/1.jpg b");
    mr_buf_free(&text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, plan_set_up, plan_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_ids_and_splits),
        TEST(test_split_column),
        TEST(test_split_flags),
        TEST(test_several_classes),
        TEST(test_several_columns),
        TEST(test_captions),
        TEST(test_numbers),
        TEST(test_texts),
        TEST(test_rows),
        TEST(test_foreign_paths),
        TEST(test_paths_above),
        TEST(test_odd_flags),
        TEST(test_encoded_names),
        TEST(test_odd_labels),
        TEST(test_apart),
        TEST(test_two_meanings),
        TEST(test_masks),
        TEST(test_nothing_matches),
        TEST(test_class_folders),
        TEST(test_two_splits),
        TEST(test_split_folders),
        TEST(test_large_tables),
        TEST(test_table_of_a_split),
        TEST(test_splits_in_longer_names),
        TEST(test_splits_of_no_training_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

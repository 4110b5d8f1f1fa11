/* test_ledger_formats.c - annotations beside a dataset of class folders are named by their contents.
 * Covers layout/formats.c, layout/name_pattern.c, pipeline/companions.c
 * Invariant tested: what is not an annotation costs nothing but a line in the report. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "tests/support/images/image.h"
#include "tests/support/support.h"

typedef struct trial {
    const char *path, *text, *words; /* words NULL: not an annotation */
} trial;

static const trial trials[] = {
    {"a.json", "{\"images\":[{\"id\":1,\"file_name\":\"1.jpg\"}],\"annotations\":[]}", "1 COCO annotation file"},
    {"a.json", "{\"annotations\":[{\"id\":1,\"image_id\":7,\"category_id\":2}]}", "1 COCO annotation file"},
    {"a.json", "[{\"image\":\"1.jpg\",\"annotations\":[{\"label\":\"a\",\"coordinates\":{\"x\":1}}]}]",
     "1 CreateML annotation file"},
    {"train/a/1.json", "{\"flags\":{},\"shapes\":[{\"points\":[[1,2]]}],\"imagePath\":\"1.jpg\"}",
     "1 LabelMe annotation"},
    {"via.json", "{\"1.jpg9\":{\"filename\":\"1.jpg\",\"regions\":[{\"shape_attributes\":{}}]}}",
     "1 VIA annotation file"},
    {"via.csv", "filename,file_size,region_shape_attributes\n1.jpg,9,\"{}\"\n", "1 VIA annotation file"},
    {"export.json", "[{\"id\":1,\"annotations\":[{\"completed_by\":1,\"result\":[]}]}]", "1 Label Studio export"},
    {"index.json", "{\"a\":[\"1.jpg\"]}", "1 JSON file that names images"},
    {"captions.json", "[{\"image\":\"a/1.jpg\",\"caption\":\"a cat\",\"image_id\":1}]",
     "1 JSON file that names images"},
    {"rows.jsonl", "{\"image\":\"1.jpg\"}\n", "1 JSON lines file that names images"},
    {"xml/1.xml", "<annotation><object/></annotation>", "1 Pascal VOC annotation in xml/"},
    {"a.xml", "<?xml version=\"1.0\"?><annotations><version>1.1</version></annotations>", "1 CVAT annotation file"},
    {"l/1.txt", "Car 0.00 0 -1.57 599.41 156.40 629.75 189.25 2.85 2.63 12.34 0.47 1.49 69.44 -1.56\n",
     "1 KITTI label file in l/"},
    {"l/1.txt", "imagesource:GoogleEarth\ngsd:0.15\n1.0 2.0 9.0 2.0 9.0 9.0 1.0 9.0 plane 0\n", "1 DOTA label file"},
    {"l/1.txt", "0 0.5 0.5 0.1 0.1\n1 .5 .5 1 1\n", "1 YOLO label file"},
    {"l/1.txt",
     "\xEF\xBB\xBF"
     "0 0.5 0.5 0.1 0.1\n",
     "1 YOLO label file"},
    {"l/1.txt", "0 0.1 0.1 0.9 0.1 0.9 0.9\n", "1 YOLO label file"},
    {"gt.txt", "a/1.jpg\n1\n10 10 30 30 0 0 0 0 0 0 \n", "1 WIDER FACE file of boxes"},
    {"train.txt", "data/a/1.jpg\ndata/a/2.jpg\n", "1 image list"},
    {"train.txt", "a/1.jpg 0\na/2.jpg 1\n", "1 image list"},
    {"train.txt", "a/longer\na/1\n", "1 image list"}, /* without endings */
    {"attributes.txt", "3\nBald Blond\n1.jpg -1 1\n2.jpg 1 1\n", "1 image list"},
    {"train/a/1.txt", "a cat on a mat", "1 caption in train/a/"},
    {"boxes.csv", "a/1.jpg,1,2,9,9,cat\n", "1 CSV file of boxes"},
    {"boxes.csv", "ImageID,Source,LabelName,XMin,XMax\nabc,x,/m/1,0.1,0.2\n", "1 CSV file of boxes"},
    {"flags.csv", "file,a,b,c,d,e\na/1.jpg,1,0.0,-1,1.00,0\n", "1 CSV file that names images"},
    {"ages.csv", "image,age\n1.jpg,30\n", "1 CSV file that names images"},
    {"ages.tsv", "image\tage\nlonger\t30\n", "1 CSV file that names images"}, /* without its ending */
    {"x.tfrecord-00000-of-00001", "x", "1 TFRecord file"},
    {"data-00000-of-00001.arrow", "\xff\xff\xff\xff\x10\x02\x01\x01", "1 Arrow file"},
    {"labels.mat", "MATLAB 5.0 MAT-file", "1 MATLAB file"},
    {"x.parquet", "PAR1", "1 Parquet file"},
    {"raw/x.zip", "PK\3\4", "1 archive inside the source"},
    {"classes.txt", "cat\ndog\n", NULL},
    {"names.txt", "a/first\na/second\n", NULL}, /* of no image */
    {"notes.txt", "Taken in 2019. See 1.jpg for an example of the setup.\n", NULL},
    {"l/empty.txt", "", NULL},
    {"l/numbers.txt", "1 60.0 27.0 325.0 304.0\n", NULL},
    {"results.csv", "epoch,loss\n1,0.5\n2,0.25\n", NULL},
    {"config.json", "{\"size\": 224, \"shapes\": [1, 2]}", NULL},
    {"page.xml", "<html/>", NULL},
    {"weights.bin", "\1\2\3", NULL},
};

static void put_image(const char *dir, const char *name)
{
    static unsigned width = 8;
    char *path = support_path("%s/%s", dir, name);
    width++;
    picture p = make_jpeg((jpeg_kind){.width = width, .height = 8, .components = 3});
    support_write(path, p.bytes, p.len);
    picture_free(&p);
    free(path);
}

static char *tree(const char *dir, size_t number)
{
    char *made = support_path("%s/%zu", dir, number);
    put_image(made, "train/a/1.jpg");
    put_image(made, "train/b/2.jpg");
    put_image(made, "train/b/longer.jpg");
    return made;
}

static void annotations_are_named(void **state)
{
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = tree(*state, i), *path = support_path("%s/%s", dir, trials[i].path);
        support_write_text(path, trials[i].text);
        support_result r = support_millrace("ingest", dir, "--dry-run", "--layout", "imagenette", (char *)NULL);
        const char *words = trials[i].words;
        if (r.status != (words ? 1 : 0) || (words && !strstr(r.err, words)))
            fail_msg("%zu: %s: exit code %d\n%s%s", i, trials[i].path, r.status, r.out, r.err);
        support_result_free(&r);
        free(path);
        free(dir);
    }
}

static bool says(const char *text, const char *words)
{
    return strstr(text, words) != NULL;
}

static void masks_of_samples_are_companions(void **state)
{
    char *dir = tree(*state, 0);
    put_image(dir, "masks/1.jpg");
    put_image(dir, "train_segmentation/b/2.jpg");
    put_image(dir, "extra/2_mask.jpg");
    support_result r = support_millrace("ingest", dir, "--dry-run", (char *)NULL);
    support_assert_status(&r, 0);
    assert_true(says(r.out, "companions left out: 3 masks\n"));
    support_result_free(&r);
    put_image(dir, "masks/other.jpg"); /* of no sample */
    r = support_millrace("ingest", dir, "--dry-run", (char *)NULL);
    support_assert_status(&r, 1);
    assert_true(says(r.err, "1 image in masks/ would be left out"));
    support_result_free(&r);
    free(dir);
}

static void masks_among_samples_are_remarked(void **state)
{
    char *dir = tree(*state, 0);
    put_image(dir, "train/b/2_mask.jpg");
    support_result r = support_millrace("ingest", dir, "--dry-run", (char *)NULL);
    support_assert_status(&r, 0);
    assert_true(says(r.out, "1 sample is named like the mask of another; if they are masks, --exclude "
                            "'train/b/*_mask.jpg' leaves those of this folder out"));
    support_result_free(&r);
    r = support_millrace("ingest", dir, "--dry-run", "--exclude", "train/b/*_mask.jpg", (char *)NULL);
    support_assert_status(&r, 0);
    assert_false(says(r.out, "the mask of another"));
    support_result_free(&r);
    free(dir);
}

static void names_with_classes_are_remarked(void **state)
{
    char *flat = support_path("%s/flat", (char *)*state), *apart = support_path("%s/apart", (char *)*state);
    static const char *const names[] = {"cat.1.jpg", "cat.2.jpg", "dog.1.jpg", "dog.2.jpg"};
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        char *image = support_path("images/%s", names[i]), *mask = support_path("annotations/trimaps/%s", names[i]);
        put_image(flat, names[i]);
        put_image(apart, image);
        put_image(apart, mask);
        free(image);
        free(mask);
    }
    const char *const dirs[] = {flat, apart};
    for (size_t i = 0; i < MR_COUNT(dirs); i++) {
        support_result r = support_millrace("ingest", dirs[i], "--dry-run", (char *)NULL);
        support_assert_status(&r, i);
        assert_true(says(i ? r.err : r.out, "--class-pattern '{class}.#' reads the class from them"));
        support_result_free(&r);
        r = support_millrace("ingest", dirs[i], "--dry-run", "--class-pattern", "{class}.#", (char *)NULL);
        support_assert_status(&r, 0);
        assert_true(says(r.out, "2 classes: cat, dog") && says(r.out, "train        4"));
        assert_true(!i || says(r.out, "companions left out: 4 masks in annotations/trimaps/"));
        support_result_free(&r);
    }
    free(flat);
    free(apart);
}

static void names_with_splits_are_not_classes(void **state)
{
    static const char *const names[] = {"a_train_1.jpg", "a_train_2.jpg", "a_test_1.jpg", "a_test_2.jpg"};
    for (size_t i = 0; i < MR_COUNT(names); i++)
        put_image(*state, names[i]);
    support_result r = support_millrace("ingest", (char *)*state, "--dry-run", (char *)NULL);
    support_assert_status(&r, 0);
    assert_false(says(r.out, "--class-pattern"));
    support_result_free(&r);
}

static void dropped_names_are_rejects(void **state)
{
    char *a = tree(*state, 0), *b = tree(*state, 1), *target = support_path("%s/out", (char *)*state);
    support_result r = support_millrace("ingest", a, b, target, (char *)NULL);
    support_assert_status(&r, 1);
    assert_true(says(r.err, "3 of 6 images are rejected, more than --max-rejects 1 % allows"));
    support_result_free(&r);
    r = support_millrace("ingest", a, b, target, "--max-rejects", "3", "--quiet", (char *)NULL);
    support_assert_status(&r, 0);
    assert_string_equal(r.out, "");
    assert_true(says(r.err, ": 3 duplicate names\n"));
    support_result_free(&r);
    r = support_millrace("ingest", a, b, target, "--max-rejects", "50%", "--force", "--dry-run", (char *)NULL);
    support_assert_status(&r, 0);
    assert_true(says(r.out, "3 rejected") && !says(r.out, "no images rejected"));
    support_result_free(&r);
    free(target);
    free(b);
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(annotations_are_named),
        IN_TMPDIR(masks_of_samples_are_companions),
        IN_TMPDIR(masks_among_samples_are_remarked),
        IN_TMPDIR(names_with_classes_are_remarked),
        IN_TMPDIR(names_with_splits_are_not_classes),
        IN_TMPDIR(dropped_names_are_rejects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_formats.c - formats that no layout reads are refused by name, with the way out.
 * Invariant tested: a form is named by its own files alone, and none where a layout fits. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/plan.h"

static void test_hints(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *words;
    } trials[] = {
        {"data/train.tfrecord-00000-of-00002", "x", "is a TFRecord file"},
        {"labels.csv", "version https://git-lfs.github.com/spec/v1", "is a Git LFS pointer"},
        {"train/data-00000-of-00001.arrow", "ARROW1  ", "is an Arrow file"},
        {"train/shard.00000.mds", "x", "is a LitData or MDS file"},
        {"train/index.json", "{\"shards\": [{\"column_encodings\": [\"jpeg\"], \"format\": \"mds\"}], \"version\": 2}",
         "index.json is a LitData or MDS file"},
        {"index.json", "{\"chunks\": [{\"chunk_bytes\": 9, \"filename\": \"chunk-0-0.bin\"}], \"config\": {}}",
         "index.json is a LitData or MDS file"},
        {"train.beton", "x", "is a RecordIO or FFCV file"},
        {"train.rec", "\x0a\x23\xd7\xce\x01\x01\x01\x01", "is a RecordIO or FFCV file"},
        {"labels.npy", "\x93NUMPY\x01\x01", "is a file of arrays"},
        {"train.h5", "\x89HDF\r\n\x1a\n", "is a file of arrays"},
        {"chestmnist.npz", "PK", "is a file of arrays"},
        {"cifar-10-batches-py/data_batch_1", "\x80\x02}q\x01(U", "is a file of arrays"},
        {"labels.pkl", "\x80\x04\x95\x01", "is a file of arrays"},
        {"train-images-idx3-ubyte.gz", "x", "is a file of arrays"},
        {"model.pkl", "\x80\x04", "no layout fits"},
        {"annotations.xml", "<?xml version=\"1.0\"?>\n<annotations>\n  <version>1.1</version>",
         "is a CVAT annotation file"},
        {"1.json", "{\"version\": \"5.0\", \"shapes\": [{\"label\": \"a\", \"points\": [[1, 2]]}]}",
         "1.json is a LabelMe annotation"},
        {"trainval/Annotations_Part/2008_000002.mat", "MATLAB 5.0", "is a PASCAL-Part annotation"},
        {"Annotations/2008_000002.mat", "MATLAB 5.0", "is a MATLAB file"},
        {"seq/gt/gt.txt", "1,1,912,484,97,109,0,7,1\n2,1,912,484,97,109,0,7,1\n",
         "gt.txt is a MOT, VisDrone or ICDAR file"},
        {"gt/gt_img_1.txt",
         "\xEF\xBB\xBF"
         "377,117,463,117,465,130,378,130,Genaxis Theatre\r\n",
         "is a MOT, VisDrone or ICDAR file"},
        {"train.jsonl", "{\"image\": \"images/1.jpg\", \"text\": \"a cat\"}\n",
         "names images: write it as metadata.jsonl"},
        {"annotations/1.txt", "684,8,273,116,0,0,0\n", "no layout fits"},
        {"annotations.xml", "<html><version/>", "no layout fits"},
        {"2.json", "{\"shapes\": []}", "no layout fits"},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = support_path("%s/%zu", plan_dir, i), *path = support_path("%s/%s", dir, trials[i].name);
        support_write_text(path, trials[i].text);
        support_touch(dir, NAMES("images/1.jpg"));
        char *text = support_plan(dir, NULL, NULL);
        if (strncmp(text, "choose: ", 8) || !strstr(text, trials[i].words))
            fail_msg("%s: %s", trials[i].name, text);
        free(text);
        free(path);
        free(dir);
    }
}

static void test_layouts_win(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/a/1.jpg", "x.tfrecord"));
    plan_says(NULL, NULL, "layout imagenette");
}

/* Arrays of single images, such as embeddings, are left out with a count; labels of all are not. */
static void test_arrays_of_images(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg", "2.jpg"));
    plan_file("1.npy", "\x93NUMPY\x01\x01");
    plan_lacks("file of arrays");
    plan_file("labels.npy", "\x93NUMPY\x01\x01");
    plan_says(NULL, NULL, "labels.npy is a file of arrays");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hints, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(test_layouts_win, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(test_arrays_of_images, plan_set_up, plan_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_folder_names.c - which split a folder name stands for, and which names are containers and not classes. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "ingest/layout/folder_names.h"
#include "tests/support/support.h"

typedef struct named {
    const char *name, *split; /* NULL: none */
    bool like;
} named;

static void usual_names_are_splits(void **state)
{
    (void)state;
    static const named names[] = {
        {"train", "train", true},
        {"Train", "train", true},
        {"TRAIN", "train", true},
        {"training", "train", true},
        {"train_set", "train", true},
        {"train-set", "train", true},
        {"train set", "train", true},
        {"trainset", "train", true},
        {"TrainSet", "train", true},
        {"TrainingSet", "train", true},
        {"training_data", "train", true},
        {"data_train", "train", true},
        {"seg_train", "train", true},
        {"trainImages", "train", true},
        {"imgtrain", "train", true},
        {"_train", "train", true},
        {"train.", "train", true},
        {"val", "val", true},
        {"valid", "val", true},
        {"Validation", "val", true},
        {"validation_set", "val", true},
        {"dev", "val", true},
        {"devset", "val", true},
        {"eval", "val", true},
        {"evaluation", "val", true},
        {"test", "test", true},
        {"Testing", "test", true},
        {"test_data", "test", true},
        {"testset", "test", true},
        {"holdout", "test", true},
        {"hold_out", "test", true},
        {"Hold-Out", "test", true},
        {"heldout_images", "test", true},
        {"train2017", NULL, true},
        {"train_clean", NULL, true},
        {"test-dev", NULL, true},
        {"trainval", NULL, true},
        {"train_masks", NULL, true},
        {"my_test", NULL, true},
        {"train1", NULL, true},
        {"val_2", NULL, true},
        {"trains", NULL, false},
        {"value", NULL, false},
        {"device", NULL, false},
        {"contest", NULL, false},
        {"medieval", NULL, false},
        {"latest", NULL, false},
        {"images", NULL, false},
        {"dataset", NULL, false},
        {"", NULL, false},
        {"_", NULL, false},
        {"2017", NULL, false},
        {"cat", NULL, false},
        {"tra\xC3\xADn", NULL, false},
        {"\xFFtrain", NULL, false},
        {"a_b_c_d_e_f_g_h_train", NULL, false},
        {"traintraintraintraintraintrain", NULL, false},
    };
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        size_t len = strlen(names[i].name);
        const char *split = mr_split_word(names[i].name, len);
        if ((split ? strcmp(split, names[i].split ? names[i].split : "") : names[i].split != NULL) ||
            mr_split_like(names[i].name, len) != names[i].like)
            fail_msg("%s: stands for %s, like a split: %d", names[i].name, split ? split : "none",
                     mr_split_like(names[i].name, len));
    }
}

static void a_word_names_the_split(void **state)
{
    (void)state;
    static const struct {
        const char *name, *split, *word;
        bool several;
    } names[] = {
        {"train", "train", "train", false},
        {"imagenet1k-train-0000", "train", "train", false},
        {"imagenet1k-validation-00", "val", "validation", false},
        {"data_train_1of64", "train", "train", false},
        {"my_test_data", "test", "test", false},
        {"partial-train", "train", "train", false},
        {"MyTrainSet2", "train", "Train", false},
        {"myTestset", "test", "Testset", false},
        {"train2017", "train", "train", false},
        {"00012.val", "val", "val", false},
        {"val_validation", "val", "val", false},
        {"train_test", "train", "train", true},
        {"test-dev", "test", "test", true},
        {"trainval", NULL, NULL, false},
        {"latest", NULL, NULL, false},
        {"contest-0001", NULL, NULL, false},
        {"trainer", NULL, NULL, false},
        {"", NULL, NULL, false},
        {"\xFF_train", "train", "train", false},
        {"traintraintraintraintraintraintrain", NULL, NULL, false},
    };
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        const char *name = names[i].name, *word = names[i].word ? names[i].word : "";
        mr_split_token t = mr_split_token_of(name, strlen(name));
        if (strcmp(t.split ? t.split : "", names[i].split ? names[i].split : "") != 0 ||
            t.several != names[i].several || t.len != strlen(word) || strncmp(name + t.at, word, t.len) != 0)
            fail_msg("%s: %s, %.*s", name, t.split ? t.split : "none", (int)t.len, name + t.at);
    }
}

static void containers_are_no_classes(void **state)
{
    (void)state;
    static const char *const sure[] = {"images",       "Images",     "IMAGES", "imgs",        "JPEGImages",
                                       "jpeg_images",  "masks",      "labels", "annotations", "SegmentationClass",
                                       "ground_truth", "GroundTruth"};
    static const char *const perhaps[] = {"mask", "photos", "Drawings", "depth", "label"};
    static const char *const none[] = {"cat",   "no_mask", "image_of_a_cat", "n01440764", "all", "other",
                                       "train", "",        "imagesque"};
    for (size_t i = 0; i < MR_COUNT(sure); i++)
        assert_int_equal(mr_folder_container(sure[i], strlen(sure[i])), MR_CONTAINER_SURE);
    for (size_t i = 0; i < MR_COUNT(perhaps); i++)
        assert_int_equal(mr_folder_container(perhaps[i], strlen(perhaps[i])), MR_CONTAINER_PERHAPS);
    for (size_t i = 0; i < MR_COUNT(none); i++)
        assert_int_equal(mr_folder_container(none[i], strlen(none[i])), MR_CONTAINER_NONE);
    static const char *const others[] = {"masks", "trainannot", "val_masks", "TestLabels"};
    static const char *const own[] = {"images", "train", "mask", "trainimages", "trained_labels", "cat_labels"};
    for (size_t i = 0; i < MR_COUNT(others); i++)
        assert_true(mr_folder_of_others(others[i], strlen(others[i])));
    for (size_t i = 0; i < MR_COUNT(own); i++)
        assert_false(mr_folder_of_others(own[i], strlen(own[i])));
}

/* Any bytes, of any length: no verdict depends on what lies past the end, and none is read. */
static void any_bytes_are_a_name(void **state)
{
    (void)state;
    static const char letters[] = "trainvletsdoghu_-. 0A\xC3\xFF/";
    mr_random rnd = support_random();
    for (int i = 0; i < 20000; i++) {
        size_t len = mr_random_below(&rnd, 40);
        char *name = malloc(len ? len : 1); /* of its exact size, for a sanitizer */
        for (size_t k = 0; k < len; k++)
            name[k] = letters[mr_random_below(&rnd, sizeof letters - 1)];
        const char *split = mr_split_word(name, len);
        assert_true(!split || mr_split_like(name, len));
        mr_split_token token = mr_split_token_of(name, len);
        assert_true(token.at + token.len <= len);
        mr_folder_container(name, len);
        free(name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_names_are_splits),
        cmocka_unit_test(a_word_names_the_split),
        cmocka_unit_test(containers_are_no_classes),
        cmocka_unit_test(any_bytes_are_a_name),
    };
    return cmocka_run_group_tests_name("folder_names", tests, NULL, NULL);
}

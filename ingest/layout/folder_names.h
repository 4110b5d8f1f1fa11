/* folder_names.h - usual folder names of datasets: splits, and containers such as "images" or "masks".
 * Invariant: a verdict depends on the name alone; case and the usual additions (_set, _data, seg_ ...) do not change
 * it. */
#ifndef MR_FOLDER_NAMES_H
#define MR_FOLDER_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* The split that the whole name stands for: "train", "val" or "test" (static text); NULL: none.  "Training",
 * "seg_test", "holdout", "dev-set" and "ValImages" stand for one; "train2017", "train_clean" and "test-dev" do not. */
const char *mr_split_word(const char *name, size_t len);
/* The usual order of stored splits: train 0, val 1, test 2, any other and NULL 3. */
size_t mr_split_rank(const char *split);
/* Whether a split is named anywhere in it, as in "train2017", "train_clean" and "trainval"? */
bool mr_split_like(const char *name, size_t len);

typedef struct mr_split_token { /* where a longer name names a split */
    const char *split;          /* static text; NULL: nowhere */
    size_t at, len;             /* the first such word in the name */
    bool several;               /* different splits: which one is meant cannot be known */
} mr_split_token;

/* Looks at each word of a file's name: "imagenet1k-validation-00" and "my_val_data" name val, "train_test" several. */
mr_split_token mr_split_token_of(const char *name, size_t len);

typedef enum mr_container {
    MR_CONTAINER_NONE,
    MR_CONTAINER_PERHAPS, /* a class may be called so: photos, drawings, mask ... */
    MR_CONTAINER_SURE,    /* images, masks, annotations ...: describes the files, not what they show */
} mr_container;

mr_container mr_folder_container(const char *name, size_t len);
/* Whether it is surely one of something other than the images: masks, labels, trainannot, thumbnails ... */
bool mr_folder_of_others(const char *name, size_t len);

/* The split that is the whole name of a folder of the path: static text; NULL: none. */
const char *mr_split_of_path(const char *path, size_t len);
/* The first folder of the path that names a split by one of its words, as cars_test does; .split is NULL: none does. */
mr_split_token mr_split_token_of_path(const char *path, size_t len, const char **folder, size_t *folder_len);

#endif

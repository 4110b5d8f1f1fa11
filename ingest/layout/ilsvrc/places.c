/* places.c - where a tree of ImageNet has its images and its tables, by names alone.
 * Source: the downloads of image-net.org (ILSVRC2012_img_train.tar, _val.tar, _test_v10102019.tar, _devkit_t12.tar.gz),
 * Kaggle's imagenet-object-localization-challenge.zip and cs231n's tiny-imagenet-200.zip.
 * Invariant: bid and plan find the same places. */
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/source/names.h"
#include "ingest/layout/ilsvrc/ilsvrc.h"
#include "ingest/layout/folder_names.h"

enum { LOOK_AT = 4096, PATH_MAX_LEN = 256 }; /* children of a folder that are looked at */

static const char *const data_folders[] = {"", "ILSVRC/Data/CLS-LOC/", "Data/CLS-LOC/"};

static const char *const table_folders[] = {
    "",
    "ILSVRC2012_devkit_t12/data/",
    "ILSVRC2012_devkit_t12/",
    "devkit/data/",
    "devkit/",
    "data/",
    "labels/",
    "ILSVRC/",
    "val/",
};

mr_ilsvrc_kind mr_ilsvrc_image_kind(const char *name, size_t len)
{
    static const char val[] = "ILSVRC2012_val_", test[] = "ILSVRC2012_test_";
    bool is_val = len > strlen(val) && !memcmp(name, val, strlen(val));
    bool is_test = len > strlen(test) && !memcmp(name, test, strlen(test));
    if (!(is_val || is_test) || !mr_name_is_image(name, len))
        return MR_ILSVRC_OTHER;
    return is_val ? MR_ILSVRC_VAL : MR_ILSVRC_TEST;
}

bool mr_ilsvrc_split(const mr_layout_options *o, const char **name, size_t *len, mr_ilsvrc_kind *kind)
{
    static const char prefix[] = "ILSVRC2012_img_";
    static const char *const words[] = {"train", "val", "test"};
    const char *word = mr_split_word(*name, *len);
    bool mapped = mr_split_map_find(o, *name, *len) != NULL;
    if (!word && *len > strlen(prefix) && !memcmp(*name, prefix, strlen(prefix)))
        for (size_t i = 0; i < MR_COUNT(words); i++)
            if (*len >= strlen(prefix) + strlen(words[i]) &&
                !memcmp(*name + strlen(prefix), words[i], strlen(words[i])))
                word = words[i];
    *kind = MR_ILSVRC_OTHER;
    for (size_t i = 0; word && i < MR_COUNT(words); i++)
        if (!strcmp(word, words[i]))
            *kind = (mr_ilsvrc_kind)i;
    if (word && !mapped && !mr_split_word(*name, *len)) {
        *name = word;
        *len = strlen(word);
    }
    return word || mapped;
}

uint32_t mr_ilsvrc_find(const mr_tree *t, const mr_ilsvrc_places *places, const char *name)
{
    char path[PATH_MAX_LEN];
    for (size_t i = 0; i <= MR_COUNT(table_folders); i++) {
        const char *folder = i < MR_COUNT(table_folders) ? table_folders[i] : places->data;
        int len = snprintf(path, sizeof path, "%s%s", folder, name);
        uint32_t entry = len > 0 && (size_t)len < sizeof path ? mr_tree_find(t, path, (size_t)len) : MR_NO_ENTRY;
        if (entry != MR_NO_ENTRY)
            return entry;
    }
    return MR_NO_ENTRY;
}

uint32_t mr_ilsvrc_next(const mr_tree *t, const mr_ilsvrc_places *places, const char *name, uint32_t entry)
{
    uint32_t first = mr_ilsvrc_find(t, places, name);
    size_t name_len = strlen(name), len;
    if (entry == MR_NO_ENTRY)
        return first;
    for (uint32_t e = entry == first ? t->begin : entry + 1; e < t->end && first != MR_NO_ENTRY; e++) {
        const char *path = mr_tree_path(t, e, &len);
        if (e != first && len > name_len && path[len - name_len - 1] == '/' &&
            !memcmp(path + len - name_len, name, name_len))
            return e;
    }
    return MR_NO_ENTRY;
}

/* Whether a class folder's first image is named n01440764_11.JPEG in n01440764. */
static bool is_named_after(const mr_tree *t, const mr_child *class)
{
    for (uint32_t e = class->entry; e < class->end && e < class->entry + LOOK_AT; e++) {
        size_t len;
        const char *path = mr_tree_path(t, e, &len), *slash = memrchr(path, '/', len);
        size_t left = slash ? len - (size_t)(slash + 1 - path) : 0;
        if (left > MR_SYNSET_LEN && mr_name_is_image(slash + 1, left))
            return !memcmp(slash + 1, class->name, MR_SYNSET_LEN) && slash[1 + MR_SYNSET_LEN] == '_';
    }
    return false;
}

static void look_in_split(const mr_tree *t, const char *dir, size_t len, mr_ilsvrc_places *p)
{
    mr_child child = {0};
    size_t classes = 0;
    bool flat = false;
    for (int n = 0; n < LOOK_AT && mr_tree_next(t, dir, len, &child); n++) {
        if (!child.is_dir)
            flat = flat || mr_ilsvrc_image_kind(child.name, child.name_len) != MR_ILSVRC_OTHER;
        else if (mr_name_is_synset(child.name, child.name_len))
            classes += mr_folder_is_class(t, &child, LOOK_AT);
        if (flat && !classes) /* its other 49,999 images say no more */
            break;
    }
    p->flat = p->flat || flat;
    p->split_classes = classes > p->split_classes ? classes : p->split_classes;
}

/* n03888257/ILSVRC2012_val_00000001.JPEG has a label already. */
static bool in_class_folder(const mr_tree *t, size_t data_len)
{
    return !data_len && t->root_len > MR_SYNSET_LEN &&
           mr_name_is_synset(t->root + t->root_len - 1 - MR_SYNSET_LEN, MR_SYNSET_LEN);
}

static void look_in_data(const mr_tree *t, const mr_layout_options *o, const char *data, mr_ilsvrc_places *p)
{
    size_t len = strlen(data);
    bool inside = in_class_folder(t, len);
    mr_child child = {0};
    *p = (mr_ilsvrc_places){.data = data};
    for (int n = 0; n < LOOK_AT && mr_tree_next(t, data, len ? len - 1 : 0, &child); n++) {
        const char *name = child.name;
        size_t name_len = child.name_len, at;
        mr_ilsvrc_kind kind;
        if (!child.is_dir) {
            p->flat = p->flat || (!inside && mr_ilsvrc_image_kind(name, name_len) != MR_ILSVRC_OTHER);
        } else if (mr_name_is_synset(name, name_len)) {
            p->own_names = p->own_names || (!p->classes && is_named_after(t, &child));
            p->classes += mr_folder_is_class(t, &child, LOOK_AT);
        } else if (mr_ilsvrc_split(o, &name, &name_len, &kind)) {
            const char *path = mr_tree_path(t, child.entry, &at);
            look_in_split(t, path, len + child.name_len, p);
        } else if (child.name[0] != '.') {
            p->others = true;
        }
    }
}

void mr_ilsvrc_look(const mr_tree *t, const mr_layout_options *o, mr_ilsvrc_places *p)
{
    static const char *const tables[] = {"LOC_val_solution.csv",   "ILSVRC2012_validation_ground_truth.txt",
                                         "LOC_synset_mapping.txt", "synset_words.txt",
                                         "map_clsloc.txt",         "meta.mat"};
    *p = (mr_ilsvrc_places){.data = ""};
    for (size_t i = 0; i < MR_COUNT(data_folders) && !p->classes && !p->split_classes && !p->flat; i++)
        look_in_data(t, o, data_folders[i], p);
    if (!p->classes && !p->split_classes && !p->flat)
        return;
    p->tiny =
        mr_tree_find(t, "wnids.txt", 9) != MR_NO_ENTRY || mr_tree_find(t, "val/val_annotations.txt", 23) != MR_NO_ENTRY;
    for (size_t i = 0; i < MR_COUNT(tables) && !p->table; i++)
        if (mr_ilsvrc_find(t, p, tables[i]) != MR_NO_ENTRY)
            p->table = tables[i];
}

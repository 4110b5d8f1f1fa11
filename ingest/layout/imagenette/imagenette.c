/* imagenette.c - Imagenette, and any tree of split folders that hold class folders (ImageFolder).
 * Invariant: the class of an image is its folder, or the csv cell that --label-column chooses, and never its file name.
 *
 *      train/n01440764/n01440764_11.JPEG       noisy_imagenette.csv: path,noisy_labels_0, ... ,is_valid              */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ingest/layout/imagenette/table.h"
#include "base/scope.h"
#include "ingest/source/names.h"
#include "ingest/layout/common/roboflow_files.h"

enum { LOOK_AT = 256 };

/* Class folders at the root itself count only if they hold images directly: deeper trees are something else. */
static bool is_flat_class(const mr_tree *t, const mr_child *child)
{
    mr_child file = {0};
    if (!child->is_dir || child->name[0] == '.')
        return false;
    for (int n = 0; n < LOOK_AT && mr_tree_next(t, child->name, child->name_len, &file); n++)
        if (!file.is_dir && mr_folder_image(t, file.entry, child->name_len + 1))
            return true;
    return false;
}

/* Class folders of a tree without splits. */
static size_t flat_classes(const mr_tree *t, const mr_layout_options *o)
{
    size_t count = 0;
    mr_child child = {0};
    mr_split_dir whole = mr_split_dir_whole(t, o);
    if (o->class_depth) /* the option says which folders are classes: they may be deep */
        return mr_folder_count(t, &whole, LOOK_AT);
    while (mr_tree_next(t, "", 0, &child))
        count += is_flat_class(t, &child);
    return count;
}

/* bus/, train/, truck/: one folder with a split's name, images in all of them, class folders in none.  Two such names,
 * or one and a single other folder, may as well be splits whose images have no classes, unless the user says that each
 * folder is a class. */
static bool split_is_class(const mr_tree *t, const mr_layout_options *o, const mr_split_dirs *dirs)
{
    return dirs->count == 1 && !o->map_count && o->class_depth < 2 &&
           mr_folder_count(t, &dirs->items[0], LOOK_AT) == 0 && flat_classes(t, o) > (o->class_depth ? 1 : 2);
}

/* The splits of the tree; if none, its folders are the classes of one split. */
static void find_splits(const mr_tree *t, const mr_layout_options *o, mr_split_dirs *dirs)
{
    mr_split_dirs_find(t, o, dirs);
    if (split_is_class(t, o, dirs))
        dirs->count = 0;
}

static bool all_wnids(const mr_tree *t, const mr_split_dirs *dirs)
{
    for (size_t i = 0; i < dirs->count; i++) {
        mr_child child = {0};
        while (mr_class_next(t, &dirs->items[i], LOOK_AT, &child))
            if (!mr_name_is_synset(child.name, child.name_len))
                return false;
    }
    return true;
}

static void bid_without_splits(const mr_tree *t, const mr_layout_options *o, mr_bid *bid)
{
    size_t count = flat_classes(t, o);
    if (count < 2)
        return;
    bid->score = 20;
    snprintf(bid->why, sizeof bid->why, "%zu folders of images, no split folders%s", count,
             o->list_count ? "" : ": all of it is one split, train");
}

static mr_status imagenette_bid(const mr_tree *t, const mr_layout_options *o, mr_bid *bid, mr_error *err)
{
    mr_rf_marks marks;
    (void)err;
    mr_rf_look(t, o, &marks);
    if (!marks.dirs.count || split_is_class(t, o, &marks.dirs)) {
        bid_without_splits(t, o, bid);
        return MR_OK;
    }
    size_t most = 0, used = 0;
    char names[60] = "";
    for (size_t i = 0; i < marks.dirs.count; i++) {
        const mr_split_dir *dir = &marks.dirs.items[i];
        size_t count = mr_folder_count(t, dir, LOOK_AT), len = strlen(names);
        if (count)
            snprintf(names + len, sizeof names - len, "%s%.*s/", used++ ? ", " : "", (int)dir->len, dir->name);
        most = count > most ? count : most;
    }
    if (!most)
        return MR_OK;
    const char *csv = mr_imagenette_csv(t);
    bool wnids = all_wnids(t, &marks.dirs);
    bid->score = 50 + (csv ? 40 : 0) + (wnids ? 5 : 0);
    if (marks.kind || marks.valid || marks.readme || marks.names) {
        bid->forced = bid->score - 1; /* a tree without these marks is more likely to be what the option means */
        bid->score = 0;
    }
    snprintf(bid->why, sizeof bid->why, "%s with %zu folder%s of images%s%s%s", names, most, most == 1 ? "" : "s",
             wnids ? " named by WordNet id" : "", csv ? ", and " : "", csv ? csv : "");
    return MR_OK;
}

static mr_status imagenette_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    mr_split_dirs dirs;
    find_splits(t, o, &dirs);
    plan->variant = "image-folder";
    if (!dirs.count) {
        dirs.items[dirs.count++] = mr_split_dir_whole(t, o);
        plan->variant = "image-folder without splits";
    } else if (mr_imagenette_csv(t)) {
        plan->variant = "imagenette";
    }
    MR_TRY(mr_split_dirs_open(t, o, plan, &dirs, err));
    MR_TRY(mr_folder_plan(t, o, plan, &dirs, NULL, err));
    return mr_imagenette_table(t, o, plan, err);
}

const mr_layout mr_layout_imagenette = {
    .name = "imagenette",
    .title = "Imagenette, or any train/ and val/ with one folder of images per class",
    .needs = "train/ or val/ with one folder of images per class (and noisy_imagenette.csv, if labels are to be noisy)",
    .options = MR_OPTION_LABEL | MR_OPTION_UNLISTED | MR_OPTION_DEPTH,
    .bid = imagenette_bid,
    .plan = imagenette_plan,
    .meta = mr_imagenette_meta,
    .free_state = mr_imagenette_free,
};

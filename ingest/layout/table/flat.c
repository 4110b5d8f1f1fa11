/* flat.c - images without labels.
 * Invariant: it wins by itself only where the source holds nothing but images, at its top or in images/, beside texts
 * such as a README: anything else may say what the images show. */
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/table/table.h"

enum { SCORE = 5 };

/* README.md, LICENSE, ..., and what desktops leave behind. */
static bool is_harmless(const char *name, size_t len)
{
    static const char *const begins[] = {"README", "LICENSE", "LICENCE", "CITATION", "Thumbs.db", "desktop.ini"};
    for (size_t i = 0; i < MR_COUNT(begins); i++)
        if (len >= strlen(begins[i]) && !strncasecmp(name, begins[i], strlen(begins[i])))
            return true;
    return *name == '.';
}

/* Whether all files of the source are images directly under this root, or say nothing about them. */
static bool alone(const mr_tree *t, size_t *pictures)
{
    const mr_source *s = t->source;
    *pictures = 0;
    for (uint32_t e = 0; e < mr_source_count(s); e++) {
        const mr_entry *entry = mr_source_entry(s, e);
        bool inside = e >= t->begin && e < t->end;
        const char *slash = memrchr(entry->path, '/', entry->path_len), *base = slash ? slash + 1 : entry->path;
        size_t folder = (size_t)(base - entry->path);
        bool picture = inside && folder == t->root_len && mr_folder_image(t, e, 0);
        *pictures += picture;
        if (!picture && !is_harmless(base, entry->path_len - folder))
            return false;
    }
    return true;
}

/* The name of any other folder may be the class or the split of its images. */
static bool may_be_flat(const mr_tree *t)
{
    size_t len = t->root_len ? t->root_len - 1 : 0;
    const char *slash = memrchr(t->root, '/', len), *name = slash ? slash + 1 : t->root;
    return !len || mr_folder_container(name, len - (size_t)(name - t->root)) == MR_CONTAINER_SURE;
}

static mr_status flat_bid(const mr_tree *t, const mr_layout_options *o, mr_bid *bid, mr_error *err)
{
    size_t pictures;
    mr_child child = {0};
    (void)o;
    (void)err;
    /* A long look only where the first file is an image, or harmless: in most trees it is in a folder. */
    bool any = mr_tree_next(t, "", 0, &child);
    for (uint32_t e = t->begin; e < t->end && !bid->forced; e++)
        bid->forced = mr_folder_image(t, e, 0) ? SCORE : 0;
    snprintf(bid->why, sizeof bid->why, "images, without labels");
    if (any && !child.is_dir && may_be_flat(t) && alone(t, &pictures) && pictures) {
        bid->score = SCORE;
        snprintf(bid->why, sizeof bid->why, "%zu images in one folder, without labels", pictures);
    }
    return MR_OK;
}

static mr_status flat_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    mr_folder_splits splits = {0};
    MR_AUTO(mr_picture_index_free) mr_picture_index index = {0};
    plan->variant = "pictures";
    MR_TRY(mr_picture_index_make(t, &index, err));
    MR_TRY(mr_folder_splits_open(o, &index, plan, &splits, err));
    for (size_t i = 0; i < index.count; i++) {
        mr_sample s = {.entry = index.entries[i], .label = -1};
        if (mr_folder_splits_get(&splits, s.entry, plan, &s.split))
            MR_TRY(mr_plan_add(plan, &s, err));
    }
    return MR_OK;
}

const mr_layout mr_layout_flat = {
    .name = "flat",
    .title = "images without labels, in one folder or in folders of splits",
    .needs = "only images in one folder; with --layout flat, any folder tree of images, whatever else it contains",
    .bid = flat_bid,
    .plan = flat_plan,
};

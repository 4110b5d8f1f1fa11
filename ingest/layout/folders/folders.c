/* folders.c - split folders that hold class folders that hold images.
 * Invariant: entries are visited in the tree's order, so samples come out sorted by path within a folder. */
#include "ingest/layout/folders/folders.h"

#include <stdlib.h>
#include <string.h>

#include "shards/manifest/format.h"

static mr_status list_classes(const mr_tree *t, mr_plan *plan, const mr_split_dirs *dirs, mr_error *err)
{
    mr_status status = MR_OK;
    for (size_t i = 0; i < dirs->count; i++) {
        mr_child child = {0};
        while (status == MR_OK && mr_class_next(t, &dirs->items[i], 0, &child))
            status = mr_plan_class(plan, child.name, child.name_len, false, 0, err);
    }
    mr_plan_classes_sort(plan);
    return status;
}

mr_status mr_folder_unlisted(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, uint32_t split,
                             uint32_t entry, const char *why, void (*group)(const mr_tree *t, mr_sample *sample),
                             mr_error *err)
{
    size_t len;
    const char *path = mr_tree_path(t, entry, &len);
    mr_note_add(plan->notes, MR_NOTE_UNLISTED, path, len, mr_source_entry(t->source, entry)->size, "%s%s", why,
                o->keep_unlisted ? ": kept without a label" : "");
    plan->used[entry] = 1;
    if (!o->keep_unlisted)
        return MR_OK;
    mr_sample sample = {.split = split, .entry = entry, .label = -1, .flags = MR_FLAG_UNANNOTATED};
    if (group)
        group(t, &sample);
    return mr_plan_add(plan, &sample, err);
}

/* The images of one class folder. */
static mr_status add_class(const mr_tree *t, mr_plan *plan, const mr_split_dir *dir, const mr_child *class,
                           void (*group)(const mr_tree *t, mr_sample *sample), uint8_t *present, mr_error *err)
{
    mr_status status = MR_OK;
    mr_sample sample = {.split = dir->split, .label = mr_plan_class_find(plan, class->name, class->name_len)};
    if (sample.label < 0)
        return mr_fail_memory(err, "numbering the classes");
    present[sample.label] = 1;
    for (sample.entry = class->entry; status == MR_OK && sample.entry < class->end; sample.entry++) {
        if (!mr_folder_image(t, sample.entry, mr_child_at(t, class)))
            continue;
        if (group)
            group(t, &sample);
        status = mr_plan_add(plan, &sample, err);
    }
    return status;
}

/* The samples of one split folder; present[label] is set for each class that it has.  Files between two class folders
 * are loose. */
static mr_status add_samples(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, const mr_split_dir *dir,
                             void (*group)(const mr_tree *t, mr_sample *sample), uint8_t *present, mr_error *err)
{
    mr_status status = MR_OK;
    mr_child class = {0};
    bool more = true;
    for (uint32_t e = dir->begin; status == MR_OK && more; e = class.end) {
        more = mr_class_next(t, dir, 0, &class);
        for (uint32_t end = more ? class.entry : dir->end; status == MR_OK && e < end; e++)
            if (mr_folder_image(t, e, dir->len ? dir->len + 1 : 0))
                status = mr_folder_unlisted(t, o, plan, dir->split, e, "not in a class folder", group, err);
        if (status == MR_OK && more)
            status = add_class(t, plan, dir, &class, group, present, err);
    }
    return status;
}

/* A split with no class at all (a test set without labels) is one remark, not one for each class. */
static void note_missing(mr_plan *plan, const uint8_t *present, const char *split)
{
    size_t missing = 0;
    for (size_t c = 0; c < plan->class_count; c++)
        missing += !present[c];
    if (missing == plan->class_count && missing) {
        mr_note_add(plan->notes, MR_NOTE_CLASS, split, strlen(split), 0, "no class has an image in split %s", split);
        return;
    }
    for (size_t c = 0; missing && c < plan->class_count; c++)
        if (!present[c])
            mr_note_add(plan->notes, MR_NOTE_CLASS, split, strlen(split), 0, "class %s has no image in split %s",
                        plan->classes[c].name, split);
}

mr_status mr_folder_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, const mr_split_dirs *dirs,
                         void (*group)(const mr_tree *t, mr_sample *sample), mr_error *err)
{
    mr_status status = list_classes(t, plan, dirs, err);
    plan->by_folder = true;
    plan->flat = dirs->count == 1 && !dirs->items[0].called;
    if (status != MR_OK)
        return status;
    if (!plan->class_count && dirs->count)
        return mr_fail(
            err, MR_BAD_DATA,
            "%.*s: no class folder with images (train/%sIMAGE) found; for another arrangement choose another --layout",
            dirs->items[0].len ? (int)dirs->items[0].len : 10, dirs->items[0].len ? dirs->items[0].name : "the source",
            dirs->items[0].depth == 1 ? "CLASS/" : ".../CLASS/");
    status = mr_folder_check_classes(t, o, dirs, plan->notes, err);
    if (status != MR_OK)
        return status;
    uint8_t *present = mr_alloc(plan->split_count, plan->class_count);
    if (!present)
        return mr_fail_memory(err, "numbering the classes");
    for (size_t i = 0; i < dirs->count && status == MR_OK; i++)
        status =
            add_samples(t, o, plan, &dirs->items[i], group, present + dirs->items[i].split * plan->class_count, err);
    for (size_t s = 0; s < plan->split_count && status == MR_OK; s++)
        note_missing(plan, present + s * plan->class_count, plan->splits[s].name);
    free(present);
    return status;
}

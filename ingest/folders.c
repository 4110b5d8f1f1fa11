/* folders.c - split folders that hold class folders that hold images.
 * Invariant: entries are visited in the tree's order, so samples come out sorted by path within a folder. */
#include "folders.h"

#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "text.h"

/* As users expect to see them; of val, valid and validation this is the order of their paths, too. */
static const char *const split_names[] = {"train", "val", "valid", "validation", "test"};

static bool named(const mr_split_dir *dir, const char *name)
{
    return strlen(name) == dir->len && !memcmp(name, dir->name, dir->len);
}

bool mr_split_dirs_has(const mr_split_dirs *dirs, const char *name)
{
    for (size_t i = 0; i < dirs->count; i++)
        if (named(&dirs->items[i], name))
            return true;
    return false;
}

static bool any_split_dir(const mr_tree *t)
{
    for (size_t i = 0; i < MR_COUNT(split_names); i++)
        if (mr_tree_has_dir(t, split_names[i], strlen(split_names[i])))
            return true;
    return false;
}

void mr_split_dirs_find(const mr_tree *t, mr_split_dirs *dirs)
{
    mr_child child = {0};
    *dirs = (mr_split_dirs){0};
    if (!any_split_dir(t))
        return;
    while (dirs->count < MR_COUNT(dirs->items) && mr_tree_next(t, "", 0, &child)) {
        mr_split_dir dir = {child.name, child.name_len, child.entry, child.end, MR_NO_ENTRY};
        for (size_t i = 0; child.is_dir && i < MR_COUNT(split_names); i++)
            if (named(&dir, split_names[i]))
                dirs->items[dirs->count++] = dir;
    }
}

/* ---- stored names --------------------------------------------------------------------------------------------- */

static mr_status check_maps(const mr_layout_options *o, const mr_split_dirs *dirs, mr_error *err)
{
    for (size_t m = 0; m < o->map_count; m++) {
        const char *from = o->maps[m].from;
        bool val = !strcmp(from, "val") && (mr_split_dirs_has(dirs, "valid") || mr_split_dirs_has(dirs, "validation"));
        if (val || mr_split_dirs_has(dirs, from) || (dirs->count == 1 && !dirs->items[0].len && !strcmp(from, "train")))
            continue;
        mr_buf there = {0};
        for (size_t i = 0; i < dirs->count; i++)
            mr_buf_printf(&there, "%s%.*s", i ? ", " : "", (int)dirs->items[i].len, dirs->items[i].name);
        mr_fail(err, MR_MISUSE, "--split-map %s=%s: the source has no split '%s'; it has: %s", from, o->maps[m].to,
                from, there.len ? mr_buf_text(&there) : "train");
        mr_buf_free(&there);
        return MR_MISUSE;
    }
    return MR_OK;
}

static void leave_out(const mr_tree *t, mr_plan *plan, const mr_split_dir *dir)
{
    uint64_t bytes = 0;
    for (uint32_t e = dir->begin; e < dir->end; e++) {
        plan->used[e] = 1;
        bytes += mr_source_entry(t->source, e)->size;
    }
    mr_note_add(plan->notes, MR_NOTE_INFO, dir->name, dir->len, bytes, "left out by --split-map: %u files",
                dir->end - dir->begin);
}

mr_status mr_split_dirs_open(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_split_dirs *dirs,
                             mr_error *err)
{
    mr_status status = check_maps(o, dirs, err);
    for (size_t n = 0; n < MR_COUNT(split_names) && status == MR_OK; n++)
        for (size_t i = 0; i < dirs->count && status == MR_OK; i++) {
            mr_split_dir *dir = &dirs->items[i];
            bool root = !dir->len && !n;
            if (root || named(dir, split_names[n]))
                status = mr_plan_split_get(plan, o, split_names[n], strlen(split_names[n]), &dir->split, err);
        }
    size_t kept = 0;
    for (size_t i = 0; i < dirs->count && status == MR_OK; i++) {
        if (dirs->items[i].split == MR_NO_ENTRY)
            leave_out(t, plan, &dirs->items[i]);
        else
            dirs->items[kept++] = dirs->items[i];
    }
    dirs->count = kept;
    return status;
}

/* ---- class folders -------------------------------------------------------------------------------------------- */

bool mr_folder_image(const mr_tree *t, uint32_t entry, size_t skip)
{
    size_t len;
    const char *path = mr_tree_path(t, entry, &len);
    if (skip >= len || path[skip] == '.')
        return false;
    for (size_t i = skip; i + 1 < len; i++)
        if (path[i] == '/' && path[i + 1] == '.')
            return false;
    return mr_name_is_image(path + skip, len - skip);
}

/* Where the child's own name starts in the paths under the root. */
static size_t child_at(const mr_tree *t, const mr_child *child)
{
    size_t len;
    return (size_t)(child->name - mr_tree_path(t, child->entry, &len));
}

bool mr_folder_is_class(const mr_tree *t, const mr_child *child, uint32_t most)
{
    uint32_t end = child->end;
    if (!child->is_dir || child->name[0] == '.')
        return false;
    if (most && end - child->entry > most)
        end = child->entry + most;
    for (uint32_t e = child->entry; e < end; e++)
        if (mr_folder_image(t, e, child_at(t, child)))
            return true;
    return false;
}

size_t mr_folder_count(const mr_tree *t, const mr_split_dir *dir, uint32_t most)
{
    size_t count = 0;
    mr_child child = {0};
    while (mr_tree_next(t, dir->name, dir->len, &child))
        count += mr_folder_is_class(t, &child, most);
    return count;
}

static mr_status list_classes(const mr_tree *t, mr_plan *plan, const mr_split_dirs *dirs, mr_error *err)
{
    mr_status status = MR_OK;
    for (size_t i = 0; i < dirs->count; i++) {
        mr_child child = {0};
        while (status == MR_OK && mr_tree_next(t, dirs->items[i].name, dirs->items[i].len, &child))
            if (mr_folder_is_class(t, &child, 0))
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
                o->keep_unlisted ? ": kept without label" : "");
    plan->used[entry] = 1;
    if (!o->keep_unlisted)
        return MR_OK;
    mr_sample sample = {.split = split, .entry = entry, .label = -1, .flags = MR_FLAG_UNANNOTATED};
    if (group)
        group(t, &sample);
    return mr_plan_add(plan, &sample, err);
}

/* The samples of one split folder; present[label] is set for each class that it has. */
static mr_status add_samples(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, const mr_split_dir *dir,
                             void (*group)(const mr_tree *t, mr_sample *sample), uint8_t *present, mr_error *err)
{
    mr_status status = MR_OK;
    mr_child child = {0};
    while (status == MR_OK && mr_tree_next(t, dir->name, dir->len, &child)) {
        size_t at = child_at(t, &child);
        mr_sample sample = {.split = dir->split, .label = -1};
        if (!child.is_dir && mr_folder_image(t, child.entry, at))
            status = mr_folder_unlisted(t, o, plan, dir->split, child.entry, "not in a class folder", group, err);
        if (!mr_folder_is_class(t, &child, 0))
            continue;
        sample.label = mr_plan_class_find(plan, child.name, child.name_len);
        if (sample.label < 0)
            return mr_fail_memory(err, "numbering the classes");
        present[sample.label] = 1;
        for (sample.entry = child.entry; status == MR_OK && sample.entry < child.end; sample.entry++) {
            if (!mr_folder_image(t, sample.entry, at))
                continue;
            if (group)
                group(t, &sample);
            status = mr_plan_add(plan, &sample, err);
        }
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
    if (status != MR_OK)
        return status;
    if (!plan->class_count && dirs->count)
        return mr_fail(err, MR_BAD_DATA, "%.*s: no class folder with images (train/CLASS/IMAGE) is there; "
                       "for another arrangement choose another --layout",
                       dirs->items[0].len ? (int)dirs->items[0].len : 10,
                       dirs->items[0].len ? dirs->items[0].name : "the source");
    uint8_t *present = mr_alloc(plan->split_count, plan->class_count);
    if (!present)
        return mr_fail_memory(err, "numbering the classes");
    for (size_t i = 0; i < dirs->count && status == MR_OK; i++)
        status = add_samples(t, o, plan, &dirs->items[i], group,
                             present + dirs->items[i].split * plan->class_count, err);
    for (size_t s = 0; s < plan->split_count && status == MR_OK; s++)
        note_missing(plan, present + s * plan->class_count, plan->splits[s].name);
    free(present);
    return status;
}

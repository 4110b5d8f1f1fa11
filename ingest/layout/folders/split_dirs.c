/* split_dirs.c - the folders under a root that are its splits: found by usual names and by --split-map.
 * Invariant: what is a split folder depends on names and --split-map only, so bid and plan find the same.
 *
 *      train/CLASS/...                 path "train"                    called "train"
 *      seg_test/seg_test/CLASS/...     path "seg_test/seg_test"        called "seg_test"
 *      a/2019/CLASS/...                path "a/2019"                   called "a/2019", by --split-map a/2019=train  */
#include <string.h>

#include "base/text.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/folders/folders.h"

static bool is_called(const mr_split_dir *dir, const char *name)
{
    return strlen(name) == dir->called && !memcmp(name, dir->name, dir->called);
}

bool mr_split_dirs_has(const mr_split_dirs *dirs, const char *name)
{
    for (size_t i = 0; i < dirs->count; i++)
        if (is_called(&dirs->items[i], name))
            return true;
    return false;
}

/* "train/train", "seg_test/seg_test", "train/images": one more folder, with only the class folders in it. */
static void enter_wrapper(const mr_tree *t, mr_split_dir *dir)
{
    mr_child child = {0}, only = {0};
    while (mr_tree_next(t, dir->name, dir->len, &child)) {
        if (child.name[0] == '.')
            continue;
        if (!child.is_dir || only.name)
            return;
        only = child;
    }
    const char *outer = mr_split_word(dir->name, dir->called),
               *inner = only.name ? mr_split_word(only.name, only.name_len) : NULL;
    if (!only.name ||
        ((!outer || inner != outer) && mr_folder_container(only.name, only.name_len) != MR_CONTAINER_SURE))
        return;
    mr_split_dir deeper = *dir;
    deeper.len += 1 + only.name_len;
    deeper.begin = only.entry;
    deeper.end = only.end;
    if (mr_folder_count(t, &deeper, 0))
        *dir = deeper;
}

static unsigned depth_of(const mr_layout_options *o)
{
    return o->class_depth ? o->class_depth : 1;
}

mr_split_dir mr_split_dir_whole(const mr_tree *t, const mr_layout_options *o)
{
    return (mr_split_dir){"", 0, 0, depth_of(o), t->begin, t->end, MR_NO_ENTRY};
}

static void add(const mr_tree *t, const mr_layout_options *o, mr_split_dirs *dirs, const mr_child *child,
                size_t path_len)
{
    size_t len;
    if (dirs->count == MR_COUNT(dirs->items))
        return;
    const char *path = mr_tree_path(t, child->entry, &len);
    mr_split_dir dir = {path, path_len, path_len, depth_of(o), child->entry, child->end, MR_NO_ENTRY};
    enter_wrapper(t, &dir);
    size_t at = dirs->count++;
    for (; at && dirs->items[at - 1].begin > dir.begin; at--)
        dirs->items[at] = dirs->items[at - 1];
    dirs->items[at] = dir;
}

static bool is_mapped(const mr_layout_options *o, const char *name, size_t len)
{
    for (size_t i = 0; i < o->map_count; i++)
        if (strlen(o->maps[i].from) == len && !memcmp(o->maps[i].from, name, len))
            return true;
    return false;
}

/* --split-map a/b=train: a folder further down. */
static void add_mapped_paths(const mr_tree *t, const mr_layout_options *o, mr_split_dirs *dirs)
{
    for (size_t i = 0; i < o->map_count; i++) {
        const char *from = o->maps[i].from, *slash = strrchr(from, '/');
        size_t above = slash ? (size_t)(slash - from) : 0;
        mr_child child = {0};
        while (above && slash[1] && mr_tree_next(t, from, above, &child))
            if (child.is_dir && child.name_len == strlen(slash + 1) && !memcmp(child.name, slash + 1, child.name_len))
                add(t, o, dirs, &child, strlen(from));
    }
}

void mr_split_dirs_find(const mr_tree *t, const mr_layout_options *o, mr_split_dirs *dirs)
{
    mr_child child = {0};
    *dirs = (mr_split_dirs){0};
    while (mr_tree_next(t, "", 0, &child))
        if (child.is_dir && child.name[0] != '.' &&
            (mr_split_word(child.name, child.name_len) || is_mapped(o, child.name, child.name_len)))
            add(t, o, dirs, &child, child.name_len);
    add_mapped_paths(t, o, dirs);
}

/* ---- stored names --------------------------------------------------------------------------------------------- */

static bool map_finds(const char *from, const mr_split_dirs *dirs)
{
    if (dirs->count == 1 && !dirs->items[0].called)
        return strcmp(from, "train") == 0;
    for (size_t i = 0; i < dirs->count; i++) {
        const mr_split_dir *dir = &dirs->items[i];
        const char *word = mr_split_word(dir->name, dir->called);
        if (is_called(dir, from) || (word && strcmp(word, from) == 0))
            return true;
    }
    return false;
}

static mr_status check_maps(const mr_layout_options *o, const mr_split_dirs *dirs, mr_error *err)
{
    for (size_t m = 0; m < o->map_count; m++) {
        if (map_finds(o->maps[m].from, dirs))
            continue;
        mr_buf there = {0};
        for (size_t i = 0; i < dirs->count; i++) {
            mr_buf_add_text(&there, i ? ", " : "");
            mr_text_escape(&there, dirs->items[i].name, dirs->items[i].called);
        }
        mr_fail(err, MR_MISUSE, "--split-map %s=%s: the source has no split '%s'; it has: %s", o->maps[m].from,
                o->maps[m].to, o->maps[m].from, there.len ? mr_buf_text(&there) : "train");
        mr_buf_free(&there);
        return MR_MISUSE;
    }
    return MR_OK;
}

/* --split-map train/hard=val, where train is a split: an image has one split. */
static mr_status check_overlap(const mr_split_dirs *dirs, mr_error *err)
{
    for (size_t i = 1; i < dirs->count; i++) {
        const mr_split_dir *a = &dirs->items[i - 1], *b = &dirs->items[i];
        if (b->begin < a->end)
            return mr_fail(err, MR_MISUSE, "--split-map: one of the folders %.*s and %.*s contains the other",
                           (int)a->called, a->name, (int)b->called, b->name);
    }
    return MR_OK;
}

/* In the usual order: train, val, test, then the others in order of their paths. */
static size_t rank_of(const mr_split_dir *dir)
{
    return mr_split_rank(dir->called ? mr_split_word(dir->name, dir->called) : "train");
}

mr_status mr_split_dirs_open(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_split_dirs *dirs,
                             mr_error *err)
{
    mr_status status = check_maps(o, dirs, err);
    if (status == MR_OK)
        status = check_overlap(dirs, err);
    for (size_t rank = 0; rank < 4 && status == MR_OK; rank++)
        for (size_t i = 0; i < dirs->count && status == MR_OK; i++) {
            mr_split_dir *dir = &dirs->items[i];
            if (rank_of(dir) == rank)
                status = mr_plan_split_get(plan, o, dir->called ? dir->name : "train", dir->called ? dir->called : 5,
                                           &dir->split, err);
        }
    size_t kept = 0;
    for (size_t i = 0; i < dirs->count && status == MR_OK; i++) {
        const mr_split_dir *dir = &dirs->items[i];
        if (dir->split == MR_NO_ENTRY)
            mr_plan_leave_out(plan, t->source, dir->name, dir->called, dir->begin, dir->end);
        else
            dirs->items[kept++] = *dir;
    }
    dirs->count = kept;
    return status;
}

/* files.c - COCO: which files are annotation files, and of which split.
 * Invariant: files with COCO's own names count alone; where there are none, those count that look like COCO inside;
 * --annotations overrides both. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/layout/coco/coco.h"
#include "ingest/layout/folder_names.h"
#include "ingest/tables/coco_head.h"

enum { HEADS_MAX = 32 }; /* files of a folder that are looked into */

const char *const mr_coco_kinds[MR_COCO_KINDS] = {"instances",  "captions", "person_keypoints",
                                                  "image_info", "panoptic", "stuff"};

/* "instances_train2017.json": kind and split.  CVAT calls its only subset "default". */
static bool own_parts(const char *name, size_t len, mr_coco_part *part)
{
    for (int kind = 0; kind < MR_COCO_KINDS; kind++) {
        size_t word = strlen(mr_coco_kinds[kind]);
        if (len <= word + 6 || memcmp(name, mr_coco_kinds[kind], word) != 0 || name[word] != '_')
            continue;
        part->kind = kind;
        part->split = name + word + 1;
        part->split_len = len - word - 6;
        part->unnamed = part->split_len == 7 && !memcmp(part->split, "default", 7);
        return true;
    }
    return false;
}

/* The same, and "val_instances_default.json": a second export of CVAT, with a split's name before it. */
static bool name_parts(const char *name, size_t len, mr_coco_part *part)
{
    part->unnamed = false;
    if (own_parts(name, len, part))
        return true;
    for (size_t i = 1; i + 1 < len; i++) {
        if ((name[i] != '_' && name[i] != '-') || !mr_split_word(name, mr_coco_without_year(name, i)) ||
            !own_parts(name + i + 1, len - i - 1, part))
            continue;
        bool says = !part->unnamed && mr_split_word(part->split, part->split_len);
        part->unnamed = false;
        part->split = says ? part->split : name;
        part->split_len = says ? part->split_len : i;
        return true;
    }
    return false;
}

/* The first of the words between '_', '-' and '.' that names a split: "val" in "coco_val.json". */
static bool split_in(const char *name, size_t len, mr_coco_part *part)
{
    for (size_t i = 0, end; i < len; i = end + 1) {
        for (end = i; end < len && !strchr("_-.", name[end]); end++)
            ;
        size_t word = end > i ? mr_coco_without_year(name + i, end - i) : 0;
        if (!word || !mr_split_word(name + i, word))
            continue;
        part->split = name + i;
        part->split_len = end - i;
        return true;
    }
    return false;
}

/* The split of a file without a standard name: from its name, else from its folder's; else train. */
static void find_split(const mr_tree *t, mr_coco_part *part)
{
    size_t len;
    const char *path = mr_tree_path(t, part->entry, &len), *slash = memrchr(path, '/', len);
    const char *name = slash ? slash + 1 : path;
    part->kind = MR_COCO_UNKNOWN;
    if (split_in(name, len - (size_t)(name - path), part))
        return;
    size_t dir = slash ? (size_t)(slash - path) : 0;
    const char *before = dir ? memrchr(path, '/', dir) : NULL, *folder = before ? before + 1 : path;
    if (dir && split_in(folder, (size_t)(slash - folder), part))
        return;
    part->split = "train";
    part->split_len = strlen("train");
    part->unnamed = true;
}

static mr_status add_part(mr_coco_state *st, const mr_coco_part *part, mr_error *err)
{
    if (!MR_GROW(st->parts, st->part_count, st->part_capacity))
        return mr_fail_memory(err, "listing annotation files");
    st->parts[st->part_count++] = *part;
    return MR_OK;
}

static mr_status list_named(const mr_tree *t, const char *dir, mr_coco_state *st, mr_error *err)
{
    mr_child child = {0};
    mr_coco_part part = {0};
    st->dir = dir;
    while (mr_tree_next(t, dir, strlen(dir), &child)) {
        if (child.is_dir || !mr_name_ends(child.name, child.name_len, ".json") ||
            !name_parts(child.name, child.name_len, &part))
            continue;
        part.entry = child.entry;
        if (mr_coco_head(t->source, part.entry) == MR_COCO_SIGN_RESULT) {
            st->results++;
            st->result = child.name;
            continue;
        }
        MR_TRY(add_part(st, &part, err));
    }
    return MR_OK;
}

/* By looking inside. */
static mr_status list_signed(const mr_tree *t, const char *dir, size_t len, mr_coco_state *st, mr_error *err)
{
    mr_child child = {0};
    for (int heads = 0; heads < HEADS_MAX && mr_tree_next(t, dir, len, &child);) {
        if (child.is_dir || child.name[0] == '.' || !mr_name_ends(child.name, child.name_len, ".json"))
            continue;
        heads++;
        if (mr_coco_head(t->source, child.entry) != MR_COCO_SIGN_FILE)
            continue;
        mr_coco_part part = {.entry = child.entry};
        find_split(t, &part);
        MR_TRY(add_part(st, &part, err));
    }
    return MR_OK;
}

static mr_status list_split_dirs(const mr_tree *t, mr_coco_state *st, mr_error *err)
{
    mr_child child = {0};
    while (mr_tree_next(t, "", 0, &child))
        if (child.is_dir && mr_split_word(child.name, child.name_len))
            MR_TRY(list_signed(t, child.name, child.name_len, st, err));
    return MR_OK;
}

/* Under the root, or from the top level of the source. */
static uint32_t find_given(const mr_tree *t, const char *path)
{
    size_t len = strlen(path);
    uint32_t entry = mr_tree_find(t, path, len);
    if (entry == MR_NO_ENTRY && len > t->root_len && !memcmp(path, t->root, t->root_len))
        entry = mr_tree_find(t, path + t->root_len, len - t->root_len);
    return entry;
}

/* How much of "train_part2", "train-3" or "train_00001-of-00004" is "train"; not of a year. */
static size_t without_part(const char *split, size_t len)
{
    for (size_t i = 1; i < len; i++) {
        size_t at = i + 1;
        if ((split[i] != '_' && split[i] != '-') || !mr_split_word(split, mr_coco_without_year(split, i)))
            continue;
        if (len - at >= 4 && !memcmp(split + at, "part", 4))
            at += 4;
        size_t digits = at + (at < len && (split[at] == '_' || split[at] == '-')), end = digits;
        while (end < len && split[end] >= '0' && split[end] <= '9')
            end++;
        bool of = len - end > 4 && (!memcmp(split + end, "-of-", 4) || !memcmp(split + end, "_of_", 4));
        if (end > digits && (of || (end == len && end - digits != 4)))
            return i;
    }
    return len;
}

static mr_status list_given(const mr_tree *t, const mr_layout_options *o, mr_coco_state *st, mr_error *err)
{
    for (size_t i = 0; i < o->annotation_count; i++) {
        mr_coco_part part = {.entry = find_given(t, o->annotations[i])};
        if (part.entry == MR_NO_ENTRY) {
            st->absent = o->annotations[i];
            continue;
        }
        size_t len;
        const char *path = mr_tree_path(t, part.entry, &len), *slash = memrchr(path, '/', len);
        const char *name = slash ? slash + 1 : path;
        if (!mr_name_ends(path, len, ".json") || !name_parts(name, len - (size_t)(name - path), &part))
            find_split(t, &part);
        part.split_len = without_part(part.split, part.split_len);
        bool again = false;
        for (size_t k = 0; k < st->part_count; k++)
            again = again || st->parts[k].entry == part.entry;
        if (!again)
            MR_TRY(add_part(st, &part, err));
    }
    return MR_OK;
}

int mr_coco_part_order(const void *a, const void *b)
{
    const mr_coco_part *x = a, *y = b;
    size_t len = x->split_len < y->split_len ? x->split_len : y->split_len;
    int order = memcmp(x->split, y->split, len);
    if (!order)
        order = (x->split_len > y->split_len) - (x->split_len < y->split_len);
    if (!order)
        order = x->kind - y->kind;
    return order ? order : (x->entry > y->entry) - (x->entry < y->entry);
}

mr_status mr_coco_list(const mr_tree *t, const mr_layout_options *o, mr_coco_state *st, mr_error *err)
{
    st->dir = "";
    if (o->annotation_count) {
        MR_TRY(list_given(t, o, st, err));
    } else {
        MR_TRY(list_named(t, "annotations", st, err));
        if (!st->part_count)
            MR_TRY(list_named(t, "", st, err));
        st->named = st->part_count > 0;
        if (!st->part_count)
            MR_TRY(list_signed(t, "annotations", strlen("annotations"), st, err));
        if (!st->part_count)
            MR_TRY(list_signed(t, "", 0, st, err));
        if (!st->part_count)
            MR_TRY(list_split_dirs(t, st, err));
    }
    if (st->part_count)
        qsort(st->parts, st->part_count, sizeof *st->parts, mr_coco_part_order);
    return MR_OK;
}

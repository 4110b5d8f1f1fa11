/* splits.c - which images are in which split: folders that data.yaml names, and those that it does not.
 * Invariant: an image comes once in a split; items are sorted by split, then by path. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/tables/lines.h"
#include "ingest/source/names.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/yolo/yolo.h"

enum { LIST_MAX = 64 << 20 };

static const char *const keys[] = {"train", "val", "test"};

static mr_status add_item(mr_yolo_build *b, uint32_t split, uint32_t entry)
{
    if (!MR_GROW(b->items, b->count, b->capacity))
        return mr_fail_memory(b->err, "listing the samples");
    b->items[b->count++] = (mr_yolo_item){split, entry};
    return MR_OK;
}

static bool is_image(const mr_tree *t, uint32_t entry)
{
    size_t len;
    const char *path = mr_tree_path(t, entry, &len), *slash = memrchr(path, '/', len);
    return (slash ? slash[1] : *path) != '.' && mr_name_is_image(path, len);
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

/* "train2017" is stored as train, unless another folder would be train, too. */
static size_t without_year(const mr_yolo_build *b, const char *name, size_t len)
{
    size_t cut = len;
    while (cut && strchr("0123456789_-", name[cut - 1]))
        cut--;
    if (mr_split_map_find(b->options, name, len) || !cut || cut == len || !mr_split_word(name, cut))
        return len;
    for (size_t i = 0; i < b->dirs.count; i++) {
        const mr_yolo_dir *d = &b->dirs.items[i];
        if (d->name && (d->name_len != len || memcmp(d->name, name, len)) && d->name_len >= cut &&
            !memcmp(d->name, name, cut) && strspn(d->name + cut, "0123456789_-") >= d->name_len - cut)
            return len;
    }
    return cut;
}

static mr_status get_split(mr_yolo_build *b, const char *name, size_t len, uint32_t *split)
{
    return mr_plan_split_get(b->plan, b->options, name, without_year(b, name, len), split, b->err);
}

static void leave_out_label(mr_yolo_build *b, uint32_t image)
{
    MR_AUTO(mr_buf_free) mr_buf label = {0};
    uint32_t found = mr_yolo_label_of(b->tree, image, &label).label;
    if (found != MR_NO_ENTRY)
        b->plan->used[found] = MR_USE_LEFT_OUT;
    b->plan->notes->failed = b->plan->notes->failed || label.failed;
}

/* Marks the folder's labels, too, as left out. */
static void leave_out_dir(mr_yolo_build *b, const char *path, size_t len, uint32_t begin, uint32_t end)
{
    mr_plan_leave_out(b->plan, b->tree->source, path, len, begin, end);
    for (uint32_t e = begin; e < end; e++)
        leave_out_label(b, e);
}

/* All images below the folder; `path` is without a slash at its end, or empty. */
static mr_status add_folder(mr_yolo_build *b, const char *path, size_t len, uint32_t split)
{
    mr_buf prefix = {0};
    mr_buf_add(&prefix, b->tree->root, b->tree->root_len);
    mr_buf_add(&prefix, path, len);
    mr_buf_add_text(&prefix, len ? "/" : "");
    mr_tree inner = mr_tree_at(b->tree->source, mr_buf_text(&prefix), prefix.len);
    mr_status status = mr_buf_status(&prefix, b->err, "listing the samples");
    mr_buf_free(&prefix);
    if (status == MR_OK && split == MR_NO_ENTRY)
        leave_out_dir(b, path, len, inner.begin, inner.end);
    for (uint32_t e = inner.begin; status == MR_OK && split != MR_NO_ENTRY && e < inner.end; e++)
        if (is_image(b->tree, e))
            status = add_item(b, split, e);
    return status;
}

/* ---- what data.yaml names ---------------------------------------------------------------------------------------- */

/* The split's name in the source: that of the folder, where it means the same as data.yaml's word. */
static const char *split_name(const mr_yolo_build *b, const char *key, const char *path, size_t len, size_t *name_len)
{
    for (size_t i = 0; i < b->dirs.count; i++) {
        const mr_yolo_dir *d = &b->dirs.items[i];
        const char *word = d->name ? mr_split_word(d->name, d->name_len) : NULL;
        if (d->len == len && !memcmp(d->path, path, len) && word && !strcmp(word, key)) {
            *name_len = d->name_len;
            return d->name;
        }
    }
    *name_len = strlen(key);
    return key;
}

static mr_status add_list(mr_yolo_build *b, uint32_t list, uint32_t split)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0}, path = {0};
    size_t name_len;
    const char *name = mr_tree_path(b->tree, list, &name_len);
    b->plan->used[list] = 1;
    b->lists = true;
    if (mr_source_entry(b->tree->source, list)->size > LIST_MAX)
        return mr_fail(b->err, MR_BAD_DATA, "%s: longer than 64 MiB, the limit for an image list", name);
    MR_TRY(mr_source_read(b->tree->source, list, &text, b->err));
    for (mr_lines l = mr_lines_of(text.data, text.len); mr_lines_next(&l);) {
        uint32_t found = mr_yolo_find_listed(b->tree, list, l.line, l.len, &path);
        if (found == MR_NO_ENTRY || !is_image(b->tree, found))
            mr_note_add(b->plan->notes, MR_NOTE_MISSING, l.line, l.len, 0, "%s names it: no such image", name);
        else if (split != MR_NO_ENTRY)
            MR_TRY(add_item(b, split, found));
        else {
            b->plan->used[found] = MR_USE_LEFT_OUT;
            leave_out_label(b, found);
        }
    }
    return mr_buf_status(&path, b->err, "listing the samples");
}

/* The existing folder for a split whose folder in data.yaml does not exist. */
static const mr_yolo_dir *stand_in(const mr_yolo_build *b, const char *key)
{
    for (size_t i = 0; i < b->dirs.count; i++) {
        const mr_yolo_dir *d = &b->dirs.items[i];
        const char *word = d->name ? mr_split_word(d->name, d->name_len) : NULL;
        if (word && !strcmp(word, key))
            return d;
    }
    return NULL;
}

/* One value of train, val or test. */
static mr_status add_value(mr_yolo_build *b, const char *key, const mr_yaml_node *node, bool *taken)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    const char *value = mr_yaml_text(&b->settings.yaml, node);
    size_t name_len;
    uint32_t split;
    if (!*value)
        return MR_OK;
    mr_yolo_resolve(b->tree, &b->settings.yaml, value, &path);
    MR_TRY(mr_buf_status(&path, b->err, "listing the samples"));
    if (!path.len) {
        const mr_yolo_dir *d = stand_in(b, key);
        mr_note_add(b->plan->notes, MR_NOTE_INFO, b->settings.name, strlen(b->settings.name), 0,
                    "%s: %.200s is not there%s%.*s", key, value, d ? ": taken from " : "", d ? (int)d->len : 0,
                    d ? d->path : "");
        return MR_OK;
    }
    const char *text = mr_buf_text(&path), *name = split_name(b, key, text, path.len, &name_len);
    MR_TRY(get_split(b, name, name_len, &split));
    for (size_t i = 0; i < b->dirs.count; i++)
        taken[i] = taken[i] || (path.len <= b->dirs.items[i].len && !memcmp(b->dirs.items[i].path, text, path.len));
    uint32_t file = mr_tree_find(b->tree, text, path.len);
    return file == MR_NO_ENTRY ? add_folder(b, text, path.len, split) : add_list(b, file, split);
}

static mr_status add_named(mr_yolo_build *b, bool *taken)
{
    const mr_yaml_node *root = mr_yaml_root(&b->settings.yaml);
    for (size_t k = 0; k < MR_COUNT(keys); k++) {
        const mr_yaml_node *value = mr_yaml_get(&b->settings.yaml, root, keys[k]);
        if (!value && k == 1) /* Darknet's word */
            value = mr_yaml_get(&b->settings.yaml, root, "valid");
        if (value && value->kind == MR_YAML_TEXT)
            MR_TRY(add_value(b, keys[k], value, taken));
        for (const mr_yaml_node *item = value && value->kind == MR_YAML_LIST ? mr_yaml_first(&b->settings.yaml, value)
                                                                             : NULL;
             item; item = mr_yaml_next(&b->settings.yaml, item))
            MR_TRY(add_value(b, keys[k], item, taken));
    }
    return MR_OK;
}

static int by_split_and_entry(const void *a, const void *b)
{
    const mr_yolo_item *x = a, *y = b;
    if (x->split != y->split)
        return x->split < y->split ? -1 : 1;
    return (x->entry > y->entry) - (x->entry < y->entry);
}

/* The split of an image that none names: its folder's, else train. */
static mr_status split_of_folder(mr_yolo_build *b, uint32_t entry, uint32_t *split)
{
    size_t len;
    const char *path = mr_tree_path(b->tree, entry, &len);
    for (size_t i = 0; i < b->dirs.count; i++) {
        const mr_yolo_dir *d = &b->dirs.items[i];
        if (d->name && d->len < len && !memcmp(d->path, path, d->len) && path[d->len] == '/')
            return get_split(b, d->name, d->name_len, split);
    }
    return get_split(b, keys[0], strlen(keys[0]), split);
}

static mr_status add_unlisted(mr_yolo_build *b)
{
    MR_AUTO(mr_scope_free) uint8_t *listed = mr_alloc(b->tree->end - b->tree->begin, 1);
    if (!listed)
        return mr_fail_memory(b->err, "listing the samples");
    for (size_t i = 0; i < b->count; i++)
        listed[b->items[i].entry - b->tree->begin] = 1;
    for (uint32_t e = b->tree->begin; e < b->tree->end; e++) {
        size_t len;
        const char *path = mr_tree_path(b->tree, e, &len);
        uint32_t split;
        if (listed[e - b->tree->begin] || b->plan->used[e] || !is_image(b->tree, e))
            continue;
        MR_TRY(split_of_folder(b, e, &split));
        if (split == MR_NO_ENTRY)
            continue;
        mr_note_add(b->plan->notes, MR_NOTE_UNLISTED, path, len, mr_source_entry(b->tree->source, e)->size,
                    "not in any split: added to %s (--keep-unlisted)", b->plan->splits[split].name);
        MR_TRY(add_item(b, split, e));
    }
    return MR_OK;
}

static unsigned rank_of(const mr_yolo_dir *d)
{
    const char *word = d->name ? mr_split_word(d->name, d->name_len) : keys[0];
    unsigned rank = 0;
    while (rank < MR_COUNT(keys) && (!word || strcmp(word, keys[rank]) != 0))
        rank++;
    return rank;
}

static bool has_items(const mr_yolo_build *b, size_t count, uint32_t split)
{
    size_t i = 0;
    while (i < count && b->items[i].split != split)
        i++;
    return i < count;
}

/* Folders that data.yaml does not name are splits of their own; one whose split data.yaml takes from elsewhere is not
 * added to that: its images stay unlisted. */
static mr_status add_others(mr_yolo_build *b, const bool *taken)
{
    size_t named = b->count;
    for (unsigned rank = 0; rank <= MR_COUNT(keys) && !b->lists; rank++)
        for (size_t i = 0; i < b->dirs.count; i++) {
            const mr_yolo_dir *d = &b->dirs.items[i];
            uint32_t split;
            if (taken[i] || rank_of(d) != rank)
                continue;
            MR_TRY(get_split(b, d->name ? d->name : keys[0], d->name ? d->name_len : strlen(keys[0]), &split));
            if (!has_items(b, named, split))
                MR_TRY(add_folder(b, d->path, d->len, split));
        }
    return MR_OK;
}

mr_status mr_yolo_splits(mr_yolo_build *b)
{
    bool taken[MR_YOLO_DIRS_MAX] = {false};
    MR_TRY(add_named(b, taken));
    MR_TRY(add_others(b, taken));
    if (b->options->keep_unlisted)
        MR_TRY(add_unlisted(b));
    size_t kept = 0;
    if (b->count)
        qsort(b->items, b->count, sizeof *b->items, by_split_and_entry);
    for (size_t i = 0; i < b->count; i++)
        if (!kept || by_split_and_entry(&b->items[kept - 1], &b->items[i]))
            b->items[kept++] = b->items[i];
    if (kept < b->count)
        mr_note_add(b->plan->notes, MR_NOTE_INFO, b->settings.name, strlen(b->settings.name), 0,
                    "a split names %zu image%s again: each is used once", b->count - kept,
                    b->count - kept == 1 ? "" : "s");
    b->count = kept;
    return MR_OK;
}

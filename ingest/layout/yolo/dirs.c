/* dirs.c - the folders of images of a YOLO tree.
 * Invariant: folders are found in the order of the tree; where names do not tell that they are YOLO's, the texts beside
 * their images do. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/scope.h"
#include "ingest/tables/lines.h"
#include "ingest/source/names.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/yolo/yolo.h"

enum { LOOK_AT = 256 };

enum { IMAGES = sizeof "images" - 1 };
static const char beside[] = "labels beside the images";

/* One of the first files of the folder that is an image; MR_NO_ENTRY. */
static uint32_t find_image(const mr_tree *t, const char *dir, size_t len)
{
    mr_child child = {0};
    for (int i = 0; i < LOOK_AT && mr_tree_next(t, dir, len, &child); i++)
        if (!child.is_dir && child.name[0] != '.' && mr_name_is_image(child.name, child.name_len))
            return child.entry;
    return MR_NO_ENTRY;
}

static bool holds_images(const mr_tree *t, const char *dir, size_t len)
{
    return find_image(t, dir, len) != MR_NO_ENTRY;
}

/* `labels`: what holds the labels, NULL if nothing does. */
static void add(const mr_tree *t, mr_yolo_dirs *dirs, mr_yolo_dir dir, const char *labels)
{
    mr_mask masks[MR_MASKS_MAX];
    const mr_sample first = {.entry = find_image(t, dir.path, dir.len)};
    if (dirs->count == MR_YOLO_DIRS_MAX)
        return;
    bool may = !labels && first.entry != MR_NO_ENTRY && (!dir.name || mr_split_like(dir.name, dir.name_len));
    if (may && mr_yolo_masks(t, NULL, &first, masks)) { /* other folders of images and masks are classes */
        if (!dirs->labels && !dirs->masks)
            snprintf(dirs->seen, sizeof dirs->seen, "%.*s with masks in %s", dir.len < 60 ? (int)dir.len : 60, dir.path,
                     masks[0].name);
        dirs->masks = true;
    }
    if (labels && !dirs->labels)
        snprintf(dirs->seen, sizeof dirs->seen, "%.*s with %s", dir.len < 60 ? (int)dir.len : 60, dir.path, labels);
    dirs->labels = dirs->labels || labels;
    dirs->items[dirs->count++] = dir;
}

static bool is_images(const mr_child *child)
{
    return child->is_dir && child->name_len == IMAGES && !strncasecmp(child->name, "images", IMAGES);
}

/* What holds the labels of the folder of images at `path`, whose part from `at` on is "images/AFTER"; NULL: nothing. */
static const char *labels_of(const mr_tree *t, const char *path, size_t at, size_t len)
{
    for (size_t i = 0; mr_yolo_label_folders[i]; i++) {
        MR_AUTO(mr_buf_free) mr_buf labels = {0};
        mr_buf_add(&labels, path, at);
        mr_yolo_add_folder(&labels, mr_yolo_label_folders[i], path + at);
        mr_buf_add(&labels, path + at + IMAGES, len - at - IMAGES);
        const char *text = mr_buf_text(&labels);
        if (!labels.failed && mr_yolo_has_labels(t, text, labels.len))
            return mr_yolo_label_folders[i];
    }
    return mr_yolo_has_labels_beside(t, path, len) ? beside : NULL;
}

/* S/images beside S/labels. */
static void look_in_split(const mr_tree *t, const mr_child *child, mr_yolo_dirs *dirs)
{
    mr_child inner = {0};
    size_t len = child->name_len + 1 + IMAGES, path_len;
    while (mr_tree_next(t, child->name, child->name_len, &inner)) {
        const char *path = mr_tree_path(t, inner.entry, &path_len);
        if (is_images(&inner) && holds_images(t, path, len))
            add(t, dirs, (mr_yolo_dir){path, len, path, child->name_len}, labels_of(t, path, child->name_len + 1, len));
    }
}

/* images/S beside labels/S, and images/1.jpg. */
static void look_in_images(const mr_tree *t, const mr_child *images, mr_yolo_dirs *dirs)
{
    mr_child child = {0};
    size_t path_len, before = dirs->count;
    while (mr_tree_next(t, images->name, IMAGES, &child)) {
        size_t len = IMAGES + 1 + child.name_len;
        const char *path = mr_tree_path(t, child.entry, &path_len);
        if (child.is_dir && child.name[0] != '.' && holds_images(t, path, len))
            add(t, dirs, (mr_yolo_dir){path, len, child.name, child.name_len}, labels_of(t, path, 0, len));
    }
    const char *path = mr_tree_path(t, images->entry, &path_len);
    if (dirs->count == before && !before && holds_images(t, path, IMAGES))
        add(t, dirs, (mr_yolo_dir){.path = path, .len = IMAGES}, labels_of(t, path, 0, IMAGES));
}

/* S/_darknet.labels beside S/1.jpg and S/1.txt. */
static bool is_darknet(const mr_tree *t, const mr_child *child)
{
    char path[300];
    int n = child->name_len < 256
                ? snprintf(path, sizeof path, "%.*s/" MR_YOLO_DARKNET, (int)child->name_len, child->name)
                : -1;
    return n > 0 && mr_tree_find(t, path, (size_t)n) != MR_NO_ENTRY;
}

/* Folders of images whose labels are beside them: of splits, else the root itself. */
static void look_beside(const mr_tree *t, mr_yolo_dirs *dirs)
{
    mr_child child = {0};
    while (mr_tree_next(t, "", 0, &child)) {
        size_t len;
        if (!child.is_dir || child.name[0] == '.' || !holds_images(t, child.name, child.name_len))
            continue;
        bool darknet = is_darknet(t, &child);
        if (!darknet && !mr_split_like(child.name, child.name_len))
            continue;
        const char *path = mr_tree_path(t, child.entry, &len);
        bool labels = darknet || mr_yolo_has_labels_beside(t, child.name, child.name_len);
        add(t, dirs, (mr_yolo_dir){path, child.name_len, path, child.name_len},
            darknet  ? MR_YOLO_DARKNET
            : labels ? beside
                     : NULL);
    }
    if (!dirs->labels)
        dirs->count = 0;
    if (!dirs->count && mr_yolo_has_labels_beside(t, "", 0)) {
        add(t, dirs, (mr_yolo_dir){.path = ""}, "");
        snprintf(dirs->seen, sizeof dirs->seen, "images with labels beside them");
    }
}

void mr_yolo_dirs_find(const mr_tree *t, mr_yolo_dirs *dirs)
{
    mr_child child = {0};
    *dirs = (mr_yolo_dirs){0};
    while (mr_tree_next(t, "", 0, &child))
        if (child.is_dir && child.name[0] != '.')
            look_in_split(t, &child, dirs);
    child = (mr_child){0};
    while (mr_tree_next(t, "", 0, &child))
        if (is_images(&child))
            look_in_images(t, &child, dirs);
    if (!dirs->count)
        look_beside(t, dirs);
}

/* ---- folders that settings name ---------------------------------------------------------------------------------- */

/* The first image below a folder, or in a list; MR_NO_ENTRY. */
static uint32_t first_image(const mr_tree *t, const char *path, size_t len)
{
    mr_child child = {0};
    if (len ? !mr_tree_has_dir(t, path, len) : false)
        return MR_NO_ENTRY;
    if (!mr_tree_next(t, path, len, &child))
        return MR_NO_ENTRY;
    uint32_t end = len ? mr_tree_run_end(t, child.entry, len + 1) : t->end;
    for (uint32_t e = child.entry; e < end && e - child.entry < LOOK_AT; e++) {
        size_t name_len;
        const char *name = mr_tree_path(t, e, &name_len);
        if (mr_name_is_image(name, name_len))
            return e;
    }
    return MR_NO_ENTRY;
}

static uint32_t first_listed(const mr_tree *t, uint32_t list, mr_buf *path)
{
    char head[4096];
    uint64_t size = mr_source_entry(t->source, list)->size;
    size_t len = size < sizeof head ? (size_t)size : sizeof head;
    mr_lines l = mr_lines_of(head, len);
    if (!len || mr_source_pread(t->source, list, head, len, 0, NULL) != MR_OK || !mr_lines_next(&l))
        return MR_NO_ENTRY;
    return mr_yolo_find_listed(t, list, l.line, l.len, path);
}

static void look_at_value(const mr_tree *t, const mr_yolo_settings *s, const mr_yaml_node *node, mr_yolo_dirs *dirs)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    const char *value = mr_yaml_text(&s->yaml, node);
    mr_yolo_resolve(t, &s->yaml, value, &path);
    if (!*value || path.failed || !path.len)
        return;
    size_t len = path.len, full;
    const size_t said = len;
    uint32_t list = mr_tree_find(t, mr_buf_text(&path), len);
    uint32_t image = list == MR_NO_ENTRY ? first_image(t, mr_buf_text(&path), len) : first_listed(t, list, &path);
    if (image == MR_NO_ENTRY)
        return;
    const char *name = mr_tree_path(t, image, &full), *slash = memrchr(name, '/', full);
    len = list == MR_NO_ENTRY ? len : slash ? (size_t)(slash - name) : 0;
    dirs->deep = dirs->deep || (list == MR_NO_ENTRY && slash && (size_t)(slash - name) > said);
    const char *last = memrchr(name, '/', len), *word = last ? last + 1 : name;
    mr_yolo_dir dir = {.path = name, .len = len};
    if (mr_split_like(word, len - (size_t)(word - name)))
        dir = (mr_yolo_dir){name, len, word, len - (size_t)(word - name)};
    add(t, dirs, dir, mr_yolo_label_of(t, image, &path).label == MR_NO_ENTRY ? NULL : "labels");
}

void mr_yolo_dirs_named(const mr_tree *t, const mr_yolo_settings *s, mr_yolo_dirs *dirs)
{
    static const char *const keys[] = {"train", "val", "valid", "test"};
    for (size_t k = 0; k < MR_COUNT(keys); k++) {
        const mr_yaml_node *value = mr_yaml_get(&s->yaml, mr_yaml_root(&s->yaml), keys[k]);
        if (value && value->kind == MR_YAML_TEXT)
            look_at_value(t, s, value, dirs);
        for (const mr_yaml_node *item = value && value->kind == MR_YAML_LIST ? mr_yaml_first(&s->yaml, value) : NULL;
             item; item = mr_yaml_next(&s->yaml, item))
            look_at_value(t, s, item, dirs);
    }
}

/* dirs.c - the folders of images and labels of a YOLO tree, by their names.
 * Invariant: nothing is read; the result depends on names only. */
#include <stdio.h>
#include <string.h>

#include "layout/folder_names.h"
#include "yolo/yolo.h"

enum { LOOK_AT = 256, PATH_MAX_LEN = 4200 };

static const char images[] = "images";

static bool has(const mr_tree *t, const char *before, size_t len, const char *after)
{
    char path[PATH_MAX_LEN];
    int n = len < 4096 ? snprintf(path, sizeof path, "%.*s%s", (int)len, before, after) : -1;
    return n > 0 && (size_t)n < sizeof path && mr_tree_has_dir(t, path, (size_t)n);
}

/* Whether one of the first files of the folder is an image. */
static bool holds_images(const mr_tree *t, const char *dir, size_t len)
{
    mr_child child = {0};
    for (int i = 0; i < LOOK_AT && mr_tree_next(t, dir, len, &child); i++)
        if (!child.is_dir && child.name[0] != '.' && mr_name_is_image(child.name, child.name_len))
            return true;
    return false;
}

static void add(mr_yolo_dirs *dirs, mr_yolo_dir dir, bool labels, bool text)
{
    if (dirs->count == MR_YOLO_DIRS_MAX)
        return;
    if (labels && !dirs->labels)
        snprintf(dirs->seen, sizeof dirs->seen, "%.*s with %s", dir.len < 60 ? (int)dir.len : 60, dir.path,
                 text ? "labelTxt" : "labels");
    dirs->labels = dirs->labels || labels;
    dirs->text = dirs->text || text;
    dirs->items[dirs->count++] = dir;
}

/* S/images beside S/labels. */
static void look_in_split(const mr_tree *t, const mr_child *child, mr_yolo_dirs *dirs)
{
    size_t len;
    const char *path = mr_tree_path(t, child->entry, &len), *name = child->name;
    if (!has(t, name, child->name_len, "/images"))
        return;
    /* The path of an entry in S/images, one whose bytes after the name are the folder. */
    mr_child inner = {0};
    while (mr_tree_next(t, name, child->name_len, &inner))
        if (inner.is_dir && inner.name_len == strlen(images) && !memcmp(inner.name, images, inner.name_len))
            path = mr_tree_path(t, inner.entry, &len);
    bool text = has(t, name, child->name_len, "/labelTxt");
    bool labels = text || has(t, name, child->name_len, "/labels");
    if (holds_images(t, path, child->name_len + 1 + strlen(images)))
        add(dirs, (mr_yolo_dir){path, child->name_len + 1 + strlen(images), path, child->name_len}, labels, text);
}

/* images/S beside labels/S, and images/1.jpg. */
static void look_in_images(const mr_tree *t, mr_yolo_dirs *dirs)
{
    mr_child child = {0};
    while (mr_tree_next(t, images, strlen(images), &child)) {
        size_t len;
        const char *path = mr_tree_path(t, child.entry, &len);
        char name[300];
        if (!child.is_dir || child.name[0] == '.' || child.name_len > 255 ||
            !holds_images(t, path, strlen(images) + 1 + child.name_len))
            continue;
        snprintf(name, sizeof name, "labels/%.*s", (int)child.name_len, child.name);
        add(dirs, (mr_yolo_dir){path, strlen(images) + 1 + child.name_len, child.name, child.name_len},
            mr_tree_has_dir(t, name, strlen(name)), false);
    }
    if (!dirs->count && holds_images(t, images, strlen(images))) {
        bool text = mr_tree_has_dir(t, "labelTxt", 8);
        add(dirs, (mr_yolo_dir){.path = images, .len = strlen(images)}, text || mr_tree_has_dir(t, "labels", 6), text);
    }
}

/* S/_darknet.labels beside S/1.jpg and S/1.txt. */
static void look_for_darknet(const mr_tree *t, const mr_child *child, mr_yolo_dirs *dirs)
{
    char path[300];
    size_t len;
    int n = child->name_len < 256
                ? snprintf(path, sizeof path, "%.*s/" MR_YOLO_DARKNET, (int)child->name_len, child->name)
                : -1;
    if (n < 0 || mr_tree_find(t, path, (size_t)n) == MR_NO_ENTRY || !holds_images(t, child->name, child->name_len))
        return;
    const char *name = mr_tree_path(t, child->entry, &len);
    add(dirs, (mr_yolo_dir){name, child->name_len, name, child->name_len}, true, false);
    dirs->darknet = true;
}

void mr_yolo_dirs_find(const mr_tree *t, mr_yolo_dirs *dirs)
{
    mr_child child = {0};
    *dirs = (mr_yolo_dirs){0};
    while (mr_tree_next(t, "", 0, &child))
        if (child.is_dir && child.name[0] != '.')
            look_in_split(t, &child, dirs);
    look_in_images(t, dirs);
    bool none = !dirs->count;
    child = (mr_child){0};
    while (none && mr_tree_next(t, "", 0, &child))
        if (child.is_dir && child.name[0] != '.')
            look_for_darknet(t, &child, dirs);
}

uint32_t mr_yolo_find_yaml(const mr_tree *t)
{
    uint32_t found = mr_tree_find(t, "data.yaml", 9), count = 0;
    mr_child child = {0};
    if (found != MR_NO_ENTRY)
        return found;
    while (mr_tree_next(t, "", 0, &child))
        if (!child.is_dir && child.name[0] != '.' &&
            (mr_name_ends(child.name, child.name_len, ".yaml") || mr_name_ends(child.name, child.name_len, ".yml"))) {
            found = child.entry;
            count++;
        }
    return count == 1 ? found : MR_NO_ENTRY;
}

/* Where the path's last folder named "images" begins; SIZE_MAX: none. */
static size_t last_images(const char *path, size_t len)
{
    size_t found = SIZE_MAX;
    for (size_t at = 0; at + 7 <= len; at++)
        if ((at == 0 || path[at - 1] == '/') && !memcmp(path + at, "images/", 7))
            found = at;
    return found;
}

uint32_t mr_yolo_label_of(const mr_tree *t, uint32_t image, bool *text, mr_buf *path)
{
    static const char *const folders[] = {"labels", "labelTxt"};
    size_t len;
    const char *name = mr_tree_path(t, image, &len), *dot = memrchr(name, '.', len);
    size_t at = last_images(name, len), stem = dot ? (size_t)(dot - name) : len;
    uint32_t found = MR_NO_ENTRY;
    *text = false;
    for (size_t i = 0; i < MR_COUNT(folders) && found == MR_NO_ENTRY && at != SIZE_MAX; i++) {
        mr_buf_clear(path);
        mr_buf_add(path, name, at);
        mr_buf_add_text(path, folders[i]);
        mr_buf_add(path, name + at + strlen(images), stem - at - strlen(images));
        mr_buf_add_text(path, ".txt");
        found = path->failed ? MR_NO_ENTRY : mr_tree_find(t, mr_buf_text(path), path->len);
        *text = i == 1;
    }
    if (at == SIZE_MAX) {
        mr_buf_clear(path);
        mr_buf_add(path, name, stem);
        mr_buf_add_text(path, ".txt");
        found = path->failed ? MR_NO_ENTRY : mr_tree_find(t, mr_buf_text(path), path->len);
    }
    return found;
}

/* class_folders.c - the class folders of a split folder, at any depth.
 * Invariant: what starts with '.' is never looked at. */
#include <string.h>

#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/layout/folders/class_checks.h"

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

size_t mr_child_at(const mr_tree *t, const mr_child *child)
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
        if (mr_folder_image(t, e, mr_child_at(t, child)))
            return true;
    return false;
}

/* The length of the part of a path below the split folder that names a class; 0: it is above the class folders. */
static size_t class_len(const char *below, size_t len, unsigned depth)
{
    const char *at = below;
    for (; depth; depth--) {
        const char *slash = memchr(at, '/', len - (size_t)(at - below));
        if (!slash)
            return 0;
        at = slash + 1;
    }
    return (size_t)(at - below) - 1;
}

bool mr_class_next(const mr_tree *t, const mr_split_dir *dir, uint32_t most, mr_child *child)
{
    size_t skip = dir->len ? dir->len + 1 : 0;
    for (uint32_t e = child->name ? child->end : dir->begin; e < dir->end; e = child->end) {
        size_t len;
        const char *path = mr_tree_path(t, e, &len);
        size_t name_len = class_len(path + skip, len - skip, dir->depth);
        *child = (mr_child){path + skip, name_len, name_len > 0, e, e + 1};
        if (!name_len)
            continue;
        child->end = mr_tree_run_end(t, e, skip + name_len + 1);
        if (mr_folder_is_class(t, child, most))
            return true;
    }
    return false;
}

size_t mr_folder_count(const mr_tree *t, const mr_split_dir *dir, uint32_t most)
{
    size_t count = 0;
    mr_child child = {0};
    while (mr_class_next(t, dir, most, &child))
        count++;
    return count;
}

void mr_class_path(const mr_tree *t, const mr_split_dir *dir, const char *name, size_t len, mr_buf *out)
{
    mr_text_escape(out, t->root, t->root_len);
    mr_text_escape(out, dir->name, dir->len);
    if (dir->len && len)
        mr_buf_add_text(out, "/");
    mr_text_escape(out, name, len);
}

/* images.c - the images that a split's table or JSON names.
 * Invariant: a name leads to no image outside its split's folder. */
#include "ingest/layout/roboflow/roboflow.h"

#include <string.h>

#include "base/scope.h"

const char *mr_rf_path(const mr_split_dir *dir, const char *name, mr_buf *out)
{
    mr_buf_clear(out);
    mr_buf_add(out, dir->name, dir->len);
    mr_buf_add_text(out, "/");
    mr_buf_add_text(out, name);
    return mr_buf_text(out);
}

mr_status mr_rf_image(const mr_tree *t, const mr_split_dir *dir, const char *name, size_t len, mr_image_names *names,
                      mr_name_match *found, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf table = {0}, path = {0};
    const char *prefix = mr_rf_path(dir, "", &table);
    bool inside = !memchr(name, '\0', len) && mr_path_beside(prefix, table.len, name, &path) && path.len > table.len &&
                  !memcmp(path.data, prefix, table.len);
    *found = (mr_name_match){MR_NO_ENTRY, MR_NO_ENTRY};
    MR_TRY(mr_buf_status(&table, err, "looking up images"));
    MR_TRY(mr_buf_status(&path, err, "looking up images"));
    if (inside)
        found->entry = mr_tree_find(t, (const char *)path.data, path.len);
    return found->entry != MR_NO_ENTRY ? MR_OK
                                       : mr_image_names_below(names, t, dir->begin, dir->end, name, len, found, err);
}

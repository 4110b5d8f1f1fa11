/* place.c - the paths of a view's datasets, as in its file, and as seen from here.
 * Invariant: mr_view_place() leads to what mr_view_relate() was given. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/path.h"
#include "base/scope.h"
#include "shards/view/view.h"

mr_status mr_view_relate(const char *out, const char *dataset, char **path, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *dir = NULL;
    MR_AUTO(mr_scope_free) char *name = NULL;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_TRY(mr_path_split(out, &dir, &name, err));
    MR_AUTO(mr_scope_free) char *here = realpath(dir, NULL);
    MR_AUTO(mr_scope_free) char *there = mr_path_is_url(dataset) ? NULL : realpath(dataset, NULL);
    if (!here || !there) {
        *path = strdup(dataset);
        return *path ? MR_OK : mr_fail_memory(err, dataset);
    }
    size_t same = 0, i = 0;
    for (; here[i] && here[i] == there[i]; i++)
        same = here[i] == '/' ? i + 1 : same;
    if (!here[i] && there[i] == '/')
        same = i + 1;
    if (same <= strlen(here) && here[same - (same > 0)])
        for (const char *at = here + same; *at; at = strchr(at, '/') ? strchr(at, '/') + 1 : at + strlen(at))
            mr_buf_add_text(&text, "../");
    mr_buf_add_text(&text, same <= strlen(there) ? there + same : ".");
    *path = text.failed ? NULL : strdup(mr_buf_text(&text));
    return *path ? MR_OK : mr_fail_memory(err, dataset);
}

char *mr_view_place(const char *path, const mr_view_source *source)
{
    MR_AUTO(mr_buf_free) mr_buf place = {0}, beside = {0};
    const char *slash = strrchr(path, '/'), *name = strrchr(source->path, '/');
    bool url = mr_path_is_url(source->path);
    if (slash && source->path[0] != '/' && !url)
        mr_buf_add(&place, path, (size_t)(slash - path) + 1);
    mr_buf_add_text(&place, source->path);
    if (name && !url && access(mr_buf_text(&place), F_OK) != 0) { /* moved with the view, which pins its digest */
        mr_buf_add(&beside, path, slash ? (size_t)(slash - path) + 1 : 0);
        mr_buf_add_text(&beside, name + 1);
        if (!beside.failed && access(mr_buf_text(&beside), F_OK) == 0)
            return strdup(mr_buf_text(&beside));
    }
    return place.failed ? NULL : strdup(mr_buf_text(&place));
}

/* place.c - the paths of a view's datasets, as its file has them and as they are seen from here.
 * Invariant: mr_view_place() leads to what mr_view_relate() was given. */
#include <stdlib.h>
#include <string.h>

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
    MR_AUTO(mr_buf_free) mr_buf place = {0};
    const char *slash = strrchr(path, '/');
    if (slash && source->path[0] != '/' && !mr_path_is_url(source->path))
        mr_buf_add(&place, path, (size_t)(slash - path) + 1);
    mr_buf_add_text(&place, source->path);
    return place.failed ? NULL : strdup(mr_buf_text(&place));
}

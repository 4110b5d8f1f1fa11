/* hub_cache.c - folders of a cache of the Hugging Face hub: which links of theirs lead to its blobs.
 * Invariant: no path from a link's target is ever opened: the name in blobs/ is one plain component. */
#include "source/hub_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"

enum { BLOB_MAX = 128, UP_MAX = 64 };

static const char snapshots[] = "snapshots";

/* The part of an absolute path after datasets--NAME, the innermost such folder; NULL: there is none. */
static const char *after_cache(const char *path)
{
    static const char *const kinds[] = {"/datasets--", "/models--", "/spaces--"};
    const char *found = NULL;
    for (size_t i = 0; i < MR_COUNT(kinds); i++)
        for (const char *at = path; (at = strstr(at, kinds[i])); at++)
            found = at > found ? at : found;
    return found ? found + 1 + strcspn(found + 1, "/") : NULL;
}

static bool begins_with_snapshots(const char *path)
{
    size_t len = strlen(snapshots);
    return !strncmp(path, snapshots, len) && (!path[len] || path[len] == '/');
}

mr_status hub_cache_open(list *l, const char *path, int fd, hub_cache *out, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *real = realpath(path, NULL);
    const char *rest = real ? after_cache(real) : NULL;
    MR_AUTO(mr_buf_free) mr_buf blobs = {0};
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    *out = (hub_cache){.blobs = -1};
    if (!rest || (*rest && !begins_with_snapshots(rest + 1)))
        return MR_OK;
    for (; *rest && out->up < UP_MAX; rest += 1 + strcspn(rest + 1, "/")) {
        mr_buf_add_text(&blobs, "../");
        out->up++;
    }
    mr_buf_add_text(&blobs, "blobs");
    mr_buf_printf(&name, "%s/%s", path, mr_buf_text(&blobs));
    const char *text = mr_buf_text(&name);
    MR_TRY(mr_buf_status(&blobs, err, "listing the source"));
    MR_TRY(mr_buf_status(&name, err, "listing the source"));
    int dir = openat(fd, mr_buf_text(&blobs), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return MR_OK;
    MR_TRY(list_holder(l, text, dir, HOLD_FOLDER, &out->holder, err));
    out->blobs = dir;
    return MR_OK;
}

static bool plain_name(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= BLOB_MAX &&
           strspn(name, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") == len;
}

const char *hub_cache_blob(const hub_cache *c, const char *path, const char *target, uint64_t *size)
{
    static const char blobs[] = "blobs/";
    struct stat st;
    size_t up = c->up;
    if (c->blobs < 0 || (!c->up && !begins_with_snapshots(path)))
        return NULL;
    for (const char *at = path; (at = strchr(at, '/')); at++)
        up++;
    for (; up && !strncmp(target, "../", 3); up--)
        target += 3;
    if (up || strncmp(target, blobs, strlen(blobs)) != 0 || !plain_name(target + strlen(blobs)))
        return NULL;
    target += strlen(blobs);
    if (fstatat(c->blobs, target, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
        return NULL;
    *size = (uint64_t)st.st_size;
    return target;
}

bool hub_cache_at_top(const hub_cache *c, const char *path)
{
    enum { SNAPSHOT = 2 }; /* datasets--NAME/snapshots/REV */
    unsigned depth = c->up;
    for (const char *at = path; (at = strchr(at, '/')); at++)
        depth++;
    return depth == SNAPSHOT;
}

bool hub_cache_is_blobs(const hub_cache *c, const char *path)
{
    return c->blobs >= 0 && !c->up && !strcmp(path, "blobs");
}

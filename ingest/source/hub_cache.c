/* hub_cache.c - folders of a cache of the Hugging Face hub: which of their links lead to its blobs.
 * Invariant: no path from a link's target is ever opened: the name in blobs/ is one plain component. */
#include "ingest/source/hub_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
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

static bool is_snapshots(const char *path)
{
    size_t len = strlen(snapshots);
    return !strncmp(path, snapshots, len) && (!path[len] || path[len] == '/');
}

mr_status mr_hub_cache_open(list *l, const char *path, int fd, hub_cache *out, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *real = realpath(path, NULL);
    const char *rest = real ? after_cache(real) : NULL;
    MR_AUTO(mr_buf_free) mr_buf blobs = {0};
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    *out = (hub_cache){.blobs = -1};
    if (!rest || !*rest || !is_snapshots(rest + 1))
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
    MR_TRY(mr_list_holder(l, text, dir, HOLD_FOLDER, &out->holder, err));
    out->blobs = dir;
    return MR_OK;
}

static bool plain_name(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= BLOB_MAX &&
           strspn(name, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") == len;
}

const char *mr_hub_cache_blob(const hub_cache *c, const char *path, const char *target, uint64_t *size)
{
    static const char blobs[] = "blobs/";
    struct stat st;
    size_t up = c->up;
    if (c->blobs < 0)
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

bool mr_hub_cache_at_top(const hub_cache *c, const char *path)
{
    enum { SNAPSHOT = 2 }; /* datasets--NAME/snapshots/REV */
    unsigned depth = c->up;
    for (const char *at = path; (at = strchr(at, '/')); at++)
        depth++;
    return depth == SNAPSHOT;
}

/* ---- the folder of a dataset ------------------------------------------------------------------------------------- */

typedef struct revisions {
    size_t count;
    char last[BLOB_MAX + 1];
} revisions;

static void close_dir(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

static mr_status list_revisions(const char *path, revisions *out, mr_error *err)
{
    struct stat st;
    MR_AUTO(close_dir) DIR *dir = opendir(path);
    if (!dir && errno != ENOENT && errno != ENOTDIR)
        return mr_fail_errno(err, errno, "%s", path);
    errno = 0;
    for (struct dirent *e; dir && (e = readdir(dir)); errno = 0) {
        if (!plain_name(e->d_name) || fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISDIR(st.st_mode))
            continue;
        out->count++;
        memcpy(out->last, e->d_name, strlen(e->d_name) + 1);
    }
    return errno && dir ? mr_fail_errno(err, errno, "%s: cannot list", path) : MR_OK;
}

/* The revision that refs/main names; false: none of those there. */
static bool find_main(const char *path, const char *folder, mr_buf *name)
{
    MR_AUTO(mr_buf_free) mr_buf file = {0};
    struct stat st;
    mr_buf_printf(&file, "%s/refs/main", path);
    if (mr_file_read_all(AT_FDCWD, mr_buf_text(&file), BLOB_MAX + 1, name, NULL) != MR_OK)
        return false;
    while (name->len && strchr(" \r\n", name->data[name->len - 1]))
        name->len--;
    if (!plain_name(mr_buf_text(name)))
        return false;
    mr_buf_clear(&file);
    mr_buf_printf(&file, "%s/%s", folder, mr_buf_text(name));
    return lstat(mr_buf_text(&file), &st) == 0 && S_ISDIR(st.st_mode);
}

mr_status mr_hub_cache_snapshot(const char *path, mr_notes *notes, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *real = realpath(path, NULL);
    const char *rest = real ? after_cache(real) : NULL;
    MR_AUTO(mr_buf_free) mr_buf folder = {0};
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    revisions r = {0};
    mr_buf_printf(&folder, "%s/%s", path, snapshots);
    if (!rest || *rest)
        return MR_OK;
    MR_TRY(list_revisions(mr_buf_text(&folder), &r, err));
    if (r.count > 1 && !find_main(path, mr_buf_text(&folder), &name))
        return mr_fail(err, MR_BAD_DATA,
                       "%s: it has %zu revisions, and refs/main names none of them: give one, such as %s/%s", path,
                       r.count, mr_buf_text(&folder), r.last);
    if (r.count > 1)
        mr_note_add(notes, MR_NOTE_INFO, path, strlen(path), 0,
                    "revision %s is read, the one that refs/main names; %s has %zu", mr_buf_text(&name), snapshots,
                    r.count);
    if (r.count)
        mr_buf_printf(out, "%s/%s", mr_buf_text(&folder), r.count > 1 ? mr_buf_text(&name) : r.last);
    mr_buf_text(out);
    return mr_buf_status(out, err, "listing the source");
}

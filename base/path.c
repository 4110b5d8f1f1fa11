/* path.c - paths: their parts, where they lead, and whether one lies in another.
 * Invariant: what a path will lead to once somebody writes there counts as much as what is there. */
#include "base/path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

/* Of its first `len` bytes. */
static size_t without_slashes(const char *path, size_t len)
{
    while (len > 1 && path[len - 1] == '/')
        len--;
    return len;
}

size_t mr_path_len(const char *path)
{
    return without_slashes(path, strlen(path));
}

mr_status mr_path_split(const char *path, char **dir, char **name, mr_error *err)
{
    size_t len = mr_path_len(path), cut = len;
    while (cut > 0 && path[cut - 1] != '/')
        cut--;
    char *d = cut == 0 ? strdup(".") : strndup(path, without_slashes(path, cut));
    char *n = strndup(path + cut, len - cut);
    if (!d || !n) {
        free(d);
        free(n);
        return mr_fail_memory(err, path);
    }
    *dir = d;
    *name = n;
    return MR_OK;
}

mr_status mr_path_follow(char **path, mr_error *err)
{
    char text[PATH_MAX], *dir = NULL, *name = NULL, *next = NULL;
    ssize_t len = readlink(*path, text, sizeof text);
    if (len < 0 || len == (ssize_t)sizeof text)
        return mr_fail_errno(err, len < 0 ? errno : ENAMETOOLONG, "%s", *path);
    mr_status status = mr_path_split(*path, &dir, &name, err);
    bool whole = *text == '/';
    if (status == MR_OK && asprintf(&next, "%s%s%.*s", whole ? "" : dir, whole ? "" : "/", (int)len, text) < 0)
        status = mr_fail_memory(err, *path);
    free(dir);
    free(name);
    if (status != MR_OK)
        return status;
    free(*path);
    *path = next;
    return MR_OK;
}

/* Takes the last name off a path, of which "" is the root. */
static void go_up(mr_buf *at)
{
    while (at->len && at->data[--at->len] != '/')
        ;
}

/* The first `here` bytes of the path are the working directory's, which may be deeper than the system takes a path. */
static ssize_t read_link(const char *path, size_t here, char text[PATH_MAX + 1])
{
    ssize_t len = readlink(path, text, PATH_MAX);
    return len < 0 && errno == ENAMETOOLONG && here ? readlink(path + here + 1, text, PATH_MAX) : len;
}

/* Appends where `path` leads: a path from the root without links, "." and "..", of what is or would be made there.
 *
 *      at             rest
 *      /data          to_new/x      the next name is a link to ../ds/new: it goes in front of the rest
 *      /data          ../ds/new/x
 *      /ds/new/x                    what is not there is no link, and stands for itself
 */
static bool lead(const char *path, size_t here, mr_buf *at)
{
    char text[PATH_MAX + 1], *rest = strdup(path), *next = rest, *longer;
    for (int links = 0; next && *(next += strspn(next, "/"));) {
        size_t len = strcspn(next, "/"), before = at->len;
        bool dots = len <= 2 && strspn(next, ".") >= len;
        if (dots && len == 2)
            go_up(at);
        here = at->len < here ? 0 : here;
        if (!dots) {
            mr_buf_add_text(at, "/");
            mr_buf_add(at, next, len);
        }
        next += len;
        ssize_t link = dots || at->failed ? -1 : read_link(mr_buf_text(at), here, text);
        if (link < 0)
            continue;
        text[link] = '\0';
        at->len = *text == '/' ? 0 : before;
        here = at->len < here ? 0 : here;
        if (++links > MR_PATH_LINKS || asprintf(&longer, "%s/%s", text, next) < 0)
            longer = NULL;
        free(rest);
        rest = next = longer;
    }
    free(rest);
    return next && !at->failed;
}

static bool place_of(const char *path, mr_buf *place)
{
    char *here = *path == '/' ? NULL : getcwd(NULL, 0);
    bool known = *path && (*path == '/' || here);
    if (known && here && strcmp(here, "/") != 0)
        mr_buf_add_text(place, here);
    free(here);
    return known && lead(path, place->len, place);
}

/* Whether `place`, which it takes to pieces, or a folder on the way to it is this file or folder under another name. */
static bool leads_through(mr_buf *place, const struct stat *what)
{
    struct stat st;
    for (bool more = true; more; go_up(place)) {
        more = place->len > 0;
        if (place->len < PATH_MAX && stat(more ? mr_buf_text(place) : "/", &st) == 0 && st.st_ino == what->st_ino &&
            st.st_dev == what->st_dev)
            return true;
    }
    return false;
}

bool mr_path_inside(const char *path, const char *folder)
{
    struct stat st;
    mr_buf inner = {0}, outer = {0};
    bool inside = place_of(path, &inner) && place_of(folder, &outer);
    if (inside) {
        inside = inner.len >= outer.len && (!outer.len || memcmp(inner.data, outer.data, outer.len) == 0) &&
                 (inner.len == outer.len || inner.data[outer.len] == '/');
        if (!inside && stat(folder, &st) == 0)
            inside = leads_through(&inner, &st);
    }
    mr_buf_free(&inner);
    mr_buf_free(&outer);
    return inside;
}

mr_status mr_path_keep_out(const char *path, const char *read, mr_error *err)
{
    if (!mr_path_inside(path, read))
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "%s: is, or lies in, what is read (%s); name another place to write to", path, read);
}

/* path.c - paths: their parts, where they lead, and whether one is inside another.
 * Invariant: a path that does not exist yet resolves to where a file written to it would be. */
#include "base/files/path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/scope.h"

/* Length of the first `len` bytes without trailing slashes. */
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

bool mr_path_is_url(const char *path)
{
    size_t scheme = strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789+.-");
    return scheme > 1 && strncmp(path + scheme, "://", 3) == 0;
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
    MR_AUTO(mr_scope_free) char *dir = NULL;
    MR_AUTO(mr_scope_free) char *name = NULL;
    char text[PATH_MAX], *next = NULL;
    ssize_t len = readlink(*path, text, sizeof text);
    if (len < 0 || len == (ssize_t)sizeof text)
        return mr_fail_errno(err, len < 0 ? errno : ENAMETOOLONG, "%s", *path);
    MR_TRY(mr_path_split(*path, &dir, &name, err));
    bool whole = *text == '/';
    if (asprintf(&next, "%s%s%.*s", whole ? "" : dir, whole ? "" : "/", (int)len, text) < 0)
        return mr_fail_memory(err, *path);
    free(*path);
    *path = next;
    return MR_OK;
}

/* Removes the last name of a path; "" is the root. */
static void go_up(mr_buf *at)
{
    while (at->len && at->data[--at->len] != '/')
        ;
}

/* The first `here` bytes of the path are the working directory's, whose path may be longer than PATH_MAX. */
static ssize_t read_link(const char *path, size_t here, char text[PATH_MAX + 1])
{
    ssize_t len = readlink(path, text, PATH_MAX);
    return len < 0 && errno == ENAMETOOLONG && here ? readlink(path + here + 1, text, PATH_MAX) : len;
}

/* Appends where `path` leads, whether it exists or not: an absolute path without links, "." and "..".
 *
 *      at             rest
 *      /data          to_new/x      the next name is a link to ../ds/new: its target is prepended to the rest
 *      /data          ../ds/new/x
 *      /ds/new/x                    a name that does not exist is not a link, and is kept */
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

/* Whether `place` (which is consumed) or one of its parents is this file or folder under another name. */
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
    MR_AUTO(mr_buf_free) mr_buf inner = {0};
    MR_AUTO(mr_buf_free) mr_buf outer = {0};
    if (!place_of(path, &inner) || !place_of(folder, &outer))
        return false;
    if (inner.len >= outer.len && (!outer.len || memcmp(inner.data, outer.data, outer.len) == 0) &&
        (inner.len == outer.len || inner.data[outer.len] == '/'))
        return true;
    return stat(folder, &st) == 0 && leads_through(&inner, &st);
}

mr_status mr_path_keep_out(const char *path, const char *read, mr_error *err)
{
    if (!mr_path_inside(path, read))
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "%s: is the input (%s) or is inside it; choose another path to write to", path,
                   read);
}

/* path.c - paths: their parts, where they lead, and whether one lies in another.
 * Invariant: what a path will lead to once somebody writes there counts as much as what is there. */
#include "path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

mr_status mr_path_split(const char *path, char **dir, char **name, mr_error *err)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    size_t cut = len;
    while (cut > 0 && path[cut - 1] != '/')
        cut--;
    size_t dir_len = cut;
    while (dir_len > 1 && path[dir_len - 1] == '/')
        dir_len--;
    char *d = cut == 0 ? strdup(".") : strndup(path, dir_len);
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

/* The real path of what is, or would be made, at `path`, which is freed; NULL: there can be nothing, or memory is out. */
static char *place_of(char *path)
{
    char *real = path ? realpath(path, NULL) : NULL;
    for (int links = 0; path && !real && links < MR_PATH_LINKS && mr_path_follow(&path, NULL) == MR_OK; links++)
        real = realpath(path, NULL);
    char *dir = NULL, *name = NULL, *place = NULL;
    if (path && !real && mr_path_split(path, &dir, &name, NULL) == MR_OK && strcmp(dir, path) != 0) {
        char *parent = place_of(dir);
        dir = NULL;
        if (parent && asprintf(&place, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, name) < 0)
            place = NULL;
        free(parent);
    }
    free(dir);
    free(name);
    free(path);
    return real ? real : place;
}

/* Whether `place`, or a folder on the way to it, is this file or folder under another name. */
static bool leads_through(char *place, const struct stat *what)
{
    struct stat st;
    for (char *end = place + strlen(place); end; end = strrchr(place, '/')) {
        *end = '\0';
        if (stat(*place ? place : "/", &st) == 0 && st.st_ino == what->st_ino && st.st_dev == what->st_dev)
            return true;
    }
    return false;
}

bool mr_path_inside(const char *path, const char *folder)
{
    struct stat st;
    char *inner = place_of(strdup(path)), *outer = place_of(strdup(folder));
    size_t len = outer ? strlen(outer) : 0;
    bool inside = inner && outer && strncmp(inner, outer, len) == 0 &&
                  (inner[len] == '\0' || inner[len] == '/' || outer[len - 1] == '/');
    if (inner && !inside && stat(folder, &st) == 0)
        inside = leads_through(inner, &st);
    free(inner);
    free(outer);
    return inside;
}

mr_status mr_path_keep_out(const char *path, const char *read, mr_error *err)
{
    if (!*path || !mr_path_inside(path, read))
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "%s: is, or lies in, what is read (%s); name another place to write to", path, read);
}

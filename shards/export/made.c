/* made.c - the list of files that an export leaves in its folder, and the comparison before --force removes that.
 *
 *    millrace export 1
 *    00f3a1...            a line per file: XXH3-64 of its path, a NUL and its size; sorted, so that the list says
 *    2b7c09...            nothing about the order of the work
 *
 * Invariant: reading and writing walk the folder in the same way; links and other files that no export makes are never
 * in a list. */
#include "shards/export/made.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "base/files/path.h"
#include "base/scope.h"

#define LIST MR_PATH_EXPORT_LIST
#define HEAD "millrace export 1\n"

enum { LINE = 17, NAMES = 3, LIST_MAX = 1 << 30 };

typedef struct walk {
    mr_buf path; /* path of the current entry, below the folder */
    mr_buf keys; /* keys of the files found, or of the list: uint64_t each */
    bool compare;
    bool flat;            /* folders are not entered: there is no list */
    struct timespec made; /* when the list was written */
    mr_buf names[NAMES];  /* the first of the files that no export made, bytewise */
    size_t foreign;
} walk;

static void free_walk(walk *w)
{
    mr_buf_free(&w->path);
    mr_buf_free(&w->keys);
    for (size_t i = 0; i < NAMES; i++)
        mr_buf_free(&w->names[i]);
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Puts the name among the first ones. */
static void add_name(walk *w)
{
    mr_buf name = {0};
    size_t have = w->foreign < NAMES ? w->foreign : NAMES, at = have;
    w->foreign++;
    mr_buf_add(&name, w->path.data, w->path.len);
    while (at > 0 && strcmp(mr_buf_text(&name), mr_buf_text(&w->names[at - 1])) < 0)
        at--;
    if (at == NAMES) {
        mr_buf_free(&name);
        return;
    }
    mr_buf_free(have == NAMES ? &w->names[NAMES - 1] : &(mr_buf){0});
    for (size_t i = have == NAMES ? NAMES - 1 : have; i > at; i--)
        w->names[i] = w->names[i - 1];
    w->names[at] = name;
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* A hard link has the time of what it was linked to. */
static void take(walk *w, const struct stat *st)
{
    uint64_t key, size = (uint64_t)st->st_size;
    size_t len = w->path.len;
    mr_buf_add(&w->path, "", 1);
    mr_buf_printf(&w->path, "%llu", (unsigned long long)size);
    key = mr_hash64(w->path.data, w->path.len);
    w->path.len = len;
    if (!w->compare) {
        mr_buf_add(&w->keys, &key, sizeof key);
        return;
    }
    bool listed = S_ISREG(st->st_mode) && w->keys.len &&
                  bsearch(&key, w->keys.data, w->keys.len / sizeof key, sizeof key, by_number);
    if (!listed || (st->st_nlink == 1 && is_later(&st->st_mtim, &w->made)))
        add_name(w);
}

static mr_status walk_folder(walk *w, int dirfd, const char *name, mr_error *err);

static mr_status visit(walk *w, int fd, const char *name, mr_error *err)
{
    struct stat st;
    size_t len = w->path.len;
    if (mr_is_dots(name) || (len == 0 && strcmp(name, LIST) == 0))
        return MR_OK;
    mr_buf_printf(&w->path, "%s%s", len ? "/" : "", name);
    MR_TRY(mr_buf_status(&w->path, err, "looking at files"));
    mr_status status = MR_OK;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        status = mr_fail_errno(err, errno, "%s", mr_buf_text(&w->path));
    else if (S_ISDIR(st.st_mode) && !w->flat)
        status = walk_folder(w, fd, name, err);
    else
        take(w, &st);
    w->path.len = len;
    return status;
}

static mr_status walk_folder(walk *w, int dirfd, const char *name, mr_error *err)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    mr_status status = MR_OK;
    if (!dir) {
        status = mr_fail_errno(err, errno, "%s", w->path.len ? mr_buf_text(&w->path) : name);
        mr_scope_close(&fd);
        return status;
    }
    for (struct dirent *e; status == MR_OK && (e = readdir(dir));)
        status = visit(w, fd, e->d_name, err);
    closedir(dir);
    return status;
}

mr_status mr_export_made_note(int dirfd, const char *path, mr_error *err)
{
    MR_AUTO(free_walk) walk w = {0};
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_TRY(walk_folder(&w, dirfd, ".", err));
    MR_TRY(mr_buf_status(&w.keys, err, "listing what was exported"));
    size_t count = w.keys.len / sizeof(uint64_t);
    const uint64_t *keys = (const uint64_t *)(const void *)w.keys.data;
    if (count)
        qsort(w.keys.data, count, sizeof *keys, by_number);
    mr_buf_add_text(&text, HEAD);
    for (size_t i = 0; i < count; i++)
        mr_buf_printf(&text, "%016llx\n", (unsigned long long)keys[i]);
    MR_TRY(mr_buf_status(&text, err, "listing what was exported"));
    int fd = openat(dirfd, LIST, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return mr_fail_errno(err, errno, "%s/" LIST ": cannot create", path);
    mr_status status = mr_file_write(fd, text.data, text.len, LIST, err);
    if (close(fd) != 0 && status == MR_OK)
        status = mr_fail_errno(err, errno, "%s/" LIST ": cannot close", path);
    return status;
}

/* The keys of the folder's list; w->flat: it has none that can be read. */
static mr_status read_list(walk *w, int dir, const char *path, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    struct stat st;
    size_t head = strlen(HEAD);
    if (fstatat(dir, LIST, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) || st.st_size > LIST_MAX) {
        w->flat = true;
        return MR_OK;
    }
    MR_TRY(mr_file_read_all(dir, LIST, LIST_MAX, &text, err));
    const char *at = mr_buf_text(&text), *end = at + text.len;
    w->flat = text.len < head || memcmp(at, HEAD, head) != 0 || (text.len - head) % LINE != 0;
    w->made = st.st_mtim;
    for (at += head; !w->flat && at < end; at += LINE) {
        uint64_t key = strtoull(at, NULL, 16);
        mr_buf_add(&w->keys, &key, sizeof key);
    }
    if (w->keys.len)
        qsort(w->keys.data, w->keys.len / sizeof(uint64_t), sizeof(uint64_t), by_number);
    return mr_buf_status(&w->keys, err, path);
}

static mr_status refuse(walk *w, const char *path, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf names = {0};
    size_t shown = w->foreign < NAMES ? w->foreign : NAMES;
    for (size_t i = 0; i < shown; i++)
        mr_buf_printf(&names, "%s'%.200s'",
                      i == 0                                ? ""
                      : i + 1 < shown || w->foreign > shown ? ", "
                                                            : " and ",
                      mr_buf_text(&w->names[i]));
    if (w->foreign > shown)
        mr_buf_printf(&names, " and %zu more", w->foreign - shown);
    MR_TRY(mr_buf_status(&names, err, path));
    if (w->flat)
        return mr_fail(
            err, MR_MISUSE,
            "%s: holds %s, and has no list of an export's files (" LIST
            "); --force removes only what an export wrote: choose another OUT, or remove the folder yourself",
            path, mr_buf_text(&names));
    return mr_fail(
        err, MR_MISUSE,
        "%s: no export made %s there, or %s changed since; --force removes only what an export wrote: choose "
        "another OUT, or move %s away",
        path, mr_buf_text(&names), w->foreign == 1 ? "it was" : "they were", w->foreign == 1 ? "it" : "them");
}

mr_status mr_export_made_check(const char *path, mr_error *err)
{
    MR_AUTO(free_walk) walk w = {.compare = true};
    MR_AUTO(mr_scope_close) int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return mr_fail_errno(err, errno, "%s", path);
    MR_TRY(read_list(&w, dir, path, err));
    MR_TRY(walk_folder(&w, dir, ".", err));
    return w.foreign ? refuse(&w, path, err) : MR_OK;
}

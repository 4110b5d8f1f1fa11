/* folder.c - a folder's files, and the downloaded archives in it.
 * Invariant: no link is followed here but those of a hub cache to its blobs (hub_cache.h): any other target is a name
 * in the tree, which links.c resolves, so none leads out of the given folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/scope.h"
#include "ingest/source/names.h"
#include "ingest/source/hub_cache.h"

enum { MAX_DEPTH = 64 };

typedef struct found { /* an archive to read: at the top level, or a shard anywhere */
    char *path;
    const char *blob; /* the file's blob in a hub cache, lent by the list; NULL: it has its own bytes */
} found;

typedef struct walk {
    list *list;
    uint32_t holder;
    const char *given; /* the folder's path */
    mr_buf path;       /* path of the current entry, relative */
    hub_cache cache;
    found *archives;
    size_t archive_count, archive_capacity;
} walk;

bool mr_archive_name(const char *name, size_t len, size_t *stem_len)
{
    static const char *const ends[] = {".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tar.lz4", ".tar.Z", ".tar",
                                       ".tgz",    ".tbz",     ".tbz2",   ".txz",     ".tzst",    ".zip",   ".7z"};
    for (size_t i = 0; i < MR_COUNT(ends); i++) {
        size_t n = strlen(ends[i]);
        if (len > n && mr_name_ends(name, len, ends[i])) {
            *stem_len = len - n;
            return true;
        }
    }
    return false;
}

static link_end end_of(int dirfd, const char *name)
{
    struct stat st;
    if (fstatat(dirfd, name, &st, 0) != 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? LINK_NOTHING : LINK_UNKNOWN;
    return S_ISDIR(st.st_mode) ? LINK_FOLDER : S_ISREG(st.st_mode) ? LINK_FILE : LINK_DEVICE;
}

/* Whether a file, here or in the cache's blobs, is an archive to open. */
static mr_status is_archive(walk *w, int dirfd, const char *name, bool at_top, const char *blob, bool *is,
                            mr_error *err)
{
    size_t stem;
    MR_AUTO(mr_scope_close) int fd = -1;
    bool archive = mr_archive_name(name, strlen(name), &stem);
    *is = archive && (at_top || mr_archive_is_shard(name, stem));
    if (mr_list_leaves_class_tar(w->list, mr_buf_text(&w->path), w->path.len)) {
        *is = false;
        return MR_OK;
    }
    if (*is || !archive || !mr_archive_is_tar(name, stem))
        return MR_OK;
    MR_TRY(mr_file_open(blob ? w->cache.blobs : dirfd, blob ? blob : name, false, &fd, NULL, err));
    return mr_list_looks_like_shard(w->list, fd, mr_buf_text(&w->path), is, err);
}

static mr_status remember_archive(walk *w, const char *name, const char *blob, mr_error *err)
{
    char *copy = strdup(name);
    if (!copy || !MR_GROW(w->archives, w->archive_count, w->archive_capacity)) {
        free(copy);
        return mr_fail_memory(err, "listing the source");
    }
    w->archives[w->archive_count++] = (found){copy, blob};
    return MR_OK;
}

/* A link of a hub cache is the file that it leads to. */
static mr_status add_blob(walk *w, const char *name, const char *blob, uint64_t size, mr_error *err)
{
    bool archive;
    const char *path = mr_buf_text(&w->path), *kept = mr_list_keep(w->list->source, blob, strlen(blob));
    if (!kept)
        return mr_fail_memory(err, "listing the source");
    MR_TRY(is_archive(w, -1, name, mr_hub_cache_at_top(&w->cache, path), kept, &archive, err));
    if (archive)
        return remember_archive(w, path, kept, err);
    return mr_list_add(
        w->list,
        &(mr_entry){
            .path = path, .path_len = (uint32_t)w->path.len, .holder = w->cache.holder, .size = size, .file = kept},
        err);
}

/* Its target may not exist yet: it may be a file of another source. */
static mr_status add_link(walk *w, int dirfd, const char *name, mr_error *err)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(dirfd, name, target, sizeof target - 1);
    if (n < 0)
        return mr_fail_errno(err, errno, "%s/%s", w->given, mr_buf_text(&w->path));
    target[n] = '\0';
    uint64_t size;
    const char *blob = mr_hub_cache_blob(&w->cache, mr_buf_text(&w->path), target, &size);
    if (blob)
        return add_blob(w, name, blob, size, err);
    return mr_list_symlink(w->list, mr_buf_text(&w->path), w->path.len, target, end_of(dirfd, name), err);
}

static mr_status walk_dir(walk *w, int fd, unsigned depth, mr_error *err);

static mr_status enter(walk *w, int dirfd, const char *name, unsigned depth, mr_error *err)
{
    if (depth >= MAX_DEPTH)
        return mr_fail(err, MR_BAD_DATA, "%s/%s: folders nest deeper than %d", w->given, mr_buf_text(&w->path),
                       MAX_DEPTH);
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return mr_fail_errno(err, errno, "%s/%s", w->given, mr_buf_text(&w->path));
    return walk_dir(w, fd, depth + 1, err);
}

static mr_status add(walk *w, int dirfd, const char *name, unsigned depth, mr_error *err)
{
    struct stat st;
    bool archive;
    size_t len = w->path.len;
    const char *path = mr_buf_text(&w->path);
    if (w->path.failed)
        return mr_fail_memory(err, "listing the source");
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return mr_fail_errno(err, errno, "%s/%s", w->given, path);
    if (S_ISDIR(st.st_mode))
        return enter(w, dirfd, name, depth, err);
    if (S_ISLNK(st.st_mode))
        return add_link(w, dirfd, name, err);
    if (!S_ISREG(st.st_mode)) {
        mr_note_add(w->list->notes, MR_NOTE_LINK, path, len, 0, "a device, socket or FIFO");
        return MR_OK;
    }
    MR_TRY(is_archive(w, dirfd, name, depth == 0, NULL, &archive, err));
    if (archive)
        return remember_archive(w, path, NULL, err);
    mr_entry e = {.path = path, .path_len = (uint32_t)len, .holder = w->holder, .size = (uint64_t)st.st_size};
    return mr_list_add(w->list, &e, err);
}

static void close_dir(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

/* Takes over fd. */
static mr_status walk_dir(walk *w, int fd, unsigned depth, mr_error *err)
{
    MR_AUTO(close_dir) DIR *dir = fdopendir(fd);
    if (!dir) {
        mr_status status = mr_fail_errno(err, errno, "%s/%s", w->given, mr_buf_text(&w->path));
        close(fd);
        return status;
    }
    size_t len = w->path.len;
    errno = 0;
    for (struct dirent *e; (e = readdir(dir)); errno = 0) {
        if (mr_is_dots(e->d_name))
            continue;
        if (len)
            mr_buf_add(&w->path, "/", 1);
        mr_buf_add_text(&w->path, e->d_name);
        MR_TRY(add(w, fd, e->d_name, depth, err));
        w->path.len = len;
    }
    return errno ? mr_fail_errno(err, errno, "%s/%s: cannot list", w->given, mr_buf_text(&w->path)) : MR_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const found *)a)->path, ((const found *)b)->path);
}

/* train2017.zip next to train2017/ has been unpacked: its names would only collide.  For a class tar,
 * mr_list_check_class_tars() decides. */
static mr_status read_archive(walk *w, int dirfd, const found *archive, mr_error *err)
{
    const char *name = archive->path;
    size_t stem_len = 0;
    struct stat st;
    mr_archive_name(name, strlen(name), &stem_len);
    MR_AUTO(mr_scope_free) char *stem = strndup(name, stem_len);
    if (!stem)
        return mr_fail_memory(err, "listing the source");
    if (!mr_archive_is_class(name, strlen(name)) && fstatat(dirfd, stem, &st, 0) == 0 && S_ISDIR(st.st_mode)) {
        mr_note_add(w->list->notes, MR_NOTE_INFO, name, strlen(name), 0,
                    "not read: there is a folder of the same name");
        return MR_OK;
    }
    char path[2 * PATH_MAX];
    MR_AUTO(mr_scope_close) int fd = -1;
    snprintf(path, sizeof path, "%s/%s", w->given, name);
    MR_TRY(mr_file_open(archive->blob ? w->cache.blobs : dirfd, archive->blob ? archive->blob : name, false, &fd, NULL,
                        err));
    return mr_list_shard(w->list, fd, path, name, err);
}

static void end_walk(walk *w)
{
    for (size_t i = 0; i < w->archive_count; i++)
        free(w->archives[i].path);
    free(w->archives);
    mr_buf_free(&w->path);
}

mr_status mr_list_folder(list *l, const char *path, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf snapshot = {0};
    MR_TRY(mr_hub_cache_snapshot(path, l->notes, &snapshot, err));
    if (snapshot.len)
        path = mr_buf_text(&snapshot);
    MR_TRY(mr_list_begin_part(l, path, err));
    MR_AUTO(end_walk) walk w = {.list = l, .given = path};
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return mr_fail_errno(err, errno, "%s", path);
    MR_TRY(mr_list_holder(l, path, fd, HOLD_FOLDER, &w.holder, err));
    MR_TRY(mr_hub_cache_open(l, path, fd, &w.cache, err));
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* walk_dir() closes it */
    if (again < 0)
        return mr_fail_errno(err, errno, "%s", path);
    MR_TRY(walk_dir(&w, again, 0, err));
    if (w.archive_count)
        qsort(w.archives, w.archive_count, sizeof *w.archives, by_name);
    l->several = l->several || w.archive_count > 1;
    for (size_t i = 0; i < w.archive_count; i++)
        MR_TRY(read_archive(&w, fd, &w.archives[i], err));
    return MR_OK;
}

mr_status mr_list_lone_file(list *l, const char *path, uint64_t size, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *dir = NULL;
    MR_AUTO(mr_scope_free) char *name = NULL;
    mr_entry e = {.size = size, .offset = FOLLOW_LINK};
    MR_TRY(mr_list_begin_part(l, path, err));
    MR_TRY(mr_path_split(path, &dir, &name, err));
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return mr_fail_errno(err, errno, "%s", dir);
    MR_TRY(mr_list_holder(l, dir, fd, HOLD_FOLDER, &e.holder, err));
    e.path = name;
    e.path_len = (uint32_t)strlen(name);
    return mr_list_add(l, &e, err);
}

/* folder.c - the export `folder`: the ingested files again, at their source paths.
 * Invariant: a path becomes a file only if it is relative and none of its parts is empty, "." or "..". */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "base/text.h"
#include "shards/export/format.h"
#include "shards/format/meta.h"

typedef unsigned long long ull;

typedef struct folder {
    int dirfd; /* the temporary one */
    mr_out *out;
    mr_buf source, path, parent; /* parent: the folder made last */
} folder;

/* The sample's source path, as bytes, in f->path. */
static mr_status find_path(folder *f, const mr_export_sample *s, mr_error *err)
{
    mr_meta_facts facts;
    mr_buf_clear(&f->source);
    mr_buf_clear(&f->path);
    MR_TRY(mr_meta_scan(s->view->meta, s->view->meta_len, &facts, &f->source, err));
    bool readable = mr_text_unescape(&f->path, (const char *)f->source.data, f->source.len);
    if (f->path.failed || f->source.failed)
        return mr_fail_memory(err, "exporting");
    if (!readable || !mr_path_is_safe((const char *)f->path.data, f->path.len))
        return mr_fail(err, MR_BAD_DATA,
                       "%s %llu: its source path \"%.300s\" is not a relative path inside the folder; "
                       "nothing was exported",
                       s->split->name, (ull)s->number, mr_buf_text(&f->source));
    return MR_OK;
}

static mr_status make_parents(folder *f, mr_error *err)
{
    char *path = (char *)(uintptr_t)mr_buf_text(&f->path);
    char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    if (len == f->parent.len && memcmp(path, f->parent.data ? (char *)f->parent.data : "", len) == 0)
        return MR_OK;
    for (char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        int failed = mkdirat(f->dirfd, path, 0777) != 0 && errno != EEXIST;
        *at = '/';
        if (failed)
            return mr_fail_errno(err, errno, "%s: cannot create its folder", mr_buf_text(&f->source));
    }
    mr_buf_clear(&f->parent);
    mr_buf_add(&f->parent, path, len);
    return mr_buf_status(&f->parent, err, "exporting");
}

/* Many samples may come from one file; then their bytes must be the same. */
static mr_status compare(folder *f, const mr_export_sample *s, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf old = {0};
    MR_TRY(mr_file_read_all(f->dirfd, mr_buf_text(&f->path), UINT64_MAX, &old, err));
    if (old.len != s->view->image_len || memcmp(old.data, s->view->image, old.len) != 0)
        return mr_fail(err, MR_BAD_DATA,
                       "%s %llu: another sample has other bytes under the same source path \"%.300s\"; "
                       "use --to tar",
                       s->split->name, (ull)s->number, mr_buf_text(&f->source));
    return MR_OK;
}

static mr_status begin(mr_export_run *run, mr_error *err)
{
    folder *f = mr_alloc(1, sizeof *f);
    if (!f)
        return mr_fail_memory(err, "exporting");
    f->dirfd = run->out.dirfd;
    f->out = &run->out;
    run->state = f;
    return MR_OK;
}

static mr_status sample(mr_export_run *run, const mr_export_sample *s, mr_error *err)
{
    folder *f = run->state;
    MR_TRY(find_path(f, s, err));
    MR_TRY(make_parents(f, err));
    const char *path = mr_buf_text(&f->path), *name = mr_buf_text(&f->source);
    int fd = openat(f->dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST)
        return compare(f, s, err);
    if (fd < 0 && errno == ENOTDIR)
        return mr_fail(err, MR_BAD_DATA,
                       "%s %llu: the source path \"%.300s\" has another sample's file as a folder; use "
                       "--to tar",
                       s->split->name, (ull)s->number, name);
    if (fd < 0)
        return mr_fail_errno(err, errno, "%s: cannot create", name);
    mr_status status = mr_file_write(fd, s->view->image, s->view->image_len, name, err);
    if (close(fd) != 0 && status == MR_OK)
        status = mr_fail_errno(err, errno, "%s: cannot close", name);
    f->out->files++;
    f->out->bytes += s->view->image_len;
    return status;
}

static void free_state(void *state)
{
    folder *f = state;
    mr_buf_free(&f->source);
    mr_buf_free(&f->path);
    mr_buf_free(&f->parent);
    free(f);
}

const mr_export_format mr_export_format_folder = {
    .name = "folder",
    .plain = true,
    .begin = begin,
    .sample = sample,
    .free_state = free_state,
};

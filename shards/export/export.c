/* export.c - every sample of a dataset in order, and the ingested files written back at their source paths.
 *
 *    OUT.millrace-export-1234/train/n01/a.JPEG ...   files are written here, in a temporary folder
 *    OUT                                             and published by one rename at the end
 *
 * Invariant: a path becomes a file only if it is relative and none of its parts is empty, "." or "..". */
#include "export/export.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/scope.h"
#include "base/temp.h"
#include "base/term.h"
#include "base/text.h"
#include "dataset/dataset.h"
#include "format/meta.h"

typedef unsigned long long ull;

static mr_status each_of_split(const mr_dataset *ds, const mr_split *split, mr_export_fn fn, void *ctx,
                               mr_progress *progress, mr_sample_view *view, mr_export_result *result, mr_error *err)
{
    for (uint64_t i = 0; i < split->samples; i++) {
        const mr_export_sample sample = {split->name, i, view};
        MR_TRY(mr_dataset_read(ds, split->name, i, view, err));
        MR_TRY(fn(ctx, &sample, err));
        result->samples++;
        mr_progress_add(progress, 1, view->image_len);
    }
    return MR_OK;
}

mr_status mr_export_open(const char *dataset, const mr_export_options *o, mr_dataset **out, mr_error *err)
{
    MR_TRY(mr_dataset_open(dataset, out, err));
    return o->split ? mr_manifest_find_split(mr_dataset_manifest(*out), dataset, o->split, NULL, err) : MR_OK;
}

bool mr_export_wants(const mr_export_options *o, const mr_split *split)
{
    return !o->split || strcmp(o->split, split->name) == 0;
}

mr_status mr_export_each(const mr_dataset *ds, const mr_export_options *o, mr_export_fn fn, void *ctx,
                         mr_export_result *result, mr_error *err)
{
    const mr_manifest *m = mr_dataset_manifest(ds);
    MR_AUTO(mr_sample_view_free) mr_sample_view view = {0};
    uint64_t total = 0;
    for (size_t i = 0; i < m->split_count; i++)
        total += mr_export_wants(o, &m->splits[i]) ? m->splits[i].samples : 0;
    mr_progress *progress = mr_progress_begin("export", total, o->quiet);
    mr_status status = MR_OK;
    for (size_t i = 0; status == MR_OK && i < m->split_count; i++)
        if (mr_export_wants(o, &m->splits[i]))
            status = each_of_split(ds, &m->splits[i], fn, ctx, progress, &view, result, err);
    mr_progress_end(progress);
    return status;
}

/* ---- a folder ------------------------------------------------------------------------------------------------- */

typedef struct folder {
    int dirfd; /* the temporary one */
    mr_export_result *result;
    mr_buf source, path, parent; /* parent: the folder made last */
} folder;

static bool path_is_safe(const mr_buf *path)
{
    const char *at = (const char *)path->data, *end = at + path->len;
    if (!path->len || memchr(at, '\0', path->len))
        return false;
    while (at <= end) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        size_t n = (size_t)((slash ? slash : end) - at);
        if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        at += n + 1;
    }
    return true;
}

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
    if (!readable || !path_is_safe(&f->path))
        return mr_fail(err, MR_BAD_DATA,
                       "%s %llu: its source path \"%.300s\" is not a relative path inside the folder; "
                       "nothing was exported",
                       s->split, (ull)s->sample, mr_buf_text(&f->source));
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
            return mr_fail_errno(err, errno, "%s: cannot make its folder", mr_buf_text(&f->source));
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
                       s->split, (ull)s->sample, mr_buf_text(&f->source));
    return MR_OK;
}

static mr_status write_file(void *ctx, const mr_export_sample *s, mr_error *err)
{
    folder *f = ctx;
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
                       s->split, (ull)s->sample, name);
    if (fd < 0)
        return mr_fail_errno(err, errno, "%s: cannot create", name);
    mr_status status = mr_file_write(fd, s->view->image, s->view->image_len, name, err);
    if (close(fd) != 0 && status == MR_OK)
        status = mr_fail_errno(err, errno, "%s: cannot close", name);
    f->result->files++;
    f->result->bytes += s->view->image_len;
    return status;
}

/* ---- OUT ------------------------------------------------------------------------------------------------------ */

mr_status mr_export_check_out(const char *dataset, const char *out, mr_error *err)
{
    if (!*out)
        return mr_fail(err, MR_MISUSE, "\"\": is not a valid name for an export");
    /* Replacing a folder removes it. */
    if (mr_path_inside(dataset, out))
        return mr_fail(err, MR_MISUSE, "%s: holds the dataset itself; export to another place", out);
    if (mr_path_inside(out, dataset))
        return mr_fail(err, MR_MISUSE,
                       "%s: is inside the dataset %s, where nothing else belongs; export to another "
                       "place",
                       out, dataset);
    return MR_OK;
}

/* *replace: whether the folder is not empty, so that a rename alone cannot take its place. */
static mr_status look_into(const char *path, bool *replace, mr_error *err)
{
    DIR *dir = opendir(path);
    size_t entries = 0;
    if (!dir)
        return mr_fail_errno(err, errno, "%s", path);
    while (readdir(dir))
        entries++;
    mr_status status = mr_dir_check_mount(dirfd(dir), path, err);
    closedir(dir);
    *replace = entries > 2; /* "." and ".." */
    return status;
}

/* *target: OUT without links and "..", as the temporary folder must be next to it. */
static mr_status find_target(const char *out, bool force, char **target, bool *replace, mr_error *err)
{
    struct stat st;
    *replace = false;
    *target = realpath(out, NULL);
    if (!*target && errno == ENOENT && lstat(out, &st) == 0)
        return mr_fail(err, MR_MISUSE, "%s: is a link to a missing file; remove it or choose another place", out);
    if (!*target && errno == ENOENT)
        return (*target = strdup(out)) ? MR_OK : mr_fail_memory(err, out);
    if (!*target || stat(*target, &st) != 0)
        return mr_fail_errno(err, errno, "%s", out);
    if (!S_ISDIR(st.st_mode))
        return mr_fail(err, MR_MISUSE, "%s: exists and is not a folder", out);
    MR_TRY(look_into(*target, replace, err));
    if (*replace && !force)
        return mr_fail(err, MR_MISUSE, "%s: exists and is not empty; choose another folder, or --force to replace it",
                       out);
    return MR_OK;
}

/* `gone`: the old folder's present name; NULL: it kept its own. */
static mr_status no_rename(const mr_export_temp *temp, const char *target, int errnum, const char *gone, mr_error *err)
{
    return mr_fail_errno(err, errnum, "%s: cannot take the place of %s%s%s", temp->path, target,
                         gone ? ", which is now " : "", gone ? gone : "");
}

/* Where the file system cannot exchange two names, the old folder is first moved aside, to a name that is never swept.
 */
static mr_status exchange(mr_export_temp *temp, const char *target, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *aside = NULL;
    const char *gone;
    int failed = mr_temp_replace(AT_FDCWD, temp->path, target, NULL, &gone);
    if (!mr_temp_cannot_exchange(failed))
        return failed ? no_rename(temp, target, failed, NULL, err) : MR_OK;
    if (asprintf(&aside, "%s.old", temp->path) < 0) {
        aside = NULL;
        return mr_fail_memory(err, target);
    }
    failed = mr_temp_replace(AT_FDCWD, temp->path, target, aside, &gone);
    if (failed)
        return no_rename(temp, target, failed, gone, err);
    free(temp->path);
    temp->path = aside;
    aside = NULL;
    return MR_OK;
}

/* A rename replaces an empty folder; a full one is exchanged with ours first, then removed. */
static mr_status publish(mr_export_temp *temp, const char *target, bool replace, mr_error *err)
{
    /* One sync of the file system costs less than one of each of 100,000 files. */
    if (syncfs(temp->fd) != 0)
        return mr_fail_errno(err, errno, "%s: cannot sync", target);
    if (replace)
        MR_TRY(exchange(temp, target, err));
    else if (rename(temp->path, target) != 0)
        return no_rename(temp, target, errno, NULL, err);
    temp->made = replace;
    return mr_dir_sync_parent(AT_FDCWD, target, err);
}

static void free_folder(folder *f)
{
    mr_buf_free(&f->source);
    mr_buf_free(&f->path);
    mr_buf_free(&f->parent);
}

static mr_status write_folder(const mr_dataset *ds, const mr_export_options *o, const char *target, bool replace,
                              mr_export_temp *temp, mr_export_result *result, mr_error *err)
{
    MR_TRY(mr_export_temp_open(target, true, temp, err));
    MR_AUTO(free_folder) folder f = {.dirfd = temp->fd, .result = result};
    MR_TRY(mr_export_each(ds, o, write_file, &f, result, err));
    return publish(temp, target, replace, err);
}

mr_status mr_export_folder(const char *dataset, const char *out, const mr_export_options *o, mr_export_result *result,
                           mr_error *err)
{
    MR_AUTO(mr_dataset_release) mr_dataset *ds = NULL;
    MR_AUTO(mr_scope_free) char *target = NULL;
    mr_export_temp temp = {.fd = -1};
    bool replace;
    MR_TRY(mr_export_open(dataset, o, &ds, err));
    MR_TRY(mr_export_check_out(dataset, out, err));
    MR_TRY(find_target(out, o->force, &target, &replace, err));
    mr_status status = write_folder(ds, o, target, replace, &temp, result, err);
    mr_status removed = mr_export_temp_close(&temp, status == MR_OK ? err : NULL);
    return status == MR_OK ? removed : status;
}

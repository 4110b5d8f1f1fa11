/* out.c - files in the temporary folder of an export: folders, whole files, and texts that grow.
 * Invariant: data that has left memory is in the file in full, or the call has failed. */
#include "shards/export/out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"

enum { TEXT_ROOM = 1 << 20 };

/* ---- folders and whole files ------------------------------------------------------------------------------------- */

mr_status mr_out_folder(mr_out *o, const char *path, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *copy = strdup(path);
    if (!copy)
        return mr_fail_memory(err, path);
    for (char *at = copy; at;) {
        at = strchr(at + (at != copy), '/');
        if (at)
            *at = '\0';
        if (mkdirat(o->dirfd, copy, 0777) != 0 && errno != EEXIST)
            return mr_fail_errno(err, errno, "%s: cannot create the folder", path);
        if (at)
            *at = '/';
    }
    return MR_OK;
}

static int create(const mr_out *o, const char *path)
{
    return openat(o->dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

mr_status mr_out_create(mr_out *o, const char *path, int *fd, mr_error *err)
{
    const char *slash = strrchr(path, '/');
    *fd = create(o, path);
    if (*fd < 0 && errno == ENOENT && slash) { /* the first file of its folder */
        MR_AUTO(mr_buf_free) mr_buf parent = {0};
        mr_buf_add(&parent, path, (size_t)(slash - path));
        const char *folder = mr_buf_text(&parent);
        MR_TRY(mr_buf_status(&parent, err, "exporting"));
        MR_TRY(mr_out_folder(o, folder, err));
        *fd = create(o, path);
    }
    if (*fd < 0)
        return mr_fail_errno(err, errno, "%s: cannot create", path);
    o->files++;
    return MR_OK;
}

static mr_status close_file(int fd, const char *path, mr_status status, mr_error *err)
{
    if (close(fd) != 0 && status == MR_OK)
        status = mr_fail_errno(err, errno, "%s: cannot close", path);
    return status;
}

mr_status mr_out_file(mr_out *o, const char *path, const void *bytes, size_t len, mr_error *err)
{
    int fd;
    MR_TRY(mr_out_create(o, path, &fd, err));
    o->bytes += len;
    return close_file(fd, path, mr_file_write(fd, bytes, len, path, err), err);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

mr_status mr_out_text_open(mr_out *o, const char *path, mr_out_text *t, mr_error *err)
{
    int fd;
    MR_TRY(mr_out_create(o, path, &fd, err));
    *t = (mr_out_text){.out = o, .path = strdup(path), .fd = fd};
    if (t->path)
        return MR_OK;
    close(fd);
    return mr_fail_memory(err, path);
}

mr_status mr_out_text_scratch(mr_out *o, mr_out_text *t, mr_error *err)
{
    int fd;
    MR_TRY(mr_file_scratch(&fd, err));
    *t = (mr_out_text){.out = o, .path = strdup("temporary file"), .fd = fd, .scratch = true};
    if (t->path)
        return MR_OK;
    close(fd);
    return mr_fail_memory(err, "exporting");
}

static mr_status write_out(mr_out_text *t, mr_error *err)
{
    MR_TRY(mr_buf_status(&t->text, err, t->path));
    MR_TRY(mr_file_write(t->fd, t->text.data, t->text.len, t->path, err));
    t->out->bytes += t->scratch ? 0 : t->text.len;
    mr_buf_clear(&t->text);
    return MR_OK;
}

mr_status mr_out_text_push(mr_out_text *t, mr_error *err)
{
    return t->text.len >= TEXT_ROOM || t->text.failed ? write_out(t, err) : MR_OK;
}

mr_status mr_out_text_copy(mr_out_text *t, mr_out_text *scratch, mr_error *err)
{
    struct stat st;
    MR_TRY(write_out(scratch, err));
    if (fstat(scratch->fd, &st) != 0)
        return mr_fail_errno(err, errno, "%s", scratch->path);
    for (uint64_t at = 0, size = (uint64_t)st.st_size; at < size;) {
        size_t len = size - at < TEXT_ROOM ? (size_t)(size - at) : TEXT_ROOM;
        if (!mr_buf_reserve(&t->text, len))
            return mr_fail_memory(err, t->path);
        MR_TRY(mr_file_pread(scratch->fd, t->text.data + t->text.len, len, at, scratch->path, err));
        t->text.len += len;
        at += len;
        MR_TRY(write_out(t, err));
    }
    return MR_OK;
}

mr_status mr_out_text_close(mr_out_text *t, mr_error *err)
{
    mr_status status = write_out(t, err);
    status = close_file(t->fd, t->path, status, err);
    mr_buf_free(&t->text);
    free(t->path);
    *t = (mr_out_text){0};
    return status;
}

void mr_out_text_free(mr_out_text *t)
{
    if (!t->path)
        return;
    close(t->fd);
    mr_buf_free(&t->text);
    free(t->path);
    *t = (mr_out_text){0};
}

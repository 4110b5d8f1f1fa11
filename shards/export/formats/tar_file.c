/* tar_file.c - the export `tar` without --shard-size: OUT is one tar, or standard output.
 * Invariant: OUT is replaced only by a complete tar, and only if an export wrote the file that is there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "base/text.h"
#include "shards/export/formats/tar.h"

static mr_status add_facts(mr_tar *t, const mr_dataset *ds, const mr_export_options *o, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_tar_facts(mr_dataset_manifest(ds), o, &text);
    MR_TRY(mr_buf_status(&text, err, "exporting"));
    return mr_tar_file(t, MR_TAR_FACTS, text.data, text.len, err);
}

static mr_status take_sample(void *ctx, const mr_export_sample *s, mr_error *err)
{
    return mr_tar_sample(ctx, s, err);
}

static mr_status fill_tar(mr_tar *t, const mr_dataset *ds, const mr_export_options *o, mr_error *err)
{
    MR_TRY(mr_tar_open(t, err));
    MR_TRY(add_facts(t, ds, o, err));
    const mr_export_steps steps = {take_sample, NULL, t};
    MR_TRY(mr_export_each(ds, o, &steps, t->result, err));
    return mr_tar_close(t, err);
}

static mr_status write_tar(const mr_dataset *ds, int fd, const char *name, const mr_export_options *o,
                           mr_export_result *result, mr_error *err)
{
    mr_tar t = {.name = name, .result = result, .fd = fd};
    mr_status status = fill_tar(&t, ds, o, err);
    mr_tar_free(&t, status);
    return status;
}

/* Whether the file is empty or begins as every tar of an export does. */
static mr_status is_ours(const char *out, bool *ours, mr_error *err)
{
    char begin[sizeof MR_TAR_FACTS];
    MR_AUTO(mr_scope_close) int fd = open(out, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, begin, sizeof begin);
    if (got < 0)
        return mr_fail_errno(err, errno, "%s", out);
    *ours = got == 0 || (got == (ssize_t)sizeof begin && memcmp(begin, MR_TAR_FACTS, sizeof begin) == 0);
    return MR_OK;
}

static mr_status check_out(const char *out, bool force, mr_error *err)
{
    struct stat st;
    if (out[strlen(out) - 1] == '/')
        return mr_fail(err, MR_MISUSE, "%s: is the name of a folder; name the tar file to write", out);
    if (lstat(out, &st) != 0)
        return errno == ENOENT ? MR_OK : mr_fail_errno(err, errno, "%s", out);
    if (S_ISDIR(st.st_mode))
        return mr_fail(err, MR_MISUSE, "%s: is a folder; name the tar file to write", out);
    if (!S_ISREG(st.st_mode))
        return mr_fail(err, MR_MISUSE,
                       "%s: is not a regular file; name the file to write, or '-' and send the tar there", out);
    if (!force)
        return mr_fail(err, MR_MISUSE, "%s: exists already; --force replaces it", out);
    bool ours = false;
    MR_TRY(is_ours(out, &ours, err));
    if (!ours)
        return mr_fail(
            err, MR_MISUSE,
            "%s: this file was not written by an export, and --force replaces nothing else; choose another name, or "
            "remove it yourself",
            out);
    return MR_OK;
}

/* Without `force` a file that appeared meanwhile stays; where rename cannot ensure that, it is checked once more. */
static mr_status publish(mr_export_temp *temp, const char *out, bool force, mr_error *err)
{
    if (fsync(temp->fd) != 0)
        return mr_fail_errno(err, errno, "%s: cannot sync", out);
    int failed = renameat2(AT_FDCWD, temp->path, AT_FDCWD, out, force ? 0 : RENAME_NOREPLACE);
    if (failed && (errno == EEXIST || errno == EINVAL || errno == ENOSYS)) {
        MR_TRY(check_out(out, force, err));
        failed = rename(temp->path, out);
    }
    if (failed)
        return mr_fail_errno(err, errno, "%s: cannot rename to %s", temp->path, out);
    temp->made = false;
    return mr_dir_sync_parent(AT_FDCWD, out, err);
}

static mr_status write_file(const mr_dataset *ds, const char *out, const mr_export_options *o, mr_export_temp *temp,
                            mr_export_result *result, mr_error *err)
{
    MR_TRY(mr_export_temp_open(out, false, temp, err));
    MR_TRY(write_tar(ds, temp->fd, out, o, result, err));
    return publish(temp, out, o->force, err);
}

mr_status mr_export_tar(const char *dataset, const char *out, const mr_export_options *o, mr_export_result *result,
                        mr_error *err)
{
    MR_AUTO(mr_dataset_release) mr_dataset *ds = NULL;
    mr_export_temp temp = {.fd = -1};
    MR_TRY(mr_export_check_options("tar", o, err));
    MR_TRY(mr_export_open(dataset, o, &ds, err));
    if (strcmp(out, "-") == 0)
        return write_tar(ds, STDOUT_FILENO, "standard output", o, result, err);
    MR_TRY(mr_export_check_out(dataset, out, err));
    MR_TRY(check_out(out, o->force, err));
    mr_status status = write_file(ds, out, o, &temp, result, err);
    mr_export_temp_close(&temp, NULL);
    return status;
}

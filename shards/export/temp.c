/* temp.c - the temporary file or folder of an export, and the removal of those that killed exports left.
 * Invariant: it is locked while it is written, so one whose lock is free was left by an export that was killed. */
#include "shards/export/export.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/scope.h"
#include "base/files/temp.h"

#define MARK ".millrace-export-" /* unlikely in a name that a user chose */

static bool is_temp_of(const char *entry, const char *name)
{
    size_t len = strlen(name), mark = strlen(MARK);
    if (strncmp(entry, name, len) != 0 || strncmp(entry + len, MARK, mark) != 0 || !entry[len + mark])
        return false;
    for (const char *at = entry + len + mark; *at; at++)
        if (!isdigit((unsigned char)*at))
            return false;
    return true;
}

static void sweep_one(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        mr_dir_remove(dir, name, NULL); /* what stays is swept next time */
    close(fd);
}

static void sweep(const char *parent, const char *name)
{
    DIR *dir = opendir(parent);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (is_temp_of(e->d_name, name))
            sweep_one(dirfd(dir), e->d_name);
    if (dir)
        closedir(dir);
}

/* Another export to OUT may have removed ours between its creation and its lock. */
static mr_status swept(const mr_export_temp *t, mr_error *err)
{
    return mr_fail(err, MR_SYSTEM, "%s: another export to the same place has just started; run the command again",
                   t->path);
}

static mr_status lock(const mr_export_temp *t, mr_error *err)
{
    /* Where locks are not supported, nothing is swept either. */
    if (mr_temp_claim(t->fd, AT_FDCWD, t->path, false))
        return MR_OK;
    return swept(t, err);
}

static mr_status choose_path(mr_export_temp *t, const char *out, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *parent = NULL;
    MR_AUTO(mr_scope_free) char *name = NULL;
    MR_TRY(mr_path_split(out, &parent, &name, err));
    sweep(parent, name);
    if (asprintf(&t->path, "%s/%s" MARK "%ld", parent, name, (long)getpid()) >= 0)
        return MR_OK;
    t->path = NULL;
    return mr_fail_memory(err, out);
}

mr_status mr_export_temp_open(const char *out, bool folder, mr_export_temp *t, mr_error *err)
{
    *t = (mr_export_temp){.fd = -1};
    MR_TRY(choose_path(t, out, err));
    if (folder && mkdir(t->path, 0777) != 0)
        return mr_file_fail_create(err, errno, out);
    t->made = folder;
    t->fd = folder ? open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                   : open(t->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (t->fd < 0)
        return folder && errno == ENOENT ? swept(t, err) : mr_file_fail_create(err, errno, out);
    t->made = true;
    return lock(t, err);
}

mr_status mr_export_temp_close(mr_export_temp *t, mr_error *err)
{
    mr_status status = MR_OK;
    if (t->made)
        status = mr_dir_remove(AT_FDCWD, t->path, err);
    if (t->fd >= 0)
        close(t->fd);
    free(t->path);
    *t = (mr_export_temp){.fd = -1};
    return status;
}

/* target.c - the folder OUT: what may be there, and how the temporary folder takes its place.
 *
 *    OUT.millrace-export-1234/train/n01/a.JPEG ...   files are written here, in a temporary folder
 *    OUT                                             and published by one rename at the end
 *
 * Invariant: an old OUT is removed only after the new one has its name, and only if an export made all of it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/ranks/launch.h"
#include "base/scope.h"
#include "base/files/temp.h"
#include "shards/export/export.h"
#include "shards/export/made.h"

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

mr_status mr_export_target_find(const char *out, bool force, mr_export_target *t, mr_error *err)
{
    struct stat st;
    t->replace = false;
    t->path = realpath(out, NULL);
    if (!t->path && errno == ENOENT && lstat(out, &st) == 0)
        return mr_fail(err, MR_MISUSE, "%s: is a link to a missing file; remove it or choose another place", out);
    if (!t->path && errno == ENOENT)
        return (t->path = strdup(out)) ? MR_OK : mr_fail_memory(err, out);
    if (!t->path || stat(t->path, &st) != 0)
        return mr_fail_errno(err, errno, "%s", out);
    if (!S_ISDIR(st.st_mode))
        return mr_fail(err, MR_MISUSE, "%s: exists and is not a folder", out);
    MR_TRY(look_into(t->path, &t->replace, err));
    if (t->replace && !force)
        return mr_fail(err, MR_MISUSE, "%s: exists and is not empty; choose another folder, or --force to replace it",
                       out);
    return t->replace ? mr_export_made_check(t->path, err) : MR_OK;
}

/* `gone`: the old folder's present name; NULL: it kept its own. */
static mr_status no_rename(const mr_export_temp *temp, const char *target, int errnum, const char *gone, mr_error *err)
{
    const mr_launch launch = mr_launch_look();
    if (launch.by && launch.tasks > 1)
        return mr_fail(err, MR_MISUSE,
                       "%s: another process exported to it; %s started %llu of them, and export needs one", target,
                       launch.by, (unsigned long long)launch.tasks);
    return mr_fail_errno(err, errnum, "%s: cannot take the place of %s%s%s", temp->path, target,
                         gone ? ", which is now " : "", gone ? gone : "");
}

/* Where the file system cannot exchange two names, the old folder is first moved aside, to a name that is never
 * swept. */
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
mr_status mr_export_target_publish(mr_export_temp *temp, const mr_export_target *t, mr_error *err)
{
    MR_TRY(mr_export_made_note(temp->fd, temp->path, err));
    if (t->replace) /* once more: exporting takes long */
        MR_TRY(mr_export_made_check(t->path, err));
    /* One sync of the file system costs less than one for each of 100,000 files. */
    if (syncfs(temp->fd) != 0)
        return mr_fail_errno(err, errno, "%s: cannot sync", t->path);
    if (t->replace)
        MR_TRY(exchange(temp, t->path, err));
    else if (rename(temp->path, t->path) != 0)
        return no_rename(temp, t->path, errno, NULL, err);
    temp->made = t->replace;
    return mr_dir_sync_parent(AT_FDCWD, t->path, err);
}

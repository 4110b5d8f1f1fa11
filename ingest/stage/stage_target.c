/* stage_target.c - DATASET: what may exist there, and how the new dataset takes its place.
 * Invariant: only a dataset is removed, after it has lost its name, while it is locked, and only if nothing else is in
 * it; until the rename nothing changes. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/ranks/owner.h"
#include "base/scope.h"
#include "base/files/temp.h"
#include "ingest/stage/stage_parts.h"

enum { TRIES = 100 }; /* to remove a folder that others write to */

/* ---- before ----------------------------------------------------------------------------------------------------- */

#define NO_DATASET "%s: exists and is not a millrace dataset; choose another DATASET or remove it"

static mr_status check_folder(mr_target *t, int dir, bool *replaces, mr_error *err)
{
    MR_AUTO(mr_folder_shards_release) mr_folder_shards shards = {0};
    mr_folder_kind kind;
    char foreign[NAME_MAX + 1];
    MR_TRY(mr_folder_shards_of(dir, &shards, err));
    MR_TRY(mr_folder_look(dir, t->path, &shards, &kind, foreign, err));
    *replaces = kind == MR_FOLDER_DATASET;
    if (kind == MR_FOLDER_OTHER || kind == MR_FOLDER_HELD)
        return mr_fail(err, MR_MISUSE, NO_DATASET, t->path);
    if (*replaces && !t->force)
        return mr_fail(err, MR_MISUSE, "%s: already holds a dataset; --force replaces it once the new one is complete",
                       t->path);
    if (*replaces && foreign[0])
        return mr_fail(err, MR_MISUSE,
                       "%s: --force would delete '%s', which is not part of a dataset; move it away or "
                       "choose another DATASET",
                       t->path, foreign);
    if (*replaces && faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) != 0)
        return mr_fail_errno(err, errno, "%s: cannot be replaced, as its files cannot be removed", t->path);
    MR_TRY(mr_dir_check_mount(dir, t->path, err));
    return *replaces ? mr_folder_lock(dir, t->path, err) : MR_OK;
}

/* MR_OK with *dir -1: it does not exist. */
static mr_status open_target(const char *path, int *dir, mr_error *err)
{
    struct stat st;
    *dir = -1;
    if (lstat(path, &st) != 0) {
        if (errno == ENOTDIR)
            return mr_fail(err, MR_MISUSE, "%s: cannot be created: a component of this path is a file", path);
        return errno == ENOENT ? MR_OK : mr_fail_errno(err, errno, "%s", path);
    }
    if (S_ISLNK(st.st_mode))
        return mr_fail(err, MR_MISUSE, "%s: is a link; name the folder itself or choose another DATASET", path);
    if (!S_ISDIR(st.st_mode))
        return mr_fail(err, MR_MISUSE, NO_DATASET, path);
    *dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *dir < 0 ? mr_fail_errno(err, errno, "%s", path) : MR_OK;
}

mr_status mr_target_check(mr_target *t, mr_error *err)
{
    const char *slash = strrchr(t->path, '/');
    bool replaces = false;
    int dir;
    mr_target_close(t);
    if (mr_is_dots(slash ? slash + 1 : t->path))
        return mr_fail(err, MR_MISUSE,
                       "%s: a folder cannot be replaced under this name; use its own, or name a new folder "
                       "in it, for example %s/dataset",
                       t->path, t->path);
    static const char *const ours[] = {MR_STAGE_ENDING, MR_STAGE_ENDING MR_STAGE_ASIDE,
                                       MR_STAGE_ENDING MR_OWNER_ENDING};
    for (size_t i = 0; i < MR_COUNT(ours); i++) {
        size_t len = strlen(t->path), end = strlen(ours[i]);
        if (len >= end && strcmp(t->path + len - end, ours[i]) == 0)
            return mr_fail(err, MR_MISUSE,
                           "%s: names that end in %s are reserved for unfinished datasets, which may be removed; "
                           "choose another DATASET",
                           t->path, ours[i]);
    }
    MR_TRY(open_target(t->path, &dir, err));
    mr_status status = dir >= 0 ? check_folder(t, dir, &replaces, err) : MR_OK;
    if (status == MR_OK && replaces)
        t->old = dir;
    else
        mr_scope_close(&dir);
    return status;
}

void mr_target_close(mr_target *t)
{
    mr_scope_close(&t->old);
    t->old = -1;
}

/* ---- the rename ------------------------------------------------------------------------------------------------- */

/* The rename and *published change together, as far as a signal that ends the program can see.  0 or errno. */
static int rename_and_note(const mr_target *t, const char *from, const char *aside, const char **gone,
                           atomic_bool *published)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failed = 0;
    if (t->old >= 0)
        failed = mr_temp_replace(AT_FDCWD, from, t->path, aside, gone);
    else if (rename(from, t->path) != 0)
        failed = errno;
    if (!failed)
        atomic_store(published, true);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* ---- after ------------------------------------------------------------------------------------------------------ */

/* Removes a dataset that has lost its name, unless another process, which still has it open, put a file into it.  A
 * seek or reindex still running in it may create one more file of ours: then *gone is false, and this is tried
 * again. */
static mr_status remove_one(int dir, const char *path, const mr_folder_shards *shards, bool *gone, mr_error *err)
{
    mr_folder_kind kind;
    char foreign[NAME_MAX + 1];
    MR_TRY(mr_folder_look(dir, path, shards, &kind, foreign, err));
    if (foreign[0])
        return mr_fail(err, MR_MISUSE, "%s: the replaced dataset is kept because of '%s', which is not part of it",
                       path, foreign);
    if (!mr_file_is_at(dir, AT_FDCWD, path, false))
        return mr_fail(err, MR_SYSTEM, "%s: is kept: it is not the dataset that was to be replaced", path);
    MR_TRY(mr_folder_clear(dir, path, shards, err));
    *gone = rmdir(path) == 0;
    if (*gone)
        return MR_OK;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return mr_fail_errno(err, errno, "%s: cannot remove", path);
    MR_TRY(mr_folder_look(dir, path, shards, &kind, foreign, err));
    *gone = kind == MR_FOLDER_HELD;
    return MR_OK;
}

static mr_status remove_dataset(int dir, const char *path, mr_error *err)
{
    MR_AUTO(mr_folder_shards_release) mr_folder_shards shards = {0};
    bool gone = false;
    MR_TRY(mr_folder_shards_of(dir, &shards, err));
    for (int left = TRIES; !gone && left > 0; left--)
        MR_TRY(remove_one(dir, path, &shards, &gone, err));
    return gone ? MR_OK : mr_fail_errno(err, ENOTEMPTY, "%s: cannot remove", path);
}

/* Removes what a crash between two renames, or after them, left there. */
static mr_status clear_aside(const char *aside, mr_error *err)
{
    MR_AUTO(mr_scope_close) int dir = open(aside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 && errno == ENOENT)
        return MR_OK;
    bool is_folder = dir >= 0 || (errno != ENOTDIR && errno != ELOOP);
    if (dir < 0 && is_folder)
        return mr_fail_errno(err, errno, "%s", aside);
    const mr_folder_shards any = {0};
    mr_folder_kind kind = MR_FOLDER_OTHER;
    char foreign[NAME_MAX + 1];
    if (is_folder)
        MR_TRY(mr_folder_look(dir, aside, &any, &kind, foreign, err));
    if (kind == MR_FOLDER_HELD)
        return mr_fail(err, MR_SYSTEM,
                       "%s: the replaced dataset is still being read; run the command again when that has ended",
                       aside);
    if (kind == MR_FOLDER_OTHER)
        return mr_fail(err, MR_MISUSE, "%s: exists and is not a dataset; move it out of the way", aside);
    MR_TRY(mr_folder_lock(dir, aside, err));
    return remove_dataset(dir, aside, err);
}

static mr_status take(const mr_target *t, const char *from, const char *aside, const char **gone,
                      atomic_bool *published, mr_error *err)
{
    int failed = rename_and_note(t, from, NULL, gone, published);
    if (t->old >= 0 && mr_temp_cannot_exchange(failed)) {
        MR_TRY(clear_aside(aside, err));
        failed = rename_and_note(t, from, aside, gone, published);
    }
    if (!failed)
        return MR_OK;
    return mr_fail_errno(err, failed, "%s: cannot take the place of %s%s%s", from, t->path,
                         *gone ? ", which is now " : "", *gone ? *gone : "");
}

/* The old and the new folder exchange their names.  Where the file system cannot do that, the old one is moved aside
 * first: a crash between the two renames leaves it whole under DATASET.partial.old. */
mr_status mr_target_take(const mr_target *t, const char *from, atomic_bool *published, mr_error *err)
{
    const char *gone = NULL;
    MR_AUTO(mr_buf_free) mr_buf aside = {0};
    mr_buf_printf(&aside, "%s" MR_STAGE_ASIDE, from);
    MR_TRY(mr_buf_status(&aside, err, t->path));
    MR_TRY(take(t, from, mr_buf_text(&aside), &gone, published, err));
    /* The old one is removed only when a power loss cannot bring its name back. */
    MR_TRY(mr_dir_sync_parent(AT_FDCWD, t->path, err));
    return gone ? remove_dataset(t->old, gone, err) : MR_OK;
}

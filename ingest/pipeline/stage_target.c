/* stage_target.c - DST: what may lie there, and how the new dataset takes its place.
 * Invariant: only a dataset is removed, after it has lost its name, while it is locked, and only if nothing else lies
 * in it; before the rename everything is as it was. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "pipeline/stage_parts.h"

enum { TRIES = 100 }; /* to remove a folder that others write to */

/* ---- before ----------------------------------------------------------------------------------------------------- */

#define NO_DATASET "%s: exists and is not a millrace dataset; choose another DST or remove it"

static mr_status check_folder(mr_target *t, int dir, bool *replaces, mr_error *err)
{
    mr_folder_shards shards;
    mr_folder_kind kind;
    char foreign[NAME_MAX + 1];
    mr_status status = mr_folder_shards_of(dir, &shards, err);
    if (status == MR_OK)
        status = mr_folder_look(dir, t->path, &shards, &kind, foreign, err);
    mr_folder_shards_release(&shards);
    if (status != MR_OK)
        return status;
    *replaces = kind == MR_FOLDER_DATASET;
    if (kind == MR_FOLDER_OTHER || kind == MR_FOLDER_HELD)
        return mr_fail(err, MR_MISUSE, NO_DATASET, t->path);
    if (*replaces && !t->force)
        return mr_fail(err, MR_MISUSE, "%s: holds a dataset already; --force replaces it once the new one is whole",
                       t->path);
    if (*replaces && foreign[0])
        return mr_fail(err, MR_MISUSE,
                       "%s: --force would delete '%s', which is not part of a dataset; move it away or "
                       "choose another DST",
                       t->path, foreign);
    if (*replaces && faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) != 0)
        return mr_fail_errno(err, errno, "%s: cannot be replaced, for what is in it cannot be removed", t->path);
    status = mr_dir_check_mount(dir, t->path, err);
    return status == MR_OK && *replaces ? mr_folder_lock(dir, t->path, err) : status;
}

/* MR_OK with *dir -1: nothing is there. */
static mr_status open_target(const char *path, int *dir, mr_error *err)
{
    struct stat st;
    *dir = -1;
    if (lstat(path, &st) != 0) {
        if (errno == ENOTDIR)
            return mr_fail(err, MR_MISUSE, "%s: cannot be made: a part of this path is a file", path);
        return errno == ENOENT ? MR_OK : mr_fail_errno(err, errno, "%s", path);
    }
    if (S_ISLNK(st.st_mode))
        return mr_fail(err, MR_MISUSE, "%s: is a link; name the folder itself or choose another DST", path);
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
                       "%s: no folder can be replaced by this name; use its own, or that of one "
                       "in it, for example %s/dataset",
                       t->path, t->path);
    static const char *const ours[] = {MR_STAGE_ENDING, MR_STAGE_ENDING MR_STAGE_ASIDE};
    for (size_t i = 0; i < MR_COUNT(ours); i++) {
        size_t len = strlen(t->path), end = strlen(ours[i]);
        if (len >= end && strcmp(t->path + len - end, ours[i]) == 0)
            return mr_fail(err, MR_MISUSE,
                           "%s: names that end in %s are those of datasets on their way, which are swept; "
                           "choose another DST",
                           t->path, ours[i]);
    }
    mr_status status = open_target(t->path, &dir, err);
    if (status == MR_OK && dir >= 0)
        status = check_folder(t, dir, &replaces, err);
    if (status == MR_OK && replaces)
        t->old = dir;
    else if (dir >= 0)
        close(dir);
    return status;
}

void mr_target_close(mr_target *t)
{
    if (t->old >= 0)
        close(t->old);
    t->old = -1;
}

/* ---- the rename ------------------------------------------------------------------------------------------------- */

/* One act with the word that it is done: a signal that ends the program comes before it or after it.  0 or errno. */
static int move_and_tell(const mr_target *t, const char *from, const char *aside, const char **gone,
                         atomic_bool *published)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failed = 0;
    if (t->old >= 0)
        failed = mr_dir_replace(from, t->path, aside, gone);
    else if (rename(from, t->path) != 0)
        failed = errno;
    if (!failed)
        atomic_store(published, true);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* ---- after ------------------------------------------------------------------------------------------------------ */

/* A dataset that is at its place no more; what somebody puts into it, who still has it open, is kept.  A seek or a
 * reindex that was at work in it may make one more file of ours. */
static mr_status remove_one(int dir, const char *path, const mr_folder_shards *shards, bool *gone, mr_error *err)
{
    mr_folder_kind kind;
    char foreign[NAME_MAX + 1];
    mr_status status = mr_folder_look(dir, path, shards, &kind, foreign, err);
    if (status != MR_OK)
        return status;
    if (foreign[0])
        return mr_fail(err, MR_MISUSE,
                       "%s: is the dataset that was replaced, and is kept for '%s', which is not "
                       "part of it",
                       path, foreign);
    if (!mr_file_is_at(dir, AT_FDCWD, path, false))
        return mr_fail(err, MR_SYSTEM, "%s: is kept: it is not the dataset that was to be replaced", path);
    status = mr_folder_clear(dir, path, shards, err);
    *gone = status == MR_OK && rmdir(path) == 0;
    if (status != MR_OK || *gone)
        return status;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return mr_fail_errno(err, errno, "%s: cannot remove", path);
    status = mr_folder_look(dir, path, shards, &kind, foreign, err);
    *gone = status == MR_OK && kind == MR_FOLDER_HELD;
    return status;
}

static mr_status remove_dataset(int dir, const char *path, mr_error *err)
{
    mr_folder_shards shards;
    bool gone = false;
    mr_status status = mr_folder_shards_of(dir, &shards, err);
    for (int left = TRIES; status == MR_OK && !gone && left > 0; left--)
        status = remove_one(dir, path, &shards, &gone, err);
    mr_folder_shards_release(&shards);
    return status == MR_OK && !gone ? mr_fail_errno(err, ENOTEMPTY, "%s: cannot remove", path) : status;
}

/* What a crash between two renames, or after them, left there. */
static mr_status clear_aside(const char *aside, mr_error *err)
{
    int dir = open(aside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 && errno == ENOENT)
        return MR_OK;
    bool no_folder = dir < 0 && (errno == ENOTDIR || errno == ELOOP);
    if (dir < 0 && !no_folder)
        return mr_fail_errno(err, errno, "%s", aside);
    const mr_folder_shards any = {0};
    mr_folder_kind kind = MR_FOLDER_OTHER;
    char foreign[NAME_MAX + 1];
    mr_status status = no_folder ? MR_OK : mr_folder_look(dir, aside, &any, &kind, foreign, err);
    if (status == MR_OK && kind == MR_FOLDER_HELD)
        status = mr_fail(err, MR_SYSTEM,
                         "%s: cannot go, for somebody still reads the dataset that was replaced; run the "
                         "command again when that has ended",
                         aside);
    else if (status == MR_OK && kind == MR_FOLDER_OTHER)
        status = mr_fail(err, MR_MISUSE, "%s: is in the way and is not a dataset; move it away", aside);
    if (status == MR_OK)
        status = mr_folder_lock(dir, aside, err);
    if (status == MR_OK)
        status = remove_dataset(dir, aside, err);
    if (dir >= 0)
        close(dir);
    return status;
}

/* renameat2(EXCHANGE) swaps old and new in one act.  File systems without it get the old one moved aside first: then a
 * crash between the two renames leaves it whole under DST.partial.old. */
mr_status mr_target_take(const mr_target *t, const char *from, atomic_bool *published, mr_error *err)
{
    const char *gone = NULL;
    mr_buf aside = {0};
    mr_buf_printf(&aside, "%s" MR_STAGE_ASIDE, from);
    mr_status status = mr_buf_status(&aside, err, t->path);
    int failed = status == MR_OK ? move_and_tell(t, from, NULL, &gone, published) : 0;
    if (t->old >= 0 && (failed == EINVAL || failed == ENOSYS)) {
        status = clear_aside(mr_buf_text(&aside), err);
        if (status == MR_OK)
            failed = move_and_tell(t, from, mr_buf_text(&aside), &gone, published);
    }
    if (status == MR_OK && failed)
        status = mr_fail_errno(err, failed, "%s: cannot take the place of %s%s%s", from, t->path,
                               gone ? ", which is now " : "", gone ? gone : "");
    /* Not before it is sure that a power loss cannot bring the old one's name back. */
    if (status == MR_OK)
        status = mr_dir_sync_parent(AT_FDCWD, t->path, err);
    if (status == MR_OK && gone)
        status = remove_dataset(t->old, gone, err);
    mr_buf_free(&aside);
    return status;
}

/* stage.c - DATASET.partial, where a dataset grows beside its target.
 * Invariant: at most one ingest works in it (flock), and the target changes by one rename of the whole folder. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/ranks/owner.h"
#include "base/files/path.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "ingest/stage/stage_parts.h"

struct mr_stage {
    char *path; /* DATASET.partial */
    mr_target target;
    char *made; /* the first of DATASET's parents that did not exist; NULL: all did */
    int dir;
    bool first; /* rank 0: it owns the folder */
    mr_owner *owner;
    bool published;
};

#define ROWS "rows-%05u.spool"

static const mr_folder_shards any; /* the shards of an unfinished dataset are not known yet */

static mr_status is_foreign(const mr_stage *s, const char *name, mr_error *err)
{
    return mr_fail(err, MR_MISUSE,
                   "%s: holds '%s', which is not part of an unfinished dataset; move it away or choose "
                   "another DATASET",
                   s->path, name);
}

/* Against an ingest on another host, which the lock may not reach. */
static mr_status own(mr_stage *s, mr_ranks *ranks, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *parent = NULL, *name = NULL;
    MR_AUTO(mr_buf_free) mr_buf file = {0};
    mr_error who;
    MR_TRY(mr_path_split(s->path, &parent, &name, err));
    mr_buf_printf(&file, "%s" MR_OWNER_ENDING, name);
    MR_TRY(mr_buf_status(&file, err, s->path));
    MR_AUTO(mr_scope_close) int dir = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return mr_fail_errno(err, errno, "%s", parent);
    const mr_owner_options o = {.dirfd = dir,
                                .name = mr_buf_text(&file),
                                .lock = s->dir,
                                .path = s->path,
                                .ranks = ranks,
                                .say = mr_term_warn,
                                .lost = mr_ranks_quit};
    mr_status status = mr_owner_take(&o, &s->owner, &who);
    if (status == MR_AGAIN)
        return mr_fail(err, MR_SYSTEM,
                       "%s: another ingest is using it, %s; wait until it ends, or name another DATASET", s->path,
                       who.text);
    return status == MR_OK ? MR_OK : mr_fail(err, status, "%s", who.text);
}

/* Files in DATASET.partial are removed: only a folder with nothing but an unfinished dataset is taken over. */
static mr_status claim(mr_stage *s, mr_ranks *ranks, mr_error *err)
{
    mr_folder_kind kind;
    char foreign[NAME_MAX + 1];
    MR_TRY(mr_folder_lock(s->dir, s->path, err));
    MR_TRY(own(s, ranks, err));
    /* Between its opening and its locking another ingest may have published it: then it is no longer a stage. */
    if (!mr_file_is_at(s->dir, AT_FDCWD, s->path, false))
        return mr_fail(err, MR_SYSTEM, "%s: another ingest has just ended there; run the command again", s->path);
    MR_TRY(mr_folder_look(s->dir, s->path, &any, &kind, foreign, err));
    if (foreign[0])
        return is_foreign(s, foreign, err);
    if (mr_dir_check_mount(s->dir, s->path, NULL) != MR_OK)
        return mr_fail(
            err, MR_MISUSE,
            "%s: is a mount point, which cannot take the place of DATASET; unmount it or choose another DATASET",
            s->path);
    return MR_OK;
}

/* The first folder on the way to `path` that does not exist; NULL: all do, or out of memory: then the caller's next
 * allocation fails, too. */
static char *first_missing(const char *path)
{
    struct stat st;
    for (size_t at = strspn(path, "/");;) {
        at += strcspn(path + at, "/");
        char *part = strndup(path, at);
        if (!part || lstat(part, &st) != 0)
            return part;
        free(part);
        size_t slashes = strspn(path + at, "/");
        if (!path[at + slashes])
            return NULL;
        at += slashes;
    }
}

static mr_status make(mr_stage *s, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *parent = NULL, *name = NULL;
    MR_TRY(mr_path_split(s->target.path, &parent, &name, err));
    s->made = first_missing(parent);
    MR_TRY(mr_dir_make(parent, err));
    if (mkdir(s->path, 0777) != 0 && errno != EEXIST)
        return mr_fail_errno(err, errno, "%s: cannot create the folder", s->path);
    return MR_OK;
}

/* Folders that were created only for DATASET are removed if DATASET is not published. */
static void remove_parents(const mr_stage *s)
{
    size_t min = s->made ? strlen(s->made) : 0;
    char *path = strdup(s->path);
    for (char *slash; min && path && (slash = strrchr(path, '/'));) {
        *slash = '\0';
        if (strlen(path) < min || (slash[1] && rmdir(path) != 0))
            break;
    }
    free(path);
}

char *mr_stage_name(const char *target)
{
    char *name;
    return asprintf(&name, "%.*s" MR_STAGE_ENDING, (int)mr_path_len(target), target) < 0 ? NULL : name;
}

/* The names of DATASET and DATASET.partial. */
static mr_stage *new_stage(const char *target, bool force)
{
    mr_stage *s = mr_alloc(1, sizeof *s);
    if (!s)
        return NULL;
    *s = (mr_stage){.dir = -1,
                    .path = mr_stage_name(target),
                    .target = {.path = strndup(target, mr_path_len(target)), .force = force, .old = -1}};
    if (!s->path || !s->target.path) {
        mr_stage_close(s);
        return NULL;
    }
    return s;
}

static mr_status open_folder(mr_stage *s, mr_error *err)
{
    s->dir = open(s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->dir >= 0)
        return MR_OK;
    if (errno == ENOTDIR || errno == ELOOP)
        return mr_fail(err, MR_MISUSE,
                       "%s: exists, but the dataset is built in a folder of this name; move it out of the way or "
                       "choose another DATASET",
                       s->path);
    return mr_fail_errno(err, errno, "%s", s->path);
}

static mr_status open_first(mr_stage *s, mr_ranks *ranks, mr_error *err)
{
    MR_TRY(mr_target_check(&s->target, err));
    MR_TRY(make(s, err));
    MR_TRY(open_folder(s, err));
    return claim(s, ranks, err);
}

mr_status mr_stage_open(const char *target, bool force, mr_ranks *ranks, mr_stage **out, mr_error *err)
{
    bool first = mr_ranks_rank(ranks) == 0;
    mr_stage *s = new_stage(target, force);
    if (!s)
        return mr_fail_memory(err, target);
    mr_status status = first ? open_first(s, ranks, err) : open_folder(s, err);
    s->first = first && status == MR_OK; /* otherwise it is not ours, and stays as it is */
    if (status != MR_OK) {
        if (s->dir < 0)
            remove_parents(s);
        mr_stage_close(s);
        return status;
    }
    *out = s;
    return MR_OK;
}

mr_status mr_stage_seen(const mr_stage *s, const char *target, mr_ranks *ranks, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *path = mr_stage_name(target);
    MR_AUTO(mr_buf_free) mr_buf file = {0};
    mr_buf_printf(&file, "%s" MR_OWNER_ENDING, path ? path : "");
    MR_TRY(mr_ranks_agree(ranks, path ? mr_buf_status(&file, err, target) : mr_fail_memory(err, target), err));
    mr_status status = mr_owner_seen(s ? s->owner : NULL, mr_buf_text(&file), ranks, err);
    if (status == MR_MISUSE && err)
        return mr_fail(err, status, "%s; choose a DATASET on a disk that all hosts share", err->text);
    return status;
}

const char *mr_stage_path(const mr_stage *s)
{
    return s->path;
}

int mr_stage_dir(const mr_stage *s)
{
    return s->dir;
}

mr_status mr_stage_held(const mr_stage *s, mr_error *err)
{
    MR_TRY(mr_owner_check(s->owner, err));
    if (mr_file_is_at(s->dir, AT_FDCWD, s->path, false))
        return MR_OK;
    return mr_fail(err, MR_SYSTEM,
                   "%s: was moved, removed or replaced while the dataset was being built in it; run "
                   "the command again",
                   s->path);
}

mr_status mr_stage_spool(mr_stage *s, int *fd, mr_error *err)
{
    int flags = s->first ? O_RDWR | O_CREAT | O_TRUNC : O_RDONLY;
    *fd = openat(s->dir, MR_STAGE_SPOOL, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
    return *fd < 0 ? mr_fail_errno(err, errno, "%s/%s", s->path, MR_STAGE_SPOOL) : MR_OK;
}

void mr_stage_spool_unlink(mr_stage *s)
{
    unlinkat(s->dir, MR_STAGE_SPOOL, 0);
}

mr_status mr_stage_rows(const mr_stage *s, unsigned number, int *fd, char path[4096], mr_error *err)
{
    char name[32];
    snprintf(name, sizeof name, ROWS, number);
    if ((size_t)snprintf(path, 4096, "%s/%s", s->path, name) >= 4096)
        return mr_fail(err, MR_MISUSE, "%s: the path is too long", s->path);
    *fd = openat(s->dir, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    return *fd < 0 ? mr_fail_errno(err, errno, "%s", path) : MR_OK;
}

void mr_stage_rows_unlink(const mr_stage *s, unsigned number)
{
    char name[32];
    snprintf(name, sizeof name, ROWS, number);
    unlinkat(s->dir, name, 0);
}

static bool belongs(const char *name, const char *const *shards, size_t count)
{
    const char *dot = strrchr(name, '.');
    return dot && (strcmp(dot, ".mdb") == 0 || strcmp(dot, ".idx") == 0 || strcmp(dot, ".done") == 0) &&
           mr_names_have(shards, count, name, (size_t)(dot - name));
}

mr_status mr_stage_sweep(mr_stage *s, const char *const *shards, size_t count, mr_error *err)
{
    DIR *dir = mr_folder_list(s->dir);
    mr_status status = MR_OK;
    if (!dir)
        return mr_fail_errno(err, errno, "%s", s->path);
    for (struct dirent *e; status == MR_OK && (e = readdir(dir));) {
        if (mr_folder_skips(e) || belongs(e->d_name, shards, count))
            continue;
        if (!mr_folder_is_ours(s->dir, e, &any)) /* it came after the first check, perhaps hours ago */
            status = is_foreign(s, e->d_name, err);
        else
            status = mr_folder_unlink(s->dir, s->path, e->d_name, err);
    }
    closedir(dir);
    return status;
}

mr_status mr_stage_publish(mr_stage *s, atomic_bool *published, mr_error *err)
{
    MR_TRY(mr_dir_sync(s->dir, s->path, err));
    MR_TRY(mr_target_check(&s->target, err)); /* again: hours may have passed */
    MR_TRY(mr_stage_held(s, err));
    mr_owner_release(s->owner); /* before, so that no power cut leaves its file beside a published dataset */
    s->owner = NULL;
    mr_status status = mr_target_take(&s->target, s->path, published, err);
    s->published = atomic_load(published);
    return status;
}

void mr_stage_close(mr_stage *s)
{
    if (!s)
        return;
    bool unfinished = s->first && s->path && !s->published, removed = false;
    if (unfinished)
        mr_stage_spool_unlink(s);
    if (unfinished && mr_stage_held(s, NULL) == MR_OK)
        removed = rmdir(s->path) == 0; /* stays if it holds finished shards */
    mr_owner_release(s->owner);
    if (removed)
        remove_parents(s);
    if (s->dir >= 0)
        close(s->dir);
    mr_target_close(&s->target);
    free(s->target.path);
    free(s->made);
    free(s->path);
    free(s);
}

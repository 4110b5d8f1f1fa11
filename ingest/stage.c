/* stage.c - DST.partial, where a dataset grows beside its target.
 * Invariant: at most one ingest works in it (flock), and the target changes by one rename of the whole folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "ingest.h"
#include "text.h"

struct mr_stage {
    char *path;                     /* DST.partial */
    char *made;                     /* the first of DST's parents that was not there before; NULL: all were */
    int dir;
    bool replaces;                  /* the target holds a dataset that goes when the new one is whole */
    bool owner;                     /* rank 0 */
    bool published;
};

#define SPOOL "spool"
#define ROWS "rows-%05u.spool"

typedef enum target_kind { ABSENT, EMPTY_FOLDER, DATASET, OTHER } target_kind;

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* A name that millrace gives to a file of a dataset, finished or not: what else lies there is somebody's own. */
static bool is_ours(const char *name)
{
    static const char *const whole[] = {MR_MANIFEST, MR_REPORT, MR_MANIFEST ".tmp", MR_REPORT ".tmp", SPOOL};
    static const char *const ends[] = {".mdb", ".mdb-lock", ".idx", ".idx.tmp", ".seek", ".seek.tmp", ".done", ".done.tmp",
                                       ".spool"};
    for (size_t i = 0; i < MR_COUNT(whole); i++)
        if (strcmp(name, whole[i]) == 0)
            return true;
    const char *dash = strrchr(name, '-');          /* SPLIT-00017.mdb; LMDB's readers leave a .mdb-lock */
    if (dash && strcmp(dash, "-lock") == 0)
        dash = memrchr(name, '-', (size_t)(dash - name));
    size_t digits = dash ? strspn(dash + 1, "0123456789") : 0;
    for (size_t i = 0; digits >= 5 && i < MR_COUNT(ends); i++)
        if (strcmp(dash + 1 + digits, ends[i]) == 0)
            return true;
    return false;
}

/* What a folder holds; `foreign` gets the name of something that is not ours, or "". */
static void look_into(DIR *dir, target_kind *kind, char foreign[NAME_MAX + 1])
{
    *kind = EMPTY_FOLDER;
    foreign[0] = '\0';
    for (struct dirent *e; (e = readdir(dir));) {
        if (is_dots(e->d_name))
            continue;
        if (strcmp(e->d_name, MR_MANIFEST) == 0)
            *kind = DATASET;
        else if (*kind == EMPTY_FOLDER)
            *kind = OTHER;
        if (!is_ours(e->d_name))
            snprintf(foreign, NAME_MAX + 1, "%s", e->d_name);
    }
    closedir(dir);
}

static mr_status look_at(const char *target, target_kind *kind, char foreign[NAME_MAX + 1], mr_error *err)
{
    struct stat st;
    if (lstat(target, &st) != 0) {
        *kind = ABSENT;
        if (errno == ENOTDIR)
            return mr_fail(err, MR_MISUSE, "%s: cannot be made: a part of this path is a file", target);
        return errno == ENOENT ? MR_OK : mr_fail_errno(err, errno, "%s", target);
    }
    *kind = OTHER;
    if (!S_ISDIR(st.st_mode))
        return MR_OK;
    DIR *dir = opendir(target);
    if (!dir)
        return mr_fail_errno(err, errno, "%s", target);
    look_into(dir, kind, foreign);
    return MR_OK;
}

static mr_status check_target(mr_stage *s, const char *target, bool force, mr_error *err)
{
    target_kind kind;
    char foreign[NAME_MAX + 1];
    mr_status status = look_at(target, &kind, foreign, err);
    if (status != MR_OK)
        return status;
    if (kind == OTHER)
        return mr_fail(err, MR_MISUSE, "%s: is there and is no millrace dataset; choose another DST or remove it", target);
    if (kind == DATASET && !force)
        return mr_fail(err, MR_MISUSE, "%s: holds a dataset already; --force replaces it once the new one is whole",
                       target);
    if (kind == DATASET && foreign[0])
        return mr_fail(err, MR_MISUSE, "%s: --force would delete '%s', which is no part of a dataset; move it away or "
                       "choose another DST", target, foreign);
    s->replaces = kind == DATASET;
    return MR_OK;
}

/* DST.partial is swept: only a folder that holds nothing but an unfinished dataset is taken over. */
static mr_status check_stage(const mr_stage *s, mr_error *err)
{
    target_kind kind;
    char foreign[NAME_MAX + 1];
    struct stat opened, now;
    /* Between opening it and locking it another ingest may have published it: then it is no stage any more. */
    if (fstat(s->dir, &opened) != 0 || lstat(s->path, &now) != 0 || opened.st_ino != now.st_ino ||
        opened.st_dev != now.st_dev)
        return mr_fail(err, MR_SYSTEM, "%s: another ingest has just ended there; run the command again", s->path);
    DIR *dir = opendir(s->path);
    if (!dir)
        return mr_fail_errno(err, errno, "%s", s->path);
    look_into(dir, &kind, foreign);
    if (!foreign[0])
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "%s: holds '%s', which is no part of an unfinished dataset; move it away or choose "
                   "another DST", s->path, foreign);
}

/* The first folder on the way to `path` that is not there yet; NULL: all are (or memory is out, which makes() sees). */
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

static mr_status make(mr_stage *s, const char *target, mr_error *err)
{
    char *parent = NULL, *name = NULL;
    mr_status status = mr_path_split(target, &parent, &name, err);
    if (status == MR_OK) {
        s->made = first_missing(parent);
        status = mr_dir_make(parent, err);
    }
    free(parent);
    free(name);
    if (status != MR_OK)
        return status;
    if (mkdir(s->path, 0777) != 0 && errno != EEXIST)
        return mr_fail_errno(err, errno, "%s: cannot make the folder", s->path);
    return MR_OK;
}

/* The folders that were made for DST alone go again when there will be no DST. */
static void remove_parents(const mr_stage *s)
{
    size_t least = s->made ? strlen(s->made) : 0;
    char *path = strdup(s->path);
    for (char *slash; least && path && (slash = strrchr(path, '/'));) {
        *slash = '\0';
        if (strlen(path) < least || (slash[1] && rmdir(path) != 0))
            break;
    }
    free(path);
}

mr_status mr_stage_open(const char *target, bool force, bool first_rank, mr_stage **out, mr_error *err)
{
    mr_stage *s = mr_alloc(1, sizeof *s);
    size_t len = strlen(target);
    while (len > 1 && target[len - 1] == '/')
        len--;
    mr_buf path = {0};
    mr_buf_printf(&path, "%.*s.partial", (int)len, target);
    if (!s || mr_buf_status(&path, err, target) != MR_OK) {
        free(s);
        return mr_fail_memory(err, target);
    }
    mr_buf_text(&path);
    *s = (mr_stage){.path = (char *)path.data, .dir = -1, .owner = first_rank};
    mr_status status = first_rank ? check_target(s, target, force, err) : MR_OK;
    if (status == MR_OK && first_rank)
        status = make(s, target, err);
    if (status == MR_OK) {
        s->dir = open(s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (s->dir < 0 && (errno == ENOTDIR || errno == ELOOP))
            status = mr_fail(err, MR_MISUSE, "%s: is in the way, the dataset grows in a folder of this name; move it "
                             "away or choose another DST", s->path);
        else if (s->dir < 0)
            status = mr_fail_errno(err, errno, "%s", s->path);
    }
    if (status == MR_OK && first_rank && flock(s->dir, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        status = mr_fail(err, MR_SYSTEM, "%s: another ingest is at work on it", s->path);
    if (status == MR_OK && first_rank)
        status = check_stage(s, err);
    if (status != MR_OK) {
        s->owner = false;           /* not ours: leave it as it is */
        if (s->dir < 0)
            remove_parents(s);
        mr_stage_close(s);
        return status;
    }
    *out = s;
    return MR_OK;
}

const char *mr_stage_path(const mr_stage *s)
{
    return s->path;
}

int mr_stage_dir(const mr_stage *s)
{
    return s->dir;
}

mr_status mr_stage_spool(mr_stage *s, int *fd, mr_error *err)
{
    int flags = s->owner ? O_RDWR | O_CREAT | O_TRUNC : O_RDONLY;
    *fd = openat(s->dir, SPOOL, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
    return *fd < 0 ? mr_fail_errno(err, errno, "%s/%s", s->path, SPOOL) : MR_OK;
}

void mr_stage_spool_unlink(mr_stage *s)
{
    unlinkat(s->dir, SPOOL, 0);
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

mr_status mr_stage_sweep(mr_stage *s, const mr_cut *cuts, size_t count, mr_error *err)
{
    int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    mr_status status = MR_OK;
    if (!dir) {
        mr_fail_errno(err, errno, "%s", s->path);
        if (fd >= 0)
            close(fd);
        return MR_SYSTEM;
    }
    const char **shards = mr_alloc(count, sizeof *shards);
    if (!shards)
        status = mr_fail_memory(err, s->path);
    for (size_t i = 0; shards && i < count; i++)
        shards[i] = cuts[i].name;
    if (shards)
        mr_names_sort(shards, count);
    for (struct dirent *e; status == MR_OK && (e = readdir(dir));) {
        if (is_dots(e->d_name) || belongs(e->d_name, shards, count))
            continue;
        status = mr_dir_remove(s->dir, e->d_name, err);
    }
    free(shards);
    closedir(dir);
    return status;
}

/* Removes the dataset that was replaced, once it is sure that a power loss cannot bring back its name. */
static mr_status remove_replaced(mr_stage *s, const char *path, const char *target, mr_error *err)
{
    s->published = true;
    mr_status status = mr_dir_sync_parent(AT_FDCWD, target, err);
    return status == MR_OK ? mr_dir_remove(AT_FDCWD, path, err) : status;
}

/* renameat2(EXCHANGE) swaps old and new in one act.  File systems without it get the old one moved aside first: then a
 * crash between the two renames leaves it whole under DST.partial.old. */
static mr_status exchange(mr_stage *s, const char *target, mr_error *err)
{
    if (renameat2(AT_FDCWD, s->path, AT_FDCWD, target, RENAME_EXCHANGE) == 0)
        return remove_replaced(s, s->path, target, err);
    if (errno != EINVAL && errno != ENOSYS)
        return mr_fail_errno(err, errno, "%s: cannot take the place of %s", s->path, target);
    mr_buf aside = {0};
    mr_buf_printf(&aside, "%s.old", s->path);
    mr_status status = mr_buf_status(&aside, err, target);
    if (status == MR_OK && (rename(target, mr_buf_text(&aside)) != 0 || rename(s->path, target) != 0))
        status = mr_fail_errno(err, errno, "%s: cannot take the place of %s", s->path, target);
    if (status == MR_OK)
        status = remove_replaced(s, mr_buf_text(&aside), target, err);
    mr_buf_free(&aside);
    return status;
}

mr_status mr_stage_publish(mr_stage *s, const char *target, mr_error *err)
{
    mr_status status = mr_dir_sync(s->dir, s->path, err);
    if (status != MR_OK)
        return status;
    if (s->replaces)
        status = exchange(s, target, err);
    else if (rename(s->path, target) != 0)
        status = mr_fail_errno(err, errno, "%s: cannot be renamed to %s", s->path, target);
    if (status != MR_OK)
        return status;
    s->published = true;
    return mr_dir_sync_parent(AT_FDCWD, target, err);
}

void mr_stage_close(mr_stage *s)
{
    if (!s)
        return;
    if (s->owner && !s->published) {
        mr_stage_spool_unlink(s);
        if (rmdir(s->path) == 0)    /* stays if it holds finished shards */
            remove_parents(s);
    }
    if (s->dir >= 0)
        close(s->dir);
    free(s->made);
    free(s->path);
    free(s);
}

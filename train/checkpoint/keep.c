/* keep.c - an OUTPUT: which run owns it, which directories it has, which are removed.
 * Invariant: only names of the four kinds of parts.h are ever touched, and of the hidden ones only those
 * whose process is gone: it holds a lock on the directory, which the kernel releases however the process ends. */
#include "train/checkpoint/parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "base/text.h"

static const char *const kinds[] = {"tmp", "old", "gone"};

void mr_step_name(uint64_t update, char name[MR_STEP_NAME])
{
    snprintf(name, MR_STEP_NAME, "step-%08" PRIu64, update);
}

void mr_step_hidden(uint64_t update, const char *kind, char name[MR_STEP_NAME])
{
    snprintf(name, MR_STEP_NAME, ".step-%08" PRIu64 ".%s-%ld", update, kind, (long)getpid());
}

bool mr_step_parse(const char *name, uint64_t *update)
{
    char again[MR_STEP_NAME];
    if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9' || !mr_text_parse_u64(name + 5, update))
        return false;
    mr_step_name(*update, again);
    return strcmp(name, again) == 0;
}

typedef struct hidden {
    uint64_t update, pid;
    const char *kind; /* one of `kinds` */
} hidden;

static bool parse_hidden(const char *name, hidden *out)
{
    char copy[MR_STEP_NAME];
    if (name[0] != '.' || strlen(name) >= sizeof copy)
        return false;
    snprintf(copy, sizeof copy, "%s", name + 1);
    char *dot = strchr(copy, '.'), *dash = dot ? strchr(dot, '-') : NULL;
    if (!dash)
        return false;
    *dot = *dash = '\0';
    out->kind = NULL;
    for (size_t i = 0; i < MR_COUNT(kinds); i++)
        if (strcmp(dot + 1, kinds[i]) == 0)
            out->kind = kinds[i];
    return out->kind && mr_step_parse(copy, &out->update) && dash[1] >= '0' && dash[1] <= '9' &&
           mr_text_parse_u64(dash + 1, &out->pid) && out->pid <= INT32_MAX;
}

static DIR *open_listing(int dirfd, const char *output, mr_error *err)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        mr_fail_errno(err, errno, "%s: cannot list the directory", output);
        if (fd >= 0)
            close(fd);
    }
    return dir;
}

/* ---- which there are --------------------------------------------------------------------------------------------- */

/* By update; for equal updates the visible one comes first. */
static int by_update(const void *a, const void *b)
{
    const mr_step *x = a, *y = b;
    if (x->update != y->update)
        return x->update < y->update ? -1 : 1;
    return (x->name[0] == '.') - (y->name[0] == '.');
}

static bool is_dir(int dirfd, const char *name)
{
    struct stat st;
    return fstatat(dirfd, name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

mr_status mr_steps_list(int dirfd, const char *output, mr_steps *out, mr_error *err)
{
    mr_steps made = {0};
    hidden h = {0};
    size_t kept = 0;
    DIR *dir = open_listing(dirfd, output, err);
    if (!dir)
        return MR_SYSTEM;
    for (struct dirent *e; (e = readdir(dir));) {
        uint64_t update;
        bool aside = parse_hidden(e->d_name, &h) && strcmp(h.kind, "old") == 0;
        if (aside)
            update = h.update;
        if ((!aside && !mr_step_parse(e->d_name, &update)) || !is_dir(dirfd, e->d_name))
            continue;
        if (!MR_GROW(made.items, made.count, made.capacity)) {
            closedir(dir);
            free(made.items);
            return mr_fail_memory(err, "listing checkpoints");
        }
        mr_step *step = &made.items[made.count++];
        step->update = update;
        snprintf(step->name, sizeof step->name, "%.63s", e->d_name);
    }
    closedir(dir);
    if (made.count)
        qsort(made.items, made.count, sizeof *made.items, by_update);
    for (size_t i = 0; i < made.count; i++)
        if (kept == 0 || made.items[kept - 1].update != made.items[i].update)
            made.items[kept++] = made.items[i];
    made.count = kept;
    *out = made;
    return MR_OK;
}

/* ---- ownership --------------------------------------------------------------------------------------------------- */

static mr_status check_unused(int fd, const char *output, mr_error *err)
{
    mr_steps steps = {0};
    mr_status status = mr_steps_list(fd, output, &steps, err);
    free(steps.items);
    if (status == MR_OK && steps.count)
        status = mr_fail(err, MR_MISUSE,
                         "%s: another run has since written checkpoints to it; continue with --resume, or "
                         "name another --output",
                         output);
    return status;
}

mr_status mr_checkpoint_claim(const char *output, bool fresh, DIR **claim, mr_error *err)
{
    DIR *dir = opendir(output);
    *claim = NULL;
    if (!dir) /* a path that is not a directory is reported where it would be made */
        return errno == ENOENT || errno == ENOTDIR ? MR_OK
                                                   : mr_fail_errno(err, errno, "%s: cannot open the directory", output);
    mr_status status = MR_OK;
    if (!mr_file_lock(dirfd(dir), false))
        status = mr_fail(err, MR_MISUSE, "%s: another run is using it; wait until it ends, or name another --output",
                         output);
    else if (fresh)
        status = check_unused(dirfd(dir), output, err);
    if (status == MR_OK)
        *claim = dir;
    else
        closedir(dir);
    return status;
}

mr_status mr_checkpoint_held(DIR *claim, const char *output, mr_error *err)
{
    if (!claim || mr_file_is_at(dirfd(claim), AT_FDCWD, output, true))
        return MR_OK;
    return mr_fail(err, MR_SYSTEM,
                   "%s: was moved, removed or replaced during the run, which no longer writes "
                   "to it; continue with --resume where its checkpoints are now",
                   output);
}

/* ---- which go ---------------------------------------------------------------------------------------------------- */

void mr_step_remove(int dirfd, const mr_step *step)
{
    char gone[MR_STEP_NAME];
    mr_step_hidden(step->update, "gone", gone);
    const char *name = step->name[0] != '.' && renameat(dirfd, step->name, dirfd, gone) == 0 ? gone : step->name;
    if (name[0] == '.')
        mr_dir_remove(dirfd, name, NULL); /* what stays is swept next time */
}

/* A killed process stays a zombie until its parent waits for it, which may take long: it no longer writes. */
static bool is_dead(uint64_t pid)
{
    char path[64], stat[512];
    if (kill((pid_t)pid, 0) != 0)
        return errno == ESRCH;
    snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, stat, sizeof stat - 1) : 0;
    if (fd >= 0)
        close(fd);
    stat[n > 0 ? n : 0] = '\0';
    const char *state = strrchr(stat, ')'); /* "7 (name) Z ..." */
    return state && strlen(state) > 2 && (state[2] == 'Z' || state[2] == 'X');
}

/* A network file system may not support the lock: then only the process id shows it.  A reused id merely
 * keeps a directory a little longer. */
static bool owner_gone(int dirfd, const char *name, uint64_t pid)
{
    if (pid != (uint64_t)getpid() && !is_dead(pid))
        return false;
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool locked = fd >= 0 && !mr_file_lock(fd, false);
    if (fd >= 0)
        close(fd);
    return !locked;
}

mr_status mr_steps_sweep(int dirfd, const char *output, mr_error *err)
{
    DIR *dir = open_listing(dirfd, output, err);
    if (!dir)
        return MR_SYSTEM;
    for (struct dirent *e; (e = readdir(dir));) {
        hidden h;
        mr_step left = {0};
        char name[MR_STEP_NAME];
        if (!parse_hidden(e->d_name, &h) || !owner_gone(dirfd, e->d_name, h.pid))
            continue;
        left.update = h.update;
        snprintf(left.name, sizeof left.name, "%.63s", e->d_name);
        mr_step_name(h.update, name);
        if (strcmp(h.kind, "old") == 0 && faccessat(dirfd, name, F_OK, 0) != 0 &&
            renameat(dirfd, left.name, dirfd, name) == 0)
            continue;
        mr_step_remove(dirfd, &left);
    }
    closedir(dir);
    return MR_OK;
}

mr_status mr_checkpoint_clear(DIR *claim, const char *output, mr_error *err)
{
    mr_steps steps = {0};
    MR_TRY(mr_checkpoint_held(claim, output, err));
    MR_TRY(mr_steps_sweep(dirfd(claim), output, err));
    MR_TRY(mr_steps_list(dirfd(claim), output, &steps, err));
    for (size_t i = 0; i < steps.count; i++)
        mr_step_remove(dirfd(claim), &steps.items[i]);
    free(steps.items);
    steps = (mr_steps){0};
    MR_TRY(mr_steps_list(dirfd(claim), output, &steps, err));
    mr_status status = MR_OK;
    if (steps.count)
        status = mr_fail(err, MR_SYSTEM, "%s/%s: cannot be removed", output, steps.items[0].name);
    free(steps.items);
    return status;
}

/* stage_look.c - what lies in a folder that ingest would work in, or remove.
 * Invariant: a name that millrace does not give is somebody's own, and is told. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "stage_parts.h"

/* A name that millrace gives to a file of a dataset, finished or not. */
static bool is_our_name(const char *name)
{
    static const char *const whole[] = {MR_MANIFEST, MR_REPORT, MR_MANIFEST ".tmp", MR_REPORT ".tmp", MR_STAGE_SPOOL};
    static const char *const ends[] = {".mdb", ".mdb-lock", ".idx", ".idx.tmp", ".seek", ".seek.tmp", ".done",
                                       ".done.tmp", ".spool"};
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

/* A folder is nobody's file, whatever its name. */
static bool is_ours(int dir, const struct dirent *e)
{
    struct stat st;
    if (e->d_type == DT_DIR || !is_our_name(e->d_name))
        return false;
    return e->d_type != DT_UNKNOWN || fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode);
}

DIR *mr_folder_list(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    int failed = errno;
    if (fd >= 0 && !list)
        close(fd);
    errno = failed;
    return list;
}

mr_status mr_folder_look(int dir, const char *path, mr_folder_kind *kind, char foreign[NAME_MAX + 1], mr_error *err)
{
    DIR *list = mr_folder_list(dir);
    *kind = MR_FOLDER_EMPTY;
    foreign[0] = '\0';
    if (!list)
        return mr_fail_errno(err, errno, "%s", path);
    for (struct dirent *e; (e = readdir(list));) {
        if (mr_is_dots(e->d_name))
            continue;
        if (strcmp(e->d_name, MR_MANIFEST) == 0)
            *kind = MR_FOLDER_DATASET;
        else if (*kind == MR_FOLDER_EMPTY)
            *kind = MR_FOLDER_OTHER;
        if (!is_ours(dir, e))
            snprintf(foreign, NAME_MAX + 1, "%s", e->d_name);
    }
    closedir(list);
    return MR_OK;
}

mr_status mr_folder_lock(int dir, const char *path, mr_error *err)
{
    if (!mr_file_lock(dir, false))
        return mr_fail(err, MR_SYSTEM, "%s: another ingest is at work on it", path);
    return MR_OK;
}

mr_status mr_folder_clear(int dir, const char *path, mr_error *err)
{
    DIR *list = mr_folder_list(dir);
    mr_status status = list ? MR_OK : mr_fail_errno(err, errno, "%s", path);
    for (struct dirent *e; status == MR_OK && (e = readdir(list));)
        if (!mr_is_dots(e->d_name) && is_ours(dir, e) && unlinkat(dir, e->d_name, 0) != 0 && errno != ENOENT)
            status = mr_fail_errno(err, errno, "%s/%s: cannot remove", path, e->d_name);
    if (list)
        closedir(list);
    return status;
}

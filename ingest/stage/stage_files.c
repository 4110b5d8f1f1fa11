/* stage_files.c - what is in a folder that ingest would use or remove.
 * Invariant: a file with a name that millrace never uses belongs to the user, and is reported. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/text.h"
#include "ingest/stage/stage_parts.h"
#include "shards/manifest/format.h"

/* How long the name of a shard is with which this file's name begins; 0: it is not a file of a shard. */
static size_t shard_of(const char *name)
{
    static const char *const ends[] = {".mdb",      ".mdb-lock", ".idx",      ".idx.tmp", ".seek",
                                       ".seek.tmp", ".done",     ".done.tmp", ".spool"};
    const char *dash = strrchr(name, '-'); /* SPLIT-00017.mdb; LMDB's readers leave a .mdb-lock */
    if (dash && strcmp(dash, "-lock") == 0)
        dash = memrchr(name, '-', (size_t)(dash - name));
    size_t digits = dash ? strspn(dash + 1, "0123456789") : 0;
    for (size_t i = 0; digits >= 5 && i < MR_COUNT(ends); i++)
        if (strcmp(dash + 1 + digits, ends[i]) == 0)
            return (size_t)(dash - name) + 1 + digits;
    return 0;
}

/* A name that millrace gives to a file of a dataset, finished or not. */
static bool is_our_name(const char *name, const mr_folder_shards *s)
{
    static const char *const whole[] = {MR_MANIFEST,        MR_REPORT,        MR_CROISSANT,
                                        MR_MANIFEST ".tmp", MR_REPORT ".tmp", MR_STAGE_SPOOL};
    for (size_t i = 0; i < MR_COUNT(whole); i++)
        if (strcmp(name, whole[i]) == 0)
            return true;
    size_t len = shard_of(name);
    return len && (!s->names || mr_names_have(s->names, s->count, name, len));
}

bool mr_folder_is_ours(int dir, const struct dirent *e, const mr_folder_shards *s)
{
    struct stat st;
    if (e->d_type == DT_DIR || !is_our_name(e->d_name, s))
        return false;
    return e->d_type != DT_UNKNOWN || fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode);
}

mr_status mr_folder_shards_of(int dir, mr_folder_shards *s, mr_error *err)
{
    size_t count = 0;
    *s = (mr_folder_shards){0};
    if (faccessat(dir, MR_MANIFEST, F_OK, 0) != 0)
        return MR_OK;
    mr_status status = mr_manifest_read(dir, &s->manifest, NULL, err);
    if (status != MR_OK)
        return status == MR_SYSTEM ? status : MR_OK; /* what is damaged names nothing */
    for (size_t i = 0; i < s->manifest->split_count; i++)
        count += s->manifest->splits[i].shard_count;
    s->names = mr_alloc(count, sizeof *s->names);
    if (!s->names) {
        mr_folder_shards_release(s);
        return mr_fail_memory(err, MR_MANIFEST);
    }
    for (size_t i = 0; i < s->manifest->split_count; i++)
        for (size_t k = 0; k < s->manifest->splits[i].shard_count; k++)
            s->names[s->count++] = s->manifest->splits[i].shards[k].name;
    mr_names_sort(s->names, s->count);
    return MR_OK;
}

void mr_folder_shards_release(mr_folder_shards *s)
{
    mr_manifest_free(s->manifest);
    free(s->names);
    *s = (mr_folder_shards){0};
}

bool mr_folder_skips(const struct dirent *e)
{
    static const char nfs[] = ".nfs";
    const char *name = e->d_name;
    size_t len = strlen(nfs), digits = strncmp(name, nfs, len) == 0 ? strspn(name + len, "0123456789abcdef") : 0;
    return mr_is_dots(name) || (digits >= 16 && name[len + digits] == '\0' && e->d_type != DT_DIR);
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

mr_status mr_folder_look(int dir, const char *path, const mr_folder_shards *s, mr_folder_kind *kind,
                         char foreign[NAME_MAX + 1], mr_error *err)
{
    DIR *list = mr_folder_list(dir);
    *kind = MR_FOLDER_EMPTY;
    foreign[0] = '\0';
    if (!list)
        return mr_fail_errno(err, errno, "%s", path);
    for (struct dirent *e; (e = readdir(list));) {
        if (mr_is_dots(e->d_name))
            continue;
        bool held = mr_folder_skips(e), manifest = strcmp(e->d_name, MR_MANIFEST) == 0;
        mr_folder_kind found = manifest ? MR_FOLDER_DATASET : held ? MR_FOLDER_HELD : MR_FOLDER_OTHER;
        *kind = found > *kind ? found : *kind;
        if (!held && !mr_folder_is_ours(dir, e, s))
            snprintf(foreign, NAME_MAX + 1, "%s", e->d_name);
    }
    closedir(list);
    return MR_OK;
}

mr_status mr_folder_lock(int dir, const char *path, mr_error *err)
{
    if (!mr_file_lock(dir, false))
        return mr_fail(err, MR_SYSTEM, "%s: another ingest is using it; wait until it ends, or name another DATASET",
                       path);
    return MR_OK;
}

mr_status mr_folder_unlink(int dir, const char *path, const char *name, mr_error *err)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return MR_OK;
    return mr_fail_errno(err, errno, "%s/%s: cannot remove", path, name);
}

mr_status mr_folder_clear(int dir, const char *path, const mr_folder_shards *s, mr_error *err)
{
    DIR *list = mr_folder_list(dir);
    mr_status status = list ? MR_OK : mr_fail_errno(err, errno, "%s", path);
    for (struct dirent *e; status == MR_OK && (e = readdir(list));)
        if (!mr_folder_skips(e) && strcmp(e->d_name, MR_MANIFEST) != 0 && mr_folder_is_ours(dir, e, s))
            status = mr_folder_unlink(dir, path, e->d_name, err);
    if (status == MR_OK)
        status = mr_folder_unlink(dir, path, MR_MANIFEST, err);
    if (list)
        closedir(list);
    return status;
}

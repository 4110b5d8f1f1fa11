/* beside.c - the names in a dataset's folder: which does the manifest not list?
 * Invariant: no file is opened; a name that could not be a shard's is only a warning. */
#include "shards/verify/parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/text.h"

/* From the last dot on; "": there is none. */
static const char *suffix_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot : "";
}

static bool listed(const mr_verify_find *find, const char *name)
{
    const char *suffix = suffix_of(name);
    if (strcmp(name, MR_MANIFEST) == 0 || strcmp(name, MR_REPORT) == 0 || strcmp(name, MR_CROISSANT) == 0)
        return true;
    if (strcmp(suffix, ".mdb") != 0 && strcmp(suffix, ".idx") != 0 && strcmp(suffix, MR_SEEK_SUFFIX) != 0)
        return false;
    return mr_verify_find_name(find, name, (size_t)(suffix - name));
}

/* SPLIT-NNNNN: only such a file could be mistaken for one of the dataset's. */
static bool could_be_a_shard(const char *name)
{
    char split[sizeof((mr_split *)NULL)->name];
    const char *dash = strrchr(name, '-');
    if (!dash || dash - name >= (ptrdiff_t)sizeof split || strspn(dash + 1, "0123456789") < 5)
        return false;
    snprintf(split, sizeof split, "%.*s", (int)(dash - name), name);
    const char *suffix = dash + 1 + strspn(dash + 1, "0123456789");
    return mr_split_name_ok(split) && (strcmp(suffix, ".mdb") == 0 || strcmp(suffix, ".idx") == 0);
}

static void add_extra(mr_verify_report *r, const char *name)
{
    mr_buf text = {0};
    mr_text_escape(&text, name, strlen(name));
    if (could_be_a_shard(name))
        mr_problem_add(&r->problems, MR_PROBLEM_EXTRA, NULL, MR_NO_SAMPLE, NULL,
                       "%s: is not a shard of the manifest; does it belong to another dataset?", mr_buf_text(&text));
    else
        mr_problem_add(&r->warnings, MR_PROBLEM_EXTRA, NULL, MR_NO_SAMPLE, NULL, "%s: is not part of the dataset",
                       mr_buf_text(&text));
    mr_buf_free(&text);
}

static int by_detail(const void *a, const void *b)
{
    const char *x = ((const mr_problem *)a)->detail, *y = ((const mr_problem *)b)->detail;
    return strcmp(x ? x : "", y ? y : "");
}

mr_status mr_verify_beside(int dirfd, const char *dir, const mr_verify_find *find, mr_verify_report *r, size_t *shards,
                           mr_error *err)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream) {
        int saved = errno;
        if (fd >= 0)
            close(fd);
        return mr_fail_errno(err, saved, "%s: cannot list", dir);
    }
    *shards = 0;
    for (struct dirent *e; (e = readdir(stream));) {
        if (mr_is_dots(e->d_name))
            continue;
        const char *suffix = suffix_of(e->d_name);
        *shards += strcmp(suffix, ".mdb") == 0;
        if (r && !listed(find, e->d_name))
            add_extra(r, e->d_name);
        else if (r)
            r->seeks += strcmp(suffix, MR_SEEK_SUFFIX) == 0;
    }
    if (r && r->seeks && r->seeks < r->shard_count)
        mr_problem_add(&r->warnings, MR_PROBLEM_SEEK, NULL, MR_NO_SAMPLE, NULL,
                       "%zu of %zu shards have a seek index; "
                       "`millrace seek` makes the others",
                       r->seeks, r->shard_count);
    closedir(stream);
    if (r && r->problems.items && !r->problems.failed)
        qsort(r->problems.items, r->problems.count, sizeof *r->problems.items, by_detail);
    if (r && r->warnings.items && !r->warnings.failed)
        qsort(r->warnings.items, r->warnings.count, sizeof *r->warnings.items, by_detail);
    return MR_OK;
}

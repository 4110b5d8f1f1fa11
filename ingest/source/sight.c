/* sight.c - a walk through the sources on each host, and the first file in which two of them differ.
 * Invariant: rank 0's listing stays the one that is worked on; this only compares. */
#include "ingest/source/sight.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/hash.h"
#include "base/scope.h"
#include "ingest/source/list.h"

enum { DEEPEST = 64 }; /* as folder.c */

/* ---- looking ----------------------------------------------------------------------------------------------------- */

/* `seed`: a hash of the names of the folders above. */
static void count_file(mr_sight *s, const char *name, uint64_t seed, uint64_t size)
{
    s->files++;
    s->bytes += size;
    s->sum += mr_hash64_seeded(&size, sizeof size, mr_hash64_seeded(name, strlen(name), seed));
}

/* Takes over fd. */
static void look(mr_sight *s, int fd, uint64_t seed, unsigned depth)
{
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !dir)
        close(fd);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        struct stat st, end;
        if (mr_is_dots(e->d_name) || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (S_ISLNK(st.st_mode) && fstatat(fd, e->d_name, &end, 0) == 0 && S_ISREG(end.st_mode))
            st = end;
        if (!S_ISDIR(st.st_mode))
            count_file(s, e->d_name, seed, S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0);
        else if (depth < DEEPEST)
            look(s, openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                 mr_hash64_seeded(e->d_name, strlen(e->d_name), seed), depth + 1);
    }
    if (dir)
        closedir(dir);
}

mr_sight mr_sight_of(char *const *srcs, size_t count)
{
    mr_sight s = {.files = 0};
    for (size_t i = 0; i < count; i++) {
        struct stat st;
        if (strcmp(srcs[i], "-") == 0 || stat(srcs[i], &st) != 0)
            continue;
        if (S_ISDIR(st.st_mode))
            look(&s, open(srcs[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC), i, 0);
        else if (S_ISREG(st.st_mode))
            count_file(&s, srcs[i], i, (uint64_t)st.st_size);
    }
    return s;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

typedef struct seen {
    mr_sight sight;
    uint64_t looked; /* this rank is the first of its host */
} seen;

/* The first file of the listing that this host does not see as it was listed; NULL: there is none. */
static const mr_entry *first_other(const mr_source *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const mr_entry *e = &s->entries[i];
        MR_AUTO(mr_scope_close) int fd = -1;
        uint64_t size;
        if (s->holders[e->holder].kind == HOLD_FOLDER &&
            (mr_list_open(s, e, &fd, &size, NULL) != MR_OK || size != e->size))
            return e;
    }
    return NULL;
}

static mr_status tell(const mr_source *listing, const seen *zero, const seen *mine, const mr_ranks *ranks,
                      mr_error *err)
{
    const mr_entry *e = first_other(listing);
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    if (e) {
        mr_source_quote(e->path, e->path_len, &name);
        mr_buf_add_text(&name, " is missing here or has another size: ");
    }
    return mr_fail(err, MR_BAD_DATA,
                   "the source is not that of %s: %s%llu files with %llu bytes here, %llu with %llu there; give all "
                   "hosts the same files",
                   mr_ranks_name_of(ranks, 0).text, mr_buf_text(&name), (unsigned long long)mine->sight.files,
                   (unsigned long long)mine->sight.bytes, (unsigned long long)zero->sight.files,
                   (unsigned long long)zero->sight.bytes);
}

mr_status mr_sight_agree(const mr_source *listing, char *const *srcs, size_t count, mr_ranks *ranks, mr_error *err)
{
    unsigned world = mr_ranks_world(ranks), rank = mr_ranks_rank(ranks), other = 0;
    seen mine = {.looked = mr_ranks_local_rank(ranks) == 0}, zero, theirs;
    MR_AUTO(mr_buf_free) mr_buf packed = {0}, all = {0};
    if (mr_ranks_local_size(ranks) == world)
        return MR_OK;
    if (mine.looked)
        mine.sight = mr_sight_of(srcs, count);
    mr_buf_add(&packed, &mine, sizeof mine);
    MR_TRY(mr_ranks_agree(ranks, mr_buf_status(&packed, err, "comparing sources"), err));
    MR_TRY(mr_ranks_gather(ranks, &packed, &all, NULL, err));
    memcpy(&zero, all.data, sizeof zero);
    for (unsigned i = 1; i < world && !other; i++) {
        memcpy(&theirs, all.data + i * sizeof theirs, sizeof theirs);
        other = theirs.looked && memcmp(&theirs.sight, &zero.sight, sizeof zero.sight) != 0 ? i : 0;
    }
    if (!other)
        return MR_OK;
    return mr_ranks_agree(ranks, rank == other ? tell(listing, &zero, &mine, ranks, err) : MR_OK, err);
}

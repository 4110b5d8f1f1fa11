/* writer.c - one shard file, written through liblmdb in transactions of a fixed number of bytes.
 *
 * LMDB keeps the dirty pages of a transaction in memory, so one transaction per shard would cost each thread a shard of
 * memory.  The file is a private temporary until it is renamed: committing often, without syncing, is safe, and as the
 * moments depend on the records alone the bytes stay reproducible. */
#include "shards/format/writer.h"

#include <errno.h>
#include <stdbool.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <lmdb.h>

#include "base/scope.h"

struct mr_writer {
    char *path;
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi image, meta;
    uint64_t pending;    /* bytes put since the last commit */
    uint64_t bytes, map; /* bytes of the file, an upper bound since the last commit; size of the map */
};

enum {
    FIRST_MAP = 64 << 20,
    SPARE = 4 << 20, /* for what a commit itself writes: branches, roots, the list of free pages */
};

/* LMDB reports a short write as EIO or ENOSPC, whatever the cause: ask the system. */
static mr_status lmdb_failed(const mr_writer *w, int code, mr_error *err)
{
    struct statvfs fs;
    struct stat st;
    struct rlimit limit;
    bool is_short = code == EIO || code == ENOSPC;
    if (is_short && statvfs(w->path, &fs) == 0 && fs.f_bavail * fs.f_frsize < MR_WRITER_BATCH * 2)
        return mr_fail(err, MR_SYSTEM, "%s: no space left on the disk", w->path);
    if ((is_short || code == EFBIG) && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        stat(w->path, &st) == 0 && (uint64_t)st.st_size + MR_WRITER_BATCH * 2 > limit.rlim_cur)
        return mr_fail(err, MR_SYSTEM,
                       "%s: File too large: no file may be larger than %llu bytes here (`ulimit -f`); "
                       "raise the limit, or give a smaller --shard-size",
                       w->path, (unsigned long long)limit.rlim_cur);
    if (code == EIO)
        return mr_fail(err, MR_SYSTEM,
                       "%s: cannot be written in full: disk full, a quota or file size limit, or a "
                       "failing disk",
                       w->path);
    if (code == MDB_MAP_FULL)
        return mr_fail(err, MR_SYSTEM, "%s: the shard exceeds its memory map", w->path);
    if (code == ENOMEM)
        return mr_fail(err, MR_SYSTEM, "%s: out of memory or address space", w->path);
    return mr_fail(err, MR_SYSTEM, "%s: %s", w->path, mdb_strerror(code));
}

static void release(mr_writer *w)
{
    if (w->txn)
        mdb_txn_abort(w->txn);
    if (w->env)
        mdb_env_close(w->env);
    free(w->path);
    free(w);
}

void mr_writer_abandon(mr_writer *w)
{
    if (!w)
        return;
    unlink(w->path);
    release(w);
}

mr_status mr_writer_open(const char *path, mr_writer **out, mr_error *err)
{
    mr_writer *w = mr_alloc(1, sizeof *w);
    if (!w || !(w->path = strdup(path))) {
        free(w);
        return mr_fail_memory(err, path);
    }
    /* Created here, so that an existing file is never appended to. */
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        mr_fail_errno(err, errno, "%s", path);
        release(w);
        return MR_SYSTEM;
    }
    close(fd);
    int code = mdb_env_create(&w->env);
    if (code == 0)
        code = mdb_env_set_mapsize(w->env, FIRST_MAP);
    if (code == 0)
        code = mdb_env_set_maxdbs(w->env, 2);
    if (code == 0)
        code = mdb_env_open(w->env, path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC | MDB_NOTLS, 0666);
    if (code == 0)
        code = mdb_txn_begin(w->env, NULL, 0, &w->txn);
    if (code == 0)
        code = mdb_dbi_open(w->txn, MR_DB_IMAGE, MDB_CREATE, &w->image);
    if (code == 0)
        code = mdb_dbi_open(w->txn, MR_DB_META, MDB_CREATE, &w->meta);
    if (code != 0) {
        mr_status status = lmdb_failed(w, code, err);
        mr_writer_abandon(w);
        return status;
    }
    w->map = FIRST_MAP;
    *out = w;
    return MR_OK;
}

static mr_status commit(mr_writer *w, bool more, mr_error *err)
{
    int code = mdb_txn_commit(w->txn);
    w->txn = NULL;
    w->pending = 0;
    /* Lets the disk begin now; the fsync at the end then waits for the last batch only. */
    mdb_filehandle_t fd;
    if (code == 0 && mdb_env_get_fd(w->env, &fd) == 0)
        sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    if (code == 0 && more)
        code = mdb_txn_begin(w->env, NULL, 0, &w->txn);
    return code ? lmdb_failed(w, code, err) : MR_OK;
}

/* The map doubles before it can be full, between transactions, at moments that the records alone decide: it is part of
 * the file's bytes, and a map of the largest possible shard would be refused where address space is limited. */
static mr_status make_room(mr_writer *w, uint64_t more, mr_error *err)
{
    MDB_envinfo info;
    MR_TRY(commit(w, false, err));
    int code = mdb_env_info(w->env, &info);
    if (code)
        return lmdb_failed(w, code, err);
    uint64_t before = w->map;
    w->bytes = (info.me_last_pgno + 1) * MR_LMDB_PAGE;
    while (w->map < w->bytes + more + SPARE)
        w->map *= 2;
    if (w->map != before)
        code = mdb_env_set_mapsize(w->env, w->map);
    if (code == 0)
        code = mdb_txn_begin(w->env, NULL, 0, &w->txn);
    return code ? lmdb_failed(w, code, err) : MR_OK;
}

static mr_status put(mr_writer *w, MDB_dbi dbi, uint64_t sample, const void *bytes, size_t len, mr_error *err)
{
    uint8_t key_bytes[MR_LMDB_KEY];
    mr_key_pack(sample, key_bytes);
    MDB_val key = {sizeof key_bytes, key_bytes}, value = {len, (void *)(uintptr_t)bytes};
    /* At most: pages of its own after a header, and a node in a leaf; or all of it in a leaf that is half empty. */
    uint64_t max = len < MR_LMDB_PAGE / 2 ? 2 * (len + 64) : len + 2 * MR_LMDB_PAGE;
    if (w->bytes + max + SPARE > w->map)
        MR_TRY(make_room(w, max, err));
    w->bytes += max;
    int code = mdb_put(w->txn, dbi, &key, &value, MDB_APPEND);
    if (code)
        return lmdb_failed(w, code, err);
    w->pending += len;
    return w->pending >= MR_WRITER_BATCH ? commit(w, true, err) : MR_OK;
}

mr_status mr_writer_image(mr_writer *w, uint64_t sample, const void *bytes, size_t len, mr_error *err)
{
    return put(w, w->image, sample, bytes, len, err);
}

mr_status mr_writer_meta(mr_writer *w, uint64_t sample, const void *bytes, size_t len, mr_error *err)
{
    return put(w, w->meta, sample, bytes, len, err);
}

mr_status mr_writer_finish(mr_writer *w, mr_error *err)
{
    if (!w)
        return MR_OK;
    mr_status status = commit(w, false, err);
    if (status != MR_OK)
        unlink(w->path);
    release(w);
    return status;
}

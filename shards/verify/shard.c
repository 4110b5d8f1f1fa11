/* shard.c - the checks of one shard: both files, their digests, and which samples are damaged.
 * Invariant: every sample counted in out->damaged is explained by a problem, its own or one of the whole shard. */
#include "shards/verify/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/supply.h"
#include "base/scope.h"

typedef unsigned long long ull;

#define SHARD_PROBLEM(job, kind, ...)                                                                                  \
    mr_problem_add(&(job)->out->problems, kind, (job)->shard->name, MR_NO_SAMPLE, NULL, __VA_ARGS__)

/* *fd is -1 if there is no regular file that can be read: then that has been reported as a problem.  A link is
 * followed, as readers do: what is checked is what they are given. */
static mr_status open_file(mr_verify_job *job, const char *name, int *fd, uint64_t *size, mr_error *err)
{
    struct stat st;
    /* O_NONBLOCK: a FIFO in place of the file must not block. */
    *fd = openat(job->dirfd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0 && errno == ENOENT) {
        mr_error why;
        mr_status supplied = mr_supply_file(job->dirfd, name, fd, &why);
        if (supplied != MR_OK && supplied != MR_END)
            return mr_verify_refusal(job, MR_PROBLEM_UNREADABLE, errno, &why, err);
        errno = ENOENT;
    }
    if (*fd < 0 && errno == ENOENT) {
        bool linked = faccessat(job->dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        SHARD_PROBLEM(job, MR_PROBLEM_MISSING, "%s: the file %sis missing", name, linked ? "that it links to " : "");
        return MR_OK;
    }
    if (*fd < 0 && (errno == ELOOP || errno == ENXIO || errno == ENODEV)) {
        SHARD_PROBLEM(job, MR_PROBLEM_NOT_A_FILE, "%s: is a %s, not a file", name,
                      errno == ELOOP ? "dangling link" : "socket or device");
        return MR_OK;
    }
    if (*fd < 0 || fstat(*fd, &st) != 0) {
        mr_error why;
        int errnum = errno;
        mr_fail_errno(&why, errnum, "%s: cannot open", name);
        if (*fd >= 0)
            close(*fd);
        *fd = -1;
        return mr_verify_refusal(job, MR_PROBLEM_UNREADABLE, errnum, &why, err);
    }
    if (!S_ISREG(st.st_mode)) {
        SHARD_PROBLEM(job, MR_PROBLEM_NOT_A_FILE, "%s: is a %s, not a file", name,
                      S_ISDIR(st.st_mode)    ? "folder"
                      : S_ISFIFO(st.st_mode) ? "FIFO"
                                             : "device");
        close(*fd);
        *fd = -1;
        return MR_OK;
    }
    *size = (uint64_t)st.st_size;
    return MR_OK;
}

static bool same_digest(const mr_verify_job *job, const mr_digest *a, const mr_digest *b)
{
    return a->bytes == b->bytes && memcmp(a->xxh3_128, b->xxh3_128, sizeof a->xxh3_128) == 0 &&
           (job->options->no_sha256 || memcmp(a->sha256, b->sha256, sizeof a->sha256) == 0);
}

static void size_problem(mr_verify_job *job, const char *name, uint64_t size, uint64_t expected)
{
    SHARD_PROBLEM(job, MR_PROBLEM_SIZE, "%s: has %llu bytes, the manifest says %llu (%llu %s)", name, (ull)size,
                  (ull)expected, (ull)(size < expected ? expected - size : size - expected),
                  size < expected ? "are missing" : "too many");
}

static void digest_problem(mr_verify_job *job, const char *name, bool idx, const mr_digest *found, const char *so)
{
    const mr_digest *listed = idx ? &job->shard->idx : &job->shard->mdb;
    const mr_shard *other = mr_verify_find_other(job, idx, found->bytes, found);
    char a[33], b[33];
    if (other) {
        SHARD_PROBLEM(job, MR_PROBLEM_DIGEST, "%s: holds the bytes of %s.%s; were the two files swapped?", name,
                      other->name, idx ? "idx" : "mdb");
        return;
    }
    bool by_sha = memcmp(listed->xxh3_128, found->xxh3_128, 16) == 0;
    mr_hex(by_sha ? found->sha256 : found->xxh3_128, 16, a);
    mr_hex(by_sha ? listed->sha256 : listed->xxh3_128, 16, b);
    if (by_sha) /* not by accident */
        so = "..., though XXH3-128 agrees: the file or the manifest was changed on purpose";
    SHARD_PROBLEM(job, MR_PROBLEM_DIGEST, "%s: its %s is %s%s, the manifest says %s%s", name,
                  by_sha ? "SHA-256" : "XXH3-128", a, by_sha ? "..." : "", b, so);
}

/* ---- the index ------------------------------------------------------------------------------------------------ */

static mr_status digest_bytes(const mr_verify_job *job, const void *bytes, size_t len, mr_digest *out, mr_error *err)
{
    mr_hasher *hasher;
    MR_TRY(mr_hasher_begin(!job->options->no_sha256, &hasher, err));
    mr_hasher_add(hasher, bytes, len);
    return mr_hasher_end(hasher, out, err);
}

static mr_status check_index_bytes(mr_verify_job *job, const mr_buf *bytes, mr_error *err)
{
    mr_digest digest;
    mr_error why;
    MR_TRY(digest_bytes(job, bytes->data, bytes->len, &digest, err));
    job->index_good = same_digest(job, &digest, &job->shard->idx);
    bool right_size = bytes->len == job->shard->idx.bytes;
    if (!job->index_good && (right_size || mr_verify_find_other(job, true, bytes->len, &digest)))
        digest_problem(job, job->idx_name, true, &digest, "");
    if (!right_size)
        return MR_OK;
    /* A damaged index may still identify good records: a hash that matches proves its record. */
    mr_status status = mr_index_parse(bytes->data, bytes->len, job->shard, &job->rows, &why);
    if (status == MR_OK)
        return MR_OK;
    job->rows = NULL;
    if (status == MR_SYSTEM)
        return mr_fail(err, status, "%s", why.text);
    if (job->index_good)
        SHARD_PROBLEM(job, MR_PROBLEM_INDEX, "%s", why.text);
    job->index_good = false;
    return MR_OK;
}

static mr_status read_index(mr_verify_job *job, int fd, uint64_t size, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    mr_error why;
    if (!mr_buf_reserve(&bytes, size))
        return mr_fail_memory(err, job->idx_name);
    mr_status status = mr_file_pread(fd, bytes.data, size, 0, job->idx_name, &why);
    if (status == MR_SYSTEM)
        return mr_verify_refusal(job, MR_PROBLEM_UNREADABLE, errno, &why, err);
    if (status != MR_OK) {
        SHARD_PROBLEM(job, MR_PROBLEM_SIZE, "%s; it was truncated while it was being read", why.text);
        return MR_OK;
    }
    bytes.len = size;
    return check_index_bytes(job, &bytes, err);
}

static mr_status check_index(mr_verify_job *job, mr_error *err)
{
    MR_AUTO(mr_scope_close) int fd = -1;
    uint64_t size = 0, listed = job->shard->idx.bytes;
    MR_TRY(open_file(job, job->idx_name, &fd, &size, err));
    if (fd < 0)
        return MR_OK;
    if (size != listed)
        size_problem(job, job->idx_name, size, listed);
    bool readable = size == listed || mr_verify_find_other(job, true, size, NULL);
    return readable ? read_index(job, fd, size, err) : MR_OK;
}

/* ---- what is damaged ------------------------------------------------------------------------------------------ */

static uint64_t count_damaged(const mr_verify_job *job)
{
    uint64_t damaged = 0;
    for (uint64_t i = 0; job->rows && i < job->shard->samples; i++)
        damaged += job->damaged[i] != 0;
    return damaged;
}

static void report_damaged_sample(mr_verify_job *job, uint64_t row, uint64_t read_to)
{
    const mr_row *r = &job->rows[row];
    bool image = job->damaged[row] & MR_DAMAGED_IMAGE, meta = job->damaged[row] & MR_DAMAGED_META;
    bool past_end =
        (image && r->image_offset + r->image_len > read_to) || (meta && r->meta_offset + r->meta_len > read_to);
    const char *what = image && meta ? "its image and its meta" : image ? "its image" : "its meta";
    const char *how = job->unread ? (image && meta ? "cannot be read, or differ from their hashes"
                                                   : "cannot be read, or differs from its hash")
                      : past_end  ? (image && meta ? "are past the end of the file" : "is past the end of the file")
                                  : (image && meta ? "differ from their hashes" : "differs from its hash");
    char shared[80] = "";
    if (image && r->holder != row)
        snprintf(shared, sizeof shared, " (stored once, under sample %llu)", (ull)(job->shard->first + r->holder));
    mr_problem_add(&job->out->problems, MR_PROBLEM_RECORD, job->shard->name, job->shard->first + row,
                   mr_verify_source(job, row), "%s %s%s", what, how, shared);
}

static void report_damaged_samples(mr_verify_job *job, uint64_t read_to)
{
    for (uint64_t i = 0; i < job->shard->samples && !job->out->problems.failed; i++)
        if (job->damaged[i])
            report_damaged_sample(job, i, read_to);
}

/* ---- the shard ------------------------------------------------------------------------------------------------ */

/* The bytes are not those that were ingested: find the extent. */
static void explain(mr_verify_job *job, const mr_digest *found, uint64_t read_to)
{
    bool whole_size = job->size == job->shard->mdb.bytes;
    if (mr_verify_find_other(job, false, found->bytes, found)) {
        digest_problem(job, job->mdb_name, false, found, "");
        job->out->damaged = job->shard->samples;
        return;
    }
    if (!job->rows) {
        if (whole_size)
            digest_problem(job, job->mdb_name, false, found,
                           "; without a good index, damage cannot be assigned to samples");
        job->out->damaged = job->shard->samples;
        return;
    }
    uint64_t damaged = count_damaged(job);
    bool forged = memcmp(found->xxh3_128, job->shard->mdb.xxh3_128, sizeof found->xxh3_128) == 0;
    if ((damaged || forged) && whole_size)
        digest_problem(job, job->mdb_name, false, found, "");
    else if (whole_size)
        SHARD_PROBLEM(job, MR_PROBLEM_STRUCTURE,
                      "%s: the digest differs, but every record is intact according to the index: the damage is in "
                      "LMDB's own pages",
                      job->mdb_name);
    report_damaged_samples(job, read_to);
}

static mr_status check_bytes(mr_verify_job *job, mr_error *err)
{
    uint64_t listed = job->shard->mdb.bytes, read_to;
    uint64_t bytes = job->size < listed || mr_verify_find_other(job, false, job->size, NULL) ? job->size : listed;
    mr_digest digest;
    MR_TRY(mr_verify_pass(job, bytes, &digest, &read_to, err));
    if (job->unread) {
        if (job->rows)
            report_damaged_samples(job, read_to);
        else
            job->out->damaged = job->shard->samples;
        return MR_OK;
    }
    if (read_to < bytes)
        SHARD_PROBLEM(job, MR_PROBLEM_SIZE, "%s: was truncated while it was being read", job->mdb_name);
    bool good = same_digest(job, &digest, &job->shard->mdb);
    if (!good)
        explain(job, &digest, read_to);
    else if (!job->index_good && job->size == listed)
        job->out->index_only = true;
    else if (job->index_good && count_damaged(job))
        report_damaged_samples(job, read_to);
    /* Rows of a damaged index prove nothing against an intact shard. */
    if (good && !job->index_good && job->rows)
        memset(job->damaged, 0, job->shard->samples);
    return MR_OK;
}

static mr_status check_shard(mr_verify_job *job, mr_error *err)
{
    MR_TRY(open_file(job, job->mdb_name, &job->mdb, &job->size, err));
    if (job->mdb < 0) {
        job->out->damaged = job->shard->samples;
        return MR_OK;
    }
    if (job->size != job->shard->mdb.bytes)
        size_problem(job, job->mdb_name, job->size, job->shard->mdb.bytes);
    if (job->options->level == MR_VERIFY_QUICK)
        return MR_OK;
    MR_TRY(check_bytes(job, err));
    if (job->options->level >= MR_VERIFY_DEEP)
        MR_TRY(mr_verify_deep(job, err));
    if (!job->out->damaged)
        job->out->damaged = count_damaged(job);
    return MR_OK;
}

static mr_status check_files(mr_verify_job *job, mr_error *err)
{
    MR_TRY(check_index(job, err));
    if (job->rows) {
        job->damaged = mr_alloc(job->shard->samples, 1);
        if (!job->damaged)
            return mr_fail_memory(err, job->idx_name);
        if (job->shard->samples > INT32_MAX) /* a row and its part share 32 bits in the pass over the file */
            return mr_fail(err, MR_SYSTEM, "%s: more samples than verify can hold in one shard", job->idx_name);
    }
    mr_verify_rows(job);
    MR_TRY(mr_verify_seek(job, err));
    MR_TRY(check_shard(job, err));
    return job->out->problems.failed ? mr_fail_memory(err, "collecting problems") : MR_OK;
}

mr_status mr_verify_one(mr_verify_job *job, mr_error *err)
{
    double start = mr_seconds();
    job->mdb = -1;
    snprintf(job->mdb_name, sizeof job->mdb_name, "%s.mdb", job->shard->name);
    snprintf(job->idx_name, sizeof job->idx_name, "%s.idx", job->shard->name);
    mr_status status = check_files(job, err);
    if (job->mdb >= 0)
        close(job->mdb);
    free(job->rows);
    free(job->damaged);
    mr_buf_free(&job->seek);
    job->out->seconds = mr_seconds() - start;
    return status;
}

/* seek.c - a seek index, checked by its own hashes, against the index, and by rebuilding it.
 * Invariant: it affects nothing else: no sample is damaged because of it. */
#include "shards/verify/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"

typedef unsigned long long ull;

static void problem(mr_verify_job *job, uint64_t sample, const char *text)
{
    mr_problem_add(&job->out->problems, MR_PROBLEM_SEEK, job->shard->name, sample, NULL, "%s", text);
}

/* *fd is -1 if there is none, or if it is not a file: then that has been reported as a problem.  A link is followed, as
 * when it is used: the bytes are checked. */
static mr_status open_seek(mr_verify_job *job, const char *name, int *fd, uint64_t *size, mr_error *err)
{
    mr_error why;
    errno = 0;
    mr_status status = mr_file_open(job->dirfd, name, true, fd, size, &why);
    int errnum = errno;
    if (status == MR_OK)
        return MR_OK;
    *fd = -1;
    if (status == MR_SYSTEM && errnum == ENOENT)
        return MR_OK;
    if (status == MR_BAD_DATA || errnum == ENXIO || errnum == ENODEV || errnum == ELOOP) {
        problem(job, MR_NO_SAMPLE, why.text);
        return MR_OK;
    }
    return mr_verify_refusal(job, MR_PROBLEM_SEEK, errnum, &why, err);
}

/* Header and table in job->seek, without what follows them. */
static mr_status check_head(mr_verify_job *job, int fd, uint64_t size, const char *name, mr_error *why)
{
    const mr_row *rows = job->index_good ? job->rows : NULL;
    uint8_t packed[MR_SEEK_HEADER] = {0};
    MR_TRY(size < sizeof packed ? MR_OK : mr_file_pread(fd, packed, sizeof packed, 0, name, why));
    MR_TRY(mr_seek_check_header(packed, size, &job->counted, &job->seek_header, why));
    uint64_t table = (job->seek_header.rows + 1) * MR_SEEK_OFFSET;
    if (!mr_buf_reserve(&job->seek, table))
        return mr_fail_memory(why, name);
    MR_TRY(mr_file_pread(fd, job->seek.data, table, MR_SEEK_HEADER, name, why));
    return mr_seek_check_table(job->seek.data, &job->seek_header, size, &job->counted, rows, why);
}

static mr_status check_all(mr_verify_job *job, int fd, uint64_t size, const char *name, mr_error *why)
{
    const mr_row *rows = job->index_good ? job->rows : NULL;
    MR_TRY(check_head(job, fd, size, name, why));
    mr_buf_clear(&job->seek);
    if (!mr_buf_reserve(&job->seek, size))
        return mr_fail_memory(why, name);
    MR_TRY(mr_file_pread(fd, job->seek.data, size, 0, name, why));
    job->seek.len = size;
    return mr_seek_check(job->seek.data, size, &job->counted, rows, &job->seek_header, why);
}

mr_status mr_verify_seek(mr_verify_job *job, mr_error *err)
{
    char name[MR_SEEK_NAME];
    mr_error why = {.status = MR_OK};
    uint64_t size = 0;
    MR_AUTO(mr_scope_close) int fd = -1;
    snprintf(name, sizeof name, "%s" MR_SEEK_SUFFIX, job->shard->name);
    MR_TRY(open_seek(job, name, &fd, &size, err));
    if (fd < 0)
        return MR_OK;
    bool quick = job->options->level == MR_VERIFY_QUICK;
    errno = 0;
    mr_status status = (quick ? check_head : check_all)(job, fd, size, name, &why);
    int errnum = errno;
    if (status != MR_OK || job->options->level < MR_VERIFY_DECODE || !job->index_good)
        mr_buf_free(&job->seek);
    if (status == MR_BAD_DATA) {
        problem(job, MR_NO_SAMPLE, why.text);
        return MR_OK;
    }
    return status == MR_OK ? MR_OK : mr_verify_refusal(job, MR_PROBLEM_SEEK, errnum, &why, err);
}

mr_status mr_verify_seek_row(mr_verify_job *job, uint64_t i, mr_error *err)
{
    const mr_row *row = &job->rows[i];
    mr_verify_scratch *s = job->scratch;
    mr_seek_span span = {.len = 0};
    if (row->codec != MR_CODEC_JPEG)
        return MR_OK;
    if (!s->decoder)
        s->decoder = mr_jpeg_decoder_new();
    if (!s->decoder)
        return mr_fail_memory(err, job->mdb_name);
    mr_seek_span_at(job->seek.data + MR_SEEK_HEADER + i * MR_SEEK_OFFSET, job->seek.len, job->seek_header.rows,
                    row->image_len, &span);
    mr_buf_clear(&s->entries);
    bool made = mr_jpeg_seek_make(s->decoder, s->record.data, row->image_len, job->seek_header.every, &s->entries) ==
                MR_JPEG_DONE;
    if (s->entries.failed)
        return mr_fail_memory(err, job->mdb_name);
    size_t len = made && s->entries.len <= row->image_len ? s->entries.len : 0;
    if (len != span.len || (len && memcmp(s->entries.data, job->seek.data + span.offset + MR_SEEK_CHECK, len) != 0))
        problem(job, job->shard->first + i,
                len ? "its entries in the seek index are not those of its scan; "
                      "`millrace seek --force` rebuilds them"
                    : "has entries in the seek index, but decoding cannot start within its scan; `millrace seek "
                      "--force` rebuilds the seek index");
    return MR_OK;
}

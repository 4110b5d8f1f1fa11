/* shard.c - the seek file of one shard, from its records.
 * Invariant: entries are made only of an image that matched its hash in this very buffer, by an index that has the
 * manifest's digest; so what is made of a shard is always the same. */
#include "shards/seek/parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "shards/format/record.h"

static double thread_cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

mr_status mr_seek_job_init(mr_seek_job *job, mr_error *err)
{
    job->chunk_count = job->left = (size_t)((job->shard->samples + MR_SEEK_CHUNK - 1) / MR_SEEK_CHUNK);
    job->mdb = -1;
    return pthread_mutex_init(&job->lock, NULL) == 0 ? MR_OK : mr_fail_memory(err, "making a seek index");
}

static void release(mr_seek_job *job)
{
    for (size_t i = 0; job->chunks && i < job->chunk_count; i++)
        mr_buf_free(&job->chunks[i]);
    free(job->chunks);
    free(job->lens);
    free(job->rows);
    mr_buf_free(&job->existing);
    if (job->mdb >= 0)
        close(job->mdb);
    job->chunks = NULL;
    job->lens = NULL;
    job->rows = NULL;
    job->mdb = -1;
}

void mr_seek_job_free(mr_seek_job *job)
{
    release(job);
    pthread_mutex_destroy(&job->lock);
}

/* ---- begin ------------------------------------------------------------------------------------------------------ */

static mr_status read_index(mr_seek_job *job, mr_error *err)
{
    const mr_shard *shard = job->shard;
    MR_TRY(mr_index_read(job->dirfd, shard, &job->rows, err));
    return mr_index_check_counts(job->rows, shard, NULL, err); /* they bound the size of a seek index */
}

static void count_images(mr_seek_job *job)
{
    for (uint64_t i = 0; i < job->shard->samples; i++) {
        bool own = job->rows[i].holder == i;
        job->out->images += own;
        job->out->jpegs += own && job->rows[i].codec == MR_CODEC_JPEG;
    }
}

/* Whether the existing file is what would be made, as far as its hashes show. */
static mr_status check_existing(mr_seek_job *job, const char *name, bool *good, mr_error *err)
{
    mr_seek_header header = {.rows = 0};
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    mr_error why;
    mr_status status = mr_file_read_all(job->dirfd, name, mr_seek_bytes_max(job->shard), &bytes, &why);
    if (bytes.failed)
        return mr_fail_memory(err, name);
    if (status == MR_OK)
        status = mr_seek_check(bytes.data, bytes.len, job->shard, job->rows, &header, &why);
    *good = status == MR_OK && header.every == job->options->every;
    if (!*good)
        return MR_OK;
    job->out->bytes = bytes.len;
    for (uint64_t i = 0; i < header.rows; i++) {
        const uint8_t *pair = bytes.data + MR_SEEK_HEADER + i * MR_SEEK_OFFSET;
        job->out->indexed += mr_get64le(pair) != mr_get64le(pair + MR_SEEK_OFFSET);
    }
    return MR_OK;
}

static mr_status open_records(mr_seek_job *job, mr_error *err)
{
    MR_TRY(mr_index_open_file(job->dirfd, job->shard, "mdb", &job->mdb, err));
    job->chunks = mr_alloc(job->chunk_count, sizeof *job->chunks);
    job->lens = mr_alloc(job->shard->samples, sizeof *job->lens);
    return job->chunks && job->lens ? MR_OK : mr_fail_memory(err, job->shard->name);
}

/* Its hashes are looked at first: what they find is damage; what only the comparison finds was made on purpose. */
static mr_status begin_check(mr_seek_job *job, const char *name, mr_error *err)
{
    mr_seek_header header;
    errno = 0;
    mr_status status = mr_file_read_all(job->dirfd, name, mr_seek_bytes_max(job->shard), &job->existing, err);
    if (status == MR_SYSTEM && errno == ENOENT) {
        job->out->outcome = MR_SEEK_NONE;
        job->out->images = job->out->jpegs = 0; /* which are counted beside those indexed */
        job->idle = true;
        return MR_OK;
    }
    MR_TRY(status);
    MR_TRY(mr_seek_check(job->existing.data, job->existing.len, job->shard, job->rows, &header, err));
    job->every = header.every;
    return open_records(job, err);
}

static mr_status begin(mr_seek_job *job, mr_error *err)
{
    char name[MR_SEEK_NAME];
    bool good = false;
    snprintf(name, sizeof name, "%s" MR_SEEK_SUFFIX, job->shard->name);
    job->every = job->options->every;
    if (!job->options->check)
        mr_file_forget(job->dirfd, name); /* left by a run that was killed */
    MR_TRY(read_index(job, err));
    count_images(job);
    if (job->options->check)
        return begin_check(job, name, err);
    if (!job->options->force)
        MR_TRY(check_existing(job, name, &good, err));
    if (!good)
        return open_records(job, err);
    job->out->outcome = MR_SEEK_GOOD;
    job->idle = true;
    return MR_OK;
}

/* ---- a chunk ---------------------------------------------------------------------------------------------------- */

typedef struct tally {
    uint64_t indexed, examined;
    double cpu;
} tally;

static mr_status read_image(const mr_seek_job *job, mr_seek_worker *h, uint64_t i, mr_error *err)
{
    const mr_row *row = &job->rows[i];
    mr_buf_clear(&h->record);
    if (!mr_buf_reserve(&h->record, row->image_len))
        return mr_fail_memory(err, job->shard->name);
    return mr_record_read(job->mdb, job->shard, job->shard->first + i, mr_row_image(row), h->record.data, err);
}

/* Entries that are longer than their image would cost more than they save; a reader counts on that. */
static mr_status add_row(mr_seek_job *job, mr_seek_worker *h, mr_buf *out, uint64_t i, tally *t, mr_error *err)
{
    const mr_row *row = &job->rows[i];
    uint8_t check[MR_SEEK_CHECK];
    MR_TRY(read_image(job, h, i, err));
    mr_buf_clear(&h->entries);
    double start = thread_cpu();
    mr_jpeg_outcome outcome = mr_jpeg_seek_make(h->decoder, h->record.data, row->image_len, job->every, &h->entries);
    t->cpu += thread_cpu() - start;
    t->examined++;
    MR_TRY(mr_buf_status(&h->entries, err, job->shard->name));
    if (outcome != MR_JPEG_DONE || h->entries.len == 0 || h->entries.len > row->image_len)
        return MR_OK;
    mr_put64le(check, mr_hash64(h->entries.data, h->entries.len) ^ row->image_hash);
    mr_buf_add(out, check, sizeof check);
    mr_buf_add(out, h->entries.data, h->entries.len);
    job->lens[i] = (uint32_t)h->entries.len;
    t->indexed++;
    return mr_buf_status(out, err, job->shard->name);
}

static mr_status add_rows(mr_seek_job *job, mr_seek_worker *h, size_t chunk, tally *t, mr_error *err)
{
    uint64_t first = (uint64_t)chunk * MR_SEEK_CHUNK, left = job->shard->samples - first;
    uint64_t end = first + (left < MR_SEEK_CHUNK ? left : MR_SEEK_CHUNK);
    if (!h->decoder)
        h->decoder = mr_jpeg_decoder_new();
    if (!h->decoder)
        return mr_fail_memory(err, "making a seek index");
    for (uint64_t i = first; i < end; i++)
        if (job->rows[i].holder == i && job->rows[i].codec == MR_CODEC_JPEG)
            MR_TRY(add_row(job, h, &job->chunks[chunk], i, t, err));
    return MR_OK;
}

/* ---- end -------------------------------------------------------------------------------------------------------- */

static void add_table(const mr_seek_job *job, mr_buf *out)
{
    uint64_t at = MR_SEEK_HEADER + (job->shard->samples + 1) * MR_SEEK_OFFSET;
    uint8_t packed[MR_SEEK_OFFSET];
    for (uint64_t i = 0; i <= job->shard->samples; i++) {
        mr_put64le(packed, at);
        mr_buf_add(out, packed, sizeof packed);
        if (i < job->shard->samples && job->lens[i])
            at += MR_SEEK_CHECK + (uint64_t)job->lens[i];
    }
}

static mr_status compare(const mr_seek_job *job, const char *name, const mr_buf *made, mr_error *err)
{
    if (made->len == job->existing.len && memcmp(made->data, job->existing.data, made->len) == 0)
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA,
                   "%s: does not match its shard, although its hashes agree: it was forged; `millrace seek --force` "
                   "rebuilds it",
                   name);
}

/* Publishes it, or compares it. */
static mr_status complete(mr_seek_job *job, mr_error *err)
{
    const mr_shard *shard = job->shard;
    char name[MR_SEEK_NAME];
    uint8_t packed[MR_SEEK_HEADER] = {0}, tail[MR_SEEK_TAIL];
    mr_seek_header h = {
        .every = job->every, .first = shard->first, .rows = shard->samples, .mdb_bytes = shard->mdb.bytes};
    MR_AUTO(mr_buf_free) mr_buf out = {0};
    snprintf(name, sizeof name, "%s" MR_SEEK_SUFFIX, shard->name);
    memcpy(h.mdb_xxh3_128, shard->mdb.xxh3_128, 16);
    mr_buf_add(&out, packed, sizeof packed);
    add_table(job, &out);
    for (size_t i = 0; i < job->chunk_count; i++) {
        mr_buf_add(&out, job->chunks[i].data, job->chunks[i].len);
        mr_buf_free(&job->chunks[i]);
    }
    MR_TRY(mr_buf_status(&out, err, name));
    h.table_hash = mr_hash64(out.data + MR_SEEK_HEADER, (shard->samples + 1) * MR_SEEK_OFFSET);
    mr_seek_header_pack(&h, out.data);
    mr_hash128(out.data, out.len, tail);
    mr_buf_add(&out, tail, sizeof tail);
    MR_TRY(mr_buf_status(&out, err, name));
    job->out->bytes = out.len;
    return job->options->check ? compare(job, name, &out, err)
                               : mr_file_publish(job->dirfd, name, out.data, out.len, err);
}

static void keep_failure(mr_seek_job *job, size_t chunk, const mr_error *why)
{
    if (job->out->outcome == MR_SEEK_FAILED && chunk >= job->failed_chunk)
        return;
    job->out->outcome = MR_SEEK_FAILED;
    job->out->why = *why;
    job->failed_chunk = chunk;
}

/* Under the lock, by the thread that did the last chunk. */
static void finish(mr_seek_job *job)
{
    mr_error why;
    if (!job->idle && job->out->outcome == MR_SEEK_NOT_DONE) {
        if (complete(job, &why) == MR_OK)
            job->out->outcome = job->options->check ? MR_SEEK_GOOD : MR_SEEK_MADE;
        else
            keep_failure(job, 0, &why);
    }
    release(job);
}

void mr_seek_job_chunk(mr_seek_job *job, mr_seek_worker *h, size_t chunk)
{
    mr_error why;
    tally t = {0};
    mr_status status = MR_OK;
    pthread_mutex_lock(&job->lock);
    if (!job->begun) {
        job->begun = true;
        if (begin(job, &why) != MR_OK)
            keep_failure(job, 0, &why);
    }
    bool work = !job->idle && (job->out->outcome != MR_SEEK_FAILED || chunk < job->failed_chunk);
    pthread_mutex_unlock(&job->lock);
    if (work)
        status = add_rows(job, h, chunk, &t, &why);
    pthread_mutex_lock(&job->lock);
    if (status != MR_OK)
        keep_failure(job, chunk, &why);
    job->out->indexed += t.indexed;
    job->out->examined += t.examined;
    job->out->cpu += t.cpu;
    if (--job->left == 0)
        finish(job);
    pthread_mutex_unlock(&job->lock);
}

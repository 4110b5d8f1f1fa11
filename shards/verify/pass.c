/* pass.c - one read of a shard: the digest of the file and the hash of every record in it.
 *
 *   file    |chunk 0      |chunk 1      |chunk 2      |      each chunk: pread, digest, then the records inside it
 *   records  [a] [b][ c         ][d] [     e     ] [f]        a, b, d, f: hashed in place
 *                                                            c, e: cross a border, hashed piece by piece
 *
 * Pages that cannot be read are counted in job->unread, records in them count as damaged, and the digest is unknown.
 *
 * Invariant: records are sorted by offset and do not overlap, so at most one is open at a border. */
#include "shards/verify/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"

typedef struct piece {
    uint64_t offset;
    uint32_t len;
    uint32_t tag; /* row * 2, + 1 for its meta */
} piece;

typedef struct pieces {
    piece *items;
    size_t count, next;
} pieces;

/* Least significant digit first: linear whatever the order, and the order on disk is not that of the rows (LMDB fills
 * pages from their end, and reuses freed ones). */
static void sort(piece *items, piece *spare, size_t count)
{
    uint64_t highest = 0;
    for (size_t i = 0; i < count; i++)
        highest |= items[i].offset;
    for (unsigned shift = 0; shift < 64 && highest >> shift; shift += 8) {
        size_t at[257] = {0};
        for (size_t i = 0; i < count; i++)
            at[(items[i].offset >> shift & 255) + 1]++;
        for (size_t digit = 0; digit < 256; digit++)
            at[digit + 1] += at[digit];
        for (size_t i = 0; i < count; i++)
            spare[at[items[i].offset >> shift & 255]++] = items[i];
        memcpy(items, spare, count * sizeof *items);
    }
}

static void mark_damaged(mr_verify_job *job, const piece *p)
{
    job->damaged[p->tag / 2] |= p->tag & 1 ? MR_DAMAGED_META : MR_DAMAGED_IMAGE;
}

/* Only an index that was made to deceive has such records; the pass can follow one open record at a border. */
static void drop_overlaps(mr_verify_job *job, pieces *list)
{
    uint64_t end = 0;
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        const piece p = list->items[i];
        if (p.offset < end) {
            mr_problem_add(&job->out->problems, MR_PROBLEM_INDEX, job->shard->name, job->shard->first + p.tag / 2, NULL,
                           "%s: its record overlaps another", job->idx_name);
            mark_damaged(job, &p);
            continue;
        }
        end = p.offset + p.len;
        list->items[kept++] = p;
    }
    list->count = kept;
}

static mr_status gather(mr_verify_job *job, pieces *list, mr_error *err)
{
    uint64_t samples = job->rows ? job->shard->samples : 0;
    if (!samples)
        return MR_OK;
    list->items = mr_alloc(samples, 2 * sizeof *list->items);
    MR_AUTO(mr_scope_free) piece *spare = mr_alloc(samples, 2 * sizeof *spare);
    if (!list->items || !spare)
        return mr_fail_memory(err, job->mdb_name);
    for (uint64_t i = 0; i < samples; i++) {
        const mr_row *row = &job->rows[i];
        if (row->holder == i)
            list->items[list->count++] = (piece){row->image_offset, row->image_len, (uint32_t)(i * 2)};
        list->items[list->count++] = (piece){row->meta_offset, row->meta_len, (uint32_t)(i * 2 + 1)};
    }
    sort(list->items, spare, list->count);
    drop_overlaps(job, list);
    return MR_OK;
}

static void check_piece(mr_verify_job *job, const piece *p, uint64_t hash)
{
    const mr_row *row = &job->rows[p->tag / 2];
    if (hash != (p->tag & 1 ? row->meta_hash : row->image_hash))
        mark_damaged(job, p);
}

static void hash_records(mr_verify_job *job, pieces *list, const uint8_t *chunk, uint64_t at, size_t len)
{
    mr_hash64_stream *stream = job->scratch->stream;
    uint64_t end = at + len;
    for (; list->next < list->count && list->items[list->next].offset < end; list->next++) {
        const piece *p = &list->items[list->next];
        uint64_t piece_end = p->offset + p->len;
        if (p->offset >= at && piece_end <= end) {
            check_piece(job, p, mr_hash64(chunk + (p->offset - at), p->len));
            continue;
        }
        uint64_t from = p->offset < at ? at : p->offset, to = piece_end < end ? piece_end : end;
        if (p->offset >= at)
            mr_hash64_reset(stream);
        mr_hash64_add(stream, chunk + (from - at), (size_t)(to - from));
        if (piece_end > end)
            return;
        check_piece(job, p, mr_hash64_end(stream));
    }
}

static void mark_rest_damaged(mr_verify_job *job, pieces *list)
{
    for (; list->next < list->count; list->next++)
        mark_damaged(job, &list->items[list->next]);
    for (uint64_t i = 0; job->rows && i < job->shard->samples; i++)
        job->damaged[i] |= job->damaged[job->rows[i].holder] & MR_DAMAGED_IMAGE;
}

/* None of the records that reach into bytes which could not be read is known to be whole. */
static void mark_range_damaged(mr_verify_job *job, const pieces *list, uint64_t at, size_t len)
{
    for (size_t i = list->next; i < list->count && list->items[i].offset < at + len; i++) {
        const piece *p = &list->items[i];
        if (p->offset + p->len > at)
            mark_damaged(job, p);
    }
}

/* As much of len bytes as the file still has. */
static ssize_t read_some(int fd, uint8_t *chunk, size_t len, uint64_t at)
{
    size_t got = 0;
    while (got < len) {
        ssize_t n = pread(fd, chunk + got, len - got, (off_t)(at + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

/* One problem a shard, of its first such page: a dying disk has one after another. */
static mr_status add_unread(mr_verify_job *job, uint64_t at, size_t len, int errnum, mr_error *err)
{
    mr_error why;
    job->unread += len;
    if (job->unread > len)
        return MR_OK;
    mr_fail_errno(&why, errnum, "%s: cannot read at byte %llu", job->mdb_name, (unsigned long long)at);
    return mr_verify_refusal(job, MR_PROBLEM_UNREADABLE, errnum, &why, err);
}

/* Reads a chunk that failed page by page, as most of it may be readable; the rest counts as zeros. */
static mr_status read_pages(mr_verify_job *job, const pieces *list, uint64_t at, size_t len, mr_error *err)
{
    for (size_t from = 0; from < len; from += MR_LMDB_PAGE) {
        uint8_t *page = job->scratch->chunk + from;
        size_t want = len - from < MR_LMDB_PAGE ? len - from : MR_LMDB_PAGE;
        ssize_t n = read_some(job->mdb, page, want, at + from);
        if (n == (ssize_t)want)
            continue;
        MR_TRY(add_unread(job, at + from, want, n < 0 ? errno : EIO, err));
        mark_range_damaged(job, list, at + from, want);
        memset(page, 0, want);
    }
    return MR_OK;
}

static mr_status read_all(mr_verify_job *job, pieces *list, mr_hasher *hasher, uint64_t bytes, uint64_t *read_to,
                          mr_error *err)
{
    uint8_t *chunk = job->scratch->chunk;
    posix_fadvise(job->mdb, 0, 0, POSIX_FADV_SEQUENTIAL);
    for (uint64_t at = 0; at < bytes;) {
        size_t want = bytes - at < MR_PASS_CHUNK ? (size_t)(bytes - at) : MR_PASS_CHUNK, before = list->next;
        ssize_t n = read_some(job->mdb, chunk, want, at);
        if (n < 0) {
            MR_TRY(read_pages(job, list, at, want, err));
            n = (ssize_t)want;
        }
        mr_hasher_add(hasher, chunk, (size_t)n);
        hash_records(job, list, chunk, at, (size_t)n);
        mr_progress_add(job->progress, list->next - before, (uint64_t)n);
        at += (uint64_t)n;
        *read_to = at;
        if ((size_t)n < want)
            break;
    }
    return MR_OK;
}

mr_status mr_verify_pass(mr_verify_job *job, uint64_t bytes, mr_digest *digest, uint64_t *read_to, mr_error *err)
{
    pieces list = {0};
    mr_hasher *hasher = NULL;
    *read_to = 0;
    mr_status status = gather(job, &list, err);
    if (status == MR_OK)
        status = mr_hasher_begin(!job->options->no_sha256, &hasher, err);
    if (status == MR_OK)
        status = read_all(job, &list, hasher, bytes, read_to, err);
    if (hasher) {
        mr_status ended = mr_hasher_end(hasher, status == MR_OK ? digest : NULL, status == MR_OK ? err : NULL);
        status = status == MR_OK ? ended : status;
    }
    if (status == MR_OK)
        mark_rest_damaged(job, &list);
    free(list.items);
    return status;
}

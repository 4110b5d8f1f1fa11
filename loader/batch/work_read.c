/* work_read.c - the bytes of one sample: its row, its records, checked against their hashes; see work.h.
 *
 * Read-ahead: advice to the kernel costs a tenth of a read from the page cache, so it is given only while it helps.
 * After a read that would have blocked, the next MR_WORK_COLD records are checked when they are planned: reading one
 * byte shows whether the record is in memory; if not, its pages are requested, and the count restarts. */
#include <fcntl.h>
#include <sys/uio.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "loader/batch/work.h"
#include "shards/format/meta.h"

typedef unsigned long long ull;

enum {
    READ_STEP = 4 << 20,     /* bytes between two checks of `stop` */
    ADVISE_STEP = 128 << 10, /* the kernel reads ahead at most this much (read_ahead_kb) per call */
};

/* Reads up to `len` bytes that are in memory; 0 if the first is not, or if the system cannot tell. */
static size_t read_present(int fd, uint8_t *out, size_t len, uint64_t offset)
{
    struct iovec part = {out, len};
    ssize_t n = preadv2(fd, &part, 1, (off_t)offset, RWF_NOWAIT);
    return n > 0 ? (size_t)n : 0;
}

static void advise(mr_work *w, int fd, uint64_t offset, uint64_t len)
{
    uint8_t byte;
    if (atomic_load_explicit(&w->cold, memory_order_relaxed) <= 0)
        return;
    if (read_present(fd, &byte, 1, offset + len / 2)) {
        atomic_fetch_sub_explicit(&w->cold, 1, memory_order_relaxed);
        return;
    }
    atomic_store_explicit(&w->cold, MR_WORK_COLD, memory_order_relaxed);
    for (uint64_t at = 0; at < len; at += ADVISE_STEP)
        posix_fadvise(fd, (off_t)(offset + at), (off_t)(len - at < ADVISE_STEP ? len - at : ADVISE_STEP),
                      POSIX_FADV_WILLNEED);
}

static bool reads_meta(const mr_work *w)
{
    return w->o.with_meta || w->o.with_objects;
}

static void advise_seek(mr_work *w, const mr_open_shard *open, const mr_row *row)
{
    uint64_t at;
    if (!mr_work_seeks(w, row) || atomic_load_explicit(&w->cold, memory_order_relaxed) <= 0)
        return;
    size_t len = mr_shard_files_seek(w->files, open, row, NULL, &at);
    if (len)
        advise(w, open->seek, at, len);
}

mr_status mr_work_row(mr_work *w, uint64_t sample, mr_row *row, mr_error *err)
{
    const mr_open_shard *open;
    MR_TRY(mr_shard_files_borrow(w->files, sample, &open, err));
    mr_status status = mr_shard_files_row(w->files, open, sample, row, err);
    if (status == MR_OK && open->mdb < 0) {
        mr_shard_files_ahead(w->files, open->shard, row->image_offset, row->image_len);
        if (reads_meta(w))
            mr_shard_files_ahead(w->files, open->shard, row->meta_offset, row->meta_len);
    } else if (status == MR_OK) {
        advise(w, open->mdb, row->image_offset, row->image_len);
        if (reads_meta(w))
            advise(w, open->mdb, row->meta_offset, row->meta_len);
        advise_seek(w, open, row);
    }
    mr_shard_files_return(w->files, open);
    return status;
}

/* In steps, so that reading a large record from a slow disk can be stopped. */
static mr_status read_span(mr_work *w, int fd, uint8_t *out, size_t len, uint64_t offset, const char *name,
                           mr_error *err)
{
    while (len) {
        size_t step = len < READ_STEP ? len : READ_STEP;
        if (atomic_load_explicit(&w->stop, memory_order_relaxed))
            return MR_END;
        size_t present = read_present(fd, out, step, offset);
        if (present < step) {
            atomic_store_explicit(&w->cold, MR_WORK_COLD, memory_order_relaxed);
            MR_TRY(mr_file_pread(fd, out + present, step - present, offset + present, name, err));
        }
        out += step;
        offset += step;
        len -= step;
    }
    return MR_OK;
}

typedef struct span {
    uint64_t offset, hash;
    size_t len;
    const char *name;
} span;

static span image_of(const mr_row *row)
{
    return (span){row->image_offset, row->image_hash, row->image_len, "image"};
}

static span meta_of(const mr_row *row)
{
    return (span){row->meta_offset, row->meta_hash, row->meta_len, "meta"};
}

/* Reads a record from where it is; once more if a bit flipped on the way. */
static mr_status read_remote(mr_work *w, const mr_shard *shard, const span *s, uint8_t *out, mr_error *err)
{
    for (unsigned i = 0; i < 2; i++) {
        mr_status status =
            mr_shard_files_read(w->files, shard, -1, (mr_shard_span){s->offset, s->len, s->name}, out, &w->stop, err);
        if (atomic_load_explicit(&w->stop, memory_order_relaxed))
            return MR_END;
        MR_TRY(status);
        if (mr_hash64(out, s->len) == s->hash)
            break;
    }
    return MR_OK;
}

/* `fd`: the shard; -1: it is elsewhere.  The message of a failure does not name the sample. */
static mr_status read_checked(mr_work *w, const mr_shard *shard, int fd, const span *s, uint8_t *out, mr_error *err)
{
    mr_error why;
    mr_status status =
        fd < 0 ? read_remote(w, shard, s, out, &why) : read_span(w, fd, out, s->len, s->offset, s->name, &why);
    if (status != MR_OK) /* what is elsewhere is named with its URL */
        return status == MR_END ? status : mr_fail(err, status, "%s%s", fd < 0 ? "" : "its ", why.text);
    if (mr_hash64(out, s->len) == s->hash)
        return MR_OK;
    return mr_fail(err, MR_BAD_SAMPLE, "its %s differs from what was ingested; `millrace verify` shows the extent",
                   s->name);
}

/* Appends " (train/n01/a.JPEG)", the name in the source; nothing if the meta cannot be read. */
static void add_source(mr_work *w, uint64_t sample, const mr_row *row, mr_buf *out)
{
    const span s = meta_of(row);
    const mr_open_shard *open;
    MR_AUTO(mr_buf_free) mr_buf meta = {0}, source = {0};
    mr_meta_facts facts;
    if (!mr_buf_reserve(&meta, s.len) || mr_shard_files_borrow(w->files, sample, &open, NULL) != MR_OK)
        return;
    mr_status status = read_checked(w, open->shard, open->mdb, &s, meta.data, NULL);
    mr_shard_files_return(w->files, open);
    if (status == MR_OK && mr_meta_scan(meta.data, s.len, &facts, &source, NULL) == MR_OK && source.len)
        mr_buf_printf(out, " (%s)", mr_buf_text(&source));
}

mr_status mr_work_name_sample(mr_work *w, uint64_t sample, const mr_row *row, mr_status status, const mr_error *why,
                              mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf source = {0};
    add_source(w, sample, row, &source);
    return mr_fail(err, status, "%s.mdb: sample %llu%s: %s", mr_dataset_shard(w->split, sample)->name, (ull)sample,
                   mr_buf_text(&source), why->text);
}

/* From the dataset itself, as the copy on this host's disk cannot be read. */
static mr_status read_original(mr_work *w, const mr_shard *shard, const span *s, uint8_t *out, mr_error *err)
{
    MR_AUTO(mr_scope_close) int fd = -1;
    MR_TRY(mr_shard_files_original(w->files, shard, &fd, err));
    return read_checked(w, shard, fd, s, out, err);
}

static mr_status read_record(mr_work *w, uint64_t sample, const mr_row *row, span s, uint8_t *out, mr_error *err)
{
    const mr_open_shard *open;
    mr_error why;
    MR_TRY(mr_shard_files_borrow(w->files, sample, &open, err));
    mr_status status = read_checked(w, open->shard, open->mdb, &s, out, &why);
    if (status != MR_OK && status != MR_END && mr_shard_files_drop_copy(w->files, open))
        status = read_original(w, open->shard, &s, out, &why);
    mr_shard_files_return(w->files, open);
    return status == MR_OK || status == MR_END ? status : mr_work_name_sample(w, sample, row, status, &why, err);
}

mr_status mr_work_image(mr_work *w, uint64_t sample, const mr_row *row, uint8_t *out, mr_error *err)
{
    return read_record(w, sample, row, image_of(row), out, err);
}

mr_status mr_work_meta(mr_work *w, uint64_t sample, const mr_row *row, uint8_t *out, mr_error *err)
{
    return read_record(w, sample, row, meta_of(row), out, err);
}

mr_status mr_work_fetch(mr_work *w, mr_worker *worker, uint64_t sample, const mr_row *row, mr_error *err)
{
    MR_TRY(mr_slab_reserve(&worker->bytes, row->image_len, 0, NULL, err));
    MR_TRY(mr_work_image(w, sample, row, worker->bytes.data, err));
    mr_work_fetch_seek(w, worker, sample, row);
    return MR_OK;
}

/* Optional: if anything fails here, the image is decoded without a seek index. */
void mr_work_fetch_seek(mr_work *w, mr_worker *worker, uint64_t sample, const mr_row *row)
{
    const mr_open_shard *open;
    worker->seek_len = 0;
    if (!mr_work_seeks(w, row) || mr_shard_files_borrow(w->files, sample, &open, NULL) != MR_OK)
        return;
    if (open->seek >= 0 && mr_slab_reserve(&worker->seek, row->image_len, 0, NULL, NULL) == MR_OK)
        worker->seek_len = mr_shard_files_seek(w->files, open, row, worker->seek.data, NULL);
    mr_shard_files_return(w->files, open);
}

/* npz_write.c - writing .npz files by libarchive's zip writer.
 * Invariant: bytes pass once: a slice is checksummed, hashed and written while it is in the cache.  No clock, user or
 * mode of this run gets into the file. */
#include <stdlib.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "train/files/npz_header.h"

enum { SLICE = 256 * 1024 };

struct mr_npz_writer {
    struct archive *archive;
    struct archive_entry *entry;
    int fd;
    mr_buf name;
    mr_hasher *hasher;
    mr_npz_names names;
    mr_status status; /* the first failure to write */
    mr_error error;
};

/* A failure is kept in w->status, which each caller checks; libarchive sees success, as its writer leaks memory when it
 * is freed after a failure. */
static la_ssize_t on_write(struct archive *a, void *ctx, const void *bytes, size_t len)
{
    mr_npz_writer *w = ctx;
    (void)a;
    if (w->status == MR_OK)
        w->status = mr_file_write(w->fd, bytes, len, mr_buf_text(&w->name), &w->error);
    if (w->status == MR_OK)
        mr_hasher_add(w->hasher, bytes, len);
    return (la_ssize_t)len;
}

static void release(mr_npz_writer *w)
{
    if (w->archive)
        archive_write_free(w->archive);
    archive_entry_free(w->entry);
    if (w->hasher)
        mr_hasher_end(w->hasher, NULL, NULL);
    mr_buf_free(&w->name);
    mr_npz_names_release(&w->names);
    free(w);
}

/* After a failed call of libarchive: our own message if it was the file. */
static mr_status failed(mr_npz_writer *w, mr_error *err)
{
    if (w->status == MR_OK) {
        const char *why = archive_error_string(w->archive);
        w->status = mr_fail(&w->error, MR_SYSTEM, "%s: %s", mr_buf_text(&w->name), why ? why : "out of memory");
    }
    if (err)
        *err = w->error;
    return w->status;
}

mr_status mr_npz_create(int fd, const char *name, mr_npz_writer **out, mr_error *err)
{
    mr_npz_writer *w = mr_alloc(1, sizeof *w);
    if (!w)
        return mr_fail_memory(err, name);
    w->fd = fd;
    mr_buf_add_text(&w->name, name);
    mr_status status = mr_buf_status(&w->name, err, name);
    if (status == MR_OK)
        status = mr_hasher_begin(false, &w->hasher, err);
    if (status == MR_OK && (!(w->archive = archive_write_new()) || !(w->entry = archive_entry_new())))
        status = mr_fail_memory(err, name);
    /* Blocks of 0 bytes: no buffer of libarchive's between its input and on_write(). */
    if (status == MR_OK && (archive_write_set_format_zip(w->archive) != ARCHIVE_OK ||
                            archive_write_zip_set_compression_store(w->archive) != ARCHIVE_OK ||
                            archive_write_set_bytes_per_block(w->archive, 0) != ARCHIVE_OK ||
                            archive_write_open(w->archive, w, NULL, on_write, NULL) != ARCHIVE_OK))
        status = failed(w, err);
    if (status != MR_OK) {
        release(w);
        return status;
    }
    *out = w;
    return MR_OK;
}

static mr_status check(mr_npz_writer *w, const mr_npz_array *array, uint64_t *bytes, mr_error *err)
{
    uint64_t count;
    const char *file = mr_buf_text(&w->name), *fault = "has a name without an end";
    const char *end = memchr(array->name, '\0', sizeof array->name);
    if (end)
        fault = mr_npz_name_fault(array->name, (size_t)(end - array->name));
    if (!fault && (array->dims > MR_NPZ_DIMS || (unsigned)array->type > MR_NPZ_U8 ||
                   !mr_npz_count(array->type, array->dims, array->shape, &count, bytes) || count != array->count))
        fault = "has a type, shape and count that do not fit together";
    if (fault)
        return mr_fail(err, MR_MISUSE, "%s: an array %s", file, fault);
    mr_status status = mr_npz_names_add(&w->names, array->name, file, err);
    if (status == MR_BAD_DATA && err)
        err->status = MR_MISUSE;
    return status == MR_BAD_DATA ? MR_MISUSE : status;
}

static mr_status put(mr_npz_writer *w, const void *bytes, uint64_t len, mr_error *err)
{
    const uint8_t *at = bytes;
    while (len) {
        size_t n = len < SLICE ? (size_t)len : SLICE;
        if (archive_write_data(w->archive, at, n) != (la_ssize_t)n || w->status != MR_OK)
            return failed(w, err);
        at += n;
        len -= n;
    }
    return MR_OK;
}

mr_status mr_npz_add(mr_npz_writer *w, const mr_npz_array *array, const void *elements, mr_error *err)
{
    uint8_t header[MR_NPY_HEADER];
    char path[MR_NPZ_NAME + 4];
    uint64_t bytes;
    if (w->status != MR_OK)
        return failed(w, err);
    MR_TRY(check(w, array, &bytes, err));
    size_t head = mr_npy_header(array, header), len = strlen(array->name);
    memcpy(path, array->name, len);
    memcpy(path + len, ".npy", 5);
    archive_entry_clear(w->entry);
    archive_entry_set_pathname(w->entry, path);
    archive_entry_set_filetype(w->entry, AE_IFREG);
    archive_entry_set_perm(w->entry, 0644);
    archive_entry_set_size(w->entry, (la_int64_t)(head + bytes));
    archive_entry_set_mtime(w->entry, 0, 0);
    if (archive_write_header(w->archive, w->entry) != ARCHIVE_OK || w->status != MR_OK)
        return failed(w, err);
    MR_TRY(put(w, header, head, err));
    return put(w, elements, bytes, err);
}

mr_status mr_npz_finish(mr_npz_writer *w, mr_digest *digest, mr_error *err)
{
    if (!w)
        return MR_OK;
    bool closed = archive_write_close(w->archive) == ARCHIVE_OK;
    mr_status status = closed && w->status == MR_OK ? MR_OK : failed(w, err);
    if (status == MR_OK && digest) {
        status = mr_hasher_end(w->hasher, digest, err);
        w->hasher = NULL;
    }
    release(w);
    return status;
}

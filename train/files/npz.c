/* npz.c - reading .npz files by libarchive, one array after another.
 * Invariant: the file is read through its central directory, so members that are not taken are skipped by a seek, and a
 * file without its end is not a .npz file.  Warnings of libarchive are errors here. */
#include "train/files/npz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "base/text.h"
#include "train/files/npz_header.h"

enum { BLOCK = 256 * 1024, DEFLATED_MAX = 1032 }; /* deflate cannot pack more than 1032 bytes into one */

struct mr_npz_reader {
    struct archive *archive;
    int fd, own_fd; /* own_fd -1: the caller's */
    int read_errno; /* errno of our own reading, which libarchive forgets while it looks for a format */
    uint8_t *block; /* [BLOCK] */
    uint64_t file_bytes;
    mr_buf name;   /* name of the file */
    mr_buf member; /* name of the current one, printable */
    mr_npz_names names;
    mr_npz_array array;
    bool met; /* `array` describes a member that can be taken */
};

/* Every message begins with the place, "FILE" or "FILE: MEMBER". */
static mr_status refuse(mr_npz_reader *r, const char *why, mr_error *err)
{
    return mr_fail(err, MR_BAD_DATA, "%s: %s %s", mr_buf_text(&r->name), mr_buf_text(&r->member), why);
}

/* After a failure of libarchive: errno distinguishes system errors from damage.  libarchive does not report every
 * failed allocation of its own, but errno is ENOMEM then, as it is set to 0 before each call. */
static mr_status broken(mr_npz_reader *r, const char *otherwise, mr_error *err)
{
    int number = r->read_errno ? r->read_errno : errno == ENOMEM ? ENOMEM : archive_errno(r->archive);
    const char *why = archive_error_string(r->archive), *name = mr_buf_text(&r->name);
    if (number == ENOMEM)
        return mr_fail_memory(err, name);
    if (number == EIO || number == ESTALE || number == EBADF)
        return mr_fail_errno(err, number, "%s: cannot read", name);
    if (r->member.len)
        return mr_fail(err, MR_BAD_DATA, "%s: %s is damaged: %s", name, mr_buf_text(&r->member), why ? why : otherwise);
    return mr_fail(err, MR_BAD_DATA, "%s: %s", name, otherwise);
}

static la_ssize_t read_block(struct archive *a, void *ctx, const void **bytes)
{
    mr_npz_reader *r = ctx;
    ssize_t n;
    do
        n = read(r->fd, r->block, BLOCK);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        archive_set_error(a, r->read_errno = errno, "cannot read");
    *bytes = r->block;
    return n;
}

static la_int64_t seek_to(struct archive *a, void *ctx, la_int64_t at, int whence)
{
    mr_npz_reader *r = ctx;
    off_t now = lseek(r->fd, at, whence);
    if (now < 0)
        archive_set_error(a, r->read_errno = errno, "cannot seek");
    return now < 0 ? ARCHIVE_FATAL : now;
}

static la_int64_t skip_some(struct archive *a, void *ctx, la_int64_t bytes)
{
    la_int64_t now = seek_to(a, ctx, bytes, SEEK_CUR);
    return now < 0 ? now : bytes;
}

static mr_status begin(mr_npz_reader *r, int fd, const char *name, mr_error *err)
{
    struct stat st;
    r->archive = archive_read_new();
    mr_buf_add_text(&r->name, name);
    mr_buf_text(&r->name);
    r->fd = fd;
    r->block = mr_alloc(1, BLOCK);
    if (!r->archive || !r->block || r->name.failed)
        return mr_fail_memory(err, name);
    if (fstat(fd, &st) != 0 || lseek(fd, 0, SEEK_SET) != 0)
        return mr_fail_errno(err, errno, "%s", name);
    r->file_bytes = (uint64_t)st.st_size;
    errno = 0;
    if (archive_read_support_format_zip_seekable(r->archive) != ARCHIVE_OK ||
        archive_read_set_seek_callback(r->archive, seek_to) != ARCHIVE_OK ||
        archive_read_open2(r->archive, r, NULL, read_block, skip_some, NULL) != ARCHIVE_OK)
        return broken(r, "not a .npz file (a zip of arrays), or its end is missing", err);
    return MR_OK;
}

static mr_status open_reader(int fd, bool own, const char *name, mr_npz_reader **out, mr_error *err)
{
    mr_npz_reader *r = mr_alloc(1, sizeof *r);
    if (!r) {
        if (own)
            close(fd);
        return mr_fail_memory(err, name);
    }
    r->own_fd = own ? fd : -1;
    mr_status status = begin(r, fd, name, err);
    if (status == MR_OK)
        *out = r;
    else
        mr_npz_reader_free(r);
    return status;
}

mr_status mr_npz_open(const char *path, mr_npz_reader **out, mr_error *err)
{
    int fd;
    MR_TRY(mr_file_open(AT_FDCWD, path, true, &fd, NULL, err));
    return open_reader(fd, true, path, out, err);
}

mr_status mr_npz_open_fd(int fd, const char *name, mr_npz_reader **out, mr_error *err)
{
    return open_reader(fd, false, name, out, err);
}

void mr_npz_reader_free(mr_npz_reader *r)
{
    if (!r)
        return;
    archive_read_free(r->archive);
    free(r->block);
    if (r->own_fd >= 0)
        close(r->own_fd);
    mr_buf_free(&r->name);
    mr_buf_free(&r->member);
    mr_npz_names_release(&r->names);
    free(r);
}

/* ---- members ----------------------------------------------------------------------------------------------------- */

/* Exactly `len` bytes of the current member. */
static mr_status read_exactly(mr_npz_reader *r, void *to, size_t len, mr_error *err)
{
    la_ssize_t n = archive_read_data(r->archive, to, len);
    if (n < 0)
        return broken(r, "it cannot be read", err);
    return (size_t)n == len ? MR_OK : refuse(r, "ends early", err);
}

/* A member's name, checked, without ".npy", into array.name; `member` names it in messages from here on. */
static mr_status name_member(mr_npz_reader *r, struct archive_entry *e, mr_error *err)
{
    const char *path = archive_entry_pathname(e), *fault;
    size_t len = path ? strlen(path) : 0;
    if (!path)
        mr_buf_add_text(&r->member, "a member");
    mr_text_escape(&r->member, path, len < 2 * MR_NPZ_NAME ? len : 2 * MR_NPZ_NAME);
    mr_buf_text(&r->member);
    if (r->member.failed)
        return mr_fail_memory(err, mr_buf_text(&r->name));
    if (!path && errno == ENOMEM)
        return mr_fail_memory(err, mr_buf_text(&r->name));
    if (!path)
        return refuse(r, "has a name that is not plain ASCII", err);
    if (archive_entry_is_encrypted(e))
        return refuse(r, "is encrypted", err);
    if (archive_entry_filetype(e) != AE_IFREG || len < 4 || memcmp(path + len - 4, ".npy", 4) != 0)
        return refuse(r, "is not a .npy file", err);
    if ((fault = mr_npz_name_fault(path, len - 4)))
        return refuse(r, fault, err);
    memcpy(r->array.name, path, len - 4);
    return mr_npz_names_add(&r->names, r->array.name, mr_buf_text(&r->name), err);
}

static bool method_known(struct archive *a)
{
    const char *format = archive_format_name(a); /* "ZIP 4.5 (uncompressed)" */
    return format && (strstr(format, "(uncompressed)") || strstr(format, "(deflation)"));
}

/* Reads the .npy header and checks it against the member's size. */
static mr_status read_header(mr_npz_reader *r, struct archive_entry *e, mr_error *err)
{
    uint8_t prefix[MR_NPY_PREFIX];
    size_t more, len = 0, before = 10;
    const char *why = NULL;
    MR_TRY(read_exactly(r, prefix, before, err));
    if (!mr_npy_prefix(prefix, before, &more, &len, &why))
        return refuse(r, why, err);
    if (more) {
        MR_TRY(read_exactly(r, prefix + before, more, err));
        before += more;
        if (!mr_npy_prefix(prefix, before, &more, &len, &why))
            return refuse(r, why, err);
    }
    MR_AUTO(mr_scope_free) char *text = mr_alloc(1, len + 1);
    if (!text)
        return mr_fail_memory(err, mr_buf_text(&r->name));
    MR_TRY(read_exactly(r, text, len, err));
    if (!mr_npy_parse(text, len, &r->array, &why))
        return refuse(r, why, err);
    uint64_t bytes = mr_npz_bytes(&r->array), head = before + len;
    if (bytes / DEFLATED_MAX > r->file_bytes)
        return refuse(r, "claims to be larger than its file could hold", err);
    if (archive_entry_size_is_set(e) && (uint64_t)archive_entry_size(e) != head + bytes)
        return mr_fail(err, MR_BAD_DATA, "%s: %s has %lld bytes where its header asks for %llu", mr_buf_text(&r->name),
                       mr_buf_text(&r->member), (long long)archive_entry_size(e), (unsigned long long)(head + bytes));
    return MR_OK;
}

mr_status mr_npz_next(mr_npz_reader *r, const mr_npz_array **array, mr_error *err)
{
    struct archive_entry *e;
    r->met = false;
    mr_buf_clear(&r->member);
    memset(&r->array, 0, sizeof r->array);
    errno = 0;
    int got = archive_read_next_header(r->archive, &e);
    if (got == ARCHIVE_EOF)
        return MR_END;
    if (got == ARCHIVE_FATAL || got == ARCHIVE_RETRY)
        return broken(r, "not a .npz file (a zip of arrays), or its directory is damaged", err);
    MR_TRY(name_member(r, e, err));
    if (got != ARCHIVE_OK)
        return broken(r, "its header is damaged", err);
    if (!method_known(r->archive))
        return refuse(r, "is neither stored nor deflated", err);
    MR_TRY(read_header(r, e, err));
    r->met = true;
    *array = &r->array;
    return MR_OK;
}

mr_status mr_npz_take(mr_npz_reader *r, void *to, size_t bytes, mr_error *err)
{
    uint8_t beyond;
    if (!r->met)
        return mr_fail(err, MR_MISUSE, "%s: no array to read", mr_buf_text(&r->name));
    if (bytes != mr_npz_bytes(&r->array))
        return mr_fail(err, MR_MISUSE, "%s: %s has %llu bytes, not %zu", mr_buf_text(&r->name), mr_buf_text(&r->member),
                       (unsigned long long)mr_npz_bytes(&r->array), bytes);
    r->met = false;
    errno = 0;
    if (bytes)
        MR_TRY(read_exactly(r, to, bytes, err));
    la_ssize_t n = archive_read_data(r->archive, &beyond, 1); /* also reaches the end, which checks the CRC */
    if (n < 0)
        return broken(r, "it cannot be read", err);
    return n == 0 ? MR_OK : refuse(r, "is longer than its header says", err);
}

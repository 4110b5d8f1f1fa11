/* archive_input.c - feeds libarchive: formats, at most one layer of compression, seeking, the end.
 * Invariant: no other program is run, and no bytes make libarchive stack decompressors.
 *
 *      file, pipe -> block -> unpacker or gzip -> unpacked -> format        compressed: undone by a reader of its own,
 *      file, pipe -> block -------------------------------> format          to the end, where its checksum is */
#include "ingest/archive/archive_input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "ingest/archive/gzip_input.h"
#include "ingest/source/source.h"
#include "shards/remote/download.h"

/* libarchive would stack as many decompressors as the bytes ask for (forever, for a file that is its own gzip), and run
 * other programs for some.  Archives have one layer, chosen here by its magic. */
static int outer_filter(const uint8_t *p, size_t len)
{
    static const struct magic {
        const char *bytes;
        size_t len;
        int filter;
    } magics[] = {
        {"\x1F\x8B", 2, ARCHIVE_FILTER_GZIP},
        {"BZh", 3, ARCHIVE_FILTER_BZIP2},
        {"\xFD"
         "7zXZ\0",
         6, ARCHIVE_FILTER_XZ},
        {"\x28\xB5\x2F\xFD", 4, ARCHIVE_FILTER_ZSTD},
        {"\x04\x22\x4D\x18", 4, ARCHIVE_FILTER_LZ4},
        {"\x1F\x9D", 2, ARCHIVE_FILTER_COMPRESS},
        {"LZIP", 4, ARCHIVE_FILTER_LZIP},
    };
    for (size_t i = 0; i < MR_COUNT(magics); i++)
        if (len >= magics[i].len && memcmp(p, magics[i].bytes, magics[i].len) == 0)
            return magics[i].filter;
    return ARCHIVE_FILTER_NONE;
}

static const char *why_not(struct archive *a)
{
    const char *why = archive_error_string(a);
    return why ? why : "it is damaged or truncated";
}

/* A pipe returns a little at a time.  The block is filled anyway: no tar block may span two of ours. */
static ssize_t read_block(archive_input *in)
{
    uint64_t left = in->seekable ? in->size - in->at : sizeof in->block;
    size_t want = left < sizeof in->block ? (size_t)left : sizeof in->block, got = 0;
    if (in->coming && !mr_download_wait(in->coming, in->base + in->at + want)) {
        errno = in->read_errno = EREMOTEIO;
        return -1;
    }
    while (got < want) {
        ssize_t n = in->seekable ? pread(in->fd, in->block + got, want - got, (off_t)(in->base + in->at + got))
                                 : read(in->fd, in->block + got, want - got);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR) {
            in->read_errno = errno;
            return -1;
        }
        got += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)got;
}

static ssize_t next_block(void *ctx, const void **bytes)
{
    archive_input *in = ctx;
    *bytes = in->block;
    ssize_t n = in->ready ? (ssize_t)in->ready : read_block(in);
    in->ready = 0;
    if (n > 0 && in->seekable)
        in->at += (uint64_t)n;
    in->taken += n > 0 ? (uint64_t)n : 0;
    return n;
}

static la_ssize_t on_read(struct archive *a, void *ctx, const void **bytes)
{
    ssize_t n = next_block(ctx, bytes);
    if (n < 0)
        archive_set_error(a, errno, "cannot read: %s", strerror(errno));
    return n;
}

static bool is_packed(const archive_input *in)
{
    return in->unpacker || in->gzip;
}

static const char *why_unpacking_failed(const archive_input *in)
{
    const char *why = in->gzip ? mr_gzip_why(in->gzip) : why_not(in->unpacker);
    return why ? why : "cannot read";
}

const char *mr_archive_input_why(struct archive *a, const archive_input *in)
{
    /* When decompression fails, the format reports a truncated or unknown archive. */
    return in->unpacking_failed ? why_unpacking_failed(in) : why_not(a);
}

/* What the formats read. */
static la_ssize_t on_plain(struct archive *a, void *ctx, const void **bytes)
{
    archive_input *in = ctx;
    la_ssize_t n;
    if (!is_packed(in)) {
        n = on_read(a, in, bytes);
    } else {
        *bytes = in->unpacked;
        n = in->gzip ? mr_gzip_read(in->gzip, in->unpacked, sizeof in->unpacked)
                     : archive_read_data(in->unpacker, in->unpacked, sizeof in->unpacked);
        in->unpacking_failed = in->unpacking_failed || n < 0;
        if (n < 0)
            archive_set_error(a, EINVAL, "%s", why_unpacking_failed(in));
    }
    if (n > 0) {
        in->given = *bytes;
        in->given_len = (size_t)n;
        in->given_end += (size_t)n;
    }
    return n;
}

static la_int64_t on_seek(struct archive *a, void *ctx, la_int64_t offset, int whence)
{
    archive_input *in = ctx;
    la_int64_t from = whence == SEEK_SET ? 0 : (la_int64_t)(whence == SEEK_CUR ? in->at : in->size), at;
    if (__builtin_add_overflow(from, offset, &at) || at < 0 || (uint64_t)at > in->size) {
        archive_set_error(a, EINVAL, "cannot seek there");
        return ARCHIVE_FATAL;
    }
    in->ready = 0;
    in->at = in->given_end = (uint64_t)at;
    return at;
}

static la_int64_t on_skip(struct archive *a, void *ctx, la_int64_t count)
{
    archive_input *in = ctx;
    (void)a;
    /* What is ready has been read from the input already. */
    if (!in->seekable || in->ready || count < 0 || (uint64_t)count > in->size - in->at)
        return 0;
    in->at += (uint64_t)count;
    in->given_end += (uint64_t)count;
    return count;
}

bool mr_archive_input_begin(archive_input *in)
{
    ssize_t n = read_block(in);
    if (n < 0)
        return false;
    in->ready = (size_t)n;
    return true;
}

mr_status mr_archive_input_keep(archive_input *in, int fd, uint64_t at, mr_error *err)
{
    uint64_t size = 0;
    while (in->ready > 0) {
        MR_TRY(mr_file_pwrite(fd, in->block, in->ready, at + size, "the spool file", err));
        size += in->ready;
        if (!mr_archive_input_begin(in))
            return mr_fail_errno(err, errno, "%s", in->name);
    }
    in->fd = fd;
    in->seekable = true;
    in->base = at;
    in->size = size;
    return MR_OK;
}

mr_status mr_archive_input_blame(const archive_input *in, mr_error *err)
{
    if (in->read_errno)
        return mr_fail_errno(err, in->read_errno, "%s: cannot read", in->name);
    /* libarchive reports absurd sizes as ENOMEM as well; errno shows whether an allocation failed. */
    return errno == ENOMEM ? mr_fail_memory(err, in->name) : MR_OK;
}

mr_status mr_archive_input_broken(struct archive *a, const archive_input *in, uint64_t entries, const char *entry,
                                  mr_error *err)
{
    MR_TRY(mr_archive_input_blame(in, err));
    return mr_fail(err, MR_BAD_DATA, "%s: cannot be read to its end (%" PRIu64 " entries read%s%s): %s", in->name,
                   entries, entry ? ", the last of them " : "", entry ? entry : "", mr_archive_input_why(a, in));
}

uint64_t mr_archive_input_excess(const archive_input *in)
{
    uint64_t weight = in->weight ? in->weight : in->seekable && in->size < in->taken ? in->size : in->taken, max;
    if (__builtin_mul_overflow(weight, mr_source_ratio(in->ratio), &max) || in->grown <= max)
        return 0;
    return in->grown - max;
}

mr_status mr_archive_input_grow(archive_input *in, uint64_t bytes, mr_error *err)
{
    if (in->outer)
        MR_TRY(mr_archive_input_grow(in->outer, bytes, err));
    if (__builtin_add_overflow(in->grown, bytes, &in->grown))
        in->grown = UINT64_MAX;
    if (mr_archive_input_excess(in) <= in->allowance)
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA,
                   "%s: unpacks to more than %llu times its size, like an archive bomb; --max-ratio N raises the limit",
                   in->name, (unsigned long long)mr_source_ratio(in->ratio));
}

bool mr_archive_input_must_seek(const archive_input *in)
{
    static const char *const magics[] = {"PK\3\4", "PK\5\6", "PK00PK", "7z\xBC\xAF", "Rar!", "xar!", "MSCF"};
    for (size_t i = 0; i < MR_COUNT(magics); i++)
        if (in->ready >= strlen(magics[i]) && memcmp(in->block, magics[i], strlen(magics[i])) == 0)
            return true;
    return false;
}

/* The one layer of compression: gzip by our own reader, as libarchive's does not check anything; others by a libarchive
 * reader whose only entry is the archive. */
static int open_unpacker(archive_input *in, int filter)
{
    if (filter == ARCHIVE_FILTER_GZIP) {
        in->gzip = mr_gzip_begin(next_block, in);
        return in->gzip ? ARCHIVE_OK : ARCHIVE_FATAL;
    }
    struct archive *a = in->unpacker = archive_read_new();
    struct archive_entry *whole;
    if (!a)
        return ARCHIVE_FATAL;
    archive_read_support_format_raw(a);
    /* Appending compress (.Z) would read at once, before there is a callback: it is left to detect itself. */
    int r = filter == ARCHIVE_FILTER_COMPRESS ? archive_read_support_filter_compress(a)
                                              : archive_read_append_filter(a, filter);
    if (r < ARCHIVE_WARN)
        return r;
    archive_read_set_read_callback(a, on_read);
    archive_read_set_callback_data(a, in);
    r = archive_read_open1(a);
    return r < ARCHIVE_WARN ? r : archive_read_next_header(a, &whole);
}

/* No mtree (it may name files of this machine), no raw and no empty (they accept anything). */
static void support_more_formats(struct archive *a)
{
    archive_read_support_format_zip(a);
    archive_read_support_format_7zip(a);
    archive_read_support_format_cpio(a);
    archive_read_support_format_rar(a);
    archive_read_support_format_rar5(a);
#ifndef MILLRACE_NO_XAR
    archive_read_support_format_xar(a);
#endif
    archive_read_support_format_cab(a);
    archive_read_support_format_lha(a);
}

int mr_archive_input_open(struct archive *a, archive_input *in)
{
    errno = 0; /* mr_archive_input_blame() reads it */
    int filter = outer_filter(in->block, in->ready);
    archive_read_support_format_tar(a);
    if (!in->plain)
        support_more_formats(a);
    if (in->plain && filter != ARCHIVE_FILTER_NONE) {
        archive_set_error(a, EINVAL, "it is compressed, and inside an archive only a plain tar is opened");
        return ARCHIVE_FATAL;
    }
    if (in->seekable)
        in->ready = 0; /* it is read again */
    int r = filter == ARCHIVE_FILTER_NONE ? ARCHIVE_OK : open_unpacker(in, filter);
    if (r < ARCHIVE_WARN) {
        archive_set_error(a, EINVAL, "%s", in->unpacker ? why_not(in->unpacker) : "out of memory");
        return r;
    }
    archive_read_set_read_callback(a, on_plain);
    if (!is_packed(in)) {
        archive_read_set_skip_callback(a, on_skip);
        if (in->seekable)
            archive_read_set_seek_callback(a, on_seek);
    }
    archive_read_set_callback_data(a, in);
    return archive_read_open1(a);
}

bool mr_archive_input_is_file(const archive_input *in)
{
    return in->seekable && !is_packed(in);
}

bool mr_archive_input_is_tar(const archive_input *in)
{
    enum { MAGIC_AT = 257 };
    return in->given_len > MAGIC_AT + 5 && memcmp(in->given + MAGIC_AT, "ustar", 5) == 0;
}

static bool is_zero(const uint8_t *bytes, size_t len)
{
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

mr_status mr_archive_input_end(struct archive *a, archive_input *in, uint64_t entries, bool *more, mr_error *err)
{
    uint64_t end = (uint64_t)archive_filter_bytes(a, 0), zeros = 0;
    bool is_tar = (archive_format(a) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
    if (!is_tar && !is_packed(in))
        return MR_OK;
    /* libarchive also accepts the end of the bytes as the end of a tar, and reads one or two blocks of an end mark. */
    if (is_tar && end == (uint64_t)archive_read_header_position(a))
        return mr_fail(err, MR_BAD_DATA,
                       "%s: ends without a tar's end mark (%" PRIu64
                       " entries read): it was truncated or never finished",
                       in->name, entries);
    size_t left = !is_tar ? 0 : in->given_end - end < in->given_len ? (size_t)(in->given_end - end) : in->given_len;
    const void *bytes = in->given + in->given_len - left;
    for (la_ssize_t n = (la_ssize_t)left;;) {
        *more = *more || (is_tar && !is_zero(bytes, (size_t)n));
        zeros += (size_t)n;
        /* Compressed bytes are read to their end, where the checksum is. */
        bool enough = !is_packed(in) && (*more || (in->padding && zeros > in->padding));
        if (enough || (n = on_plain(a, in, &bytes)) == 0)
            return MR_OK;
        if (n < 0)
            return mr_archive_input_broken(a, in, entries, NULL, err);
        MR_TRY(mr_archive_input_grow(in, (size_t)n, err));
    }
}

bool mr_archive_input_has_garbage(const archive_input *in)
{
    return in->gzip && mr_gzip_has_garbage(in->gzip);
}

void mr_archive_input_free(archive_input *in)
{
    if (!in)
        return;
    archive_read_free(in->unpacker);
    mr_gzip_end(in->gzip);
    free(in);
}

const char *mr_archive_input_name(struct archive_entry *e, size_t *len)
{
    const char *name = archive_entry_pathname(e);
    if (!name)
        name = archive_entry_pathname_utf8(e);
    *len = name ? strlen(name) : 0;
    return name;
}

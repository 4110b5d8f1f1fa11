/* zip_directory.c - a zip's directory, compared with the header before each entry's data.
 * Invariant: every offset and length of the file is checked against its size before it is used; memory is three small
 * buffers, however large the directory is.
 *
 *      header name extra DATA  header name extra DATA ...  record record ...  [zip64 end, locator]  end
 *      '-- local headers                                   '-- the directory                        '-- found first
 *
 * Layout: PKWARE's APPNOTE.TXT 6.3, sections 4.3 and 4.5. */
#include "ingest/archive/zip_directory.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include <zlib.h>

#include "base/scope.h"
#include "ingest/archive/zip_end.h"

enum {
    RECORD = 46,       /* bytes of its fixed part */
    HEADER = 30,       /* the same */
    TARGET_MAX = 4096, /* bytes of a link's target; the kernel's limit */
    DIRECTORY_WINDOW = 1 << 18,
    ONE_HEADER = 1 << 12,   /* bytes read at once where headers are far apart */
    MANY_HEADERS = 1 << 16, /* ... and where they are less than NEAR apart */
    NEAR = 1 << 13,
    ENCRYPTED = 0x2041,    /* flags: encrypted, strongly, and its header masked */
    DESCRIBED = 0x0008,    /* flag: lengths and CRC-32 follow the data */
    UTF8 = 0x0800,         /* flag: the name is UTF-8 */
    UNICODE_PATH = 0x7075, /* an extra field: the name as UTF-8, which libarchive prefers */
    ZIP64 = 0x0001,        /* an extra field: long lengths */
    UNIX = 3,              /* made on Unix: the upper attributes are a mode */
    STORED = 0,
    DEFLATED = 8,
};

typedef struct record {
    const uint8_t *fixed, *name, *extra;
    unsigned flags, method, name_len, extra_len, comment_len;
    uint32_t crc;
    uint64_t packed, unpacked, offset;
} record;

static mr_status contradicts(const zip *z, const record *r, const char *what)
{
    return mr_fail(z->err, MR_BAD_DATA, "%s: %.*s: %s; the archive is damaged", z->name, (int)r->name_len,
                   (const char *)r->name, what);
}

/* ---- a record and its header ------------------------------------------------------------------------------------- */

/* The extra field of that kind, or NULL. */
static const uint8_t *extra_field(const uint8_t *extra, size_t extra_len, unsigned kind, size_t *len)
{
    for (size_t at = 0; extra_len - at >= 4;) {
        *len = mr_zip_le16(extra + at + 2);
        if (*len > extra_len - at - 4)
            return NULL;
        if (mr_zip_le16(extra + at) == kind)
            return extra + at + 4;
        at += 4 + *len;
    }
    return NULL;
}

/* Values that do not fit into 32 bits are in an extra field, in this order. */
static void widen(record *r)
{
    uint64_t *const values[] = {&r->unpacked, &r->packed, &r->offset};
    size_t len, at = 0;
    const uint8_t *wide = extra_field(r->extra, r->extra_len, ZIP64, &len);
    for (size_t i = 0; wide && i < MR_COUNT(values) && at + 8 <= len; i++) {
        if (*values[i] == UINT32_MAX) {
            *values[i] = mr_zip_le64(wide + at);
            at += 8;
        }
    }
}

static mr_status read_record(zip *z, uint64_t at, record *r)
{
    const uint8_t *p;
    MR_TRY(mr_zip_view(z, &z->directory, at, RECORD, &p));
    *r = (record){.flags = mr_zip_le16(p + 8),
                  .method = mr_zip_le16(p + 10),
                  .crc = mr_zip_le32(p + 16),
                  .packed = mr_zip_le32(p + 20),
                  .unpacked = mr_zip_le32(p + 24),
                  .name_len = mr_zip_le16(p + 28),
                  .extra_len = mr_zip_le16(p + 30),
                  .comment_len = mr_zip_le16(p + 32),
                  .offset = mr_zip_le32(p + 42)};
    MR_TRY(mr_zip_view(z, &z->directory, at, RECORD + r->name_len + r->extra_len + r->comment_len, &r->fixed));
    r->name = r->fixed + RECORD;
    r->extra = r->name + r->name_len;
    widen(r);
    return MR_OK;
}

static bool is_ascii(const uint8_t *text, size_t len)
{
    while (len && text[len - 1] < 0x80)
        len--;
    return len == 0;
}

static mr_status compare_names(const zip *z, const record *r, const uint8_t *header)
{
    unsigned name_len = mr_zip_le16(header + 26), extra_len = mr_zip_le16(header + 28);
    const uint8_t *name = header + HEADER;
    size_t here_len = 0, there_len = 0;
    if (name_len != r->name_len || memcmp(name, r->name, name_len) != 0)
        return contradicts(z, r, "its name in the directory differs from the one before its data");
    const uint8_t *here = extra_field(name + name_len, extra_len, UNICODE_PATH, &here_len);
    const uint8_t *there = extra_field(r->extra, r->extra_len, UNICODE_PATH, &there_len);
    if (here && there && (here_len != there_len || memcmp(here, there, here_len) != 0))
        return contradicts(z, r, "its Unicode name in the directory differs from the one before its data");
    return MR_OK;
}

/* What the writer of a stream knew only after the data: CRC-32 and lengths, of 4 or 8 bytes, with or without a mark. */
static mr_status compare_descriptor(zip *z, const record *r, uint64_t data)
{
    enum { LONGEST = 24 };
    const uint8_t *p;
    if (r->packed > z->size)
        return contradicts(z, r, "is larger than the archive");
    MR_TRY(mr_zip_view(z, &z->headers, data + r->packed, LONGEST, &p));
    for (int marked = memcmp(p, "PK\7\10", 4) == 0; marked >= 0; marked--) {
        const uint8_t *d = p + 4 * marked;
        bool narrow = mr_zip_le32(d + 4) == (uint32_t)r->packed && mr_zip_le32(d + 8) == (uint32_t)r->unpacked;
        bool wide = mr_zip_le64(d + 4) == r->packed && mr_zip_le64(d + 12) == r->unpacked;
        if (mr_zip_le32(d) == r->crc && (narrow || wide))
            return MR_OK;
    }
    return contradicts(z, r, "its CRC-32 or length in the directory differs from the one after its data");
}

/* *data: where the data begin. */
static mr_status compare_header(zip *z, const record *r, uint64_t *data)
{
    const uint8_t *p;
    uint64_t at = r->offset + z->shift;
    z->headers.chunk = at - z->last < NEAR ? MANY_HEADERS : ONE_HEADER;
    z->last = at;
    MR_TRY(mr_zip_view(z, &z->headers, at, HEADER, &p));
    if (memcmp(p, "PK\3\4", 4) != 0)
        return contradicts(z, r, "is not where the directory says");
    size_t len = HEADER + (size_t)mr_zip_le16(p + 26) + mr_zip_le16(p + 28);
    /* A small directory could point to the same large header again and again. */
    z->headers_len += len;
    if (z->headers_len > z->size)
        return contradicts(z, r, "overlaps other entries");
    MR_TRY(mr_zip_view(z, &z->headers, at, len, &p));
    unsigned same = ENCRYPTED | (is_ascii(r->name, r->name_len) ? 0 : UTF8);
    if (((mr_zip_le16(p + 6) ^ r->flags) & same) != 0)
        return contradicts(z, r, "its flags in the directory differ from those before its data");
    if (mr_zip_le16(p + 8) != r->method)
        return contradicts(z, r, "its compression in the directory differs from the one before its data");
    *data = at + len;
    bool described = mr_zip_le16(p + 6) & DESCRIBED && mr_zip_le32(p + 14) == 0 && r->crc != 0;
    MR_TRY(compare_names(z, r, p));
    return described ? compare_descriptor(z, r, *data) : MR_OK;
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static bool is_link(const record *r)
{
    uint32_t mode = mr_zip_le32(r->fixed + 38) >> 16;
    return S_ISLNK(mode) && r->name_len && r->name[r->name_len - 1] != '/';
}

/* A file that damage turned into a link contains bytes that no path has. */
static bool is_path(const uint8_t *text, size_t len)
{
    while (len && text[len - 1] >= ' ')
        len--;
    return len == 0;
}

/* The target of an entry that is not encrypted; *len is its length. */
static mr_status read_target(zip *z, const record *r, uint64_t data, uint8_t target[TARGET_MAX], size_t *len)
{
    const uint8_t *packed;
    MR_TRY(mr_zip_view(z, &z->headers, data, (size_t)r->packed, &packed));
    if (r->method == STORED) {
        *len = (size_t)r->packed;
        memcpy(target, packed, *len);
        return MR_OK;
    }
    z_stream s = {
        .next_in = (z_const Bytef *)packed, .avail_in = (uInt)r->packed, .next_out = target, .avail_out = TARGET_MAX};
    if (inflateInit2(&s, -15) != Z_OK)
        return mr_fail_memory(z->err, z->name);
    int result = inflate(&s, Z_FINISH);
    *len = TARGET_MAX - s.avail_out;
    inflateEnd(&s);
    return result == Z_STREAM_END ? MR_OK : contradicts(z, r, "is a link whose target cannot be unpacked");
}

static mr_status check_link(zip *z, const record *r, uint64_t data)
{
    size_t len = 0;
    if (r->fixed[5] != UNIX)
        return contradicts(z, r, "is marked as a link, but was not made on Unix");
    if (r->flags & ENCRYPTED || (r->method != STORED && r->method != DEFLATED))
        return MR_OK; /* libarchive does not follow these */
    if (r->packed > TARGET_MAX || r->unpacked > TARGET_MAX)
        return contradicts(z, r, "is marked as a link, but is larger than any link");
    if (!mr_buf_reserve(&z->target, TARGET_MAX))
        return mr_fail_memory(z->err, z->name);
    MR_TRY(read_target(z, r, data, z->target.data, &len));
    if (len != r->unpacked || crc32(0, z->target.data, (uInt)len) != r->crc)
        return contradicts(z, r, "checksum mismatch: the link's target does not match its stored CRC-32");
    if (!is_path(z->target.data, len))
        return contradicts(z, r, "is marked as a link, but does not contain a path");
    return MR_OK;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static mr_status check_record(zip *z, uint64_t *at, zip_directory *out)
{
    const uint8_t *p;
    record r;
    uint64_t data = 0;
    MR_TRY(mr_zip_view(z, &z->directory, *at, 4, &p));
    if (memcmp(p, "PK\1\2", 4) != 0)
        return mr_fail(z->err, MR_BAD_DATA, "%s: its directory is damaged after entry %" PRIu64, z->name, out->entries);
    MR_TRY(read_record(z, *at, &r));
    MR_TRY(compare_header(z, &r, &data));
    if (is_link(&r)) {
        out->links++;
        MR_TRY(check_link(z, &r, data));
    }
    out->entries++;
    out->full_folders += r.unpacked && r.name_len && strchr("/\\", r.name[r.name_len - 1]);
    *at += RECORD + r.name_len + r.extra_len + r.comment_len;
    return MR_OK;
}

static mr_status check_records(zip *z, zip_directory *out)
{
    uint64_t at = z->start;
    while (at < z->end)
        MR_TRY(check_record(z, &at, out));
    uint64_t counted = z->wrap ? out->entries % z->wrap : out->entries;
    if (at != z->end || counted != z->count)
        return mr_fail(z->err, MR_BAD_DATA,
                       "%s: its directory has %" PRIu64 " entries, its end record says %" PRIu64 "; the archive "
                       "is damaged",
                       z->name, out->entries, z->count);
    return MR_OK;
}

static void end_zip(zip *z)
{
    mr_buf_free(&z->directory.bytes);
    mr_buf_free(&z->headers.bytes);
    mr_buf_free(&z->target);
}

mr_status mr_zip_directory_check(int fd, uint64_t base, uint64_t size, const char *name, zip_directory *out,
                                 mr_error *err)
{
    MR_AUTO(end_zip)
    zip z = {.fd = fd,
             .base = base,
             .size = size,
             .name = name,
             .err = err,
             .directory.chunk = DIRECTORY_WINDOW,
             .headers.chunk = ONE_HEADER};
    *out = (zip_directory){0};
    MR_TRY(mr_zip_find_end(&z));
    return check_records(&z, out);
}

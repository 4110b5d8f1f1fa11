/* archive_checks.c - damage that libarchive reports, and what it does not check.
 * Invariant: nothing that libarchive complains about passes unless it is known to be harmless.
 *
 * libarchive 3.6 ends an archive (ARCHIVE_FATAL) for a checksum of rar, xz, bzip2, zstd, lz4 and lzip; it continues
 * after one of zip, 7z, lha (ARCHIVE_WARN), xar and cab (ARCHIVE_FAILED), and after a tar header's (ARCHIVE_RETRY).  It
 * does not compare a zip's two copies of a name, nor check 7z's start header or the CRC-32 of links in zip and 7z. */
#include "ingest/archive/archive_checks.h"

#include <inttypes.h>
#include <string.h>

#include <zlib.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "ingest/archive/zip_end.h"

static int format_of(struct archive *a)
{
    return archive_format(a) & ARCHIVE_FORMAT_BASE_MASK;
}

/* Each entry has its own checksum, so damage in one does not affect the next.  A cab's checksums are of blocks, which
 * entries share. */
static bool checks_each_entry(struct archive *a)
{
    int format = format_of(a);
    return format == ARCHIVE_FORMAT_ZIP || format == ARCHIVE_FORMAT_7ZIP || format == ARCHIVE_FORMAT_XAR ||
           format == ARCHIVE_FORMAT_LHA;
}

static bool reports(struct archive *a, const char *words)
{
    const char *text = archive_error_string(a);
    return text && strstr(text, words);
}

archive_verdict mr_archive_check_header(struct archive *a, int returned)
{
    /* A link in a 7z is read with its header; only the message reports its checksum. */
    if (returned == ARCHIVE_OK)
        return reports(a, "bad CRC") ? ARCHIVE_BAD_ENTRY : ARCHIVE_GOOD;
    /* Names and owners that the locale cannot represent (names are checked elsewhere); permissions, which are not
     * kept. */
    if (returned == ARCHIVE_WARN && (reports(a, "converted") || reports(a, "ACL")))
        return ARCHIVE_GOOD;
    return returned != ARCHIVE_RETRY && checks_each_entry(a) ? ARCHIVE_BAD_ENTRY : ARCHIVE_BAD;
}

archive_verdict mr_archive_check_data(struct archive *a, int returned)
{
    if (returned == ARCHIVE_OK)
        return ARCHIVE_GOOD;
    return returned != ARCHIVE_FATAL && (checks_each_entry(a) || reports(a, "nsupported")) ? ARCHIVE_BAD_ENTRY
                                                                                           : ARCHIVE_BAD;
}

void mr_archive_complaint(struct archive *a, mr_buf *out)
{
    const char *words = archive_error_string(a);
    size_t len = words ? strlen(words) : 0;
    while (len && words[len - 1] == '\n')
        len--;
    bool checksum = reports(a, "CRC") || reports(a, "hecksum") || reports(a, "Sumcheck");
    mr_buf_add_text(out, checksum ? "checksum mismatch" : "cannot be unpacked");
    if (len)
        mr_buf_printf(out, ": %.*s", (int)len, words);
}

/* The CRC-32 of the header that locates the directory.  Self-extracting programs do not begin with one. */
static mr_status check_7z_start(const archive_input *in, mr_error *err)
{
    enum { LENGTH = 32, CRC_AT = 8, FROM = 12 };
    uint8_t h[LENGTH];
    MR_TRY(mr_file_pread(in->fd, h, LENGTH, in->base, in->name, err));
    if (memcmp(h, "7z\xBC\xAF\x27\x1C", 6) != 0)
        return MR_OK;
    if (crc32(0, h + FROM, LENGTH - FROM) != mr_zip_le32(h + CRC_AT))
        return mr_fail(err, MR_BAD_DATA, "%s: checksum mismatch: its 7z start header does not match its stored CRC-32",
                       in->name);
    return MR_OK;
}

mr_status mr_archive_check_start(struct archive *a, const archive_input *in, archive_census *census, mr_error *err)
{
    if (!mr_archive_input_is_file(in))
        return MR_OK;
    if (format_of(a) == ARCHIVE_FORMAT_7ZIP)
        return check_7z_start(in, err);
    if (format_of(a) != ARCHIVE_FORMAT_ZIP)
        return MR_OK;
    census->is_announced = true;
    return mr_zip_directory_check(in->fd, in->base, in->size, in->name, &census->announced, err);
}

bool mr_archive_check_kind(struct archive *a, struct archive_entry *e, archive_census *census, mr_buf *out)
{
    mode_t type = archive_entry_filetype(e);
    bool has_bytes = archive_entry_size(e) > 0;
    census->read.entries++;
    census->read.links += type == AE_IFLNK;
    census->read.full_folders += type == AE_IFDIR && has_bytes;
    if (format_of(a) != ARCHIVE_FORMAT_ZIP || !has_bytes || type == AE_IFREG || type == AE_IFDIR || type == 0)
        return true;
    mr_buf_printf(out, "is marked as a device or FIFO, but has %" PRId64 " bytes", archive_entry_size(e));
    return false;
}

mr_status mr_archive_check_census(const archive_input *in, const archive_census *census, mr_error *err)
{
    const zip_directory *r = &census->read, *d = &census->announced;
    if (!census->is_announced ||
        (r->entries == d->entries && r->links == d->links && r->full_folders == d->full_folders))
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA,
                   "%s: its directory lists %" PRIu64 " entries (%" PRIu64 " links, %" PRIu64 " folders with bytes), "
                   "but %" PRIu64 " (%" PRIu64 ", %" PRIu64 ") were read; the archive is damaged",
                   in->name, d->entries, d->links, d->full_folders, r->entries, r->links, r->full_folders);
}

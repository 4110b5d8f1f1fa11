/* archive_data.c - where an entry's bytes are: in the archive itself, or copied to the spool.
 * Invariant: bytes are left in place only if each was compared with what libarchive delivers, of which it computes the
 * checksum; those of a tar in a plain tar, which have none, are compared when that one is listed.
 *
 * An entry stored uncompressed in a plain tar or zip file need not be copied: where its bytes should begin is guessed
 * from the reader's position and then verified, byte by byte, against what libarchive delivers. */
#include <string.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "ingest/archive/archive.h"

static bool same_bytes(unpack *u, uint64_t at, const void *bytes, size_t len)
{
    mr_buf_clear(&u->compare);
    return len > 0 && mr_buf_reserve(&u->compare, len) &&
           mr_file_pread(u->fd, u->compare.data, len, at, u->name, NULL) == MR_OK &&
           memcmp(u->compare.data, bytes, len) == 0;
}

/* The tar reader may not have consumed the header's last block yet: two places are possible. */
static bool find_place(unpack *u, const void *bytes, size_t len, place *p)
{
    int64_t position = archive_filter_bytes(u->archive, 0);
    for (uint64_t ahead = 0; position >= 0 && ahead <= 512; ahead += 512) {
        p->at = u->base + (uint64_t)position + ahead;
        if (same_bytes(u, p->at, bytes, len))
            return true;
    }
    return false;
}

/* Whether none of it is cut off. */
static bool is_inside(const unpack *u, const place *p)
{
    uint64_t end = u->base + u->input->size;
    return p->at <= end && p->whole <= end - p->at;
}

static mr_status write_spool(unpack *u, const void *bytes, size_t len, uint64_t at, mr_error *err)
{
    const list *l = u->list;
    return mr_file_pwrite(l->source->holders[l->spool_holder].fd, bytes, len, l->spool_at + at, "the spool file", err);
}

/* The entry is not in one piece after all: copies what has been read so far. */
static mr_status leave_place(unpack *u, place *p, mr_error *err)
{
    enum { CHUNK = 1 << 16 };
    p->in_place = false;
    for (uint64_t done = 0; done < p->size;) {
        size_t n = p->size - done < CHUNK ? (size_t)(p->size - done) : CHUNK;
        mr_buf_clear(&u->compare);
        if (!mr_buf_reserve(&u->compare, n))
            return mr_fail_memory(err, u->name);
        MR_TRY(mr_file_pread(u->fd, u->compare.data, n, p->at + done, u->name, err));
        MR_TRY(write_spool(u, u->compare.data, n, done, err));
        done += n;
    }
    return MR_OK;
}

mr_status mr_unpack_data(unpack *u, uint64_t max, const char *path, place *p, mr_error *err)
{
    const void *bytes;
    size_t len;
    int64_t offset;
    for (int r; (r = archive_read_data_block(u->archive, &bytes, &len, &offset)) != ARCHIVE_EOF;) {
        archive_verdict verdict = mr_archive_check_data(u->archive, r);
        if (verdict == ARCHIVE_BAD)
            return mr_archive_input_broken(u->archive, u->input, u->census.read.entries, path, err);
        if (verdict == ARCHIVE_BAD_ENTRY) {
            p->damaged = true;
            mr_archive_complaint(u->archive, &u->complaint);
            return MR_OK;
        }
        if (offset < 0 || (uint64_t)offset > max || len > max - (uint64_t)offset) {
            p->large = true;
            return MR_OK;
        }
        uint64_t hole = (uint64_t)offset > p->size ? (uint64_t)offset - p->size : 0;
        MR_TRY(mr_archive_input_grow(u->input, hole + len, err));
        if (p->size == 0 && offset == 0 && len && u->fd >= 0) {
            p->in_place = find_place(u, bytes, len, p);
            if (p->in_place && p->whole && is_inside(u, p)) {
                u->input->taken += p->whole - len; /* they are read by the next reader */
                p->size = p->whole;
                return MR_OK;
            }
        } else if (p->in_place && len && ((uint64_t)offset != p->size || !same_bytes(u, p->at + p->size, bytes, len)))
            MR_TRY(leave_place(u, p, err));
        if (!p->in_place)
            MR_TRY(write_spool(u, bytes, len, (uint64_t)offset, err));
        if ((uint64_t)offset + len > p->size)
            p->size = (uint64_t)offset + len;
    }
    return MR_OK;
}

mr_status mr_unpack_end_hole(unpack *u, uint64_t size, place *p, mr_error *err)
{
    if (p->size >= size)
        return MR_OK;
    MR_TRY(mr_archive_input_grow(u->input, size - p->size, err));
    if (p->in_place)
        MR_TRY(leave_place(u, p, err));
    p->size = size;
    return MR_OK;
}

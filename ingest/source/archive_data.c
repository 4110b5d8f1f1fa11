/* archive_data.c - where an entry's bytes are: in the archive itself, or copied to the spool.
 * Invariant: bytes are left in place only where each of them was compared with what libarchive delivers, which is what
 * it computes the checksum of.
 *
 * An entry stored uncompressed in a plain tar or zip file need not be copied: where its bytes should begin is guessed
 * from the reader's position and then proven, byte by byte, against what libarchive delivers. */
#include <string.h>

#include "base/file.h"
#include "source/archive.h"

static bool same_bytes(unpack *u, uint64_t at, const void *bytes, size_t len)
{
    mr_buf_clear(&u->compare);
    return len > 0 && mr_buf_reserve(&u->compare, len) &&
           mr_file_pread(u->fd, u->compare.data, len, at, u->name, NULL) == MR_OK &&
           memcmp(u->compare.data, bytes, len) == 0;
}

/* A tar reader may not have swallowed the header's last block yet: two places are possible. */
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

/* The entry turned out not to lie in one piece: what has passed so far is copied after all. */
static mr_status leave_place(unpack *u, place *p, mr_error *err)
{
    enum { CHUNK = 1 << 16 };
    p->in_place = false;
    for (uint64_t done = 0; done < p->size;) {
        size_t n = p->size - done < CHUNK ? (size_t)(p->size - done) : CHUNK;
        mr_buf_clear(&u->compare);
        if (!mr_buf_reserve(&u->compare, n))
            return mr_fail_memory(err, u->name);
        mr_status status = mr_file_pread(u->fd, u->compare.data, n, p->at + done, u->name, err);
        if (status == MR_OK)
            status = mr_file_pwrite(u->list->source->holders[u->list->spool_holder].fd, u->compare.data, n,
                                    u->list->spool_at + done, "the spool file", err);
        if (status != MR_OK)
            return status;
        done += n;
    }
    return MR_OK;
}

mr_status unpack_data(unpack *u, uint64_t max, const char *path, place *p, mr_error *err)
{
    list *l = u->list;
    const void *bytes;
    size_t len;
    int64_t offset;
    for (int r; (r = archive_read_data_block(u->archive, &bytes, &len, &offset)) != ARCHIVE_EOF;) {
        archive_verdict verdict = archive_judge_data(u->archive, r);
        if (verdict == ARCHIVE_BAD)
            return archive_input_broken(u->archive, u->input, u->census.read.entries, path, err);
        if (verdict == ARCHIVE_BAD_ENTRY) {
            p->damaged = true;
            archive_complaint(u->archive, &u->complaint);
            return MR_OK;
        }
        if (offset < 0 || (uint64_t)offset > max || len > max - (uint64_t)offset) {
            p->large = true;
            return MR_OK;
        }
        uint64_t hole = (uint64_t)offset > p->size ? (uint64_t)offset - p->size : 0;
        mr_status status = archive_input_grow(u->input, hole + len, err);
        if (status != MR_OK)
            return status;
        if (p->size == 0 && offset == 0 && len && u->fd >= 0)
            p->in_place = find_place(u, bytes, len, p);
        else if (p->in_place && len && ((uint64_t)offset != p->size || !same_bytes(u, p->at + p->size, bytes, len)))
            status = leave_place(u, p, err);
        if (status == MR_OK && !p->in_place)
            status = mr_file_pwrite(l->source->holders[l->spool_holder].fd, bytes, len, l->spool_at + (uint64_t)offset,
                                    "the spool file", err);
        if (status != MR_OK)
            return status;
        if ((uint64_t)offset + len > p->size)
            p->size = (uint64_t)offset + len;
    }
    return MR_OK;
}

mr_status unpack_end_hole(unpack *u, uint64_t size, place *p, mr_error *err)
{
    if (p->size >= size)
        return MR_OK;
    mr_status status = archive_input_grow(u->input, size - p->size, err);
    if (status == MR_OK && p->in_place)
        status = leave_place(u, p, err);
    p->size = size;
    return status;
}

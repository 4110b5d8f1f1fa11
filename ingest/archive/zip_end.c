/* zip_end.c - the bytes of a zip, and where its directory is.
 * Invariant: an end record that is not complete is ignored.
 *
 *      ... directory  [zip64 end]  [locator]  end [comment]         read from the right */
#include "ingest/archive/zip_end.h"

#include <string.h>

#include "base/files/file.h"
#include "base/scope.h"

enum { END = 22, END64 = 56, LOCATOR = 20, COMMENT_MAX = 65535 };

unsigned mr_zip_le16(const uint8_t *p)
{
    return p[0] | (unsigned)p[1] << 8;
}

uint32_t mr_zip_le32(const uint8_t *p)
{
    return mr_zip_le16(p) | (uint32_t)mr_zip_le16(p + 2) << 16;
}

uint64_t mr_zip_le64(const uint8_t *p)
{
    return mr_zip_le32(p) | (uint64_t)mr_zip_le32(p + 4) << 32;
}

mr_status mr_zip_view(const zip *z, window *w, uint64_t at, size_t len, const uint8_t **out)
{
    if (at > z->size || len > z->size - at)
        return mr_fail(z->err, MR_BAD_DATA, "%s: its directory points past its end: it is truncated or damaged",
                       z->name);
    if (at < w->at || at - w->at > w->bytes.len || len > w->bytes.len - (at - w->at)) {
        size_t want = len > w->chunk ? len : w->chunk;
        if (want > z->size - at)
            want = (size_t)(z->size - at);
        mr_buf_clear(&w->bytes);
        w->at = at;
        if (!mr_buf_reserve(&w->bytes, want))
            return mr_fail_memory(z->err, z->name);
        MR_TRY(mr_file_pread(z->fd, w->bytes.data, want, z->base + at, z->name, z->err));
        w->bytes.len = want;
    }
    *out = w->bytes.data + (at - w->at);
    return MR_OK;
}

/* Takes the values of the zip64 end, if there is one. */
static mr_status take_end64(zip *z, uint64_t at, bool *found)
{
    const uint8_t *p;
    if (at > z->size || z->size - at < END64)
        return MR_OK;
    MR_TRY(mr_zip_view(z, &z->directory, at, END64, &p));
    if (memcmp(p, "PK\6\6", 4) != 0)
        return MR_OK;
    uint64_t len = mr_zip_le64(p + 40);
    *found = true;
    z->several_parts = mr_zip_le64(p + 24) != mr_zip_le64(p + 32);
    z->count = mr_zip_le64(p + 32);
    z->wrap = 0;
    z->start = len <= at ? at - len : at;
    z->shift = z->start - mr_zip_le64(p + 48);
    z->end = at;
    return MR_OK;
}

/* A locator before the end points to the zip64 end; if other bytes precede the archive, it is still right before the
 * locator.  (What looks like a locator may be the end of a name.) */
static mr_status find_end64(zip *z)
{
    const uint8_t *p;
    bool found = false;
    if (z->end < LOCATOR)
        return MR_OK;
    uint64_t locator = z->end - LOCATOR;
    MR_TRY(mr_zip_view(z, &z->directory, locator, LOCATOR, &p));
    if (memcmp(p, "PK\6\7", 4) != 0)
        return MR_OK;
    MR_TRY(take_end64(z, mr_zip_le64(p + 8), &found));
    return found || locator < END64 ? MR_OK : take_end64(z, locator - END64, &found);
}

mr_status mr_zip_find_end(zip *z)
{
    size_t tail = z->size < END + COMMENT_MAX ? (size_t)z->size : END + COMMENT_MAX;
    const uint8_t *p = NULL;
    MR_TRY(mr_zip_view(z, &z->directory, z->size - tail, tail, &p));
    size_t at = tail < END ? 0 : tail - END + 1;
    while (at > 0 && memcmp(p + at - 1, "PK\5\6", 4) != 0)
        at--;
    if (at == 0)
        return mr_fail(z->err, MR_BAD_DATA, "%s: has no zip directory at its end: it is truncated or damaged", z->name);
    p += at - 1;
    z->end = z->size - tail + at - 1;
    z->count = mr_zip_le16(p + 10);
    z->wrap = 1 << 16; /* writers without zip64 let it wrap */
    uint64_t len = mr_zip_le32(p + 12), offset = mr_zip_le32(p + 16);
    z->several_parts = mr_zip_le16(p + 4) != 0 || mr_zip_le16(p + 6) != 0 || mr_zip_le16(p + 8) != z->count;
    z->start = len <= z->end ? z->end - len : z->end;
    z->shift = z->start - offset; /* below zero: no header is found there */
    MR_TRY(find_end64(z));
    if (z->several_parts)
        return mr_fail(z->err, MR_BAD_DATA, "%s: is one of several parts of a zip, or its end is damaged", z->name);
    return MR_OK;
}

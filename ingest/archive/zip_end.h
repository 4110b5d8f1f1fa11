/* zip_end.h - the bytes of a zip, and where its directory is; private to zip_*.c.
 * Invariant: no byte outside the archive is ever read. */
#ifndef MR_ZIP_END_H
#define MR_ZIP_END_H

#include "base/buf.h"

typedef struct window { /* bytes of the archive; initially zero except the chunk */
    mr_buf bytes;
    uint64_t at;
    size_t chunk; /* read ahead */
} window;

typedef struct zip {
    int fd;
    uint64_t base, size;
    const char *name;
    window directory, headers;
    uint64_t last;              /* header that was read */
    uint64_t headers_len;       /* total length of the headers read: at most the archive's size */
    mr_buf target;              /* the target of a link */
    uint64_t start, end, count; /* where the directory is; the records that it should have */
    uint64_t wrap;              /* the count is known modulo this; 0: exactly */
    uint64_t shift;             /* bytes before the archive, which its offsets do not count */
    bool several_parts;
    mr_error *err;
} zip;

unsigned mr_zip_le16(const uint8_t *p);
uint32_t mr_zip_le32(const uint8_t *p);
uint64_t mr_zip_le64(const uint8_t *p);
/* `len` bytes at `at`, lent until the window is used again.  MR_BAD_DATA: the archive ends before. */
mr_status mr_zip_view(const zip *z, window *w, uint64_t at, size_t len, const uint8_t **out);
/* Fills start to several_parts.  MR_BAD_DATA: no end was found, or this is one part of several. */
mr_status mr_zip_find_end(zip *z);

#endif

/* archive_input.h - feeds an archive's bytes to libarchive.
 * Invariant: the input outlives the struct archive that reads from it. */
#ifndef MR_ARCHIVE_INPUT_H
#define MR_ARCHIVE_INPUT_H

#include <archive.h>
#include <archive_entry.h>

#include "base/error.h"

#include <stdbool.h>

typedef struct archive_input { /* from mr_alloc(), zero except name, fd, limits and, if seekable, base and size */
    const char *name;          /* for messages */
    int fd;
    bool seekable;
    uint64_t base, size;        /* where in the file the archive is */
    struct mr_download *coming; /* the file is still being downloaded; NULL: it is all there */

    uint64_t ratio, allowance;   /* limits on what comes out; see mr_archive_input_grow() */
    uint64_t weight;             /* the ratio is to this; 0: to the bytes that are read */
    bool plain;                  /* only an uncompressed tar is read */
    struct archive_input *outer; /* the enclosing archive of a nested one, whose limits count the output as well */
    uint64_t padding;            /* zeros that are read after a tar's end; 0: all */

    uint64_t at;              /* seekable: offset in the archive of what is read next */
    uint64_t taken, grown;    /* bytes read; bytes and names that came out */
    int read_errno;           /* errno of the read that failed, or 0; libarchive drops it while it detects the format */
    struct archive *unpacker; /* decompresses; at most one of the two is set */
    struct gzip_input *gzip;
    bool unpacking_failed;
    const uint8_t *given; /* the last block that the format got, */
    size_t given_len;
    uint64_t given_end; /* and where it ends in the decompressed bytes */
    size_t ready;       /* bytes of `block` read ahead of libarchive's first request */
    uint8_t block[1 << 18], unpacked[1 << 18];
} archive_input;

/* Reads the first block; false: errno says why not. */
bool mr_archive_input_begin(archive_input *in);
/* After begin: a kind of archive whose directory is at its end, so a stream of it must be stored first. */
bool mr_archive_input_must_seek(const archive_input *in);
/* After begin, for such a stream: writes all of it at `at` of `fd`, and reads from there afterwards. */
mr_status mr_archive_input_keep(archive_input *in, int fd, uint64_t at, mr_error *err);
/* After begin: chooses formats and filter and opens; ARCHIVE_OK, or a failure with archive_error_string(). */
int mr_archive_input_open(struct archive *a, archive_input *in);

/* After open: the formats read the file itself and can seek in it. */
bool mr_archive_input_is_file(const archive_input *in);
/* After open: a tar whose headers may say that its names are UTF-8. */
bool mr_archive_input_is_tar(const archive_input *in);

/* After a failure of libarchive: MR_SYSTEM if disk or memory caused it, MR_OK if the archive did. */
mr_status mr_archive_input_blame(const archive_input *in, mr_error *err);
const char *mr_archive_input_why(struct archive *a, const archive_input *in); /* the archive's fault, as text */
/* The same, or MR_BAD_DATA with that text.  `entry`: the one that was read, or NULL. */
mr_status mr_archive_input_broken(struct archive *a, const archive_input *in, uint64_t entries, const char *entry,
                                  mr_error *err);
/* After the last entry.  A tar: MR_BAD_DATA if it has no end mark, as when cut off between two entries; *more if
 * anything but zeros follows the mark.  Compressed bytes are read to their end, where the checksum is. */
mr_status mr_archive_input_end(struct archive *a, archive_input *in, uint64_t entries, bool *more, mr_error *err);
/* After that: bytes that belong to no member follow a gzip stream. */
bool mr_archive_input_has_garbage(const archive_input *in);
/* After the archive's reader has been freed.  Takes NULL. */
void mr_archive_input_free(archive_input *in);

enum { ARCHIVE_INPUT_HEADER = 512 }; /* approximate bytes of an entry's header */

/* Counts what came out of the archive: data, holes, names and headers.  Against archive bombs, MR_BAD_DATA when that is
 * more than the allowance (MR_SOURCE_ALLOWANCE for all archives of a source together) and `ratio` (0: 100) times its
 * weight: what was read of it or, where parts may be read repeatedly, its size. */
mr_status mr_archive_input_grow(archive_input *in, uint64_t bytes, mr_error *err);
/* Bytes that have come out beyond the ratio. */
uint64_t mr_archive_input_excess(const archive_input *in);

/* The entry's name in the archive's bytes.  NULL: not readable. */
const char *mr_archive_input_name(struct archive_entry *e, size_t *len);

#endif

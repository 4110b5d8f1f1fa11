/* archive_input.h - an archive's bytes into libarchive.
 * Invariant: the input outlives the struct archive that reads from it. */
#ifndef MR_ARCHIVE_INPUT_H
#define MR_ARCHIVE_INPUT_H

#include <archive.h>

#include "error.h"

#include <stdbool.h>

typedef struct archive_input {      /* zeroed but for fd and, where it can be sought, these: */
    int fd;
    bool seekable;
    uint64_t base, size;            /* where in the file the archive lies */

    uint64_t at;                    /* seekable: what is read next, in the archive */
    size_t ready;                   /* else: bytes of `block` read ahead of libarchive's first request */
    uint8_t block[1 << 18];
} archive_input;

/* Reads the first block; false: errno says why not. */
bool archive_input_begin(archive_input *in);
/* After begin: a kind of archive whose directory stands at its end, so a stream of it has to be kept first. */
bool archive_input_must_seek(const archive_input *in);
/* After begin: chooses formats and filter and opens; ARCHIVE_OK, or a failure with archive_error_string(). */
int archive_input_open(struct archive *a, archive_input *in);

#endif

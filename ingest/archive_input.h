/* archive_input.h - an archive's bytes into libarchive.
 * Invariant: the input outlives the struct archive that reads from it. */
#ifndef MR_ARCHIVE_INPUT_H
#define MR_ARCHIVE_INPUT_H

#include <archive.h>

#include "error.h"

#include <stdbool.h>

typedef struct archive_input {      /* fill fd and seekable */
    int fd;
    bool seekable;
    size_t ready;                   /* bytes of `block` read ahead of libarchive's first request */
    uint8_t block[1 << 18];
} archive_input;

/* Chooses formats and filter and opens; ARCHIVE_OK, or a failure with archive_error_string(). */
int archive_input_open(struct archive *a, archive_input *in);

#endif

/* gzip_input.h - decompresses a gzip stream (RFC 1952) and checks it: the CRC-32 and length of every member, and a
 * header's CRC-16 if it has one.
 * Invariant: bytes are returned before their member's checksum has been read, so they can be trusted only once the
 * end of the stream has been reached without a failure. */
#ifndef MR_GZIP_INPUT_H
#define MR_GZIP_INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct gzip_input gzip_input;

/* The next bytes of the compressed stream, lent until the next call; 0: its end, negative: the read failed. */
typedef ssize_t (*gzip_pull)(void *ctx, const void **bytes);

gzip_input *mr_gzip_begin(gzip_pull pull, void *ctx); /* NULL: no memory */
/* Fills `out` with decompressed bytes, as many as there are; 0: the end of the stream; -1: see mr_gzip_why(). */
ssize_t mr_gzip_read(gzip_input *g, void *out, size_t capacity);
/* Why the last read failed; NULL: because the pull did. */
const char *mr_gzip_why(const gzip_input *g);
/* At the end: something other than zeros follows the last member.  As in gzip, it is not read. */
bool mr_gzip_has_garbage(const gzip_input *g);
void mr_gzip_end(gzip_input *g); /* takes NULL */

#endif

/* jpeg_source.h - a file in memory, passed to libjpeg in pieces so small that it decodes with all of its checks.
 * Invariant: libjpeg sees every byte of the file once, in order, and none past its end.
 *
 * libjpeg-turbo has a second, faster decoder of sequential Huffman data that silently decodes invalid codes as zero. It
 * runs only while 512 bytes per block of an MCU are available, so never here. */
#ifndef MR_JPEG_SOURCE_H
#define MR_JPEG_SOURCE_H

#include "image/codec/jpeg_trap.h"

typedef struct mr_jpeg_source {
    struct jpeg_source_mgr manager; /* first: libjpeg's callbacks get its address */
    const uint8_t *bytes;
    size_t len, given;          /* bytes of the file; handed out so far */
    bool (*stopped)(void *ctx); /* called before each piece; true: decoding ends with MR_END; NULL: never */
    void *ctx;
} mr_jpeg_source;

/* After mr_jpeg_trap_create(), with `stopped` and `ctx` set by the caller: makes the decoder read `bytes`, which like
 * `s` must outlive it.  Reading past the end of the bytes is a failure. */
void mr_jpeg_source_set(mr_jpeg_source *s, struct jpeg_decompress_struct *cinfo, const uint8_t *bytes, size_t len);

#endif

/* png_chunk.h - the chunks of a PNG: the one walk over them that facts, pixels and libspng's input share.
 * Invariant: no byte past the end is read.
 *
 *      u32 length | 4 letters, the first in upper case: no reader may skip it | body | u32 CRC of letters and body
 * Source: W3C PNG, third edition, 5. */
#ifndef MR_PNG_CHUNK_H
#define MR_PNG_CHUNK_H

#include <libdeflate.h>
#include <string.h>

#include "image/codec/codec.h"

enum {
    MR_PNG_SIGNATURE = 8,
    MR_PNG_AROUND = 12, /* length, letters and CRC of a chunk */
};

typedef struct mr_png_chunk {
    const char *tag; /* not terminated */
    const uint8_t *body;
    uint32_t len;
} mr_png_chunk;

/* The chunk at `at`, of which MR_PNG_AROUND bytes must exist.  False: it goes past the end, and only its tag and length
 * are there. */
static inline bool mr_png_chunk_at(const uint8_t *bytes, size_t len, size_t at, mr_png_chunk *out)
{
    const uint8_t *p = bytes + at;
    *out = (mr_png_chunk){(const char *)p + 4, p + 8, mr_be32(p)};
    return out->len <= len - at - MR_PNG_AROUND;
}

static inline bool mr_png_chunk_is(const mr_png_chunk *c, const char *tag)
{
    return !memcmp(c->tag, tag, 4);
}

/* Decoders may ignore it. */
static inline bool mr_png_chunk_is_ancillary(const mr_png_chunk *c)
{
    return c->tag[0] & 32;
}

static inline bool mr_png_chunk_is_sound(const mr_png_chunk *c)
{
    return libdeflate_crc32(0, c->tag, (size_t)c->len + 4) == mr_be32(c->body + c->len);
}

#endif

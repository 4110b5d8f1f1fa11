/* png_open.h - opening a PNG with libspng, for codec_png.c and region/png.c.
 * Invariant: libspng's limits are set before it reads a byte. */
#ifndef MR_PNG_OPEN_H
#define MR_PNG_OPEN_H

#include <spng.h>

#include "base/error.h"

enum {
    MR_PNG_SIDE_MAX = 1000000, /* libpng's limit: most programs reject larger images */
    MR_PNG_CHUNK_MAX = 64 << 20,
};

/* Samples per pixel of a colour type, an index being one; 0: there is no such type. */
static inline unsigned mr_png_samples(uint8_t colour)
{
    static const uint8_t samples[] = {1, 0, 3, 1, 2, 0, 4};
    return colour < sizeof samples ? samples[colour] : 0;
}

/* The chunks that pixels are made of; others, of which libspng keeps 1,000 and 64 MiB, it does not see: what a file
 * says beside its pixels does not decide whether it decodes. */
typedef struct mr_png_source {
    const uint8_t *bytes;
    size_t len, at, end; /* `end` of what is given now */
} mr_png_source;

/* *ctx: NULL before; the caller frees it, even after a failure.  `bytes` and `source` must outlive
 * it. */
mr_status mr_png_open(const uint8_t *bytes, size_t len, mr_png_source *source, spng_ctx **ctx, struct spng_ihdr *ihdr,
                      mr_error *err);
void mr_png_free(spng_ctx **ctx); /* for MR_AUTO */

/* The failure for an error code of libspng. */
mr_status mr_png_failure(int code, mr_error *err);

#endif

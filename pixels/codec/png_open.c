/* png_open.c - opens a PNG with libspng; see png_open.h. */
#include "codec/png_open.h"

enum { CHUNK_MEMORY = 64 << 20 }; /* for text and profiles that libspng unpacks */

mr_status mr_png_failure(int code, mr_error *err)
{
    if (code == SPNG_EMEM)
        return mr_fail_memory(err, "decoding a PNG");
    return mr_fail(err, MR_BAD_SAMPLE, "PNG cannot be decoded: %s", spng_strerror(code));
}

void mr_png_free(spng_ctx **ctx)
{
    spng_ctx_free(*ctx);
}

mr_status mr_png_open(const uint8_t *bytes, size_t len, spng_ctx **ctx, struct spng_ihdr *ihdr, mr_error *err)
{
    *ctx = spng_ctx_new(0);
    if (!*ctx)
        return mr_fail_memory(err, "decoding a PNG");
    int e = spng_set_image_limits(*ctx, MR_PNG_SIDE_MAX, MR_PNG_SIDE_MAX);
    if (!e)
        e = spng_set_chunk_limits(*ctx, CHUNK_MEMORY, CHUNK_MEMORY);
    if (!e)
        e = spng_set_png_buffer(*ctx, bytes, len);
    if (!e)
        e = spng_get_ihdr(*ctx, ihdr);
    return e ? mr_png_failure(e, err) : MR_OK;
}

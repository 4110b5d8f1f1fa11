/* png_open.c - opens a PNG with libspng; see png_open.h. */
#include "image/codec/png_open.h"

#include <string.h>

#include "image/codec/png_chunk.h"

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

/* The next chunk to give; false: there is none.  A chunk that goes past the end is given: libspng says so. */
static bool next_chunk(mr_png_source *s)
{
    while (s->len - s->at >= MR_PNG_AROUND) {
        mr_png_chunk c;
        bool inside = mr_png_chunk_at(s->bytes, s->len, s->at, &c);
        s->end = inside ? s->at + c.len + MR_PNG_AROUND : s->len;
        if (s->at == MR_PNG_SIGNATURE || !inside || !mr_png_chunk_is_ancillary(&c) || mr_png_chunk_is(&c, "tRNS"))
            return true;
        s->at = s->end;
    }
    s->end = s->len;
    return s->at < s->len;
}

static int give(spng_ctx *ctx, void *user, void *to, size_t len)
{
    mr_png_source *s = user;
    (void)ctx;
    for (size_t done = 0; done < len;) {
        if (s->at == s->end && !next_chunk(s))
            return SPNG_IO_EOF;
        size_t some = s->end - s->at < len - done ? s->end - s->at : len - done;
        memcpy((uint8_t *)to + done, s->bytes + s->at, some);
        s->at += some;
        done += some;
    }
    return 0;
}

mr_status mr_png_open(const uint8_t *bytes, size_t len, mr_png_source *source, spng_ctx **ctx, struct spng_ihdr *ihdr,
                      mr_error *err)
{
    *source = (mr_png_source){bytes, len, 0, len < MR_PNG_SIGNATURE ? len : MR_PNG_SIGNATURE};
    *ctx = spng_ctx_new(0);
    if (!*ctx)
        return mr_fail_memory(err, "decoding a PNG");
    int e = spng_set_image_limits(*ctx, MR_PNG_SIDE_MAX, MR_PNG_SIDE_MAX);
    if (!e)
        e = spng_set_chunk_limits(*ctx, MR_PNG_CHUNK_MAX, MR_PNG_CHUNK_MAX);
    if (!e)
        e = spng_set_png_stream(*ctx, give, source);
    if (!e)
        e = spng_get_ihdr(*ctx, ihdr);
    return e ? mr_png_failure(e, err) : MR_OK;
}

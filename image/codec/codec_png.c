/* codec_png.c - PNG: its own walk over the chunks for the facts, libspng for the pixels.
 * Invariant: a chunk is read only after checking that it ends inside the file; an ancillary chunk is used only if its
 * CRC is right, as in other decoders.
 *
 *   89 "PNG\r\n" 1A 0A   IHDR (13 bytes)  { ancillary | PLTE }  IDAT ...  { ancillary }  IEND   trailing bytes
 * Source: W3C PNG, third edition, 5 and 11; APNG in 11.3.6. */
#include <stdlib.h>
#include <string.h>

#include "image/similar/shrink.h"
#include "base/scope.h"
#include "image/codec/png_chunk.h"
#include "image/codec/png_open.h"

enum {
    GRAY = 0,
    RGB = 2,
    PALETTE = 3,
    GRAY_ALPHA = 4,
    RGB_ALPHA = 6,
};

static const uint8_t signature[MR_PNG_SIGNATURE] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

typedef struct walk {
    const uint8_t *bytes;
    size_t len, at;
    mr_image_limits limits;
    mr_image_facts facts;
    uint8_t colour;
    uint32_t chunks;
    bool header, palette, exif, end;
    uint64_t data; /* bytes of IDAT so far */
} walk;

static bool png_claims(const uint8_t *bytes, size_t len)
{
    return len >= sizeof signature && !memcmp(bytes, signature, sizeof signature);
}

/* The chunk at `at`; moves `at` past it. */
static mr_status take_chunk(walk *w, mr_png_chunk *c, mr_error *err)
{
    if (w->len - w->at < MR_PNG_AROUND)
        return mr_fail(err, MR_BAD_SAMPLE, "PNG ends without its end chunk: the file is cut short");
    bool inside = mr_png_chunk_at(w->bytes, w->len, w->at, c);
    for (int i = 0; i < 4; i++)
        if ((c->tag[i] | 32) < 'a' || (c->tag[i] | 32) > 'z')
            return mr_fail(err, MR_BAD_SAMPLE, "PNG has no valid chunk at byte %zu: damaged", w->at);
    if (!inside)
        return mr_fail(err, MR_BAD_SAMPLE, "PNG chunk %.4s at byte %zu goes past the end: the file is cut short",
                       c->tag, w->at);
    w->at += (size_t)c->len + MR_PNG_AROUND;
    if (++w->chunks > w->limits.max_segments)
        return mr_fail(err, MR_BAD_SAMPLE, "PNG has more than %u chunks, the limit", w->limits.max_segments);
    return MR_OK;
}

/* Channels of a colour type at a depth; 0: not a combination of the standard. */
static uint8_t channels(uint8_t colour, uint8_t depth)
{
    bool power = depth && depth <= 16 && !(depth & (depth - 1));
    if (!power || (depth == 16 && colour == PALETTE))
        return 0;
    switch (colour) {
    case GRAY:
        return 1;
    case PALETTE:
        return 3;
    case RGB:
        return depth >= 8 ? 3 : 0;
    case GRAY_ALPHA:
        return depth >= 8 ? 2 : 0;
    case RGB_ALPHA:
        return depth >= 8 ? 4 : 0;
    default:
        return 0;
    }
}

static mr_status header(walk *w, const mr_png_chunk *c, mr_error *err)
{
    if (w->header || c->len != 13)
        return mr_fail(err, MR_BAD_SAMPLE, w->header ? "PNG has two headers" : "PNG header has an impossible length");
    uint32_t width = mr_be32(c->body), height = mr_be32(c->body + 4);
    uint8_t depth = c->body[8], colour = c->body[9], components = channels(colour, depth);
    if (!components)
        return mr_fail(err, MR_BAD_SAMPLE, "PNG has invalid colour type %u with %u bits", colour, depth);
    if (c->body[10] || c->body[11] || c->body[12] > 1)
        return mr_fail(err, MR_BAD_SAMPLE, "PNG with unknown compression, filter or interlace method");
    MR_TRY(mr_image_check_size("PNG", width, height, &w->limits, err));
    if (width > MR_PNG_SIDE_MAX || height > MR_PNG_SIDE_MAX)
        return mr_fail(err, MR_BAD_SAMPLE, "PNG of %u x %u pixels: decoders reject sides above %d", width, height,
                       MR_PNG_SIDE_MAX);
    w->header = true;
    w->colour = colour;
    /* For a palette image, bits are the 8 of its colours, not those of an index. */
    w->facts = (mr_image_facts){width, height, MR_CODEC_PNG, 1, components, colour == PALETTE ? 8 : depth, 0};
    w->facts.flags = (c->body[12] ? MR_FLAG_PROGRESSIVE : 0u) | (colour == PALETTE ? MR_FLAG_PALETTE : 0u) |
                     (colour == GRAY_ALPHA || colour == RGB_ALPHA ? MR_FLAG_ALPHA : 0u);
    return MR_OK;
}

static mr_status critical(walk *w, const mr_png_chunk *c, mr_error *err)
{
    if (!mr_png_chunk_is_sound(c))
        return mr_fail(err, MR_BAD_SAMPLE, "PNG chunk %.4s at byte %zu is damaged: its CRC differs", c->tag,
                       (size_t)(c->body - w->bytes) - 8);
    if (mr_png_chunk_is(c, "IHDR"))
        return header(w, c, err);
    if (mr_png_chunk_is(c, "PLTE")) {
        if (w->palette || w->data || !c->len || c->len % 3 || c->len > 768)
            return mr_fail(err, MR_BAD_SAMPLE, "PNG palette is misplaced or has an impossible length");
        w->palette = true;
    } else if (mr_png_chunk_is(c, "IDAT")) {
        if (w->colour == PALETTE && !w->palette)
            return mr_fail(err, MR_BAD_SAMPLE, "PNG has palette indices as pixels, but no palette");
        w->data += c->len;
    } else if (mr_png_chunk_is(c, "IEND")) {
        w->end = true;
    } else {
        return mr_fail(err, MR_BAD_SAMPLE, "PNG has an unknown critical chunk %.4s", c->tag);
    }
    return MR_OK;
}

/* The few ancillary chunks that matter here. */
static void ancillary(walk *w, const mr_png_chunk *c)
{
    if (mr_png_chunk_is(c, "tRNS") && !w->data && c->len && mr_png_chunk_is_sound(c)) {
        w->facts.flags |= MR_FLAG_ALPHA;
    } else if (mr_png_chunk_is(c, "acTL") && !w->data && c->len == 8 && mr_png_chunk_is_sound(c)) {
        if (mr_be32(c->body) > 1)
            w->facts.flags |= MR_FLAG_ANIMATED;
    } else if (mr_png_chunk_is(c, "eXIf") && !w->exif && mr_png_chunk_is_sound(c)) {
        w->exif = true;
        w->facts.orientation = mr_exif_orientation(c->body, c->len);
    }
}

static mr_status png_examine(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_image_facts *facts,
                             mr_error *err)
{
    walk w = {.bytes = bytes, .len = len, .at = sizeof signature, .limits = mr_image_limits_fill(limits)};
    if (!png_claims(bytes, len))
        return mr_fail(err, MR_BAD_SAMPLE, "not a PNG");
    while (!w.end) {
        mr_png_chunk c = {.len = 0};
        MR_TRY(take_chunk(&w, &c, err));
        if (!w.header && !mr_png_chunk_is(&c, "IHDR"))
            return mr_fail(err, MR_BAD_SAMPLE, "PNG starts with %.4s, not with its header", c.tag);
        if (mr_png_chunk_is_ancillary(&c))
            ancillary(&w, &c);
        else
            MR_TRY(critical(&w, &c, err));
    }
    if (!w.data)
        return mr_fail(err, MR_BAD_SAMPLE, "PNG has a header and an end, but no pixels between them");
    *facts = w.facts;
    return MR_OK;
}

/* ---- pixels --------------------------------------------------------------------------------------------------- */

/* As mr_png_open(), and checks the size. */
static mr_status open_png(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_png_source *source,
                          spng_ctx **ctx, struct spng_ihdr *ihdr, mr_error *err)
{
    mr_image_limits l = mr_image_limits_fill(limits);
    MR_TRY(mr_png_open(bytes, len, source, ctx, ihdr, err));
    return mr_image_check_size("PNG", ihdr->width, ihdr->height, &l, err);
}

/* Decodes row by row (pass by pass, if interlaced) into one row; then reads the chunks after the pixels. */
static int decode_rows(spng_ctx *ctx, const struct spng_ihdr *ihdr)
{
    size_t size;
    int e = spng_decoded_image_size(ctx, SPNG_FMT_PNG, &size);
    if (e)
        return e;
    size /= ihdr->height;
    MR_AUTO(mr_scope_free) uint8_t *row = mr_alloc(size, 1);
    if (!row)
        return SPNG_EMEM;
    e = spng_decode_image(ctx, NULL, 0, SPNG_FMT_PNG, SPNG_DECODE_PROGRESSIVE);
    while (!e)
        e = spng_decode_row(ctx, row, size);
    return e == SPNG_EOI ? spng_decode_chunks(ctx) : e;
}

static void shrink_row(mr_shrink *shrink, uint32_t y, uint8_t *rgba)
{
    for (size_t x = 0; x < shrink->width; x++) {
        const uint8_t *p = rgba + 4 * x;
        rgba[x] = mr_grey_over(mr_grey_of(p[0], p[1], p[2]), p[3]);
    }
    mr_shrink_row(shrink, y, rgba);
}

/* Row by row; an interlaced image, whose rows arrive in pieces, as a whole. */
static int shrink_rows(spng_ctx *ctx, mr_shrink *shrink, bool interlaced)
{
    enum { RGBA = 4 };
    size_t row = (size_t)shrink->width * RGBA, size = interlaced ? row * shrink->height : row;
    MR_AUTO(mr_scope_free) uint8_t *pixels = mr_alloc(size, 1);
    if (!pixels)
        return SPNG_EMEM;
    if (interlaced) {
        int e = spng_decode_image(ctx, pixels, size, SPNG_FMT_RGBA8, SPNG_DECODE_TRNS);
        for (uint32_t y = 0; !e && y < shrink->height; y++)
            shrink_row(shrink, y, pixels + y * row);
        return e;
    }
    int e = spng_decode_image(ctx, NULL, 0, SPNG_FMT_RGBA8, SPNG_DECODE_TRNS | SPNG_DECODE_PROGRESSIVE);
    for (uint32_t y = 0; !e && y < shrink->height; y++) {
        e = spng_decode_row(ctx, pixels, size); /* SPNG_EOI: this row was the last */
        if (!e || e == SPNG_EOI)
            shrink_row(shrink, y, pixels);
    }
    return e == SPNG_EOI ? 0 : e;
}

static mr_status png_shrink(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_alike *out,
                            mr_error *err)
{
    MR_AUTO(mr_png_free) spng_ctx *ctx = NULL;
    mr_png_source source;
    struct spng_ihdr ihdr;
    MR_TRY(open_png(bytes, len, limits, &source, &ctx, &ihdr, err));
    mr_shrink shrink = {.width = ihdr.width, .height = ihdr.height};
    int e = shrink_rows(ctx, &shrink, ihdr.interlace_method != 0);
    if (e)
        return mr_png_failure(e, err);
    mr_shrink_end(&shrink, out);
    return MR_OK;
}

static mr_status png_decode(const uint8_t *bytes, size_t len, const mr_image_limits *limits, uint32_t *oddities,
                            mr_alike *look, mr_error *err)
{
    (void)oddities;
    MR_AUTO(mr_png_free) spng_ctx *ctx = NULL;
    mr_png_source source;
    struct spng_ihdr ihdr;
    MR_TRY(open_png(bytes, len, limits, &source, &ctx, &ihdr, err));
    mr_shrink shrink = {.width = ihdr.width, .height = ihdr.height};
    int e = look ? shrink_rows(ctx, &shrink, ihdr.interlace_method != 0) : decode_rows(ctx, &ihdr);
    if (!e && look)
        e = spng_decode_chunks(ctx);
    if (e)
        return mr_png_failure(e, err);
    if (look)
        mr_shrink_end(&shrink, look);
    return MR_OK;
}

const mr_codec mr_codec_png = {
    .name = "PNG",
    .suffix = "png",
    .id = MR_CODEC_PNG,
    .claims = png_claims,
    .examine = png_examine,
    .decode = png_decode,
    .shrink = png_shrink,
};

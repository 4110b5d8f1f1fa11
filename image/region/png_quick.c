/* png_quick.c - see png_quick.h.
 * Invariant: no row is touched before all compressed data has been unpacked to exactly the image's size, with the right
 * Adler-32 and CRC-32s.
 *
 *   IDAT, IDAT ... -> one zlib stream -> | filter, row 0 | filter, row 1 | ... -> unfiltered in place
 *
 * Source: W3C PNG, third edition, 9 (filters), 10 (compression). */
#include "image/region/png_quick.h"

#include <libdeflate.h>
#include <string.h>

#include "image/codec/png_chunk.h"
#include "image/codec/png_open.h"

enum {
    WHOLE_MAX = 64 << 20, /* larger images are decoded row by row, in little memory */
    HEADER = 13,
    FILTERS = 4, /* and 0, none */
};

typedef struct walk {
    const uint8_t *bytes;
    size_t len, at;
    mr_png_chunk c; /* the one before `at` */
} walk;

/* The next chunk; false: it goes past the end, or is too large. */
static bool next(walk *w)
{
    if (w->len - w->at < MR_PNG_AROUND || !mr_png_chunk_at(w->bytes, w->len, w->at, &w->c) ||
        w->c.len > MR_PNG_CHUNK_MAX)
        return false;
    w->at += (size_t)w->c.len + MR_PNG_AROUND;
    return true;
}

static bool next_sound(walk *w)
{
    return next(w) && mr_png_chunk_is_sound(&w->c);
}

static bool take_header(const mr_png_chunk *c, struct spng_ihdr *h)
{
    if (!mr_png_chunk_is(c, "IHDR") || c->len != HEADER)
        return false;
    h->width = mr_be32(c->body);
    h->height = mr_be32(c->body + 4);
    h->bit_depth = c->body[8];
    h->color_type = c->body[9];
    return h->width && h->height && h->bit_depth == 8 && mr_png_samples(h->color_type) && !c->body[10] &&
           !c->body[11] && !c->body[12];
}

/* Chunks up to the last IDAT: how many bytes all IDATs have, and where the first is. */
static bool survey(walk *w, mr_png_quick *out, size_t *packed, size_t *first)
{
    const mr_png_chunk *c = &w->c;
    *packed = 0;
    if (!next_sound(w) || !take_header(c, &out->ihdr))
        return false;
    for (bool data = false;;) {
        size_t before = w->at;
        if (!next_sound(w))
            return false;
        bool decides = !mr_png_chunk_is_ancillary(c) || mr_png_chunk_is(c, "tRNS");
        if (mr_png_chunk_is(c, "IDAT")) {
            if (!data)
                *first = before;
            data = true;
            *packed += c->len;
        } else if (data && decides) {
            return out->palette || out->ihdr.color_type != SPNG_COLOR_TYPE_INDEXED;
        } else if (mr_png_chunk_is(c, "PLTE")) {
            if (out->palette || !c->len || c->len % 3 || c->len > 768 ||
                out->ihdr.color_type == SPNG_COLOR_TYPE_GRAYSCALE ||
                out->ihdr.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA)
                return false;
            out->palette = c->body;
            out->colours = c->len / 3;
        } else if (decides) {
            return false;
        }
    }
}

/* The IDATs from w.at, one after another. */
static void join(walk w, size_t packed, uint8_t *to)
{
    for (size_t done = 0; done < packed && next(&w);)
        if (mr_png_chunk_is(&w.c, "IDAT")) {
            memcpy(to + done, w.c.body, w.c.len);
            done += w.c.len;
        }
}

static inline uint8_t paeth(int a, int b, int c)
{
    int pa = b - c, pb = a - c, pc = pa + pb;
    pa = pa < 0 ? -pa : pa;
    pb = pb < 0 ? -pb : pb;
    pc = pc < 0 ? -pc : pc;
    int nearer = pa <= pb ? a : b, distance = pa <= pb ? pa : pb;
    return (uint8_t)(distance <= pc ? nearer : c);
}

/* `each`, the bytes of a pixel, is a constant where this is inlined: their sums are then independent of one another,
 * and stay in registers. */
__attribute__((always_inline)) static inline void unfilter(uint8_t filter, uint8_t *row, const uint8_t *up, size_t len,
                                                           size_t each)
{
    uint8_t a[4] = {0}, c[4] = {0};
    switch (filter) {
    case 0:
        break;
    case 1: /* Sub */
        for (size_t i = 0; i < len; i += each)
            for (size_t k = 0; k < each; k++)
                row[i + k] = a[k] = (uint8_t)(row[i + k] + a[k]);
        break;
    case 2: /* Up */
        for (size_t i = 0; i < len; i++)
            row[i] = (uint8_t)(row[i] + up[i]);
        break;
    case 3: /* Average */
        for (size_t i = 0; i < len; i += each)
            for (size_t k = 0; k < each; k++)
                row[i + k] = a[k] = (uint8_t)(row[i + k] + (a[k] + up[i + k]) / 2);
        break;
    case 4: /* Paeth */
        for (size_t i = 0; i < len; i += each)
            for (size_t k = 0; k < each; k++) {
                uint8_t b = up[i + k];
                row[i + k] = a[k] = (uint8_t)(row[i + k] + paeth(a[k], b, c[k]));
                c[k] = b;
            }
        break;
    }
}

static void unfilter_row(uint8_t *row, const uint8_t *up, size_t len, size_t each)
{
    switch (each) {
    case 1:
        unfilter(row[-1], row, up, len, 1);
        break;
    case 2:
        unfilter(row[-1], row, up, len, 2);
        break;
    case 3:
        unfilter(row[-1], row, up, len, 3);
        break;
    default:
        unfilter(row[-1], row, up, len, 4);
        break;
    }
}

bool mr_png_quick_rows(mr_pixels_scratch *s, const uint8_t *bytes, size_t len, uint32_t count, mr_png_quick *out)
{
    walk w = {.bytes = bytes, .len = len, .at = MR_PNG_SIGNATURE};
    size_t packed, first = 0;
    *out = (mr_png_quick){0};
    if (!s->jpeg || len < MR_PNG_SIGNATURE || !survey(&w, out, &packed, &first))
        return false;
    size_t each = mr_png_samples(out->ihdr.color_type);
    uint64_t row = (uint64_t)out->ihdr.width * each, whole = (row + 1) * out->ihdr.height;
    if (whole > WHOLE_MAX || packed > WHOLE_MAX || count > out->ihdr.height)
        return false;
    if (!s->inflate)
        s->inflate = libdeflate_alloc_decompressor();
    uint8_t *buffer = mr_pixels_reserve(&s->work, (size_t)(row + whole) + packed, 1, 1);
    if (!buffer || !s->inflate)
        return false;
    uint8_t *rows = buffer + row, *stream = rows + whole;
    w.at = first;
    join(w, packed, stream);
    size_t taken, given;
    if (libdeflate_zlib_decompress_ex(s->inflate, stream, packed, rows, (size_t)whole, &taken, &given) !=
            LIBDEFLATE_SUCCESS ||
        taken != packed || given != whole)
        return false;
    for (size_t at = 0; at < whole; at += (size_t)row + 1)
        if (rows[at] > FILTERS)
            return false;
    memset(buffer, 0, (size_t)row); /* above the first row */
    const uint8_t *up = buffer;
    for (uint32_t y = 0; y < count; y++) {
        uint8_t *samples = rows + y * (row + 1) + 1;
        if (mr_pixels_stopped(s))
            return false;
        unfilter_row(samples, up, (size_t)row, each);
        up = samples;
    }
    out->rows = rows + 1;
    out->stride = (size_t)row + 1;
    return true;
}

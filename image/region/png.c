/* png.c - a region of a PNG: of the usual kinds by png_quick.c, of others by libspng, rows up to the region's last;
 * interlaced images in full.
 * Invariant: samples are used as stored (no gamma, no blending) and converted to RGB by the rules of pixels.h.
 * Source: W3C PNG, third edition, 7.2 (packing of small samples: leftmost in the high bits), 11.2. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "image/codec/png_open.h"
#include "image/region/png_quick.h"

typedef struct png_run {
    mr_pixels_scratch *scratch;
    const mr_pixels_job *job;
    struct spng_ihdr ihdr;
    uint8_t palette[256][3];
    size_t row_bytes;
} png_run;

/* Indices outside the palette are black, as in libpng, and in Pillow from 10.1 on. */
static int take_palette(png_run *run, spng_ctx *ctx)
{
    struct spng_plte plte;
    if (run->ihdr.color_type != SPNG_COLOR_TYPE_INDEXED)
        return 0;
    int e = spng_get_plte(ctx, &plte);
    if (e)
        return e;
    for (unsigned i = 0; i < plte.n_entries && i < 256; i++) {
        const struct spng_plte_entry *p = &plte.entries[i];
        memcpy(run->palette[i], (const uint8_t[]){p->red, p->green, p->blue}, 3);
    }
    return 0;
}

static unsigned sample16(const uint8_t *p)
{
    uint16_t v; /* libspng returns native byte order */
    memcpy(&v, p, 2);
    return v;
}

/* Gray samples and palette indices of 1 to 8 bits. */
static void put_small(const png_run *run, const uint8_t *row, uint8_t *out)
{
    unsigned depth = run->ihdr.bit_depth, max = (1u << depth) - 1, scale = 255 / max, each = 8 / depth;
    bool palette = run->ihdr.color_type == SPNG_COLOR_TYPE_INDEXED;
    uint32_t left = run->job->region.left, end = left + run->job->region.width;
    for (uint32_t x = left; x < end; x++, out += 3) {
        unsigned v = row[x / each] >> (8 - depth - x % each * depth) & max;
        if (palette)
            memcpy(out, run->palette[v], 3);
        else
            memset(out, (int)(v * scale), 3);
    }
}

static void put_row(const png_run *run, const uint8_t *row, uint8_t *out)
{
    size_t n = mr_png_samples(run->ihdr.color_type), colours = n < 3 ? 1 : 3;
    bool wide = run->ihdr.bit_depth == 16;
    uint32_t width = run->job->region.width;
    if (n == 1 && !wide) {
        put_small(run, row, out);
        return;
    }
    row += run->job->region.left * n * (wide ? 2 : 1);
    if (n == 3 && !wide) {
        memcpy(out, row, (size_t)width * 3);
        return;
    }
    for (uint32_t x = 0; x < width; x++, row += n * (wide ? 2 : 1), out += 3) {
        for (size_t i = 0; i < 3; i++) {
            size_t from = colours == 3 ? i : 0;
            unsigned v = wide ? sample16(row + 2 * from) : row[from];
            out[i] = (uint8_t)(!wide ? v : n == 1 ? (v > 255 ? 255 : v) : v >> 8);
        }
    }
}

/* Rows above the region are decoded and discarded; those below it are not read. */
static int decode_rows(png_run *run, spng_ctx *ctx, uint8_t *row)
{
    const mr_region *r = &run->job->region;
    uint8_t *out = run->job->rgb;
    int e = spng_decode_image(ctx, NULL, 0, SPNG_FMT_PNG, SPNG_DECODE_PROGRESSIVE);
    for (uint32_t y = 0; !e && y < r->top + r->height && !mr_pixels_stopped(run->scratch); y++) {
        e = spng_decode_row(ctx, row, run->row_bytes);
        if (e == SPNG_EOI && y + 1 == run->ihdr.height)
            e = 0;
        if (!e && y >= r->top) {
            put_row(run, row, out);
            out += (size_t)r->width * 3;
        }
    }
    return e;
}

static int decode_whole(png_run *run, spng_ctx *ctx, uint8_t *whole)
{
    const mr_region *r = &run->job->region;
    struct spng_row_info at;
    if (run->ihdr.bit_depth < 8) /* libspng 0.7 ORs these samples into the buffer */
        memset(whole, 0, run->row_bytes * run->ihdr.height);
    int e = spng_decode_image(ctx, NULL, 0, SPNG_FMT_PNG, SPNG_DECODE_PROGRESSIVE);
    while (!e && !mr_pixels_stopped(run->scratch)) {
        e = spng_get_row_info(ctx, &at);
        if (!e)
            e = spng_decode_row(ctx, whole + run->row_bytes * at.row_num, run->row_bytes);
    }
    if (e == SPNG_EOI)
        e = 0;
    for (uint32_t y = 0; !e && y < r->height && !mr_pixels_stopped(run->scratch); y++)
        put_row(run, whole + run->row_bytes * (r->top + y), run->job->rgb + (size_t)r->width * 3 * y);
    return e;
}

static int decode(png_run *run, spng_ctx *ctx)
{
    size_t size;
    int e = spng_decoded_image_size(ctx, SPNG_FMT_PNG, &size);
    if (!e)
        e = take_palette(run, ctx);
    if (e)
        return e;
    run->row_bytes = size / run->ihdr.height;
    bool whole = run->ihdr.interlace_method;
    uint8_t *buffer = mr_pixels_reserve(&run->scratch->work, run->row_bytes, whole ? run->ihdr.height : 1, 1);
    if (!buffer)
        return SPNG_EMEM;
    return (whole ? decode_whole : decode_rows)(run, ctx, buffer);
}

static bool decode_quick(png_run *run)
{
    const mr_region *r = &run->job->region;
    mr_png_quick q;
    if (!mr_png_quick_rows(run->scratch, run->job->bytes, run->job->len, r->top + r->height, &q) ||
        q.ihdr.width != run->job->facts->width || q.ihdr.height != run->job->facts->height)
        return false;
    run->ihdr = q.ihdr;
    if (q.palette)
        memcpy(run->palette, q.palette, q.colours * 3);
    for (uint32_t y = 0; y < r->height; y++)
        put_row(run, q.rows + q.stride * (r->top + y), run->job->rgb + (size_t)r->width * 3 * y);
    return true;
}

mr_status mr_pixels_png(mr_pixels_scratch *s, const mr_pixels_job *job, mr_error *err)
{
    png_run run = {.scratch = s, .job = job};
    if (decode_quick(&run))
        return MR_OK;
    MR_AUTO(mr_png_free) spng_ctx *ctx = NULL;
    mr_png_source source;
    MR_TRY(mr_png_open(job->bytes, job->len, &source, &ctx, &run.ihdr, err));
    if (run.ihdr.width != job->facts->width || run.ihdr.height != job->facts->height)
        return mr_pixels_other_size("PNG", run.ihdr.width, run.ihdr.height, job->facts, err);
    int e = decode(&run, ctx);
    if (mr_pixels_stopped(s))
        return MR_END;
    return e ? mr_png_failure(e, err) : MR_OK;
}

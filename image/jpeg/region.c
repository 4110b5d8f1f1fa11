/* region.c - runs the kernels over a region; see region.h.
 * Invariant: entropy-coded data is read and checked as far as libjpeg-turbo reads it for the region; or, with entries,
 * from one entry to another around each row of the region, and each part must end exactly at the second entry.
 *
 *      rows of MCUs      skipped                                    above the region's neighbours
 *                        skipped | stored, 4 at a time | skipped    inside: a ring of two rows of MCUs per component
 *                        never read                                 below
 *
 *      with entries      entry -> skipped | stored | skipped -> entry
 *                        two rows in lockstep, so a ring of four if chroma is blended with the row above; no other rows
 *
 * Fancy upsampling of a pixel uses the neighbouring chroma sample, so the stored part extends a pixel beyond the
 * region; at the image's edge the last sample is repeated instead.  A row of pixels is computed once its chroma rows
 * are in the ring; the last one of a row of MCUs, once the next row of MCUs is. */
#include "image/jpeg/decoder.h"

#include <string.h>

enum { CHUNK = MR_JPEG_CHUNK, LEAD = 32 }; /* LEAD: bytes in front of a row */

typedef struct plane { /* a ring of rows of samples */
    uint8_t *rows;     /* sample 0 of the stored part */
    size_t stride;
    uint32_t mask, height; /* rows of the ring - 1; height of the whole component */
    uint32_t width, from;  /* samples of the whole component; the first one stored */
} plane;

typedef struct decoding {
    mr_jpeg_decoder *d;
    const mr_jpeg_job *job;
    mr_jpeg_scan scan[2];              /* the second one is for the row of MCUs below, see store_parts() */
    uint32_t wide, high;               /* the image in MCUs */
    uint32_t left, right, top, bottom; /* MCUs that are stored; the last row read is bottom - 1 */
    uint32_t at_once;                  /* rows of MCUs: 1 or 2 */
    uint32_t before, after;            /* MCUs of a row that are skipped left and right of those */
    const mr_jpeg_entry *entries;      /* NULL: the scan is read from its start */
    mr_jpeg_grid grid;                 /* of the entries */
    plane plane[MR_JPEG_COMPONENTS];
    uint8_t *chroma[2]; /* upsampled rows */
    uint32_t next_row;  /* the row of pixels to compute next */
} decoding;

/* ---- preparing --------------------------------------------------------------------------------------------------- */

static void bound(decoding *run)
{
    const mr_jpeg_header *h = &run->d->header;
    const mr_jpeg_job *r = run->job;
    uint32_t w = 8u * h->component[0].h, t = 8u * h->component[0].v;
    uint32_t beside = h->component[0].h - 1u, beyond = h->component[0].v - 1u; /* neighbours: 1 or none */
    run->wide = mr_jpeg_wide(h);
    run->high = mr_jpeg_high(h);
    run->left = (r->left - mr_jpeg_min(beside, r->left)) / w;
    run->right = mr_jpeg_min(mr_jpeg_divide_up(r->left + r->crop_width + beside, w), run->wide);
    run->top = (r->top - mr_jpeg_min(beyond, r->top)) / t;
    run->before = run->left;
    run->after = run->wide - run->right;
    run->next_row = r->top;
    run->bottom = mr_jpeg_min(mr_jpeg_divide_up(r->top + r->crop_height + beyond, t), run->high);
    run->at_once = r->seek && !h->restart ? 2 : 1;
    if (r->seek)
        return;
    /* libjpeg-turbo computes both pixel rows of a chroma row at once, and needs the next MCU row for the last two. */
    run->bottom = mr_jpeg_min(mr_jpeg_divide_up(r->top + r->crop_height + 2 * beyond, t), run->high);
    run->bottom = mr_jpeg_min(mr_jpeg_divide_up(run->bottom, h->rows_together) * h->rows_together, run->high);
}

/* Rings for the components and two rows of upsampled chroma. */
static bool make_room(decoding *run)
{
    const mr_jpeg_header *h = &run->d->header;
    /* Rows of MCUs in a ring: those being decoded, and the one above if chroma is blended with it; a power of two. */
    uint32_t ring = run->at_once == 2 && h->component[0].v == 2 ? 4 : 2;
    size_t need = 2 * LEAD, step[MR_JPEG_COMPONENTS] = {0};
    uint32_t across = (run->right - run->left) * 8u;
    for (unsigned i = 0; i < h->components; i++) {
        const mr_jpeg_component *c = &h->component[i];
        plane *p = &run->plane[i];
        p->stride = LEAD + (size_t)across * c->h + MR_JPEG_SLACK + 8;
        p->mask = 8u * c->v * ring - 1;
        p->width = mr_jpeg_divide_up(h->width * c->h, h->component[0].h);
        p->height = mr_jpeg_divide_up(h->height * c->v, h->component[0].v);
        p->from = run->left * 8u * c->h;
        step[i] = need;
        need += p->stride * (p->mask + 1);
    }
    size_t row = (size_t)across * h->component[0].h + 2 * LEAD + MR_JPEG_SLACK;
    uint8_t *buffer = mr_jpeg_reserve(&run->d->samples, need + 2 * row);
    if (!buffer)
        return false;
    for (unsigned i = 0; i < h->components; i++)
        run->plane[i].rows = buffer + step[i] + LEAD;
    for (size_t i = 0; i < 2; i++)
        run->chroma[i] = buffer + need + row * i;
    return true;
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

static uint8_t *row_of(const plane *p, uint32_t row)
{
    return p->rows + (row & p->mask) * p->stride;
}

/* Transforms `count` MCUs of a buffer, the first being MCU x of row y: all blocks of a row of blocks at once. */
static void transform(decoding *run, unsigned buffer, uint32_t x, uint32_t y, uint32_t count)
{
    mr_jpeg_decoder *d = run->d;
    unsigned b = 0;
    for (unsigned i = 0; i < d->header.components; i++) {
        const mr_jpeg_component *c = &d->header.component[i];
        const plane *p = &run->plane[i];
        for (unsigned v = 0; v < c->v; v++, b += c->h) {
            int16_t *block[MR_JPEG_IDCT_MAX], *first = d->blocks[buffer] + b * MR_JPEG_BLOCK;
            unsigned n = 0;
            for (uint32_t m = 0; m < count; m++, first += d->mcu.blocks * MR_JPEG_BLOCK)
                for (unsigned h = 0; h < c->h; h++)
                    block[n++] = first + h * MR_JPEG_BLOCK;
            uint8_t *to = row_of(p, (y * c->v + v) * 8) + (size_t)(x - run->left) * c->h * 8;
            d->kernels->idct(block, n, d->header.quant[c->quant], to, p->stride);
        }
    }
}

/* Outside the image's edges the outermost sample is repeated. */
static void repeat_edges(decoding *run, uint32_t y)
{
    const mr_jpeg_header *h = &run->d->header;
    for (unsigned i = 1; i < h->components; i++) {
        const plane *p = &run->plane[i];
        for (uint32_t row = y * 8; row < y * 8 + 8; row++) {
            uint8_t *samples = row_of(p, row);
            if (run->left == 0)
                samples[-1] = samples[0];
            if (run->right == run->wide)
                samples[p->width - p->from] = samples[p->width - p->from - 1];
        }
    }
}

/* ---- pixels ------------------------------------------------------------------------------------------------------ */

/* Chroma of pixel row y, from the first pixel of the region's first chroma sample on. */
static const uint8_t *chroma_row(decoding *run, unsigned i, uint32_t y)
{
    const mr_jpeg_kernels *k = run->d->kernels;
    const mr_jpeg_component *luma = &run->d->header.component[0];
    const plane *p = &run->plane[i];
    const mr_jpeg_job *r = run->job;
    uint32_t first = r->left / luma->h, count = (r->left + r->crop_width - 1) / luma->h - first + 1;
    size_t at = first - p->from;
    uint8_t *out = run->chroma[i - 1];
    if (luma->v == 1) {
        const uint8_t *row = row_of(p, y) + at;
        if (luma->h == 1)
            return row;
        k->across(row, count, out);
        return out + (r->left & 1);
    }
    uint32_t c = y / 2, other = y & 1 ? mr_jpeg_min(c + 1, p->height - 1) : c - (c > 0);
    const uint8_t *near = row_of(p, c) + at, *far = row_of(p, other) + at;
    if (luma->h == 1) {
        k->between(near, far, 1 + (y & 1), count, out);
        return out;
    }
    k->across_between(near, far, count, out);
    return out + (r->left & 1);
}

static void gray(const uint8_t *luma, size_t count, uint8_t *out)
{
    for (size_t i = 0; i < count; i++, out += 3)
        out[0] = out[1] = out[2] = luma[i];
}

/* Rows of pixels whose samples are complete once row y of MCUs is decoded. */
static void make_rows(decoding *run, uint32_t y)
{
    const mr_jpeg_job *r = run->job;
    const mr_jpeg_header *h = &run->d->header;
    uint32_t to = (y + 1) * 8 * h->component[0].v, end = r->top + r->crop_height;
    if (h->component[0].v == 2 && y + 1 < run->high)
        to--;
    to = mr_jpeg_min(to, end);
    for (; run->next_row < to; run->next_row++) {
        const uint8_t *luma = row_of(&run->plane[0], run->next_row) + (r->left - run->plane[0].from);
        uint8_t *out = run->job->rgb + (size_t)(run->next_row - r->top) * r->crop_width * 3;
        if (h->components == 1) {
            gray(luma, r->crop_width, out);
            continue;
        }
        const uint8_t *cb = chroma_row(run, 1, run->next_row), *cr = chroma_row(run, 2, run->next_row);
        run->d->kernels->rgb(luma, cb, cr, r->crop_width, out);
    }
}

static bool store(decoding *run, uint32_t rows, uint32_t count)
{
    mr_jpeg_decoder *d = run->d;
    mr_jpeg_scan *s = run->scan;
    if (rows == 1)
        return mr_jpeg_scan_store(s, count, d->blocks[0]);
    mr_jpeg_stream *const streams[2] = {&s[0].stream, &s[1].stream};
    int16_t *const blocks[2] = {d->blocks[0], d->blocks[1]};
    mr_jpeg_mcu_pair(&d->mcu);
    return d->kernels->store_two(streams, &d->mcu, count, blocks);
}

static bool skip(decoding *run, uint32_t rows, uint32_t count)
{
    mr_jpeg_scan *s = run->scan;
    if (rows == 1)
        return mr_jpeg_scan_skip(s, count);
    mr_jpeg_stream *const streams[2] = {&s[0].stream, &s[1].stream};
    mr_jpeg_mcu_skip(&run->d->mcu);
    return run->d->kernels->skip_two(streams, &run->d->mcu, count);
}

/* One row of MCUs or two, y and the next one, each from its own scan. */
static bool store_rows(decoding *run, uint32_t y, uint32_t rows)
{
    mr_jpeg_decoder *d = run->d;
    if (!skip(run, rows, run->before))
        return false;
    for (uint32_t x = run->left; x < run->right; x += CHUNK) {
        uint32_t count = mr_jpeg_min(CHUNK, run->right - x);
        if (!store(run, rows, count)) {
            memset(d->blocks, 0, sizeof d->blocks);
            return false;
        }
        for (uint32_t i = 0; i < rows; i++)
            transform(run, i, x, y + i, count);
    }
    for (uint32_t i = 0; d->header.component[0].h == 2 && i < rows; i++)
        repeat_edges(run, y + i);
    return skip(run, rows, run->after);
}

/* ---- without and with entries ------------------------------------------------------------------------------------ */

static mr_jpeg_outcome from_start(decoding *run)
{
    const mr_jpeg_job *job = run->job;
    if (!mr_jpeg_open_scan(run->d, &run->scan[0], job->bytes, job->len))
        return MR_JPEG_LEFT;
    mr_jpeg_scan_begin(&run->scan[0]);
    for (uint32_t y = 0; y < run->bottom; y++) {
        if (job->stopped && job->stopped(job->ctx))
            return MR_JPEG_STOPPED;
        if (y < run->top ? !mr_jpeg_scan_skip(&run->scan[0], run->wide) : !store_rows(run, y, 1))
            return MR_JPEG_LEFT;
        if (y >= run->top)
            make_rows(run, y);
    }
    bool to_end = job->top + job->crop_height == job->height;
    bool good = to_end ? mr_jpeg_scan_complete(&run->scan[0]) : mr_jpeg_scan_sound(&run->scan[0]);
    return good ? MR_JPEG_DONE : MR_JPEG_LEFT;
}

/* After the last entry two bytes of the file are left for the end marker. */
static bool take_entries(decoding *run)
{
    const mr_jpeg_job *job = run->job;
    size_t coded = job->len - run->d->header.scan;
    mr_jpeg_grid *g = &run->grid;
    if (coded < 2 || !mr_jpeg_entries_grid(job->seek, job->seek_len, &run->d->header, g))
        return false;
    mr_jpeg_entry *entries = mr_jpeg_reserve(&run->d->entries, (g->count + 1) * sizeof *entries);
    if (!entries || !mr_jpeg_entries_unpack(job->seek, job->seek_len, g, (uint64_t)(coded - 2) * 8, entries))
        return false;
    run->entries = entries;
    run->before = run->left % g->every;
    run->after = mr_jpeg_min(mr_jpeg_divide_up(run->right, g->every) * g->every, run->wide) - run->right;
    return true;
}

/* From one entry to another around the region's part of each row. */
static bool store_parts(decoding *run, uint32_t y, uint32_t rows)
{
    const mr_jpeg_grid *g = &run->grid;
    const mr_jpeg_entry *from[2], *to[2];
    size_t first = (size_t)y * g->per_row + run->left / g->every, need = 0, offset[2];
    for (uint32_t i = 0; i < rows; i++) {
        from[i] = &run->entries[first + i * g->per_row];
        to[i] = &run->entries[(size_t)(y + i) * g->per_row + mr_jpeg_divide_up(run->right, g->every)];
        offset[i] = need;
        need += (size_t)(to[i]->at / 8 - from[i]->at / 8) + 2 + MR_JPEG_PADDING;
    }
    uint8_t *unstuffed = mr_jpeg_reserve(&run->d->bytes, need);
    if (!unstuffed)
        return false;
    for (uint32_t i = 0; i < rows; i++) {
        run->scan[i].unstuffed = unstuffed + offset[i];
        mr_jpeg_scan_enter(&run->scan[i], run->d->header.scan, from[i], mr_jpeg_grid_mcu(g, first + i * g->per_row),
                           to[i]);
    }
    if (!store_rows(run, y, rows))
        return false;
    for (uint32_t i = 0; i < rows; i++)
        if (!mr_jpeg_scan_arrived(&run->scan[i], to[i]))
            return false;
    return true;
}

static mr_jpeg_outcome from_entries(decoding *run)
{
    mr_jpeg_decoder *d = run->d;
    const mr_jpeg_job *job = run->job;
    if (!take_entries(run))
        return MR_JPEG_LEFT;
    run->scan[0] = run->scan[1] = (mr_jpeg_scan){
        .kernels = d->kernels, .mcu = &d->mcu, .bytes = job->bytes, .len = job->len, .restart = d->header.restart};
    for (uint32_t y = run->top, rows; y < run->bottom; y += rows) {
        if (job->stopped && job->stopped(job->ctx))
            return MR_JPEG_STOPPED;
        rows = mr_jpeg_min(run->at_once, run->bottom - y);
        if (!store_parts(run, y, rows))
            return MR_JPEG_LEFT;
        for (uint32_t i = 0; i < rows; i++)
            make_rows(run, y + i);
    }
    return MR_JPEG_DONE;
}

mr_jpeg_outcome mr_jpeg_decode_region(mr_jpeg_decoder *d, const mr_jpeg_job *job)
{
    decoding run = {.d = d, .job = job};
    if (!mr_jpeg_open(d, job->bytes, job->len) || d->header.width != job->width || d->header.height != job->height)
        return MR_JPEG_LEFT;
    bound(&run);
    if (!make_room(&run))
        return MR_JPEG_LEFT;
    return job->seek ? from_entries(&run) : from_start(&run);
}

/* plan.c - from an image to its description; see coded.h. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "image/coded/coded.h"
#include "image/jpeg/decoder.h"
#include "image/jpeg/entries.h"
#include "image/coded/weights.h"

enum { LOOKAHEAD = 16 }; /* bytes past the end of the last part that a decoder may read before it finds the end */

struct mr_coded_planner {
    mr_jpeg_header header;
    mr_jpeg_entry *entries;
    size_t entry_capacity;
    mr_coded_weights *weights;
};

typedef struct planning {
    mr_coded_planner *p;
    const mr_coded_picture *picture;
    mr_coded_description *d;
    const mr_jpeg_header *h;
    mr_jpeg_grid grid;
    mr_coded_image *im;
    size_t first_byte; /* first byte of the file that the parts need */
} planning;

mr_coded_planner *mr_coded_planner_new(void)
{
    mr_coded_planner *p = mr_alloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->weights = mr_coded_weights_new();
    if (p->weights)
        return p;
    free(p);
    return NULL;
}

void mr_coded_planner_free(mr_coded_planner *p)
{
    if (!p)
        return;
    mr_coded_weights_free(p->weights);
    free(p->entries);
    free(p);
}

void mr_coded_description_free(mr_coded_description *d)
{
    mr_buf_free(&d->parts);
    mr_buf_free(&d->quants);
    mr_buf_free(&d->weights);
    mr_buf_free(&d->starts);
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* Where `len` bytes are in the section, in units of `len`; appended unless they are there. */
static uint32_t shared(mr_buf *section, const void *bytes, size_t len)
{
    uint32_t n = (uint32_t)(section->len / len);
    for (uint32_t i = 0; i < n; i++)
        if (memcmp(section->data + i * len, bytes, len) == 0)
            return i;
    mr_buf_add(section, bytes, len);
    return n;
}

/* False: codes that libjpeg-turbo rejects. */
static bool add_table(planning *a, const uint8_t *counts, bool dc, uint32_t *number)
{
    mr_coded_description *d = a->d;
    mr_coded_table t = {.counts = {0}};
    mr_jpeg_codes codes;
    size_t symbols = 0;
    for (int i = 0; i < 16; i++)
        symbols += counts[i];
    memcpy(t.counts, counts, sizeof t.counts);
    memcpy(t.symbols, counts + 16, symbols);
    for (*number = 0; *number < d->table_count; ++*number)
        if (memcmp(&d->tables[*number], &t, sizeof t) == 0)
            return true;
    d->tables[d->table_count++] = t;
    return mr_jpeg_codes_make(&codes, counts, dc);
}

static bool add_tables(planning *a)
{
    const mr_jpeg_header *h = a->h;
    mr_coded_image *im = a->im;
    for (unsigned c = 0; c < h->components; c++) {
        const mr_jpeg_component *k = &h->component[c];
        uint32_t dc, ac;
        if (!add_table(a, h->huffman[0][k->dc], true, &dc) || !add_table(a, h->huffman[1][k->ac], false, &ac))
            return false;
        im->quant[c] = shared(&a->d->quants, h->quant[k->quant], sizeof h->quant[0]);
        for (int i = 0; i < k->h * k->v; i++, im->blocks++) {
            im->component[im->blocks] = c;
            im->table[im->blocks][0] = dc;
            im->table[im->blocks][1] = ac;
        }
    }
    return true;
}

/* ---- geometry ---------------------------------------------------------------------------------------------------- */

static void bound(planning *a)
{
    const mr_jpeg_header *h = a->h;
    const mr_region *r = &a->picture->region;
    mr_coded_image *im = a->im;
    uint32_t beside = h->component[0].h - 1U, beyond = h->component[0].v - 1U; /* neighbours: 1 or none */
    im->width = h->width;
    im->height = h->height;
    im->wide = a->grid.wide;
    im->components = h->components;
    im->h = h->component[0].h;
    im->v = h->component[0].v;
    im->restart = h->restart;
    im->left = r->left;
    im->top = r->top;
    im->crop_width = r->width;
    im->crop_height = r->height;
    im->mcu_left = (r->left - mr_jpeg_min(beside, r->left)) / (8 * im->h);
    im->mcu_right = mr_jpeg_min(mr_jpeg_divide_up(r->left + r->width + beside, 8 * im->h), a->grid.wide);
    im->mcu_top = (r->top - mr_jpeg_min(beyond, r->top)) / (8 * im->v);
    im->mcu_bottom = mr_jpeg_min(mr_jpeg_divide_up(r->top + r->height + beyond, 8 * im->v), a->grid.high);
}

/* The orientation as three flags, by where it puts the first pixel of an image of 2 x 3. */
static void turn(planning *a)
{
    uint32_t width = 2, height = 3;
    const mr_region first = {0, 0, 1, 1}, stored = mr_orient_region(a->picture->orientation, width, height, &first);
    mr_orient_size(a->picture->orientation, &width, &height);
    a->im->swapped = width == 3;
    a->im->from_right = stored.left > 0;
    a->im->from_bottom = stored.top > 0;
    a->im->seen_width = a->im->crop_width;
    a->im->seen_height = a->im->crop_height;
    mr_orient_size(a->picture->orientation, &a->im->seen_width, &a->im->seen_height);
}

static uint64_t blocks_of(const mr_coded_image *im)
{
    return (uint64_t)(im->mcu_right - im->mcu_left) * (im->mcu_bottom - im->mcu_top) * im->blocks;
}

/* Takes memory between the steps.  False: more than a piece has. */
static bool reserve(planning *a)
{
    mr_coded_description *d = a->d;
    mr_coded_image *im = a->im;
    uint64_t across = im->mcu_right - im->mcu_left, down = im->mcu_bottom - im->mcu_top, samples = 0;
    d->coef = blocks_of(im) * 64 * sizeof(int16_t);
    d->rgb = (uint64_t)im->crop_width * im->crop_height * 3;
    d->lines = (uint64_t)im->seen_height * a->picture->resize.crop_width * 3;
    for (unsigned c = 0; c < im->components; c++) {
        uint64_t stride = across * 8 * (c ? 1 : im->h);
        im->plane[c] = samples;
        im->stride[c] = (uint32_t)stride;
        samples += stride * down * 8 * (c ? 1 : im->v);
    }
    d->samples = samples;
    return d->coef + d->samples + d->rgb + d->lines <= MR_CODED_PIECE_BYTES;
}

/* ---- parts and bytes --------------------------------------------------------------------------------------------- */

static bool read_entries(planning *a)
{
    mr_coded_planner *p = a->p;
    const mr_coded_picture *f = a->picture;
    size_t coded = f->len - a->h->scan;
    if (!f->seek || coded < 2 || !mr_jpeg_entries_grid(f->seek, f->seek_len, a->h, &a->grid))
        return false;
    if (a->grid.count + 1 > p->entry_capacity) {
        free(p->entries);
        p->entries = mr_alloc(a->grid.count + 1, sizeof *p->entries);
        p->entry_capacity = p->entries ? a->grid.count + 1 : 0;
    }
    return p->entries && mr_jpeg_entries_unpack(f->seek, f->seek_len, &a->grid, (uint64_t)(coded - 2) * 8, p->entries);
}

static size_t entry_at(const planning *a, uint32_t row, uint32_t mcu)
{
    return (size_t)row * a->grid.per_row + mcu / a->grid.every;
}

static void set_part(const planning *a, size_t n, uint32_t row, mr_coded_part *part)
{
    const mr_jpeg_entry *from = &a->p->entries[n], *to = from + 1;
    uint32_t x = (uint32_t)(n - entry_at(a, row, 0)) * a->grid.every,
             next = mr_jpeg_min(x + a->grid.every, a->grid.wide);
    uint64_t scan = (uint64_t)a->h->scan * 8, first = (uint64_t)a->first_byte * 8;
    *part = (mr_coded_part){.at = scan + from->at - first, .end = scan + to->at - first};
    part->x = x;
    part->y = row;
    part->mcus = next - x;
    for (unsigned c = 0; c < MR_JPEG_COMPONENTS; c++) {
        part->dc[c] = from->kind == MR_JPEG_BEGUN ? 0 : from->dc[c];
        part->dc_end[c] = to->dc[c];
    }
    if (to->kind == MR_JPEG_BEGUN)
        part->marker = 0xD0 + (((row * a->grid.wide + next) / a->h->restart - 1) & 7);
}

/* What the parts read begins at a multiple of 4 in the file. */
static void add_parts(planning *a)
{
    const mr_coded_image *im = a->im;
    const mr_jpeg_entry *e = a->p->entries;
    mr_buf *parts = &a->d->parts;
    size_t first = entry_at(a, im->mcu_top, im->mcu_left);
    size_t last = entry_at(a, im->mcu_bottom - 1, im->mcu_right - 1) + 1, capacity = mr_coded_record(a->picture->len);
    size_t in_row = entry_at(a, 0, im->mcu_right - 1) - entry_at(a, 0, im->mcu_left) + 1;
    a->first_byte = (a->h->scan + e[first].at / 8) / 4 * 4;
    size_t end = (a->h->scan + (e[last].at + 7) / 8 + LOOKAHEAD) / 4 * 4;
    a->im->bytes = a->picture->at + a->first_byte;
    a->im->bytes_len = (end < capacity ? end : capacity) - a->first_byte;
    if (!mr_buf_reserve(parts, (im->mcu_bottom - im->mcu_top) * in_row * sizeof(mr_coded_part)))
        return;
    mr_coded_part *out = (mr_coded_part *)(void *)parts->data;
    for (uint32_t y = im->mcu_top; y < im->mcu_bottom; y++)
        for (size_t n = entry_at(a, y, im->mcu_left); n <= entry_at(a, y, im->mcu_right - 1); n++)
            set_part(a, n, y, out++);
    parts->len = (size_t)((uint8_t *)out - parts->data);
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static mr_status add_axis(planning *a, const mr_resize_side *side, uint64_t *weights, uint64_t *starts, uint32_t *taps,
                          mr_error *err)
{
    mr_coded_description *d = a->d;
    const mr_coded_axis *axis;
    MR_TRY(mr_coded_weights_get(a->p->weights, side, &axis, err));
    *weights = d->weights.len / sizeof(int32_t);
    *starts = d->starts.len / sizeof(uint32_t);
    *taps = axis->taps;
    mr_buf_add(&d->starts, axis->starts, side->count * sizeof *axis->starts);
    mr_buf_add(&d->weights, axis->weights, (size_t)side->count * axis->taps * sizeof *axis->weights);
    return MR_OK;
}

static mr_status add_weights(planning *a, mr_error *err)
{
    mr_coded_image *im = a->im;
    const mr_resize_side across = mr_resize_across(&a->picture->resize), down = mr_resize_down(&a->picture->resize);
    MR_TRY(add_axis(a, &across, &im->across, &im->across_start, &im->across_taps, err));
    return add_axis(a, &down, &im->down, &im->down_start, &im->down_taps, err);
}

/* ---- an image --------------------------------------------------------------------------------------------------- */

/* Whether the resizing is of just this region, to a square. */
static bool resizable(const planning *a)
{
    const mr_resize_job *j = &a->picture->resize;
    const mr_resize_side across = mr_resize_across(j), down = mr_resize_down(j);
    return !j->unrounded && j->crop_width && j->crop_width <= MR_CODED_SIZE_MAX && j->crop_height == j->crop_width &&
           across.held.count == a->im->seen_width && down.held.count == a->im->seen_height;
}

static bool open_picture(planning *a)
{
    const mr_coded_picture *f = a->picture;
    const mr_region *r = &f->region;
    if (!mr_jpeg_open_header(f->bytes, f->len, &a->p->header))
        return false;
    a->h = &a->p->header;
    return a->h->width == f->width && a->h->height == f->height && r->width && r->height && r->left <= f->width &&
           r->width <= f->width - r->left && r->top <= f->height && r->height <= f->height - r->top && read_entries(a);
}

static void clear(mr_coded_description *d)
{
    mr_buf *const all[] = {&d->parts, &d->quants, &d->weights, &d->starts};
    for (size_t i = 0; i < MR_COUNT(all); i++)
        mr_buf_clear(all[i]);
    d->image = (mr_coded_image){.bytes = 0};
    d->table_count = 0;
}

mr_status mr_coded_describe(mr_coded_planner *p, const mr_coded_picture *picture, mr_coded_description *out,
                            bool *taken, mr_error *err)
{
    planning a = {.p = p, .picture = picture, .d = out, .im = &out->image};
    *taken = false;
    if (!open_picture(&a))
        return MR_OK;
    clear(out);
    bound(&a);
    turn(&a);
    if (!add_tables(&a) || !resizable(&a) || !reserve(&a))
        return MR_OK;
    add_parts(&a);
    MR_TRY(add_weights(&a, err));
    const mr_buf *const all[] = {&out->parts, &out->quants, &out->weights, &out->starts};
    for (size_t i = 0; i < MR_COUNT(all); i++)
        MR_TRY(mr_buf_status(all[i], err, "describing an image"));
    *taken = true;
    return MR_OK;
}

/* plan.c - from a picture to the description that the kernels follow; see decode.h.
 * Invariant: offsets and counts come from a parsed header, unpacked entries and a checked region, so that kernels stay
 * inside their sections whatever the coded bytes are. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/scope.h"
#include "decode/decode.h"
#include "decode/job.h"
#include "jpeg/decoder.h"
#include "resize/kernels.h"

enum {
    BLOCKS_MAX = 1 << 24, /* of an image: 2 GiB of coefficients */
    PIXELS_MAX = 1 << 28, /* of a region, and of its lines */
    ALIGN = 64,
    MARGIN = 8, /* bytes after the coded ones: the marker, zeros */
};

struct mr_decode_plan {
    mr_buf section[MR_DECODE_SECTIONS];
    mr_decode_slab totals;
    mr_jpeg_decoder *jpeg;
    mr_jpeg_entry *entries;
    size_t entry_room;
    mr_resize_axis across, down;
    mr_resize_norm norm;
};

typedef struct planning {
    mr_decode_plan *p;
    const mr_decode_picture *picture;
    const mr_jpeg_header *h;
    mr_jpeg_grid grid;
    mr_jpeg_image im;
    size_t first_byte, bytes; /* of the file: what the parts need */
} planning;

mr_decode_plan *mr_decode_plan_new(uint32_t size)
{
    mr_decode_plan *p = size && size <= MR_DECODE_SIZE_MAX ? mr_alloc(1, sizeof *p) : NULL;
    if (!p)
        return NULL;
    p->totals.size = size;
    p->jpeg = mr_jpeg_decoder_new();
    if (p->jpeg)
        return p;
    free(p);
    return NULL;
}

void mr_decode_plan_free(mr_decode_plan *p)
{
    if (!p)
        return;
    for (int i = 0; i < MR_DECODE_SECTIONS; i++)
        mr_buf_free(&p->section[i]);
    mr_jpeg_decoder_free(p->jpeg);
    mr_resize_axis_free(&p->across);
    mr_resize_axis_free(&p->down);
    free(p->entries);
    free(p);
}

void mr_decode_slab_free(mr_decode_slab *slab)
{
    mr_slab_free(&slab->memory, NULL);
    *slab = (mr_decode_slab){0};
}

mr_status mr_decode_plan_begin(mr_decode_plan *p, const float mean[3], const float std[3], mr_error *err)
{
    p->totals = (mr_decode_slab){.size = p->totals.size};
    for (int i = 0; i < MR_DECODE_SECTIONS; i++)
        mr_buf_clear(&p->section[i]);
    MR_TRY(mr_resize_norm_set(&p->norm, mean, std, err));
    mr_buf_add(&p->section[MR_DECODE_NORM], p->norm.f32, sizeof p->norm.f32);
    return MR_OK;
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

static uint32_t add_lut(mr_decode_plan *p, const mr_jpeg_codes *codes, const uint8_t *counts)
{
    mr_jpeg_lut t = {.limit = {0}};
    uint32_t code = 0, symbol = 0;
    for (unsigned n = 1; n <= MR_LUT_BITS; n++, code <<= 1) {
        for (unsigned i = 0; i < counts[n - 1]; i++, code++, symbol++) {
            uint32_t v = codes->values[symbol & 255], rest = MR_LUT_BITS - n;
            for (uint32_t j = 0; j < 1U << rest; j++)
                t.first[(code << rest) + j] = (uint16_t)(n | (v & 15) << 5 | v >> 4 << 9);
        }
    }
    memcpy(t.limit, codes->limit, sizeof codes->limit);
    memcpy(t.offset, codes->offset, sizeof codes->offset);
    memcpy(t.values, codes->values, sizeof codes->values);
    return shared(&p->section[MR_DECODE_LUTS], &t, sizeof t);
}

static void add_tables(planning *a)
{
    const mr_jpeg_header *h = a->h;
    const mr_jpeg_decoder *d = a->p->jpeg;
    mr_jpeg_image *im = &a->im;
    for (unsigned c = 0; c < h->components; c++) {
        const mr_jpeg_component *k = &h->component[c];
        uint32_t dc = add_lut(a->p, &d->dc[k->dc].codes, d->dc[k->dc].counts);
        uint32_t ac = add_lut(a->p, &d->ac[k->ac].codes, d->ac[k->ac].counts);
        im->quant[c] = shared(&a->p->section[MR_DECODE_QUANTS], h->quant[k->quant], sizeof h->quant[0]);
        for (int i = 0; i < k->h * k->v; i++, im->blocks++) {
            im->component[im->blocks] = c;
            im->table[im->blocks][0] = dc;
            im->table[im->blocks][1] = ac;
        }
    }
}

/* ---- geometry ---------------------------------------------------------------------------------------------------- */

static void bound(planning *a)
{
    const mr_jpeg_header *h = a->h;
    const mr_region *r = &a->picture->region;
    mr_jpeg_image *im = &a->im;
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

/* The orientation as three flags, by where it puts the first pixel of a picture of 2 x 3. */
static void turn(planning *a)
{
    uint32_t width = 2, height = 3;
    const mr_region first = {0, 0, 1, 1}, stored = mr_orient_region(a->picture->orientation, width, height, &first);
    mr_orient_size(a->picture->orientation, &width, &height);
    a->im.swapped = width == 3;
    a->im.from_right = stored.left > 0;
    a->im.from_bottom = stored.top > 0;
    a->im.seen_width = a->im.crop_width;
    a->im.seen_height = a->im.crop_height;
    mr_orient_size(a->picture->orientation, &a->im.seen_width, &a->im.seen_height);
}

static uint64_t blocks_of(const mr_jpeg_image *im)
{
    return (uint64_t)(im->mcu_right - im->mcu_left) * (im->mcu_bottom - im->mcu_top) * im->blocks;
}

static bool fits(const planning *a)
{
    const mr_jpeg_image *im = &a->im;
    return blocks_of(im) <= BLOCKS_MAX && (uint64_t)im->crop_width * im->crop_height <= PIXELS_MAX &&
           (uint64_t)im->seen_height * a->p->totals.size <= PIXELS_MAX;
}

/* Takes memory between the kernels. */
static void reserve(planning *a)
{
    mr_decode_slab *t = &a->p->totals;
    mr_jpeg_image *im = &a->im;
    uint32_t across = im->mcu_right - im->mcu_left, down = im->mcu_bottom - im->mcu_top;
    uint32_t blocks = (uint32_t)blocks_of(im), pixels = im->crop_width * im->crop_height;
    uint32_t lines = im->seen_height * t->size;
    im->coef = t->coef / (64 * sizeof(int16_t));
    t->coef += (uint64_t)blocks * 64 * sizeof(int16_t);
    for (unsigned c = 0; c < im->components; c++) {
        im->plane[c] = t->samples;
        im->stride[c] = across * 8 * (c ? 1 : im->h);
        t->samples += (uint64_t)im->stride[c] * down * 8 * (c ? 1 : im->v);
    }
    im->rgb = t->rgb;
    t->rgb += (uint64_t)pixels * 3;
    im->lines = t->lines;
    t->lines += (uint64_t)lines * 3;
    t->most_blocks = blocks > t->most_blocks ? blocks : t->most_blocks;
    t->most_pixels = pixels > t->most_pixels ? pixels : t->most_pixels;
    t->most_lines = lines > t->most_lines ? lines : t->most_lines;
}

/* ---- parts and bytes --------------------------------------------------------------------------------------------- */

static bool read_entries(planning *a)
{
    mr_decode_plan *p = a->p;
    const mr_decode_picture *f = a->picture;
    size_t coded = f->len - a->h->scan;
    if (!f->seek || coded < 2 || !mr_jpeg_entries_grid(f->seek, f->seek_len, a->h, &a->grid))
        return false;
    if (a->grid.count + 1 > p->entry_room) {
        free(p->entries);
        p->entries = mr_alloc(a->grid.count + 1, sizeof *p->entries);
        p->entry_room = p->entries ? a->grid.count + 1 : 0;
    }
    return p->entries && mr_jpeg_entries_unpack(f->seek, f->seek_len, &a->grid, (uint64_t)(coded - 2) * 8, p->entries);
}

static size_t entry_at(const planning *a, uint32_t row, uint32_t mcu)
{
    return (size_t)row * a->grid.per_row + mcu / a->grid.every;
}

static void add_part(planning *a, size_t n, uint32_t row)
{
    const mr_jpeg_entry *from = &a->p->entries[n], *to = from + 1;
    uint32_t x = (uint32_t)(n % a->grid.per_row) * a->grid.every, next = mr_jpeg_min(x + a->grid.every, a->grid.wide);
    uint64_t start = (uint64_t)(a->first_byte - a->h->scan) * 8;
    mr_jpeg_part part = {.at = from->at - start, .end = to->at - start, .image = a->p->totals.images};
    part.x = x;
    part.y = row;
    part.mcus = next - x;
    for (unsigned c = 0; c < MR_JPEG_COMPONENTS; c++) {
        part.dc[c] = from->kind == MR_JPEG_BEGUN ? 0 : from->dc[c];
        part.dc_end[c] = to->dc[c];
    }
    if (to->kind == MR_JPEG_BEGUN)
        part.marker = 0xD0 + (((row * a->grid.wide + next) / a->h->restart - 1) & 7);
    mr_buf_add(&a->p->section[MR_DECODE_PARTS], &part, sizeof part);
    a->p->totals.parts++;
}

static void add_parts(planning *a)
{
    const mr_jpeg_image *im = &a->im;
    const mr_jpeg_entry *e = a->p->entries;
    mr_buf *bytes = &a->p->section[MR_DECODE_BYTES];
    size_t first = entry_at(a, im->mcu_top, im->mcu_left),
           last = entry_at(a, im->mcu_bottom - 1, im->mcu_right - 1) + 1;
    a->first_byte = a->h->scan + e[first].at / 8;
    size_t end = a->h->scan + (e[last].at + 7) / 8 + 2;
    a->bytes = (end < a->picture->len ? end : a->picture->len) - a->first_byte;
    for (uint32_t y = im->mcu_top; y < im->mcu_bottom; y++)
        for (size_t n = entry_at(a, y, im->mcu_left); n <= entry_at(a, y, im->mcu_right - 1); n++)
            add_part(a, n, y);
    static const uint8_t zeros[MARGIN] = {0};
    a->im.bytes = bytes->len;
    mr_buf_add(bytes, a->picture->bytes + a->first_byte, a->bytes);
    mr_buf_add(bytes, zeros, MARGIN - a->bytes % 4);
    a->im.bytes_len = bytes->len - a->im.bytes;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* One number for each tap of axis->k's split pairs. */
static uint32_t add_axis(mr_decode_plan *p, const mr_resize_axis *axis, uint64_t *weights, uint64_t *starts)
{
    mr_buf *w = &p->section[MR_DECODE_WEIGHTS], *s = &p->section[MR_DECODE_STARTS];
    *weights = w->len / sizeof(int32_t);
    *starts = s->len / sizeof(uint32_t);
    mr_buf_add(s, axis->start, axis->outputs * sizeof *axis->start);
    for (size_t i = 0; i < axis->outputs * axis->pairs; i++) {
        const int16_t *k = axis->k + i * 4;
        const int32_t taps[2] = {k[2] * (1 << MR_RESIZE_SPLIT) + k[0], k[3] * (1 << MR_RESIZE_SPLIT) + k[1]};
        mr_buf_add(w, taps, sizeof taps);
    }
    return (uint32_t)(axis->pairs * 2);
}

static mr_status add_weights(planning *a, mr_error *err)
{
    mr_decode_plan *p = a->p;
    const mr_resize_side across = mr_resize_across(&a->picture->resize), down = mr_resize_down(&a->picture->resize);
    MR_TRY(mr_resize_axis_set(&p->across, &across, err));
    MR_TRY(mr_resize_axis_set(&p->down, &down, err));
    a->im.across_taps = add_axis(p, &p->across, &a->im.across, &a->im.across_start);
    a->im.down_taps = add_axis(p, &p->down, &a->im.down, &a->im.down_start);
    return MR_OK;
}

/* ---- a picture --------------------------------------------------------------------------------------------------- */

/* Whether the resizing is of just this region, into this batch. */
static bool resizable(const planning *a)
{
    const mr_resize_job *j = &a->picture->resize;
    const mr_resize_side across = mr_resize_across(j), down = mr_resize_down(j);
    uint32_t size = a->p->totals.size;
    return !j->unrounded && j->crop_width == size && j->crop_height == size && across.held.count == a->im.seen_width &&
           down.held.count == a->im.seen_height;
}

static bool open_picture(planning *a)
{
    const mr_decode_picture *f = a->picture;
    const mr_region *r = &f->region;
    if (!mr_jpeg_open(a->p->jpeg, f->bytes, f->len))
        return false;
    a->h = &a->p->jpeg->header;
    return a->h->width == f->width && a->h->height == f->height && r->width && r->height && r->left <= f->width &&
           r->width <= f->width - r->left && r->top <= f->height && r->height <= f->height - r->top && read_entries(a);
}

mr_status mr_decode_plan_add(mr_decode_plan *p, const mr_decode_picture *picture, bool *taken, mr_error *err)
{
    planning a = {.p = p, .picture = picture};
    *taken = false;
    if (!open_picture(&a))
        return MR_OK;
    bound(&a);
    turn(&a);
    for (unsigned c = 0; c < a.h->components; c++)
        a.im.blocks += a.h->component[c].h * a.h->component[c].v;
    if (!fits(&a) || !resizable(&a))
        return MR_OK;
    a.im.blocks = 0;
    add_tables(&a);
    add_parts(&a);
    MR_TRY(add_weights(&a, err));
    reserve(&a);
    mr_buf_add(&p->section[MR_DECODE_IMAGES], &a.im, sizeof a.im);
    for (int i = 0; i < MR_DECODE_SECTIONS; i++)
        MR_TRY(mr_buf_status(&p->section[i], err, "planning a batch"));
    p->totals.images++;
    *taken = true;
    return MR_OK;
}

mr_status mr_decode_plan_pack(mr_decode_plan *p, mr_decode_slab *slab, mr_error *err)
{
    mr_slab memory = slab->memory;
    uint64_t need = 0;
    *slab = p->totals;
    slab->memory = memory;
    for (int i = 0; i < MR_DECODE_SECTIONS; i++) {
        slab->at[i] = need;
        need += (p->section[i].len + ALIGN - 1) / ALIGN * ALIGN;
    }
    slab->len = need;
    MR_TRY(mr_slab_reserve(&slab->memory, need, 0, NULL, err));
    for (int i = 0; i < MR_DECODE_SECTIONS; i++)
        if (p->section[i].len)
            memcpy(slab->memory.data + slab->at[i], p->section[i].data, p->section[i].len);
    return MR_OK;
}

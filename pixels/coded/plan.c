/* plan.c - from a picture to its description; see coded.h. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/scope.h"
#include "coded/coded.h"
#include "jpeg/decoder.h"
#include "jpeg/entries.h"
#include "resize/kernels.h"

enum {
    CODE_BITS = 10,
    KEPT = 8,      /* tables built and kept */
    LOOKAHEAD = 16 /* bytes past the end of the last part that a decoder may read before it finds the end */
};

_Static_assert(sizeof((mr_coded_codes *)0)->first == sizeof(uint16_t) << CODE_BITS, "as in millrace.h");

typedef struct kept_codes {
    uint8_t counts[16], values[256]; /* what it was built from */
    uint64_t hash;
    bool made;
    mr_coded_codes codes;
} kept_codes;

struct mr_coded_planner {
    mr_jpeg_decoder *jpeg;
    mr_jpeg_entry *entries;
    size_t entry_room;
    mr_resize_axis across, down;
    kept_codes kept[KEPT];
    unsigned next; /* of `kept`, to be replaced */
};

typedef struct planning {
    mr_coded_planner *p;
    const mr_coded_picture *picture;
    mr_coded_description *d;
    const mr_jpeg_header *h;
    mr_jpeg_grid grid;
    mr_coded_image *im;
    size_t first_byte; /* of the file: what the parts need */
} planning;

mr_coded_planner *mr_coded_planner_new(void)
{
    mr_coded_planner *p = mr_alloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->jpeg = mr_jpeg_decoder_new();
    if (p->jpeg)
        return p;
    free(p);
    return NULL;
}

void mr_coded_planner_free(mr_coded_planner *p)
{
    if (!p)
        return;
    mr_jpeg_decoder_free(p->jpeg);
    mr_resize_axis_free(&p->across);
    mr_resize_axis_free(&p->down);
    free(p->entries);
    free(p);
}

void mr_coded_description_free(mr_coded_description *d)
{
    mr_buf_free(&d->parts);
    mr_buf_free(&d->codes);
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

static void build(kept_codes *k, const mr_jpeg_codes *codes, const uint8_t *counts)
{
    mr_coded_codes *t = &k->codes;
    uint32_t code = 0, symbol = 0;
    *k = (kept_codes){.made = true};
    memcpy(k->counts, counts, sizeof k->counts);
    memcpy(k->values, codes->values, sizeof k->values);
    for (unsigned n = 1; n <= CODE_BITS; n++, code <<= 1) {
        for (unsigned i = 0; i < counts[n - 1]; i++, code++, symbol++) {
            uint32_t v = codes->values[symbol & 255], rest = CODE_BITS - n;
            for (uint32_t j = 0; j < 1U << rest; j++)
                t->first[(code << rest) + j] = (uint16_t)(n | (v & 15) << 5 | v >> 4 << 9);
        }
    }
    memcpy(t->limit, codes->limit, sizeof codes->limit);
    memcpy(t->offset, codes->offset, sizeof codes->offset);
    memcpy(t->values, codes->values, sizeof codes->values);
    k->hash = mr_hash64(t, sizeof *t);
}

static const kept_codes *codes_of(mr_coded_planner *p, const mr_jpeg_codes *codes, const uint8_t *counts)
{
    for (unsigned i = 0; i < KEPT; i++) {
        const kept_codes *k = &p->kept[i];
        if (k->made && memcmp(k->counts, counts, sizeof k->counts) == 0 &&
            memcmp(k->values, codes->values, sizeof k->values) == 0)
            return k;
    }
    kept_codes *k = &p->kept[p->next];
    p->next = (p->next + 1) % KEPT;
    build(k, codes, counts);
    return k;
}

static uint32_t add_codes(planning *a, const mr_jpeg_codes *codes, const uint8_t *counts)
{
    const kept_codes *k = codes_of(a->p, codes, counts);
    uint32_t n = shared(&a->d->codes, &k->codes, sizeof k->codes);
    a->d->code_hash[n] = k->hash;
    return n;
}

static void add_tables(planning *a)
{
    const mr_jpeg_header *h = a->h;
    const mr_jpeg_decoder *d = a->p->jpeg;
    mr_coded_image *im = a->im;
    for (unsigned c = 0; c < h->components; c++) {
        const mr_jpeg_component *k = &h->component[c];
        uint32_t dc = add_codes(a, &d->dc[k->dc].codes, d->dc[k->dc].counts);
        uint32_t ac = add_codes(a, &d->ac[k->ac].codes, d->ac[k->ac].counts);
        im->quant[c] = shared(&a->d->quants, h->quant[k->quant], sizeof h->quant[0]);
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

/* The orientation as three flags, by where it puts the first pixel of a picture of 2 x 3. */
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
    uint64_t scan = (uint64_t)a->h->scan * 8, first = (uint64_t)a->first_byte * 8;
    mr_coded_part part = {.at = scan + from->at - first, .end = scan + to->at - first};
    part.x = x;
    part.y = row;
    part.mcus = next - x;
    for (unsigned c = 0; c < MR_JPEG_COMPONENTS; c++) {
        part.dc[c] = from->kind == MR_JPEG_BEGUN ? 0 : from->dc[c];
        part.dc_end[c] = to->dc[c];
    }
    if (to->kind == MR_JPEG_BEGUN)
        part.marker = 0xD0 + (((row * a->grid.wide + next) / a->h->restart - 1) & 7);
    mr_buf_add(&a->d->parts, &part, sizeof part);
}

/* What the parts read begins at a multiple of 4 in the file. */
static void add_parts(planning *a)
{
    const mr_coded_image *im = a->im;
    const mr_jpeg_entry *e = a->p->entries;
    size_t first = entry_at(a, im->mcu_top, im->mcu_left),
           last = entry_at(a, im->mcu_bottom - 1, im->mcu_right - 1) + 1;
    a->first_byte = (a->h->scan + e[first].at / 8) / 4 * 4;
    size_t end = (a->h->scan + (e[last].at + 7) / 8 + LOOKAHEAD) / 4 * 4, room = mr_coded_record(a->picture->len);
    a->im->bytes = a->picture->at + a->first_byte;
    a->im->bytes_len = (end < room ? end : room) - a->first_byte;
    for (uint32_t y = im->mcu_top; y < im->mcu_bottom; y++)
        for (size_t n = entry_at(a, y, im->mcu_left); n <= entry_at(a, y, im->mcu_right - 1); n++)
            add_part(a, n, y);
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* One number for each tap of axis->k's split pairs. */
static uint32_t add_axis(mr_coded_description *d, const mr_resize_axis *axis, uint64_t *weights, uint64_t *starts)
{
    size_t pairs = axis->outputs * axis->pairs;
    *weights = d->weights.len / sizeof(int32_t);
    *starts = d->starts.len / sizeof(uint32_t);
    mr_buf_add(&d->starts, axis->start, axis->outputs * sizeof *axis->start);
    if (!mr_buf_reserve(&d->weights, pairs * 2 * sizeof(int32_t)))
        return 0;
    int32_t *out = (int32_t *)(void *)(d->weights.data + d->weights.len);
    for (size_t i = 0; i < pairs; i++) {
        const int16_t *k = axis->k + i * 4;
        out[2 * i] = k[2] * (1 << MR_RESIZE_SPLIT) + k[0];
        out[2 * i + 1] = k[3] * (1 << MR_RESIZE_SPLIT) + k[1];
    }
    d->weights.len += pairs * 2 * sizeof(int32_t);
    return (uint32_t)(axis->pairs * 2);
}

static mr_status add_weights(planning *a, mr_error *err)
{
    mr_coded_planner *p = a->p;
    mr_coded_image *im = a->im;
    const mr_resize_side across = mr_resize_across(&a->picture->resize), down = mr_resize_down(&a->picture->resize);
    MR_TRY(mr_resize_axis_set(&p->across, &across, err));
    MR_TRY(mr_resize_axis_set(&p->down, &down, err));
    im->across_taps = add_axis(a->d, &p->across, &im->across, &im->across_start);
    im->down_taps = add_axis(a->d, &p->down, &im->down, &im->down_start);
    return MR_OK;
}

/* ---- a picture --------------------------------------------------------------------------------------------------- */

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
    if (!mr_jpeg_open(a->p->jpeg, f->bytes, f->len))
        return false;
    a->h = &a->p->jpeg->header;
    return a->h->width == f->width && a->h->height == f->height && r->width && r->height && r->left <= f->width &&
           r->width <= f->width - r->left && r->top <= f->height && r->height <= f->height - r->top && read_entries(a);
}

static void clear(mr_coded_description *d)
{
    mr_buf *const all[] = {&d->parts, &d->codes, &d->quants, &d->weights, &d->starts};
    for (size_t i = 0; i < MR_COUNT(all); i++)
        mr_buf_clear(all[i]);
    d->image = (mr_coded_image){.bytes = 0};
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
    add_tables(&a);
    if (!resizable(&a) || !reserve(&a))
        return MR_OK;
    add_parts(&a);
    MR_TRY(add_weights(&a, err));
    const mr_buf *const all[] = {&out->parts, &out->codes, &out->quants, &out->weights, &out->starts};
    for (size_t i = 0; i < MR_COUNT(all); i++)
        MR_TRY(mr_buf_status(all[i], err, "describing a picture"));
    *taken = true;
    return MR_OK;
}

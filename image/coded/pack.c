/* pack.c - the descriptions of a batch's images as sections of one slab; see millrace.h for its layout.
 * Invariant: what is packed depends on the slots alone, not on the threads that described them. */
#include <string.h>

#include "base/hash.h"
#include "base/scope.h"
#include "image/coded/coded.h"
#include "image/jpeg/tables.h"

enum {
    CODE_BITS = 10,
    IDLE_SHARE = 4,      /* items of a step for each one that does something, at most ... */
    IDLE_ITEMS = 1 << 22 /* ... unless they are so few */
};

_Static_assert(sizeof((mr_coded_codes *)0)->first == sizeof(uint16_t) << CODE_BITS, "as in millrace.h");

typedef struct packing {
    const mr_coded_batch *b;
    mr_coded head;
    mr_buf *tables; /* the batch's tables: a known_table each */
    uint8_t *data;
    mr_coded_piece piece; /* the one that is being filled */
    uint64_t end;         /* of the slab */
} packing;

typedef struct known_table {
    uint64_t hash;
    const mr_coded_table *from;
} known_table;

static const mr_coded_description *described(const packing *k, uint32_t slot)
{
    return k->b->slots[slot].kind == MR_CODED_IMAGE ? &k->b->descriptions[slot] : NULL;
}

/* The batch's number of a table; added if it is new. */
static uint32_t number_of(packing *k, const mr_coded_table *table)
{
    const known_table *all = (const known_table *)(const void *)k->tables->data;
    uint32_t n = (uint32_t)(k->tables->len / sizeof *all);
    const known_table added = {mr_hash64(table, sizeof *table), table};
    for (uint32_t i = 0; i < n; i++)
        if (all[i].hash == added.hash && memcmp(all[i].from, table, sizeof *table) == 0)
            return i;
    mr_buf_add(k->tables, &added, sizeof added);
    return n;
}

/* The planner has checked the codes. */
static void build(const mr_coded_table *table, mr_coded_codes *out)
{
    mr_jpeg_codes codes;
    uint32_t code = 0, symbol = 0;
    mr_jpeg_codes_make(&codes, (const uint8_t *)table, false);
    *out = (mr_coded_codes){.limit = {0}};
    for (unsigned n = 1; n <= CODE_BITS; n++, code <<= 1) {
        for (unsigned i = 0; i < table->counts[n - 1]; i++, code++, symbol++) {
            uint32_t v = codes.values[symbol & 255], rest = CODE_BITS - n;
            for (uint32_t j = 0; j < 1U << rest; j++)
                out->first[(code << rest) + j] = (uint16_t)(n | (v & 15) << 5 | v >> 4 << 9);
        }
    }
    memcpy(out->limit, codes.limit, sizeof codes.limit);
    memcpy(out->offset, codes.offset, sizeof codes.offset);
    memcpy(out->values, codes.values, sizeof codes.values);
}

/* ---- what there is ----------------------------------------------------------------------------------------------- */

static uint64_t memory_of(uint64_t coef, uint64_t samples, uint64_t rgb, uint64_t lines)
{
    return coef + samples + rgb + lines;
}

static void raise(uint32_t *most, uint64_t value)
{
    if (value > *most)
        *most = (uint32_t)value;
}

static void grow(mr_coded_piece *p, const mr_coded_description *d)
{
    p->images++;
    p->parts += (uint32_t)(d->parts.len / sizeof(mr_coded_part));
    p->coef += d->coef;
    p->samples += d->samples;
    p->rgb += d->rgb;
    p->lines += d->lines;
    raise(&p->most_blocks, d->coef / (64 * sizeof(int16_t)));
    raise(&p->most_pixels, d->rgb / 3);
    raise(&p->most_lines, d->lines / 3);
}

/* A step has as many items for each image as the largest needs: whether most of them have something to do. */
static bool is_even(uint32_t images, uint64_t most, uint64_t sum)
{
    return images * most <= IDLE_SHARE * sum || images * most <= IDLE_ITEMS;
}

static bool fits(const packing *k, const mr_coded_piece *p, const mr_coded_description *d)
{
    uint64_t most = k->b->piece_bytes ? k->b->piece_bytes : MR_CODED_PIECE_BYTES;
    mr_coded_piece more = *p;
    grow(&more, d);
    return memory_of(more.coef, more.samples, more.rgb, more.lines) <= most &&
           is_even(more.images, more.most_pixels, more.rgb / 3) &&
           is_even(more.images, more.most_lines, more.lines / 3);
}

static void count(packing *k)
{
    mr_coded *h = &k->head;
    mr_coded_piece piece = {.images = 0};
    mr_buf_clear(k->tables);
    for (uint32_t i = 0; i < k->b->count; i++) {
        const mr_coded_description *d = described(k, i);
        h->tensors += k->b->slots[i].kind == MR_CODED_TENSOR;
        if (!d)
            continue;
        h->images++;
        h->parts += (uint32_t)(d->parts.len / sizeof(mr_coded_part));
        h->quants += (uint32_t)(d->quants.len / (64 * sizeof(int16_t)));
        h->weights += d->weights.len / sizeof(int32_t);
        h->starts += d->starts.len / sizeof(uint32_t);
        for (uint32_t n = 0; n < d->table_count; n++)
            number_of(k, &d->tables[n]);
        if (!piece.images || !fits(k, &piece, d)) {
            h->pieces++;
            piece = (mr_coded_piece){.images = 0};
        }
        grow(&piece, d);
    }
    h->codes = (uint32_t)(k->tables->len / sizeof(known_table));
}

static uint64_t place(packing *k, uint64_t bytes)
{
    uint64_t at = k->end;
    k->end = mr_coded_padded(at + bytes);
    return at;
}

static void lay_out(packing *k)
{
    mr_coded *h = &k->head;
    h->slots = k->b->count;
    h->size = k->b->size;
    h->records_at = MR_CODED_RECORDS;
    h->records_bytes = k->b->records - h->records_at;
    k->end = mr_coded_padded(k->b->used);
    h->sections_at = k->end;
    h->images_at = place(k, h->images * sizeof(mr_coded_image));
    h->parts_at = place(k, h->parts * sizeof(mr_coded_part));
    h->codes_at = place(k, h->codes * sizeof(mr_coded_codes));
    h->quants_at = place(k, h->quants * (64 * sizeof(int16_t)));
    h->weights_at = place(k, h->weights * sizeof(int32_t));
    h->starts_at = place(k, h->starts * sizeof(uint32_t));
    h->norm_at = place(k, sizeof((mr_resize_norm *)0)->f32);
    h->sections_bytes = k->end - h->sections_at;
    h->pieces_at = place(k, h->pieces * sizeof(mr_coded_piece));
    h->slots_at = place(k, h->slots * sizeof(mr_coded_slot));
    h->bytes = k->end;
}

/* ---- copying ----------------------------------------------------------------------------------------------------- */

typedef struct filled { /* numbers of each section that are in place */
    uint32_t images, parts, quants, pieces;
    uint64_t weights, starts;
} filled;

/* Appends to a section that begins at `at` and holds `count` entries of `size` bytes. */
static void append(packing *k, uint64_t at, uint64_t count, size_t size, const mr_buf *from)
{
    if (from->len)
        memcpy(k->data + at + count * size, from->data, from->len);
}

static void end_piece(packing *k, filled *f)
{
    if (k->piece.images)
        memcpy(k->data + k->head.pieces_at + f->pieces++ * sizeof k->piece, &k->piece, sizeof k->piece);
    k->piece = (mr_coded_piece){.first_image = f->images, .first_part = f->parts};
}

static void take_memory(packing *k, const mr_coded_description *d, mr_coded_image *im)
{
    const mr_coded_piece *p = &k->piece;
    im->coef = p->coef / (64 * sizeof(int16_t));
    im->rgb = p->rgb;
    im->lines = p->lines;
    for (unsigned c = 0; c < im->components; c++)
        im->plane[c] += p->samples;
    grow(&k->piece, d);
}

static void number_tables(packing *k, const mr_coded_description *d, const filled *f, mr_coded_image *im)
{
    uint32_t codes[MR_CODED_CODES] = {0};
    for (uint32_t n = 0; n < d->table_count; n++)
        codes[n] = number_of(k, &d->tables[n]);
    for (uint32_t b = 0; b < im->blocks; b++)
        for (int i = 0; i < 2; i++)
            im->table[b][i] = codes[im->table[b][i]];
    for (unsigned c = 0; c < im->components; c++)
        im->quant[c] += f->quants;
    im->across += f->weights;
    im->down += f->weights;
    im->across_start += f->starts;
    im->down_start += f->starts;
}

static void add_image(packing *k, filled *f, uint32_t slot)
{
    const mr_coded *h = &k->head;
    const mr_coded_description *d = described(k, slot);
    mr_coded_image im = d->image;
    uint32_t parts = (uint32_t)(d->parts.len / sizeof(mr_coded_part));
    if (!k->piece.images || !fits(k, &k->piece, d))
        end_piece(k, f);
    im.slot = slot;
    number_tables(k, d, f, &im);
    take_memory(k, d, &im);
    memcpy(k->data + h->images_at + f->images * sizeof im, &im, sizeof im);
    append(k, h->parts_at, f->parts, sizeof(mr_coded_part), &d->parts);
    mr_coded_part *own = (mr_coded_part *)(void *)(k->data + h->parts_at) + f->parts;
    for (uint32_t i = 0; i < parts; i++)
        own[i].image = f->images;
    append(k, h->quants_at, f->quants, 64 * sizeof(int16_t), &d->quants);
    append(k, h->weights_at, f->weights, sizeof(int32_t), &d->weights);
    append(k, h->starts_at, f->starts, sizeof(uint32_t), &d->starts);
    f->images++;
    f->parts += parts;
    f->quants += (uint32_t)(d->quants.len / (64 * sizeof(int16_t)));
    f->weights += d->weights.len / sizeof(int32_t);
    f->starts += d->starts.len / sizeof(uint32_t);
}

static void fill(packing *k, const mr_resize_norm *norm)
{
    const mr_coded *h = &k->head;
    const known_table *tables = (const known_table *)(const void *)k->tables->data;
    filled f = {.images = 0};
    memcpy(k->data, h, sizeof *h);
    memset(k->data + sizeof *h, 0, h->records_at - sizeof *h);
    for (uint32_t i = 0; i < h->codes; i++)
        build(tables[i].from, (mr_coded_codes *)(void *)(k->data + h->codes_at) + i);
    memcpy(k->data + h->norm_at, norm->f32, sizeof norm->f32);
    for (uint32_t i = 0; i < h->slots; i++) {
        mr_coded_slot slot = k->b->slots[i];
        slot.image = f.images;
        if (slot.kind == MR_CODED_IMAGE)
            add_image(k, &f, i);
        else
            slot.image = 0;
        memcpy(k->data + h->slots_at + i * sizeof slot, &slot, sizeof slot);
    }
    end_piece(k, &f);
}

mr_status mr_coded_pack(const mr_coded_batch *b, mr_buf *tables, uint64_t *bytes, mr_error *err)
{
    packing k = {.b = b, .tables = tables};
    MR_TRY(mr_resize_norm_set(b->norm, b->mean, b->std, err));
    count(&k);
    MR_TRY(mr_buf_status(tables, err, "packing a batch"));
    lay_out(&k);
    MR_TRY(mr_slab_reserve(b->slab, k.end, b->used, b->allocator, err));
    k.data = b->slab->data;
    fill(&k, b->norm);
    *bytes = k.end;
    return MR_OK;
}

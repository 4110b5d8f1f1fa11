/* entries.c - packs and unpacks entries; see entries.h.
 * Invariant: no byte past `len` is read, and accepted bytes have a single meaning. */
#include "image/jpeg/entries.h"

#include "image/jpeg/decoder.h"

enum { VARINT_MAX = 6, PREDICTOR_MAX = 32767 }; /* 42 bits: more than a file of 4 GiB has */

mr_jpeg_grid mr_jpeg_grid_make(const mr_jpeg_header *h, uint32_t every)
{
    mr_jpeg_grid g = {
        .wide = mr_jpeg_wide(h), .high = mr_jpeg_high(h), .restart = h->restart, .components = h->components};
    g.every = every && every < g.wide ? every : g.wide;
    g.per_row = mr_jpeg_divide_up(g.wide, g.every);
    g.count = (size_t)g.per_row * g.high;
    return g;
}

uint32_t mr_jpeg_grid_mcu(const mr_jpeg_grid *g, size_t entry)
{
    return (uint32_t)(entry / g->per_row) * g->wide + (uint32_t)(entry % g->per_row) * g->every;
}

static mr_jpeg_entry_kind kind(const mr_jpeg_grid *g, size_t entry, uint32_t mcu)
{
    if (entry == g->count)
        return MR_JPEG_ENDED;
    return mcu == 0 || (g->restart && mcu % g->restart == 0) ? MR_JPEG_BEGUN : MR_JPEG_INSIDE;
}

mr_jpeg_entry_kind mr_jpeg_grid_kind(const mr_jpeg_grid *g, size_t entry)
{
    return kind(g, entry, mr_jpeg_grid_mcu(g, entry));
}

/* The entry whose predictors are likely to be nearest. */
static const mr_jpeg_entry *near(const mr_jpeg_grid *g, const mr_jpeg_entry *entries, size_t i)
{
    return i % g->per_row ? &entries[i - 1] : &entries[i - g->per_row];
}

/* ---- to bytes ---------------------------------------------------------------------------------------------------- */

static void put(mr_buf *out, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; v > 0x7F; v >>= 7)
        bytes[n++] = (uint8_t)(v | 0x80);
    bytes[n++] = (uint8_t)v;
    mr_buf_add(out, bytes, n);
}

static void put_signed(mr_buf *out, int v)
{
    put(out, v < 0 ? -2 * (int64_t)v - 1 : 2 * (int64_t)v);
}

void mr_jpeg_entries_pack(const mr_jpeg_grid *g, const mr_jpeg_entry *entries, mr_buf *out)
{
    put(out, g->every);
    for (size_t i = 1; i <= g->count; i++) {
        const mr_jpeg_entry *e = &entries[i];
        put(out, e->at - e[-1].at);
        for (unsigned c = 0; c < g->components; c++)
            put_signed(out, e->dc[c] - near(g, entries, i)->dc[c]);
    }
}

/* ---- from bytes -------------------------------------------------------------------------------------------------- */

typedef struct reading {
    const uint8_t *at, *end;
} reading;

static inline bool take(reading *r, uint64_t *out)
{
    uint64_t v = 0;
    for (unsigned n = 0; n < VARINT_MAX && r->at < r->end; n++) {
        uint8_t byte = *r->at++;
        v |= (uint64_t)(byte & 0x7F) << 7 * n;
        if (byte < 0x80) {
            *out = v;
            return byte || n == 0; /* only the shortest form of a number is valid */
        }
    }
    return false;
}

static inline bool take_predictor(reading *r, int16_t before, int16_t *out)
{
    uint64_t v;
    if (!take(r, &v) || v > 4 * PREDICTOR_MAX)
        return false;
    int now = before + (v & 1 ? -(int)(v / 2) - 1 : (int)(v / 2));
    *out = (int16_t)now;
    return now <= PREDICTOR_MAX && now >= -PREDICTOR_MAX;
}

bool mr_jpeg_entries_grid(const uint8_t *packed, size_t len, const mr_jpeg_header *h, mr_jpeg_grid *g)
{
    reading r = {packed, packed + len};
    uint64_t every;
    if (!take(&r, &every) || every == 0 || every > UINT32_MAX)
        return false;
    *g = mr_jpeg_grid_make(h, (uint32_t)every);
    return g->every == every && g->count < len;
}

bool mr_jpeg_entries_unpack(const uint8_t *packed, size_t len, const mr_jpeg_grid *g, uint64_t bits,
                            mr_jpeg_entry *entries)
{
    reading r = {packed, packed + len};
    uint64_t step;
    uint32_t in_row = 0, row = 0;
    if (!take(&r, &step))
        return false;
    entries[0] = (mr_jpeg_entry){.kind = MR_JPEG_BEGUN};
    for (size_t i = 1; i <= g->count; i++) {
        mr_jpeg_entry *e = &entries[i];
        if (++in_row == g->per_row) {
            in_row = 0;
            row += g->wide;
        }
        if (!take(&r, &step) || step == 0 || step > bits - e[-1].at)
            return false;
        *e = (mr_jpeg_entry){.at = e[-1].at + step, .kind = (uint16_t)kind(g, i, row + in_row * g->every)};
        if (e->kind == MR_JPEG_BEGUN && e->at % 8)
            return false;
        const mr_jpeg_entry *base = in_row ? &e[-1] : e - g->per_row;
        for (unsigned c = 0; c < g->components; c++)
            if (!take_predictor(&r, base->dc[c], &e->dc[c]))
                return false;
    }
    return r.at == r.end;
}

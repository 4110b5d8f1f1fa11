/* jpeg_tables.c - makes the tables of jpeg_tables.h.
 * Invariant: a table is `made` only when all of its parts are.
 * Source: ITU-T T.81, annex C (codes), F.2.2 (values). */
#include "jpeg_tables.h"

#include <string.h>

enum { ALL_BITS = 16 };

/* One symbol of the first MR_JPEG_BITS bits:
 *
 *      length 0-5 | advance 8-15 | value 16-31         or, too long:  0 | code's length 8-15 | run 16-23 | bits 24-31  */

static unsigned total(const uint8_t *counts)
{
    unsigned n = 0;
    for (int i = 0; i < 16; i++)
        n += counts[i];
    return n;
}

static bool same(const mr_jpeg_codes *c, const uint8_t *made_of, const uint8_t *counts)
{
    return memcmp(made_of, counts, 16) == 0 && memcmp(c->values, counts + 16, total(counts)) == 0;
}

/* No code may be all ones, and none longer than there is room. */
static bool number(mr_jpeg_codes *c, const uint8_t *counts)
{
    uint32_t code = 0;
    int32_t place = 0;
    memset(c->values, 0, sizeof c->values);
    memcpy(c->values, counts + 16, total(counts));
    c->limit[0] = 0;
    c->offset[0] = 0;
    for (unsigned n = 1; n <= ALL_BITS; n++) {
        c->offset[n] = place - (int32_t)code;
        code += counts[n - 1];
        place += counts[n - 1];
        if (counts[n - 1] && code >= 1u << n)
            return false;
        c->limit[n] = code << (ALL_BITS - n);
        code <<= 1;
    }
    return true;
}

/* The number that `size` bits stand for: those that begin with 0 are negative. */
static int extend(unsigned bits, unsigned size)
{
    return size && bits < 1u << (size - 1) ? (int)bits - (1 << size) + 1 : (int)bits;
}

static uint32_t advance_of(unsigned run, unsigned size)
{
    if (size)
        return run + 1;
    return run == 15 ? 16 : MR_JPEG_END;
}

/* Entries of all indices that begin with the code. */
static void spread(uint32_t *single, uint32_t code, unsigned n, unsigned run, unsigned size, uint32_t advance)
{
    unsigned rest = MR_JPEG_BITS - n;
    uint32_t *e = single + ((size_t)code << rest);
    if (size > rest) {
        for (uint32_t i = 0; i < 1u << rest; i++)
            e[i] = n << 8 | run << 16 | size << 24;
        return;
    }
    unsigned behind = rest - size;
    for (uint32_t bits = 0; bits < 1u << size; bits++) {
        uint32_t entry = (n + size) | advance << 8 | (uint32_t)extend(bits, size) << 16;
        for (uint32_t i = 0; i < 1u << behind; i++)
            *e++ = entry;
    }
}

static void spread_all(uint32_t *single, const mr_jpeg_codes *c, const uint8_t *counts, bool ac)
{
    uint32_t code = 0;
    const uint8_t *symbol = c->values;
    for (unsigned n = 1; n <= MR_JPEG_BITS; n++, code <<= 1) {
        for (unsigned i = 0; i < counts[n - 1]; i++, symbol++, code++) {
            unsigned run = ac ? *symbol >> 4 : 0, size = ac ? *symbol & 15 : *symbol;
            spread(single, code, n, run, size, ac ? advance_of(run, size) : MR_JPEG_END);
        }
    }
    code >>= 1;                     /* in MR_JPEG_BITS again: from here on codes are longer, or there are none */
    memset(single + code, 0, (MR_JPEG_ENTRIES - code) * sizeof *single);
}

static uint32_t length_of(uint32_t e)
{
    return e & 63;
}

static uint32_t passed(uint32_t e)
{
    return e >> 8 & 0xFF;
}

/* Where a symbol's coefficient lies; a symbol without one stores a 0 at the place that comes next. */
static uint32_t at(uint32_t e)
{
    uint32_t p = passed(e);
    return p <= 16 && e >> 16 ? p - 1 : 0;
}

/* What is too long. */
static uint64_t long_ac(uint32_t e)
{
    return MR_JPEG_LONG << 8 | (uint64_t)(e >> 8) << 32 | (uint64_t)((e >> 16 & 0xFF) + 1) << 56;
}

static uint64_t long_dc(uint32_t e)
{
    return (MR_JPEG_LONG + 1) << 8 | (uint64_t)(e >> 8) << 32 | (uint64_t)MR_JPEG_END << 56;
}

static uint64_t alone(uint32_t e)
{
    return length_of(e) | passed(e) << 8 | at(e) << 16 | at(e) << 24 | (uint64_t)(e >> 16) << 32 |
           (uint64_t)(e >> 16) << 48;
}

static void make_pairs(mr_jpeg_ac *t, const uint32_t *single)
{
    for (uint32_t i = 0; i < MR_JPEG_ENTRIES; i++) {
        uint32_t a = single[i], n = a & 63, b = n && passed(a) <= 16 ? single[i << n & (MR_JPEG_ENTRIES - 1)] : 0;
        if (!n)
            t->pair[i] = long_ac(a);
        else if (length_of(b) && n + length_of(b) <= MR_JPEG_BITS)
            t->pair[i] = (n + length_of(b)) | (passed(a) + passed(b)) << 8 | at(a) << 16 | (passed(a) + at(b)) << 24 |
                         (uint64_t)(a >> 16) << 32 | (uint64_t)(b >> 16) << 48;
        else
            t->pair[i] = alone(a);
    }
}

/* Of the first symbol in `bits` bits, `e`, and those in the bits behind it: `behind` has the entry of each number of so
 * few bits at 1 << their count.  Of the last symbol the code is enough, its value is not looked at. */
static uint16_t skip_of(uint32_t e, unsigned bits, uint32_t i, const uint16_t *behind)
{
    uint32_t n = length_of(e), places = passed(e);
    if (!n) {
        uint32_t code = e >> 8 & 0xFF, run = e >> 16 & 0xFF, size = e >> 24;
        return code && code <= bits ? (uint16_t)((code + size) | (run + 1) << 8) : 0;
    }
    if (n > bits)
        return 0;
    uint32_t rest = 1u << (bits - n), more = places < MR_JPEG_END ? behind[rest + (i & (rest - 1))] : 0;
    /* At most 64 places without the end of block: from any place of a block on, more could look like one. */
    if (places + (more >> 8 & (MR_JPEG_END - 1)) > 64 && places < MR_JPEG_END)
        more = 0;
    return (uint16_t)((n | places << 8) + more);
}

static void make_skips(mr_jpeg_ac *t, const uint32_t *single)
{
    uint16_t behind[MR_JPEG_ENTRIES] = {0};
    for (unsigned bits = 1; bits <= MR_JPEG_BITS; bits++) {
        uint16_t *out = bits < MR_JPEG_BITS ? behind + (1u << bits) : t->skip;
        for (uint32_t i = 0; i < 1u << bits; i++)
            out[i] = skip_of(single[i << (MR_JPEG_BITS - bits)], bits, i, behind);
    }
}

bool mr_jpeg_dc_make(mr_jpeg_dc *t, const uint8_t *counts)
{
    uint32_t single[MR_JPEG_ENTRIES];
    if (t->made && same(&t->codes, t->counts, counts))
        return true;
    t->made = false;
    if (!number(&t->codes, counts))
        return false;
    for (unsigned i = 0; i < total(counts); i++)
        if (t->codes.values[i] > 15)
            return false;
    spread_all(single, &t->codes, counts, false);
    for (uint32_t i = 0; i < MR_JPEG_ENTRIES; i++)
        t->pair[i] = length_of(single[i]) ? alone(single[i]) : long_dc(single[i]);
    memcpy(t->counts, counts, 16);
    t->made = true;
    return true;
}

bool mr_jpeg_ac_make(mr_jpeg_ac *t, const uint8_t *counts)
{
    uint32_t single[MR_JPEG_ENTRIES];
    if (t->made && same(&t->codes, t->counts, counts))
        return true;
    t->made = false;
    if (!number(&t->codes, counts))
        return false;
    spread_all(single, &t->codes, counts, true);
    make_pairs(t, single);
    make_skips(t, single);
    memcpy(t->counts, counts, 16);
    t->made = true;
    return true;
}

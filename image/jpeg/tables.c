/* tables.c - builds the tables of tables.h.
 * Invariant: a table is `made`, `paired` or with `skips` only once it is complete.
 * Source: ITU-T T.81, annex C (codes), F.2.2 (values). */
#include "image/jpeg/tables.h"

#include <string.h>

enum { ALL_BITS = 16 };

/* Below, `single` holds for each MR_JPEG_BITS bits the symbol they begin with, and its value if they include all of it:
 *
 *      code's length 0-3 (0: no code so short) | value's bits 4-7 | advance 8-15 | value 16-31 */

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

/* No code may be all ones, and codes of a length must fit into it. */
bool mr_jpeg_codes_make(mr_jpeg_codes *c, const uint8_t *counts, bool dc)
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
    for (unsigned i = 0; dc && i < total(counts); i++)
        if (c->values[i] > 15)
            return false;
    return true;
}

/* The value of `size` bits: those that begin with 0 are negative. */
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

/* Sets all indices that begin with the code. */
static void spread(uint32_t *single, uint32_t code, unsigned n, unsigned size, uint32_t advance)
{
    unsigned rest = MR_JPEG_BITS - n, known = size < rest ? size : rest;
    uint32_t *e = single + ((size_t)code << rest);
    for (uint32_t bits = 0; bits < 1u << known; bits++) {
        uint32_t symbol = n | size << 4 | advance << 8 | (uint32_t)extend(bits, known) << 16;
        for (uint32_t i = 0; i < 1u << (rest - known); i++)
            *e++ = symbol;
    }
}

static void spread_all(uint32_t *single, const mr_jpeg_codes *c, const uint8_t *counts, bool ac)
{
    uint32_t code = 0;
    const uint8_t *symbol = c->values;
    for (unsigned n = 1; n <= MR_JPEG_BITS; n++, code <<= 1) {
        for (unsigned i = 0; i < counts[n - 1]; i++, symbol++, code++) {
            unsigned size = ac ? *symbol & 15 : *symbol;
            spread(single, code, n, size, ac ? advance_of(*symbol >> 4, size) : MR_JPEG_END);
        }
    }
    code >>= 1; /* back within MR_JPEG_BITS: all following codes are longer */
    memset(single + code, 0, (MR_JPEG_ENTRIES - code) * sizeof *single);
}

static uint32_t code_of(uint32_t e)
{
    return e & 15;
}

static uint32_t size_of(uint32_t e)
{
    return e >> 4 & 15;
}

static uint32_t length_of(uint32_t e)
{
    return code_of(e) + size_of(e);
}

static uint32_t passed(uint32_t e)
{
    return e >> 8 & 0xFF;
}

static int32_t value_of(uint32_t e)
{
    return (int32_t)e >> 16;
}

/* Zeros before a symbol's coefficient; a symbol without one stores a 0 at the next place. */
static uint32_t run_of(uint32_t e)
{
    return passed(e) <= 16 && size_of(e) ? passed(e) - 1 : 0;
}

/* Whether the index includes all of the symbol. */
static bool whole(uint32_t e)
{
    return code_of(e) && length_of(e) <= MR_JPEG_BITS;
}

static mr_jpeg_pair alone(uint32_t e, int32_t value, uint32_t rest)
{
    return (mr_jpeg_pair){.length = (uint8_t)length_of(e),
                          .run = (uint8_t)run_of(e),
                          .first = (int16_t)value,
                          .shift = (uint8_t)(63 - rest),
                          .advance = (uint8_t)passed(e)};
}

/* The entry for a symbol that the index does not include in full. */
static mr_jpeg_pair part(uint32_t e, uint32_t index, uint8_t too_far)
{
    uint32_t known = MR_JPEG_BITS - code_of(e), rest = size_of(e) - known, bits = index & ((1u << known) - 1);
    if (!code_of(e) || !known || rest > MR_JPEG_REST)
        return (mr_jpeg_pair){.advance = too_far};
    return alone(e, extend(bits << rest, size_of(e)), rest);
}

/* An entry as a number: the parts of two can be added, as none of the sums is too large for its place. */
static uint64_t number_of(mr_jpeg_pair pair)
{
    uint64_t n;
    memcpy(&n, &pair, sizeof n);
    return n;
}

typedef struct seconds { /* the symbol that begins each index, as the second one of an entry */
    uint64_t adds[MR_JPEG_ENTRIES];
    uint8_t length[MR_JPEG_ENTRIES]; /* UINT8_MAX: it is not in the index in full */
} seconds;

/* Indices that begin with the same bits are adjacent. */
static void make_seconds(const uint32_t *single, seconds *s)
{
    for (uint32_t i = 0, count; i < MR_JPEG_ENTRIES; i += count) {
        uint32_t e = single[i], n = length_of(e);
        uint64_t adds = number_of(
            (mr_jpeg_pair){.length = (uint8_t)n, .second = (int16_t)value_of(e), .advance = (uint8_t)passed(e)});
        count = whole(e) ? MR_JPEG_ENTRIES >> n : code_of(e) ? MR_JPEG_ENTRIES >> code_of(e) : 1;
        memset(s->length + i, whole(e) ? (int)n : UINT8_MAX, count);
        for (uint32_t j = 0; j < count; j++)
            s->adds[i + j] = adds;
    }
}

/* `second` NULL: one symbol each. */
static void make_pairs(mr_jpeg_pair *pair, const uint32_t *single, const seconds *second, uint8_t too_far)
{
    for (uint32_t i = 0, count; i < MR_JPEG_ENTRIES; i += count) {
        uint32_t e = single[i], n = length_of(e), left = MR_JPEG_BITS - n;
        bool followed = whole(e) && passed(e) <= 16;
        uint64_t first = number_of(whole(e) ? alone(e, value_of(e), 0) : part(e, i, too_far));
        count = whole(e) ? 1u << left : 1;
        for (uint32_t j = 0; j < count; j++) {
            uint64_t both = first;
            if (second && followed && second->length[j << n] <= left)
                both += second->adds[j << n];
            memcpy(&pair[i + j], &both, sizeof both);
        }
    }
}

/* Writes the entries of `bits` bits that begin with the symbol, which are adjacent; returns their number.  `suffix`
 * holds the entries of n bits from 1 << n on.  The last symbol needs only its code, as its value is not read.  At most
 * 64 places without an end of block: more could look like one. */
static uint32_t skip_some(uint32_t e, unsigned bits, const uint16_t *suffix, uint16_t *out)
{
    uint32_t n = length_of(e), places = passed(e), count = n <= bits ? 1u << (bits - n) : 1;
    if (!code_of(e) || code_of(e) > bits) {
        *out = 0;
        return 1;
    }
    uint16_t entry = (uint16_t)(n | places << 8);
    bool followed = places < MR_JPEG_END;
    for (uint32_t j = 0; j < count; j++) {
        uint16_t more = followed ? suffix[count + j] : 0;
        out[j] = (uint16_t)(entry + ((more >> 8 & (MR_JPEG_END - 1)) + places <= 64 ? more : 0));
    }
    return count;
}

static void make_skips(uint16_t *skip, const uint32_t *single)
{
    uint16_t suffix[MR_JPEG_ENTRIES] = {0};
    for (unsigned bits = 1; bits <= MR_JPEG_BITS; bits++) {
        uint16_t *out = bits < MR_JPEG_BITS ? suffix + (1u << bits) : skip;
        for (uint32_t i = 0; i < 1u << bits;)
            i += skip_some(single[i << (MR_JPEG_BITS - bits)], bits, suffix, out + i);
    }
}

bool mr_jpeg_dc_make(mr_jpeg_dc *t, const uint8_t *counts)
{
    uint32_t single[MR_JPEG_ENTRIES];
    if (t->made && same(&t->codes, t->counts, counts))
        return true;
    t->made = false;
    if (!mr_jpeg_codes_make(&t->codes, counts, true))
        return false;
    spread_all(single, &t->codes, counts, false);
    make_pairs(t->pair, single, NULL, MR_JPEG_LONG + 1);
    memcpy(t->counts, counts, 16);
    t->made = true;
    return true;
}

bool mr_jpeg_ac_make(mr_jpeg_ac *t, const uint8_t *counts)
{
    if (t->made && same(&t->codes, t->counts, counts))
        return true;
    t->made = t->paired = t->skips = false;
    if (!mr_jpeg_codes_make(&t->codes, counts, false))
        return false;
    memcpy(t->counts, counts, 16);
    t->made = true;
    return true;
}

void mr_jpeg_ac_pair(mr_jpeg_ac *t)
{
    uint32_t single[MR_JPEG_ENTRIES];
    seconds second;
    if (t->paired)
        return;
    spread_all(single, &t->codes, t->counts, true);
    make_seconds(single, &second);
    make_pairs(t->pair, single, &second, MR_JPEG_LONG);
    t->paired = true;
}

void mr_jpeg_ac_skip(mr_jpeg_ac *t)
{
    uint32_t single[MR_JPEG_ENTRIES];
    if (t->skips)
        return;
    spread_all(single, &t->codes, t->counts, true);
    make_skips(t->skip, single);
    t->skips = true;
}

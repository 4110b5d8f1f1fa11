/* blocks.h - private to the sets of kernels: decodes symbols and skips blocks that are not needed; compiled for each
 * set's processor.
 * Invariant: at most one block is decoded past the segment's end before that is detected; MR_JPEG_PADDING covers it.
 *
 * A refill leaves at least 56 bits: more than two skips of at most 26, or a symbol that is in no index (16 + 15).
 * Whether more bits were taken than there were is checked once, at the end. */
#ifndef MR_JPEG_BLOCKS_H
#define MR_JPEG_BLOCKS_H

#include <string.h>

#include "image/jpeg/kernels.h"

#define MR_INLINE  static inline __attribute__((always_inline))
#define MR_RARE(x) __builtin_expect(!!(x), 0)

enum { MR_JPEG_DC_MAX = 32767 }; /* libjpeg-turbo keeps 16 bits of it */

MR_INLINE uint64_t mr_load64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

MR_INLINE void mr_refill(mr_jpeg_stream *s)
{
    s->word |= mr_load64(s->next) >> s->bits;
    s->next += (63 - s->bits) >> 3;
    s->bits |= 56;
}

MR_INLINE void mr_drop(mr_jpeg_stream *s, unsigned n)
{
    s->word <<= n;
    s->bits -= n;
}

/* Advances to bit 0 to 7 of a byte. */
MR_INLINE void mr_go_to(mr_jpeg_stream *s, const uint8_t *byte, unsigned bit)
{
    s->next = byte;
    s->word = 0;
    s->bits = 0;
    mr_refill(s);
    mr_drop(s, bit);
}

/* Drops an entry's bits.  Reading its length in two ways keeps a mask out of the critical path from one entry to the
 * next. */
MR_INLINE void mr_drop_entry(mr_jpeg_stream *s, uint64_t e)
{
    s->word <<= e & 63;
    s->bits -= (uint8_t)e;
}

/* The value of the next `size` bits; size 1 to 15.  Without a branch, as nothing predicts the sign. */
MR_INLINE int mr_take_value(mr_jpeg_stream *s, unsigned size)
{
    int below = (1 << size) - 1; /* subtracted from those that begin with 0 */
    int v = (int)(s->word >> (64 - size)) - (below & ((int)(s->word >> 63) - 1));
    mr_drop(s, size);
    return v;
}

/* A symbol by its code alone: symbol << 8 | length; 0: no such code. */
static __attribute__((noinline, pure)) unsigned mr_find_symbol(const mr_jpeg_codes *c, uint32_t ahead)
{
    for (unsigned n = 1; n <= 16; n++)
        if (ahead < c->limit[n])
            return (unsigned)c->values[(int32_t)(ahead >> (16 - n)) + c->offset[n]] << 8 | n;
    return 0;
}

MR_INLINE bool mr_dc_fits(int dc)
{
    return dc <= MR_JPEG_DC_MAX && dc >= -MR_JPEG_DC_MAX;
}

/* `word`: the bits from the entry's index on. */
MR_INLINE int16_t mr_first_value(const mr_jpeg_pair *e, uint64_t word)
{
    return (int16_t)((unsigned)e->first + (unsigned)(word << MR_JPEG_BITS >> 1 >> (e->shift & 63)));
}

/* Takes at most 31 bits. */
MR_INLINE bool mr_take_dc(mr_jpeg_stream *s, const mr_jpeg_dc *t, unsigned component)
{
    const mr_jpeg_pair *e = &t->pair[s->word >> (64 - MR_JPEG_BITS)];
    int difference = 0;
    if (MR_RARE(!e->length)) {
        unsigned found = mr_find_symbol(&t->codes, (uint32_t)(s->word >> 48)), size = found >> 8;
        if (!found)
            return false;
        mr_drop(s, found & 63);
        if (size)
            difference = mr_take_value(s, size);
    } else {
        difference = mr_first_value(e, s->word);
        mr_drop(s, e->length);
    }
    s->dc[component] += difference;
    return mr_dc_fits(s->dc[component]);
}

/* One AC symbol, the slow way; `block` may be NULL.  Takes at most 31 bits. */
MR_INLINE bool mr_take_ac(mr_jpeg_stream *s, const mr_jpeg_ac *t, unsigned *k, int16_t *block)
{
    unsigned found = mr_find_symbol(&t->codes, (uint32_t)(s->word >> 48)), run = found >> 12, size = found >> 8 & 15;
    if (!found)
        return false;
    mr_drop(s, found & 63);
    if (!size) {
        *k += run == 15 ? 16 : MR_JPEG_END;
        return true;
    }
    int v = mr_take_value(s, size);
    *k += run;
    if (block)
        block[mr_jpeg_zigzag[*k]] = (int16_t)v;
    (*k)++;
    return true;
}

/* A block ends when place 64 is reached, or at an end-of-block symbol. */
MR_INLINE bool mr_ended(unsigned k)
{
    return k == 64 || (k >= MR_JPEG_END && k < MR_JPEG_END + 64);
}

/* An entry of the index, *e; false: there is none. */
MR_INLINE bool mr_skip_entry(mr_jpeg_stream *s, const mr_jpeg_ac *t, unsigned *k, uint64_t *e)
{
    *e = t->skip[s->word >> (64 - MR_JPEG_BITS)];
    if (MR_RARE(!(*e & 63)))
        return false;
    mr_drop_entry(s, *e);
    *k += (unsigned)(*e >> 8);
    return true;
}

/* Puts the bits of the last entry back. */
MR_INLINE void mr_put_back(mr_jpeg_stream *s, uint64_t e)
{
    unsigned bits = s->bits + (e & 63), bytes = (bits + 7) / 8;
    mr_go_to(s, s->next - bytes, bytes * 8 - bits);
}

/* Symbol by symbol up to the block's end. */
MR_INLINE bool mr_skip_rest(mr_jpeg_stream *s, const mr_jpeg_ac *t, unsigned k)
{
    do {
        mr_refill(s);
        if (!mr_take_ac(s, t, &k, NULL))
            return false;
    } while (k < 64);
    return mr_ended(k);
}

/* Skips the AC coefficients from place k on.  If k is 64 or more, `e` is the entry that led there. */
MR_INLINE bool mr_skip_acs(mr_jpeg_stream *s, const mr_jpeg_ac *t, unsigned k, uint64_t e)
{
    while (k < 64) {
        mr_refill(s);
        bool known = mr_skip_entry(s, t, &k, &e);
        if (known && k < 64)
            known = mr_skip_entry(s, t, &k, &e);
        if (MR_RARE(!known)) {
            mr_refill(s);
            if (!mr_take_ac(s, t, &k, NULL))
                return false;
            e = 0;
        }
    }
    if (mr_ended(k))
        return true;
    if (!(e & 63)) /* otherwise the last entry went past the block: only its first symbols belong to it */
        return false;
    mr_put_back(s, e);
    return mr_skip_rest(s, t, k - (unsigned)(e >> 8 & 0xFF));
}

/* The same for two blocks in lockstep until one ends: one works while the other waits for its table. */
MR_INLINE bool mr_skip_both(mr_jpeg_stream *a, mr_jpeg_stream *b, const mr_jpeg_ac *t)
{
    unsigned j = 1, k = 1;
    uint64_t e = 0, f = 0;
    bool known;
    do {
        mr_refill(a);
        mr_refill(b);
        known = mr_skip_entry(a, t, &j, &e);
        known &= mr_skip_entry(b, t, &k, &f);
        if (known && (j | k) < 64) {
            known = mr_skip_entry(a, t, &j, &e);
            known &= mr_skip_entry(b, t, &k, &f);
        }
    } while (known && (j | k) < 64);
    return mr_skip_acs(a, t, j, e) && mr_skip_acs(b, t, k, f);
}

MR_INLINE bool mr_skip_one(mr_jpeg_stream *stream, const mr_jpeg_mcu *mcu, unsigned count)
{
    mr_jpeg_stream s = *stream;
    for (; count; count--) {
        for (unsigned b = 0; b < mcu->blocks; b++) {
            if (s.next > s.end + 8)
                return false;
            mr_refill(&s);
            if (!mr_take_dc(&s, mcu->block[b].dc, mcu->block[b].component) || !mr_skip_acs(&s, mcu->block[b].ac, 1, 0))
                return false;
        }
    }
    *stream = s;
    return true;
}

MR_INLINE bool mr_skip_two(mr_jpeg_stream *const stream[2], const mr_jpeg_mcu *mcu, unsigned count)
{
    mr_jpeg_stream a = *stream[0], b = *stream[1];
    for (; count; count--) {
        for (unsigned i = 0; i < mcu->blocks; i++) {
            unsigned component = mcu->block[i].component;
            if (a.next > a.end + 8 || b.next > b.end + 8)
                return false;
            mr_refill(&a);
            mr_refill(&b);
            if (!mr_take_dc(&a, mcu->block[i].dc, component) || !mr_take_dc(&b, mcu->block[i].dc, component) ||
                !mr_skip_both(&a, &b, mcu->block[i].ac))
                return false;
        }
    }
    *stream[0] = a;
    *stream[1] = b;
    return true;
}

#endif

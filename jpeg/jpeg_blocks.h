/* jpeg_blocks.h - private to the sets of kernels: entropy-coded blocks, compiled for each set's processor.
 * Invariant: at most one block is decoded beyond the segment's end before that is seen; MR_JPEG_BEHIND covers it.
 *
 * A refill leaves at least 56 bits: more than three entries of the index, or two skips of at most 26, or a symbol that
 * is in none (16 + 15).  Whether more bits were taken than there were is asked when all is done: it cannot mend
 * itself. */
#ifndef MR_JPEG_BLOCKS_H
#define MR_JPEG_BLOCKS_H

#include <string.h>

#include "jpeg_kernels.h"

#define MR_INLINE static inline __attribute__((always_inline))
#define MR_RARE(x) __builtin_expect(!!(x), 0)

enum { MR_JPEG_DC_MOST = 32767 };           /* libjpeg-turbo keeps 16 bits of it */

MR_INLINE void mr_refill(mr_jpeg_stream *s)
{
    uint64_t more;
    memcpy(&more, s->next, sizeof more);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    more = __builtin_bswap64(more);
#endif
    s->word |= more >> s->bits;
    s->next += (63 - s->bits) >> 3;
    s->bits |= 56;
}

MR_INLINE void mr_drop(mr_jpeg_stream *s, unsigned n)
{
    s->word <<= n;
    s->bits -= n;
}

/* As many bits as an entry says.  The two ways to read its length keep a mask out of the path from one entry to the
 * next, which is all that this loop waits for. */
MR_INLINE void mr_drop_entry(mr_jpeg_stream *s, uint64_t e)
{
    s->word <<= e & 63;
    s->bits -= (uint8_t)e;
}

/* The number that the next `size` bits stand for; size 1 to 15. */
MR_INLINE int mr_take_value(mr_jpeg_stream *s, unsigned size)
{
    int v = (int)(s->word >> 1 >> (63 - size));
    if (v < 1 << (size - 1))
        v -= (1 << size) - 1;
    mr_drop(s, size);
    return v;
}

/* A symbol by its code alone: symbol << 8 | length; 0: no code begins so. */
static __attribute__((noinline, pure)) unsigned mr_find_symbol(const mr_jpeg_codes *c, uint32_t ahead)
{
    for (unsigned n = 1; n <= 16; n++)
        if (ahead < c->limit[n])
            return (unsigned)c->values[(int32_t)(ahead >> (16 - n)) + c->offset[n]] << 8 | n;
    return 0;
}

/* Takes at most 31 bits. */
MR_INLINE bool mr_take_dc(mr_jpeg_stream *s, const mr_jpeg_dc *t, unsigned component)
{
    uint32_t e = t->single[s->word >> (64 - MR_JPEG_BITS)];
    int difference = 0;
    if (MR_RARE(!(e & 63))) {
        unsigned found = mr_find_symbol(&t->codes, (uint32_t)(s->word >> 48)), size = found >> 8;
        if (!found)
            return false;
        mr_drop(s, found & 63);
        if (size)
            difference = mr_take_value(s, size);
    } else {
        mr_drop(s, e & 63);
        difference = (int16_t)(e >> 16);
    }
    s->dc[component] += difference;
    return s->dc[component] <= MR_JPEG_DC_MOST && s->dc[component] >= -MR_JPEG_DC_MOST;
}

/* One AC symbol, the slow way; `block` may be NULL.  Takes at most 31 bits. */
MR_INLINE bool mr_take_ac(mr_jpeg_stream *s, const mr_jpeg_ac *t, unsigned *k, int16_t *block)
{
    uint64_t e = t->pair[s->word >> (64 - MR_JPEG_BITS)];
    unsigned n = e >> 8 & 0xFF, run = e >> 16 & 0xFF, size = e >> 24 & 0xFF;
    if (e & 63 || !n) {
        unsigned found = mr_find_symbol(&t->codes, (uint32_t)(s->word >> 48));
        if (!found)
            return false;
        n = found & 63;
        run = found >> 12;
        size = found >> 8 & 15;
    }
    mr_drop(s, n);
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

/* What ends a block: place 64 is reached, or an end of block is read before. */
MR_INLINE bool mr_ended(unsigned k)
{
    return k == 64 || (k >= MR_JPEG_END && k < MR_JPEG_END + 64);
}

/* An entry of the index, *e; false: there is none. */
MR_INLINE bool mr_store_entry(mr_jpeg_stream *s, const mr_jpeg_ac *t, unsigned *k, uint64_t *e, int16_t *block)
{
    const uint8_t *zigzag = mr_jpeg_zigzag + *k;
    *e = t->pair[s->word >> (64 - MR_JPEG_BITS)];
    if (MR_RARE(!(*e & 63)))
        return false;
    block[zigzag[*e >> 16 & 0xFF]] = (int16_t)(*e >> 32);
    block[zigzag[*e >> 24 & 0xFF]] = (int16_t)(*e >> 48);
    mr_drop_entry(s, *e);
    *k += *e >> 8 & 0xFF;
    return true;
}

MR_INLINE bool mr_skip_entry(mr_jpeg_stream *s, const mr_jpeg_ac *t, unsigned *k, uint64_t *e)
{
    *e = t->skip[s->word >> (64 - MR_JPEG_BITS)];
    if (MR_RARE(!(*e & 63)))
        return false;
    mr_drop_entry(s, *e);
    *k += (unsigned)(*e >> 8);
    return true;
}

MR_INLINE bool mr_take_entry(mr_jpeg_stream *s, const mr_jpeg_ac *t, unsigned *k, uint64_t *e, int16_t *block)
{
    return block ? mr_store_entry(s, t, k, e, block) : mr_skip_entry(s, t, k, e);
}

/* The bits of the last entry are to be read again. */
MR_INLINE void mr_put_back(mr_jpeg_stream *s, uint64_t e)
{
    unsigned bits = s->bits + (e & 63), bytes = (bits + 7) / 8;
    s->next -= bytes;
    s->word = 0;
    s->bits = 0;
    mr_refill(s);
    mr_drop(s, bytes * 8 - bits);
}

/* Symbol by symbol up to the block's end. */
MR_INLINE bool mr_take_rest(mr_jpeg_stream *s, const mr_jpeg_ac *t, unsigned *k, int16_t *block)
{
    do {
        mr_refill(s);
        if (!mr_take_ac(s, t, k, block))
            return false;
    } while (*k < 64);
    return mr_ended(*k);
}

/* From place k on the AC coefficients, or only the way past them if `block` is NULL; 0: cannot be taken, else the
 * places used.  With k at 64 or beyond `e` is the entry that led there. */
MR_INLINE unsigned mr_take_acs(mr_jpeg_stream *s, const mr_jpeg_ac *t, unsigned k, uint64_t e, int16_t *block)
{
    while (k < 64) {
        mr_refill(s);
        bool known = mr_take_entry(s, t, &k, &e, block);
        if (known && k < 64)
            known = mr_take_entry(s, t, &k, &e, block);
        if (known && k < 64 && block)
            known = mr_take_entry(s, t, &k, &e, block);
        if (MR_RARE(!known)) {
            mr_refill(s);
            if (!mr_take_ac(s, t, &k, block))
                return 0;
            e = 0;
        }
    }
    if (MR_RARE(!mr_ended(k))) {        /* the last entry went beyond the block: only its first symbols are of it */
        if (!(e & 63))
            return 0;
        mr_put_back(s, e);
        k -= e >> 8 & 0xFF;
        if (!mr_take_rest(s, t, &k, block))
            return 0;
    }
    return k == 64 ? 64 : k - MR_JPEG_END;
}

MR_INLINE bool mr_store_mcus(mr_jpeg_stream *stream, const mr_jpeg_mcu *mcu, unsigned count, int16_t *blocks,
                             uint8_t *used)
{
    mr_jpeg_stream s = *stream;
    for (; count; count--) {
        for (unsigned b = 0; b < mcu->blocks; b++, blocks += MR_JPEG_BLOCK) {
            if (s.next > s.end + 8)
                return false;
            mr_refill(&s);
            if (!mr_take_dc(&s, mcu->block[b].dc, mcu->block[b].component))
                return false;
            blocks[0] = (int16_t)s.dc[mcu->block[b].component];
            unsigned places = mr_take_acs(&s, mcu->block[b].ac, 1, 0, blocks);
            if (!places)
                return false;
            *used++ = (uint8_t)places;
        }
    }
    *stream = s;
    return true;
}

/* The AC coefficients of two blocks in step, or the way past them, as long as both go on: while one waits for its table
 * the other works. */
MR_INLINE bool mr_take_two(mr_jpeg_stream *a, mr_jpeg_stream *b, const mr_jpeg_ac *t, int16_t *x, int16_t *y,
                           uint8_t *used_a, uint8_t *used_b)
{
    unsigned j = 1, k = 1;
    uint64_t e = 0, f = 0;
    bool known;
    do {
        mr_refill(a);
        mr_refill(b);
        known = mr_take_entry(a, t, &j, &e, x);
        known &= mr_take_entry(b, t, &k, &f, y);
        if (known && (j | k) < 64) {
            known = mr_take_entry(a, t, &j, &e, x);
            known &= mr_take_entry(b, t, &k, &f, y);
        }
        if (known && (j | k) < 64 && x) {
            known = mr_take_entry(a, t, &j, &e, x);
            known &= mr_take_entry(b, t, &k, &f, y);
        }
    } while (known && (j | k) < 64);
    unsigned m = mr_take_acs(a, t, j, e, x), n = mr_take_acs(b, t, k, f, y);
    *used_a = (uint8_t)m;
    *used_b = (uint8_t)n;
    return m && n;
}

/* Without blocks: the way past them. */
MR_INLINE bool mr_two_mcus(mr_jpeg_stream *const stream[2], const mr_jpeg_mcu *mcu, unsigned count, int16_t *x,
                           int16_t *y, uint8_t *const used[2])
{
    mr_jpeg_stream a = *stream[0], b = *stream[1];
    uint8_t any[2], *m = x ? used[0] : any, *n = x ? used[1] : any + 1;
    for (; count; count--) {
        for (unsigned i = 0; i < mcu->blocks; i++) {
            unsigned component = mcu->block[i].component;
            if (a.next > a.end + 8 || b.next > b.end + 8)
                return false;
            mr_refill(&a);
            mr_refill(&b);
            if (!mr_take_dc(&a, mcu->block[i].dc, component) || !mr_take_dc(&b, mcu->block[i].dc, component))
                return false;
            if (x) {
                x[0] = (int16_t)a.dc[component];
                y[0] = (int16_t)b.dc[component];
            }
            if (!mr_take_two(&a, &b, mcu->block[i].ac, x, y, m, n))
                return false;
            if (x) {
                x += MR_JPEG_BLOCK;
                y += MR_JPEG_BLOCK;
                m++;
                n++;
            }
        }
    }
    *stream[0] = a;
    *stream[1] = b;
    return true;
}

MR_INLINE bool mr_skip_mcus(mr_jpeg_stream *stream, const mr_jpeg_mcu *mcu, unsigned count)
{
    mr_jpeg_stream s = *stream;
    for (; count; count--) {
        for (unsigned b = 0; b < mcu->blocks; b++) {
            if (s.next > s.end + 8)
                return false;
            mr_refill(&s);
            if (!mr_take_dc(&s, mcu->block[b].dc, mcu->block[b].component) ||
                !mr_take_acs(&s, mcu->block[b].ac, 1, 0, NULL))
                return false;
        }
    }
    *stream = s;
    return true;
}

#endif

/* lanes.h - private to the sets of kernels: decodes MCUs to coefficients, of one stream or of two in lockstep.
 * Invariant: a lane never passes the last block requested, and reads at most 16 bytes past the segment.
 *
 *      nodes of an MCU    DC 0 -> AC 0 -> DC 1 -> AC 1 -> ... -> DC 0 of the next one
 *
 * Each lookup in the table of the lane's node stores up to two coefficients.  The end of a block is unpredictable, and
 * a mispredicted branch costs more than three lookups; so the lane moves to the next node without a branch: the place
 * it has reached selects the node or its successor.  DC coefficients are stored as differences and summed afterwards.
 * Only what is in no table, or goes past a block, is decoded symbol by symbol. */
#ifndef MR_JPEG_LANES_H
#define MR_JPEG_LANES_H

#include "image/jpeg/blocks.h"

enum {
    MR_LOOKS = 56 / (MR_JPEG_BITS + MR_JPEG_REST), /* per refill of at least 56 bits */
    MR_PASSED = (MR_LOOKS + 1) / 2,                /* maximum blocks that they can end: each needs two nodes */
};

typedef struct mr_lane {
    uint64_t word; /* the next bits of the stream, from the top; a 1 marks their end, zeros below it those taken */
    const uint8_t *next;       /* first byte that `word` was loaded from */
    const mr_jpeg_pair *table; /* of the node */
    const mr_jpeg_node *node;
    int16_t *out;       /* the block */
    const uint8_t *z;   /* the next zigzag place, in mr_jpeg_zigzag; 0 in a DC node */
    const uint8_t *end; /* of the segment */
} mr_lane;

/* Moves the lane to the stream's position; needs a refill. */
MR_INLINE void mr_lane_enter(mr_lane *l, const mr_jpeg_stream *s)
{
    unsigned bytes = (s->bits + 7) / 8; /* that the next bits are in */
    l->next = s->next - bytes;
    l->word = (uint64_t)1 << (8 * bytes - s->bits);
}

MR_INLINE mr_lane mr_lane_begin(const mr_jpeg_stream *s, const mr_jpeg_mcu *mcu, int16_t *out)
{
    mr_lane l = {.end = s->end, .node = mcu->node, .table = mcu->node->table, .out = out, .z = mr_jpeg_zigzag};
    mr_lane_enter(&l, s);
    return l;
}

/* Moves the stream to the lane's position; needs a refill. */
MR_INLINE void mr_lane_leave(const mr_lane *l, mr_jpeg_stream *s)
{
    unsigned taken = (unsigned)__builtin_ctzll(l->word);
    mr_go_to(s, l->next + taken / 8, taken % 8);
}

/* False: far past the end. */
MR_INLINE bool mr_lane_refill(mr_lane *l)
{
    unsigned taken = (unsigned)__builtin_ctzll(l->word);
    l->next += taken / 8;
    l->word = (mr_load64(l->next) | 1) << taken % 8;
    return l->next <= l->end + 8;
}

/* The table of places is aligned, so the address of an entry gives its place. */
MR_INLINE unsigned mr_place(const uint8_t *z)
{
    return (uint8_t)(uintptr_t)z;
}

/* From place 64 on: moves to the next node.  In assembly, as compilers would branch instead of using conditional moves.
 * mr_sum_dc() keeps only the place of what is stored at MR_JPEG_USED. */
MR_INLINE void mr_lane_pass(mr_lane *l, const uint8_t *z)
{
    const mr_jpeg_node *next = l->node->next;
#ifdef MR_JPEG_CMOV
    int16_t *out = l->out + l->node->step;
    l->out[MR_JPEG_USED] = (int16_t)(uintptr_t)z;
    __asm__("cmpb $64, %b[z]\n\tcmovae %[first], %[z]\n\tcmovae %[table], %[to_table]\n\t"
            "cmovae %[next], %[to_next]\n\tcmovae %[out], %[to_out]"
            : [z] "+r"(z), [to_table] "+r"(l->table), [to_next] "+r"(l->node), [to_out] "+r"(l->out)
            : [first] "rm"(next->first), [table] "rm"(next->table), [next] "rm"(next), [out] "rm"(out)
            : "cc");
    l->z = z;
#else
    l->z = z;
    if (mr_place(z) < 64)
        return;
    l->out[MR_JPEG_USED] = (int16_t)(uintptr_t)z;
    l->out += l->node->step;
    l->z = next->first;
    l->table = next->table;
    l->node = next;
#endif
}

/* One lookup.  False: nothing was taken; call mr_lane_step(). */
MR_INLINE bool mr_lane_look(mr_lane *l)
{
    const mr_jpeg_pair *e = &l->table[l->word >> (64 - MR_JPEG_BITS)];
    const uint8_t *z = l->z + e->advance;
    if (MR_RARE((uintptr_t)z & 64) && mr_place(z) != 64)
        return false;
    uint64_t word = l->word;
    l->word <<= e->length & 63;
    l->out[z[-1]] = e->second; /* first: a symbol alone overwrites it */
    l->out[l->z[e->run]] = mr_first_value(e, word);
    mr_lane_pass(l, z);
    return true;
}

/* Decodes any one symbol.  False: not sound. */
static __attribute__((noinline)) bool mr_lane_symbol(mr_lane *l, const mr_jpeg_mcu *mcu)
{
    size_t block = (size_t)(l->node - mcu->node) / 2;
    mr_jpeg_stream s = {.end = l->end};
    unsigned k = mr_place(l->z);
    mr_lane_leave(l, &s);
    if (l->node->step == 0) {
        if (!mr_take_dc(&s, mcu->block[block].dc, 0))
            return false;
        l->out[0] = (int16_t)s.dc[0];
        k = MR_JPEG_END;
    } else if (!mr_take_ac(&s, mcu->block[block].ac, &k, l->out) || (k >= 64 && !mr_ended(k))) {
        return false;
    }
    mr_lane_enter(l, &s);
    mr_lane_pass(l, mr_jpeg_zigzag + k);
    return true;
}

/* Handles what a lookup cannot. */
MR_INLINE bool mr_lane_step(mr_lane *l, const mr_jpeg_mcu *mcu)
{
    mr_lane copy = *l; /* a lane whose address escapes is kept in memory, not in registers */
    bool sound = mr_lane_symbol(&copy, mcu);
    *l = copy;
    return sound;
}

/* Decodes up to `stop`, where a block begins.  False: not sound. */
MR_INLINE bool mr_lane_run(mr_lane *l, const mr_jpeg_mcu *mcu, const int16_t *stop)
{
    while (stop - l->out > MR_PASSED * MR_JPEG_BLOCK) {
        if (MR_RARE(!mr_lane_refill(l)))
            return false;
        bool found = true;
        for (int i = 0; i < MR_LOOKS && found; i++)
            found = mr_lane_look(l);
        if (MR_RARE(!found) && !mr_lane_step(l, mcu))
            return false;
    }
    while (l->out != stop) {
        if (MR_RARE(!mr_lane_refill(l)) || (MR_RARE(!mr_lane_look(l)) && !mr_lane_step(l, mcu)))
            return false;
    }
    return true;
}

/* Two lanes in lockstep: one works while the other waits for its table.  Unrolling the loop over lookups would need
 * more registers than there are. */
MR_INLINE bool mr_lanes_run(mr_lane *a, mr_lane *b, const mr_jpeg_mcu *mcu, const int16_t *stop_a,
                            const int16_t *stop_b)
{
    while (stop_a - a->out > MR_PASSED * MR_JPEG_BLOCK && stop_b - b->out > MR_PASSED * MR_JPEG_BLOCK) {
        if (MR_RARE(!mr_lane_refill(a)) || MR_RARE(!mr_lane_refill(b)))
            return false;
        for (int i = 0; i < MR_LOOKS; i++) {
            if (MR_RARE(!mr_lane_look(a))) {
                if (!mr_lane_step(a, mcu))
                    return false;
                break;
            }
            if (MR_RARE(!mr_lane_look(b))) {
                if (!mr_lane_step(b, mcu))
                    return false;
                break;
            }
        }
    }
    return mr_lane_run(a, mcu, stop_a) && mr_lane_run(b, mcu, stop_b);
}

/* Differences become DC coefficients. */
MR_INLINE bool mr_sum_dc(mr_jpeg_stream *s, const mr_jpeg_mcu *mcu, unsigned count, int16_t *blocks)
{
    for (; count; count--) {
        for (unsigned b = 0; b < mcu->blocks; b++, blocks += MR_JPEG_BLOCK) {
            int *dc = &s->dc[mcu->block[b].component];
            *dc += blocks[0];
            if (!mr_dc_fits(*dc))
                return false;
            blocks[0] = (int16_t)*dc;
            blocks[MR_JPEG_USED] &= MR_JPEG_END - 1;
        }
    }
    return true;
}

MR_INLINE bool mr_store_one(mr_jpeg_stream *s, const mr_jpeg_mcu *mcu, unsigned count, int16_t *blocks)
{
    mr_lane l = mr_lane_begin(s, mcu, blocks);
    if (!mr_lane_run(&l, mcu, blocks + (size_t)count * mcu->blocks * MR_JPEG_BLOCK))
        return false;
    mr_lane_leave(&l, s);
    return mr_sum_dc(s, mcu, count, blocks);
}

MR_INLINE bool mr_store_two(mr_jpeg_stream *const s[2], const mr_jpeg_mcu *mcu, unsigned count,
                            int16_t *const blocks[2])
{
    mr_lane a = mr_lane_begin(s[0], mcu, blocks[0]), b = mr_lane_begin(s[1], mcu, blocks[1]);
    size_t len = (size_t)count * mcu->blocks * MR_JPEG_BLOCK;
    if (!mr_lanes_run(&a, &b, mcu, blocks[0] + len, blocks[1] + len))
        return false;
    mr_lane_leave(&a, s[0]);
    mr_lane_leave(&b, s[1]);
    return mr_sum_dc(s[0], mcu, count, blocks[0]) && mr_sum_dc(s[1], mcu, count, blocks[1]);
}

#endif

/* jpeg_entropy.cl - the coefficients of one part of a scan, from one seek entry to the next, by one work item.
 * Invariant: whatever the bytes are, only the image's own bytes are read and only its own blocks written; a part that
 * does not end at its second entry, to the bit and with its predictors, fails its image. Source: ITU-T T.81, annex
 * F.2.2. */

/* The order of coefficients in a block. */
MR_CONSTANT u8 mr_jpeg_order[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                    12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/* Reads words of the coded bytes.  After FF a 00 is left out; at any other byte, or at the end of the bytes, the stream
 * ends: then zeros follow, which may be looked at but not used. */
typedef struct mr_bits {
    MR_GLOBAL const u32 *words;
    u64 next, count; /* the word to be read next; how many there are */
    u64 stop;        /* where it ended: byte */
    u64 ahead;       /* bits, from the high end */
    u32 bits, spare; /* how many, and how many of them are the zeros */
    u32 skip, ended; /* the next byte is a 00 to be left out */
} mr_bits;

MR_FN u32 mr_bits_word(const mr_bits *s, u64 i)
{
    return i < s->count ? MR_SWAP32(s->words[i]) : 0;
}

MR_FN u32 mr_bits_byte(const mr_bits *s, u64 i)
{
    return mr_bits_word(s, i >> 2) >> (24 - 8 * (u32)(i & 3)) & 0xFF;
}

/* Byte i of the file, which is in the word to be read next. */
MR_FN void mr_bits_take(mr_bits *s, u64 i)
{
    u32 b = mr_bits_byte(s, i);
    if (s->ended)
        return;
    if (s->skip) {
        s->skip = 0;
        return;
    }
    if (b == 0xFF && mr_bits_byte(s, i + 1) != 0) {
        s->ended = 1;
        s->stop = i;
        return;
    }
    s->skip = b == 0xFF;
    s->ahead |= (u64)b << (56 - s->bits);
    s->bits += 8;
}

MR_FN void mr_bits_read(mr_bits *s, u32 from)
{
    u64 at = s->next * 4;
    if (!s->ended && s->next >= s->count) {
        s->ended = 1;
        s->stop = at;
    }
    for (u32 i = from; i < 4; i++)
        mr_bits_take(s, at + i);
    s->next += !s->ended;
}

/* At least 32 bits. */
MR_FN void mr_bits_fill(mr_bits *s)
{
    while (s->bits < 32) {
        u32 w = mr_bits_word(s, s->next), other = ~w;
        if (!s->ended && !s->skip && s->next < s->count && !((other - 0x01010101U) & w & 0x80808080U)) {
            s->ahead |= (u64)w << (32 - s->bits);
            s->bits += 32;
            s->next++;
        } else
            mr_bits_read(s, 0);
        if (s->ended && s->bits < 32) {
            s->spare += 32 - s->bits;
            s->bits = 32;
        }
    }
}

MR_FN void mr_bits_open(mr_bits *s, u64 from)
{
    s->next = from >> 5;
    s->stop = 0;
    s->ahead = 0;
    s->bits = s->spare = s->skip = s->ended = 0;
    mr_bits_read(s, (u32)(from >> 3) & 3);
    mr_bits_fill(s);
    s->ahead <<= from & 7;
    s->bits -= (u32)from & 7;
}

MR_FN void mr_bits_drop(mr_bits *s, u32 count)
{
    s->ahead <<= count;
    s->bits -= count;
}

/* Bits of the file before the next one, 00s after FF included. */
MR_FN u64 mr_bits_place(const mr_bits *s)
{
    u64 p = s->ended ? s->stop : s->next * 4 + s->skip;
    u32 rest = s->bits > s->spare ? s->bits - s->spare : 0;
    for (u32 i = 0; i < (rest + 7) / 8 && p; i++) {
        u32 stuffed = p > 1 && mr_bits_byte(s, p - 1) == 0 && mr_bits_byte(s, p - 2) == 0xFF;
        p -= 1 + stuffed;
    }
    return p * 8 + (8 - rest % 8) % 8;
}

/* Bits before the byte after this marker, which comes next; 0: it does not. */
MR_FN u64 mr_bits_past_marker(const mr_bits *s, u32 marker)
{
    u64 place = mr_bits_place(s), at = (place + 7) >> 3;
    at += place % 8 && mr_bits_byte(s, place >> 3) == 0xFF; /* its 00 */
    return mr_bits_byte(s, at) == 0xFF && mr_bits_byte(s, at + 1) == marker ? (at + 2) * 8 : 0;
}

typedef struct mr_symbol {
    u32 length, size, run; /* length 0: no such code */
} mr_symbol;

MR_FN mr_symbol mr_jpeg_symbol(MR_GLOBAL const mr_jpeg_lut *t, u64 ahead)
{
    u32 e = t->first[ahead >> (64 - MR_LUT_BITS)], top = (u32)(ahead >> 48), n;
    mr_symbol found;
    found.length = e & 31;
    found.size = e >> 5 & 15;
    found.run = e >> 9;
    if (found.length)
        return found;
    for (n = MR_LUT_BITS + 1; n <= 16 && top >= t->limit[n]; n++)
        ;
    if (n <= 16) {
        u32 v = t->values[((i32)(top >> (16 - n)) + t->offset[n]) & 255];
        found.length = n;
        found.size = v & 15;
        found.run = v >> 4;
    }
    return found;
}

/* The next `size` bits as a number; those that begin with 0 are negative. */
MR_FN i32 mr_jpeg_value(u64 ahead, u32 size)
{
    i32 value = size ? (i32)(ahead >> (64 - size)) : 0;
    return size && !(ahead >> 63) ? value + 1 - (1 << size) : value;
}

/* One block into out, if not 0.  Returns 0 if it is not sound.  *steps: symbols so far. */
MR_FN u32 mr_jpeg_block(mr_bits *s, MR_GLOBAL const mr_jpeg_lut *dct, MR_GLOBAL const mr_jpeg_lut *act, i32 *dc,
                        MR_GLOBAL i16 *out, u32 *steps)
{
    u32 k = 0;
    while (k < 64) {
        ++*steps;
        mr_bits_fill(s);
        mr_symbol y = mr_jpeg_symbol(k ? act : dct, s->ahead);
        i32 value = mr_jpeg_value(s->ahead << y.length, y.size);
        if (!y.length || y.length + y.size + s->spare > s->bits)
            return 0;
        mr_bits_drop(s, y.length + y.size);
        if (k == 0) {
            *dc += value;
            value = *dc;
        } else if (y.size) {
            k += y.run;
            if (k > 63)
                return 0;
        } else {
            k = y.run == 15 ? k + 16 : 64;
            if (k > 64)
                return 0;
            continue;
        }
        if (out)
            out[mr_jpeg_order[k]] = (i16)value;
        k++;
    }
    return 1;
}

/* Whether the part ends where and as it should. */
MR_FN u32 mr_jpeg_arrived(const mr_bits *s, MR_GLOBAL const mr_jpeg_part *p, const i32 *dc)
{
    if (dc[0] != p->dc_end[0] || dc[1] != p->dc_end[1] || dc[2] != p->dc_end[2])
        return 0;
    return (p->marker ? mr_bits_past_marker(s, p->marker) : mr_bits_place(s)) == p->end;
}

MR_FN u32 mr_jpeg_part_run(MR_GLOBAL const u8 *bytes, MR_GLOBAL const mr_jpeg_image *im,
                           MR_GLOBAL const mr_jpeg_part *p, MR_GLOBAL const mr_jpeg_lut *luts, MR_GLOBAL i16 *coef,
                           u32 *steps)
{
    mr_bits s;
    i32 dc[3] = {p->dc[0], p->dc[1], p->dc[2]};
    u32 number = p->y * im->wide + p->x, to_go = im->restart ? im->restart - number % im->restart : 0xFFFFFFFFU;
    u32 across = im->mcu_right - im->mcu_left;
    s.words = (MR_GLOBAL const u32 *)(bytes + im->bytes);
    s.count = im->bytes_len / 4;
    mr_bits_open(&s, p->at);
    for (u32 i = 0; i < p->mcus; i++, number++, to_go--) {
        u32 x = p->x + i, kept = x >= im->mcu_left && x < im->mcu_right;
        u64 first = im->coef + ((u64)(p->y - im->mcu_top) * across + (x - im->mcu_left)) * im->blocks;
        if (to_go == 0) {
            u64 at = mr_bits_past_marker(&s, 0xD0 + ((number / im->restart - 1) & 7));
            if (!at)
                return 0;
            mr_bits_open(&s, at);
            dc[0] = dc[1] = dc[2] = 0;
            to_go = im->restart;
        }
        for (u32 b = 0; b < im->blocks; b++) {
            MR_GLOBAL const mr_jpeg_lut *dct = luts + im->table[b][0], *act = luts + im->table[b][1];
            if (!mr_jpeg_block(&s, dct, act, &dc[im->component[b]], kept ? coef + (first + b) * 64 : 0, steps))
                return 0;
        }
    }
    return mr_jpeg_arrived(&s, p, dc);
}

/* Item: part.  coef must be zeros. */
MR_KERNEL(mr_jpeg_entropy, 64)
(MR_SPOT MR_TENSOR(const u8, bytes), MR_TENSOR(const u8, images), MR_TENSOR(const u8, parts),
 u32 count, MR_TENSOR(const u8, luts), MR_TENSOR(i16, coef), MR_TENSOR(u32, failed))
{
    u32 i = MR_ITEM(), steps = 0; /* which only the host looks at */
    MR_START(bytes);
    MR_START(coef);
    MR_START(failed);
    if (i >= count)
        return;
    MR_GLOBAL const mr_jpeg_part *p = MR_ARRAY(mr_jpeg_part, parts, i);
    if (!mr_jpeg_part_run(bytes, MR_ARRAY(mr_jpeg_image, images, p->image), p, MR_ARRAY(mr_jpeg_lut, luts, 0), coef,
                          &steps))
        failed[p->image] = 1; /* all that write it write the same */
}

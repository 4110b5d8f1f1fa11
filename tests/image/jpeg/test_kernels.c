/* test_kernels.c - every set of inner loops that this machine runs gives the bytes of plain C.
 * Covers image/jpeg/avx2.c, image/jpeg/avx512.c, image/jpeg/neon.c, image/jpeg/plain.c. */
#include <stdlib.h>
#include <string.h>

#include "image/jpeg/kernels.h"
#include "tests/support/support.h"

enum { WIDTH = 300, LEAD = 32, TIMES = 400 };

static const mr_jpeg_kernels *set; /* that is tested */

static void bytes_of_a_scan(void **state)
{
    mr_random rnd = support_random();
    uint8_t in[WIDTH], a[WIDTH + 32], b[WIDTH + 32];
    (void)state;
    for (int i = 0; i < 20000; i++) {
        size_t len = mr_random_below(&rnd, WIDTH + 1);
        mr_random_bytes(&rnd, in, len);
        for (uint64_t n = mr_random_below(&rnd, 12); n && len > 1; n--) {
            size_t at = mr_random_below(&rnd, len - 1);
            in[at] = 0xff;
            in[at + 1] = mr_random_below(&rnd, 20) ? 0 : 0xd3;
        }
        uint8_t *exact = malloc(len ? len : 1); /* so that a sanitizer sees one byte too far */
        assert_non_null(exact);
        memcpy(exact, in, len);
        mr_jpeg_unstuffed p = mr_jpeg_plain.unstuff(exact, len, a), q = set->unstuff(exact, len, b);
        assert_int_equal(p.taken, q.taken);
        assert_int_equal(p.given, q.given);
        assert_memory_equal(a, b, p.given);
        assert_true(p.taken == len || (exact[p.taken] == 0xff && (p.taken + 1 == len || exact[p.taken + 1])));
        free(exact);
    }
}

typedef struct bit_writer {
    uint8_t *out;
    size_t at, end; /* bits */
} bit_writer;

static void put(bit_writer *w, uint32_t v, unsigned bits)
{
    while (bits-- && w->at < w->end) {
        w->out[w->at / 8] |= (uint8_t)((v >> bits & 1) << (7 - w->at % 8));
        w->at++;
    }
}

/* Three runs of 16, one of 15 and again one of 16 in seven bits, at place 52 of a block: they pass its end by so much
 * that the sum could be taken for an end of block. */
static void blocks_that_overflow(void **state)
{
    static const uint8_t dc_codes[17] = {1}, ac_codes[20] = {1, 1, 1, 1, [16] = 0xF0, 0xE1, 0x01, 0x00};
    static mr_jpeg_dc dc;
    static mr_jpeg_ac ac;
    (void)state;
    assert_true(mr_jpeg_dc_make(&dc, dc_codes) && mr_jpeg_ac_make(&ac, ac_codes));
    mr_jpeg_mcu mcu = {0};
    mr_jpeg_mcu_add(&mcu, &dc, &ac, 0);
    mr_jpeg_mcu_pair(&mcu);
    mr_jpeg_mcu_skip(&mcu);
    for (int good = 0; good < 2; good++) {
        uint8_t bytes[64 + MR_JPEG_PADDING] = {0};
        bit_writer w = {.out = bytes, .end = sizeof bytes * 8};
        put(&w, 0, 1);
        for (int i = 0; i < 3; i++)
            put(&w, 0x6ed, 11); /* an entry of the index: 17 places */
        put(&w, good ? 0xe : 0xae, good ? 4 : 11);
        _Alignas(32) int16_t blocks[2][MR_JPEG_BLOCK] = {{0}};
        const mr_jpeg_stream begin = {.end = bytes + 64, .next = bytes};
        mr_jpeg_stream a = begin, b = begin, c = begin, d = begin, *two[2] = {&a, &b};
        assert_int_equal((set->skip)(&c, &mcu, 1), good);
        assert_int_equal(set->store(&d, &mcu, 1, blocks[0]), good);
        assert_int_equal(set->skip_two(two, &mcu, 1), good);
        a = b = begin;
        memset(blocks, 0, sizeof blocks);
        assert_int_equal(set->store_two(two, &mcu, 1, (int16_t *const[]){blocks[0], blocks[1]}), good);
        assert_true(!good || (blocks[0][MR_JPEG_USED] == 52 && blocks[1][MR_JPEG_USED] == 52));
    }
}

/* A random complete set of codes but for the one of all ones: leaves of a tree that are split at random. */
static void draw_codes(mr_random *rnd, uint8_t counts[16 + 256], size_t most, bool ac)
{
    unsigned depth[257] = {0};
    size_t leaves = 1, wanted = 2 + mr_random_below(rnd, most - 1), deepest = 0;
    while (leaves < wanted + 1) {
        size_t i = mr_random_below(rnd, leaves);
        if (depth[i] < 16)
            depth[leaves++] = ++depth[i];
    }
    memset(counts, 0, 16);
    for (size_t i = 0; i < leaves; i++) {
        counts[depth[i] - 1]++;
        deepest = depth[i] > depth[deepest] ? i : deepest;
    }
    counts[depth[deepest] - 1]--;
    for (size_t i = 0; i < wanted; i++) /* short values are common in pictures, and long ones are tried, too */
        counts[16 + i] = ac ? (uint8_t)(mr_random_below(rnd, 16) << 4 | mr_random_below(rnd, i % 2 ? 16 : 4))
                            : (uint8_t)mr_random_below(rnd, 12);
    if (ac)
        counts[16 + mr_random_below(rnd, wanted)] = 0;
}

/* The place of coefficient k in a block, along its diagonals (ITU T.81, figure A.6); the library hides its table. */
static unsigned zigzag(unsigned k)
{
    unsigned d = 0, seen = 0, len = 1; /* the diagonal, coefficients before it, and in it */
    for (; seen + len <= k; d++, len = d < 8 ? d + 1 : 15 - d)
        seen += len;
    unsigned low = d < 8 ? 0 : d - 7, i = low + k - seen; /* the row where an odd diagonal is, the column of an even */
    return d % 2 ? i * 8 + d - i : (d - i) * 8 + i;
}

/* A random symbol and as many random bits as its size says; the symbol, and the value as ITU T.81, table F.1, has
 * it. */
static unsigned put_symbol(mr_random *rnd, bit_writer *w, const uint8_t *counts, unsigned most_run, int *value)
{
    unsigned total = 0, code = 0, place = 0, wanted, symbol;
    for (int n = 0; n < 16; n++)
        total += counts[n];
    do
        wanted = (unsigned)mr_random_below(rnd, total);
    while ((symbol = counts[16 + wanted]) && symbol >> 4 > most_run);
    for (unsigned n = 1; n <= 16; n++, code <<= 1)
        for (unsigned i = 0; i < counts[n - 1]; i++, code++)
            if (place++ == wanted)
                put(w, code, n);
    unsigned size = symbol & 15, bits = (unsigned)mr_random_below(rnd, 1u << size);
    put(w, bits, size);
    *value = size && !(bits >> (size - 1)) ? (int)bits + 1 - (1 << size) : (int)bits;
    return symbol;
}

/* `block`, zero at first, gets the coefficients. */
static void put_block(mr_random *rnd, bit_writer *w, const uint8_t *dc, const uint8_t *ac, int *predictor,
                      int16_t *block)
{
    int value;
    put_symbol(rnd, w, dc, 15, &value);
    *predictor += value;
    block[0] = (int16_t)*predictor;
    for (unsigned k = 1; k < 64;) {
        unsigned symbol = put_symbol(rnd, w, ac, 63 - k, &value);
        if (symbol & 15)
            block[zigzag(k + (symbol >> 4))] = (int16_t)value;
        k += symbol & 15 || symbol == 0xF0 ? (symbol >> 4) + 1 : 64;
    }
}

/* Bits of the segment that were not taken; what was taken after its end counts as a failure. */
static int64_t left_of(const mr_jpeg_stream *s, bool taken)
{
    int64_t bits = (int64_t)(s->end - s->next) * 8 + s->bits;
    return taken && bits >= 0 ? bits : -1;
}

/* Random symbols of random tables: without damage all ways read what was written, with damage all say the same. */
static void blocks_of_any_kind(void **state)
{
    enum { MCUS = 24, BYTES = 1 << 16, BLOCKS = MCUS * MR_JPEG_BLOCKS };
    mr_random rnd = support_random();
    static _Alignas(32) int16_t blocks[4][BLOCKS * MR_JPEG_BLOCK];
    static int16_t written[2][BLOCKS][64];
    static uint8_t bytes[2][BYTES + MR_JPEG_PADDING];
    static mr_jpeg_dc dc[2];
    static mr_jpeg_ac ac[2];
    unsigned good = 0, bad = 0;
    (void)state;
    for (int i = 0; i < 3000; i++) {
        uint8_t dcs[2][16 + 256], acs[2][16 + 256];
        mr_jpeg_mcu mcu = {0};
        for (int t = 0; t < 2; t++) {
            draw_codes(&rnd, dcs[t], 12, false);
            draw_codes(&rnd, acs[t], 200, true);
            assert_true(mr_jpeg_dc_make(&dc[t], dcs[t]) && mr_jpeg_ac_make(&ac[t], acs[t]));
        }
        for (uint64_t b = 1 + mr_random_below(&rnd, MR_JPEG_BLOCKS); b; b--)
            mr_jpeg_mcu_add(&mcu, &dc[b % 2], &ac[b / 2 % 2], (unsigned)b % MR_JPEG_COMPONENTS);
        mr_jpeg_mcu_pair(&mcu);
        mr_jpeg_mcu_skip(&mcu);
        unsigned count = 1 + (unsigned)mr_random_below(&rnd, MCUS);
        size_t len = (size_t)count * mcu.blocks * MR_JPEG_BLOCK * sizeof blocks[0][0];
        mr_jpeg_stream begin[2], a[2], b[2], skipped;
        for (int t = 0; t < 2; t++) {
            bit_writer w = {.out = bytes[t], .end = BYTES * 8};
            memset(bytes[t], 0, sizeof bytes[t]);
            int predictors[MR_JPEG_COMPONENTS] = {0};
            memset(written[t], 0, sizeof written[t]);
            for (unsigned n = 0; n < count * mcu.blocks; n++) {
                unsigned at = n % mcu.blocks;
                put_block(&rnd, &w, dcs[mcu.block[at].dc - dc], acs[mcu.block[at].ac - ac],
                          &predictors[mcu.block[at].component], written[t][n]);
            }
            size_t given = (w.at + 7) / 8;
            if (i % 3 == 1)
                bytes[t][mr_random_below(&rnd, given)] ^= (uint8_t)(1 << mr_random_below(&rnd, 8));
            if (i % 3 == 2)
                given = mr_random_below(&rnd, given);
            memset(bytes[t] + given, 0, MR_JPEG_PADDING);
            begin[t] = a[t] = b[t] = (mr_jpeg_stream){.end = bytes[t] + given, .next = bytes[t]};
        }
        memset(blocks, 0, sizeof blocks);
        int64_t left[2];
        for (int t = 0; t < 2; t++) {
            bool taken = mr_jpeg_plain.store(&a[t], &mcu, count, blocks[t]);
            left[t] = left_of(&a[t], taken);
            taken = set->store(&b[t], &mcu, count, blocks[2 + t]);
            assert_int_equal(left_of(&b[t], taken), left[t]);
            skipped = begin[t];
            taken = (set->skip)(&skipped, &mcu, count);
            assert_int_equal(left_of(&skipped, taken), left[t]);
            if (left[t] < 0)
                continue;
            assert_memory_equal(blocks[t], blocks[2 + t], len);
            for (unsigned n = 0; i % 3 == 0 && n < count * mcu.blocks; n++)
                assert_memory_equal(&blocks[t][(size_t)n * MR_JPEG_BLOCK], written[t][n], sizeof written[t][n]);
            assert_memory_equal(a[t].dc, b[t].dc, sizeof a[t].dc);
            assert_memory_equal(a[t].dc, skipped.dc, sizeof a[t].dc);
        }
        memset(blocks[2], 0, sizeof blocks[2]);
        memset(blocks[3], 0, sizeof blocks[3]);
        b[0] = begin[0];
        b[1] = begin[1];
        mr_jpeg_stream *const two[2] = {&b[0], &b[1]};
        bool both = set->store_two(two, &mcu, count, (int16_t *const[]){blocks[2], blocks[3]});
        both = left_of(two[0], both) >= 0 && left_of(two[1], both) >= 0;
        assert_int_equal(both, left[0] >= 0 && left[1] >= 0);
        for (int t = 0; both && t < 2; t++) {
            assert_memory_equal(blocks[t], blocks[2 + t], len);
            assert_int_equal(left_of(&b[t], true), left[t]);
        }
        *(both ? &good : &bad) += 1;
    }
    assert_true(good > 100 && bad > 100);
}

/* From one coefficient to all, small numbers and those that overflow; `like`: 0 a mean alone, 1 few, else any. */
static void draw_block(mr_random *rnd, int16_t *block, unsigned like, unsigned bits)
{
    unsigned used = like == 0 ? 1 : 1 + (unsigned)mr_random_below(rnd, like == 1 ? 10 : 64);
    memset(block, 0, MR_JPEG_BLOCK * sizeof *block);
    for (unsigned k = 0; k < used; k++)
        if (mr_random_below(rnd, 3) || k == 0)
            block[zigzag(k)] = (int16_t)((int)mr_random_below(rnd, 1u << bits) - (1 << (bits - 1)));
    block[MR_JPEG_USED] = (int16_t)used;
}

static void inverse_dct(void **state)
{
    enum { STRIDE = 8 * MR_JPEG_IDCT_MAX + MR_JPEG_SLACK + 8, LEN = MR_JPEG_IDCT_MAX + 1 };
    mr_random rnd = support_random();
    static _Alignas(32) int16_t one[LEN][MR_JPEG_BLOCK], other[LEN][MR_JPEG_BLOCK];
    static uint8_t a[8][STRIDE], b[8][STRIDE];
    int16_t quant[64], *ones[LEN], *others[LEN];
    (void)state;
    for (int i = 0; i < 10000; i++) {
        unsigned count = 1 + (unsigned)mr_random_below(&rnd, MR_JPEG_IDCT_MAX), bits = 1 + (unsigned)i % 16;
        unsigned most = i % 3 == 0 ? 65536 : i % 3 == 1 ? 256 : 8, like = (unsigned)mr_random_below(&rnd, 5);
        for (unsigned k = 0; k < 64; k++)
            quant[k] = (int16_t)(uint16_t)mr_random_below(&rnd, most);
        for (unsigned k = 0; k <= count; k++) {
            draw_block(&rnd, one[k], like < 3 ? like : (unsigned)mr_random_below(&rnd, 3), bits);
            ones[k] = one[k];
            others[k] = other[k];
        }
        memcpy(other, one, sizeof one);
        memset(a, 7, sizeof a);
        memset(b, 7, sizeof b);
        mr_jpeg_plain.idct(ones, count, quant, a[0], STRIDE);
        set->idct(others, count, quant, b[0], STRIDE);
        for (size_t y = 0, width = 8 * (size_t)count; y < 8; y++) {
            assert_memory_equal(a[y], b[y], width);
            assert_memory_equal(a[y] + width + MR_JPEG_SLACK, b[y] + width + MR_JPEG_SLACK,
                                STRIDE - width - MR_JPEG_SLACK);
        }
        for (unsigned k = 0; k < 64 * count; k++)
            assert_true(one[k / 64][k % 64] == 0 && other[k / 64][k % 64] == 0);
        assert_memory_equal(one[count], other[count], sizeof one[count]); /* nobody's */
    }
}

static void upsampling_and_colour(void **state)
{
    mr_random rnd = support_random();
    uint8_t rows[3][LEAD + WIDTH + MR_JPEG_SLACK], a[3 * WIDTH + MR_JPEG_SLACK], b[3 * WIDTH + MR_JPEG_SLACK];
    (void)state;
    for (int i = 0; i < TIMES; i++) {
        size_t count = 1 + mr_random_below(&rnd, WIDTH - 1);
        for (int k = 0; k < 3; k++) {
            mr_random_bytes(&rnd, rows[k], sizeof rows[k]);
            for (size_t n = 0; n < WIDTH / 4; n++)
                rows[k][mr_random_below(&rnd, sizeof rows[k])] = i & 1 ? 255 : 0;
        }
        const uint8_t *y = rows[0] + LEAD, *cb = rows[1] + LEAD, *cr = rows[2] + LEAD;
        mr_jpeg_plain.across(y, count, a);
        set->across(y, count, b);
        assert_memory_equal(a, b, 2 * count);
        mr_jpeg_plain.across_between(y, cb, count, a);
        set->across_between(y, cb, count, b);
        assert_memory_equal(a, b, 2 * count);
        for (unsigned bias = 1; bias <= 2; bias++) {
            mr_jpeg_plain.between(y, cr, bias, count, a);
            set->between(y, cr, bias, count, b);
            assert_memory_equal(a, b, count);
        }
        memset(a, 7, sizeof a);
        memset(b, 7, sizeof b);
        mr_jpeg_plain.rgb(y, cb, cr, count, a);
        set->rgb(y, cb, cr, count, b);
        assert_memory_equal(a, b, sizeof a); /* and nothing after it */
    }
}

/* All colours of one luma, at both ends of each sum. */
static void every_chroma(void **state)
{
    uint8_t y[256 + MR_JPEG_SLACK], cb[256 + MR_JPEG_SLACK], cr[256 + MR_JPEG_SLACK], a[768], b[768];
    (void)state;
    for (int luma = 0; luma < 256; luma += 15) {
        for (int blue = 0; blue < 256; blue++) {
            for (int i = 0; i < 256 + MR_JPEG_SLACK; i++) {
                y[i] = (uint8_t)luma;
                cb[i] = (uint8_t)blue;
                cr[i] = (uint8_t)i;
            }
            mr_jpeg_plain.rgb(y, cb, cr, 256, a);
            set->rgb(y, cb, cr, 256, b);
            assert_memory_equal(a, b, sizeof a);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_a_scan),       cmocka_unit_test(blocks_that_overflow),
        cmocka_unit_test(blocks_of_any_kind),    cmocka_unit_test(inverse_dct),
        cmocka_unit_test(upsampling_and_colour), cmocka_unit_test(every_chroma),
    };
    int failed = 0;
    for (const mr_jpeg_kernels *const *k = mr_jpeg_kernels_all; *k; k++) {
        set = *k;
        if (mr_processor_has(set->needs))
            failed += cmocka_run_group_tests_name(set->name, tests, NULL, NULL);
    }
    return failed;
}

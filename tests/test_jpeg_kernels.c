/* test_jpeg_kernels.c - each inner loop that this machine runs best gives the bytes of plain C. */
#include <stdlib.h>
#include <string.h>

#include "jpeg_kernels.h"
#include "support.h"

enum { WIDTH = 300, LEAD = 32, TIMES = 400 };

static void bytes_of_a_scan(void **state)
{
    mr_random rnd = support_random();
    const mr_jpeg_kernels *best = mr_jpeg_kernels_best();
    uint8_t in[WIDTH], a[WIDTH + 32], b[WIDTH + 32];
    (void)state;
    for (int i = 0; i < 20000; i++) {
        size_t len = mr_random_below(&rnd, WIDTH + 1), at = 0;
        mr_random_bytes(&rnd, in, len);
        for (uint64_t n = mr_random_below(&rnd, 12); n && len > 1; n--) {
            at = mr_random_below(&rnd, len - 1);
            in[at] = 0xff;
            in[at + 1] = mr_random_below(&rnd, 20) ? 0 : 0xd3;
        }
        uint8_t *exact = malloc(len ? len : 1);         /* so that a sanitizer sees one byte too far */
        assert_non_null(exact);
        memcpy(exact, in, len);
        mr_jpeg_unstuffed p = mr_jpeg_plain.unstuff(exact, len, a), q = best->unstuff(exact, len, b);
        assert_int_equal(p.taken, q.taken);
        assert_int_equal(p.given, q.given);
        assert_memory_equal(a, b, p.given);
        assert_true(p.taken == len || (exact[p.taken] == 0xff && (p.taken + 1 == len || exact[p.taken + 1])));
        free(exact);
    }
}

static void put_bits(uint8_t *out, size_t *at, const char *bits)
{
    for (; *bits; bits++, (*at)++)
        out[*at / 8] |= (uint8_t)((*bits == '1') << (7 - *at % 8));
}

/* Three runs of 16, one of 15 and again one of 16 in seven bits, at place 52 of a block: they pass its end by so much
 * that the sum could be taken for an end of block. */
static void blocks_that_overflow(void **state)
{
    static const uint8_t dc_codes[17] = {1}, ac_codes[20] = {1, 1, 1, 1, [16] = 0xF0, 0xE1, 0x01, 0x00};
    static mr_jpeg_dc dc;
    static mr_jpeg_ac ac;
    const mr_jpeg_kernels *sets[] = {&mr_jpeg_plain, mr_jpeg_kernels_best()};
    (void)state;
    assert_true(mr_jpeg_dc_make(&dc, dc_codes) && mr_jpeg_ac_make(&ac, ac_codes));
    const mr_jpeg_mcu mcu = {.blocks = 1, .block = {{&dc, &ac, 0}}};
    for (int good = 0; good < 2; good++) {
        uint8_t bytes[64 + MR_JPEG_BEHIND] = {0}, used[2][1];
        size_t bits = 0;
        put_bits(bytes, &bits, "0");
        for (int i = 0; i < 3; i++)
            put_bits(bytes, &bits, "11011101101");      /* an entry of the index: 17 places */
        put_bits(bytes, &bits, good ? "1110" : "00010101110");
        for (int i = 0; i < 2; i++) {
            _Alignas(32) int16_t blocks[2][MR_JPEG_BLOCK] = {{0}};
            const mr_jpeg_stream begin = {.end = bytes + 64, .next = bytes};
            mr_jpeg_stream a = begin, b = begin, c = begin, d = begin, *two[2] = {&a, &b};
            assert_int_equal((sets[i]->skip)(&c, &mcu, 1), good);
            assert_int_equal(sets[i]->store(&d, &mcu, 1, blocks[0], used[0]), good);
            assert_int_equal(sets[i]->skip_two(two, &mcu, 1), good);
            a = b = begin;
            memset(blocks, 0, sizeof blocks);
            assert_int_equal(sets[i]->store_two(two, &mcu, 1, (int16_t *const[]){blocks[0], blocks[1]},
                                                (uint8_t *const[]){used[0], used[1]}), good);
            assert_true(!good || (used[0][0] == 52 && used[1][0] == 52));
        }
    }
}

/* From blocks with one coefficient to full ones, from small numbers to those that overflow. */
static void inverse_dct(void **state)
{
    mr_random rnd = support_random();
    const mr_jpeg_kernels *best = mr_jpeg_kernels_best();
    _Alignas(32) int16_t one[2][MR_JPEG_BLOCK], other[2][MR_JPEG_BLOCK];
    int16_t quant[64];
    uint8_t a[2][8 * 24], b[2][8 * 24];
    (void)state;
    for (int i = 0; i < 60000; i++) {
        unsigned used = 1 + (unsigned)mr_random_below(&rnd, i % 2 ? 64 : 12), bits = 1 + (unsigned)i % 16;
        unsigned most = i % 3 == 0 ? 65536 : i % 3 == 1 ? 256 : 8;
        memset(one, 0, sizeof one);
        for (unsigned k = 0; k < 64; k++)
            quant[k] = (int16_t)(uint16_t)mr_random_below(&rnd, most);
        for (unsigned k = 0; k < used * 2; k++)
            if (mr_random_below(&rnd, 3) || k < 2)
                one[k & 1][mr_jpeg_zigzag[k / 2]] =
                    (int16_t)((int)mr_random_below(&rnd, 1u << bits) - (1 << (bits - 1)));
        memcpy(other, one, sizeof one);
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        mr_jpeg_plain.idct((int16_t *const[]){one[0], one[1]}, quant, used, (uint8_t *const[]){a[0], a[1]}, 24);
        best->idct((int16_t *const[]){other[0], other[1]}, quant, used, (uint8_t *const[]){b[0], b[1]}, 24);
        assert_memory_equal(a, b, sizeof a);
        for (unsigned k = 0; k < 128; k++)
            assert_true(one[k & 1][k / 2] == 0 && other[k & 1][k / 2] == 0);
    }
}

static void upsampling_and_colour(void **state)
{
    mr_random rnd = support_random();
    const mr_jpeg_kernels *best = mr_jpeg_kernels_best();
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
        best->across(y, count, b);
        assert_memory_equal(a, b, 2 * count);
        mr_jpeg_plain.across_between(y, cb, count, a);
        best->across_between(y, cb, count, b);
        assert_memory_equal(a, b, 2 * count);
        for (unsigned bias = 1; bias <= 2; bias++) {
            mr_jpeg_plain.between(y, cr, bias, count, a);
            best->between(y, cr, bias, count, b);
            assert_memory_equal(a, b, count);
        }
        memset(a, 7, sizeof a);
        memset(b, 7, sizeof b);
        mr_jpeg_plain.rgb(y, cb, cr, count, a);
        best->rgb(y, cb, cr, count, b);
        assert_memory_equal(a, b, sizeof a);            /* and nothing behind */
    }
}

/* All colours of one luma, at both ends of each sum. */
static void every_chroma(void **state)
{
    const mr_jpeg_kernels *best = mr_jpeg_kernels_best();
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
            best->rgb(y, cb, cr, 256, b);
            assert_memory_equal(a, b, sizeof a);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_a_scan),
        cmocka_unit_test(blocks_that_overflow),
        cmocka_unit_test(inverse_dct),
        cmocka_unit_test(upsampling_and_colour),
        cmocka_unit_test(every_chroma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

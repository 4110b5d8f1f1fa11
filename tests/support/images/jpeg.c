/* jpeg.c - writes the segments and draws the coefficients; see support/jpeg.h.
 * Source: ITU-T T.81, annexes B, C and F. */
#include "tests/support/images/jpeg.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "image/codec/jpeg_trap.h"
#include "tests/support/images/pixels.h"

enum { DC_SYMBOLS = 16, AC_SYMBOLS = 256, DC_RANGE = 30000 };

typedef struct codes {
    uint8_t counts[16], symbols[256];
    unsigned code[256], length[256]; /* by symbol */
} codes;

typedef struct writing {
    mr_random *r;
    const jpeg_coded *k;
    mr_buf out;
    codes dc, ac;
    uint32_t bits; /* the last `count` are not written yet */
    unsigned count;
} writing;

static void byte(writing *w, unsigned v)
{
    mr_buf_add(&w->out, &(uint8_t){(uint8_t)v}, 1);
}

static void two(writing *w, unsigned v)
{
    byte(w, v >> 8);
    byte(w, v);
}

static void segment(writing *w, unsigned marker, size_t len)
{
    two(w, 0xFF00 | marker);
    two(w, (unsigned)len + 2);
}

/* `ladder` codes of 1, 2, ... bits; the rest are of one length, so long that none is all ones. */
static void make_codes(mr_random *r, codes *c, unsigned symbols, unsigned ladder, unsigned rest_bits)
{
    unsigned code = 0, length = 0;
    *c = (codes){0};
    for (unsigned i = 0; i < symbols; i++)
        c->symbols[i] = (uint8_t)i;
    mr_random_shuffle(r, c->symbols, symbols, 1);
    for (unsigned i = 0; i < symbols; i++) {
        unsigned n = i < ladder ? i + 1 : ladder + rest_bits;
        code <<= n - length;
        length = n;
        c->counts[n - 1]++;
        c->code[c->symbols[i]] = code++;
        c->length[c->symbols[i]] = n;
    }
}

static void put_bits(writing *w, unsigned v, unsigned n)
{
    while (n--) {
        w->bits = w->bits << 1 | (v >> n & 1);
        if (++w->count < 8)
            continue;
        byte(w, w->bits & 0xFF);
        if ((w->bits & 0xFF) == 0xFF)
            byte(w, 0);
        w->count = 0;
    }
}

static void put_symbol(writing *w, const codes *c, unsigned symbol)
{
    put_bits(w, c->code[symbol], c->length[symbol]);
}

static void put_value(writing *w, int v, unsigned size)
{
    put_bits(w, (unsigned)(v < 0 ? v + (1 << size) - 1 : v), size);
}

static int draw_value(mr_random *r, unsigned size)
{
    int v = (int)mr_random_between(r, 1u << (size - 1), (1u << size) - 1);
    return mr_random_below(r, 2) ? v : -v;
}

static void put_dc(writing *w, int *last)
{
    unsigned size = (unsigned)mr_random_below(w->r, w->k->dc_bits + 1);
    int v = size ? draw_value(w->r, size) : 0;
    if (*last + v > DC_RANGE || *last + v < -DC_RANGE)
        v = -v;
    if (*last + v > DC_RANGE || *last + v < -DC_RANGE)
        size = 0, v = 0;
    *last += v;
    put_symbol(w, &w->dc, size);
    put_value(w, v, size);
}

static void put_ac(writing *w)
{
    for (unsigned k = 1; k < 64;) {
        if (mr_random_below(w->r, 100) >= w->k->density) {
            put_symbol(w, &w->ac, mr_random_below(w->r, 8) ? 0 : (unsigned)mr_random_below(w->r, 15) << 4);
            return;
        }
        if (k + 16 <= 64 && mr_random_below(w->r, 10) == 0) {
            put_symbol(w, &w->ac, 0xF0);
            k += 16;
            continue;
        }
        unsigned most = mr_random_below(w->r, 4) ? 1 : 15;
        unsigned run = (unsigned)mr_random_below(w->r, (63 - k < most ? 63 - k : most) + 1);
        unsigned size = 1 + (unsigned)mr_random_below(w->r, w->k->ac_bits);
        put_symbol(w, &w->ac, run << 4 | size);
        put_value(w, draw_value(w->r, size), size);
        k += run + 1;
    }
}

static void align(writing *w)
{
    if (w->count)
        put_bits(w, 0xFF, 8 - w->count);
}

static void put_scan(writing *w)
{
    const jpeg_coded *k = w->k;
    unsigned across = (k->width + 8 * k->h - 1) / (8 * k->h), down = (k->height + 8 * k->v - 1) / (8 * k->v);
    int last[3] = {0};
    for (unsigned i = 0; i < across * down; i++) {
        if (k->restart && i && i % k->restart == 0) {
            align(w);
            two(w, 0xFFD0 + (i / k->restart - 1) % 8);
            last[0] = last[1] = last[2] = 0;
        }
        for (unsigned c = 0; c < k->components; c++) {
            for (unsigned b = 0; b < (c ? 1 : k->h * k->v); b++) {
                put_dc(w, &last[c]);
                put_ac(w);
            }
        }
    }
    align(w);
}

static void put_codes(writing *w, unsigned place, const codes *c, size_t symbols)
{
    segment(w, 0xC4, 17 + symbols);
    byte(w, place);
    mr_buf_add(&w->out, c->counts, 16);
    mr_buf_add(&w->out, c->symbols, symbols);
}

static void put_header(writing *w)
{
    const jpeg_coded *k = w->k;
    bool wide = k->quant > 255;
    two(w, 0xFFD8);
    segment(w, 0xDB, 1 + (wide ? 128 : 64));
    byte(w, wide ? 0x10 : 0);
    for (int i = 0; i < 64; i++) {
        unsigned q = 1 + (unsigned)mr_random_below(w->r, k->quant);
        wide ? two(w, q) : byte(w, q);
    }
    segment(w, 0xC1, 6 + 3 * (size_t)k->components);
    byte(w, 8);
    two(w, k->height);
    two(w, k->width);
    byte(w, k->components);
    for (unsigned c = 0; c < k->components; c++) {
        byte(w, c + 1);
        byte(w, c ? 0x11 : k->h << 4 | k->v);
        byte(w, 0);
    }
    put_codes(w, 0x00, &w->dc, DC_SYMBOLS);
    put_codes(w, 0x10, &w->ac, AC_SYMBOLS);
    if (k->restart) {
        segment(w, 0xDD, 2);
        two(w, k->restart);
    }
    segment(w, 0xDA, 4 + 2 * (size_t)k->components);
    byte(w, k->components);
    for (unsigned c = 0; c < k->components; c++)
        two(w, (c + 1) << 8);
    byte(w, 0);
    two(w, 0x3F00);
}

picture jpeg_coded_make(mr_random *r, const jpeg_coded *k)
{
    writing w = {.r = r, .k = k};
    make_codes(r, &w.dc, DC_SYMBOLS, k->ladder, 4);
    make_codes(r, &w.ac, AC_SYMBOLS, k->ladder, 8);
    put_header(&w);
    put_scan(&w);
    two(&w, 0xFFD9);
    assert_false(w.out.failed);
    picture p = picture_copy(w.out.data, w.out.len);
    mr_buf_free(&w.out);
    return p;
}

/* ---- any of them ------------------------------------------------------------------------------------------------- */

const jpeg_sampling jpeg_samplings[JPEG_SAMPLINGS] = {
    {"4:4:4", 3, 1, 1}, {"4:2:2", 3, 2, 1},    {"4:2:0", 3, 2, 2},    {"4:4:0", 3, 1, 2},
    {"gray", 1, 1, 1},  {"gray 1x2", 1, 1, 2}, {"gray 2x2", 1, 2, 2},
};

picture jpeg_draw(mr_random *r, unsigned i)
{
    const jpeg_sampling *s = &jpeg_samplings[i % JPEG_SAMPLINGS];
    jpeg_make k = {.width = 5 + (unsigned)mr_random_below(r, 60),
                   .height = 1 + (unsigned)mr_random_below(r, 90),
                   .components = s->components,
                   .h = {s->h, 1, 1},
                   .v = {s->v, 1, 1},
                   .quality = 95,
                   .restart = i % 2 ? 0 : 1 + (unsigned)mr_random_below(r, 9)};
    jpeg_coded c = {.width = k.width,
                    .height = k.height,
                    .components = k.components,
                    .h = s->h,
                    .v = s->v,
                    .restart = k.restart,
                    .ladder = 1 + i % 8,
                    .dc_bits = 8,
                    .ac_bits = 8,
                    .density = 80,
                    .quant = 4};
    if (c.components == 1)
        c.h = c.v = 1;
    return i % 3 ? pixels_jpeg_make(r, &k) : jpeg_coded_make(r, &c);
}

void jpeg_damage(mr_random *r, picture *p)
{
    for (uint64_t n = 1 + mr_random_below(r, 3); n && p->len > 4; n--) {
        size_t at = p->len - 1 - mr_random_below(r, mr_random_below(r, 2) ? p->len : p->len / 3 + 1);
        switch (mr_random_below(r, 5)) {
        case 0:
            p->len = at;
            break;
        case 1:
            p->bytes[at] = (uint8_t)mr_random_u64(r);
            break;
        case 2:
            p->bytes[at] = 0xff;
            break;
        case 3:
            memmove(p->bytes + at, p->bytes + at + 1, p->len - at - 1), p->len--;
            break;
        default:
            p->bytes[at] ^= (uint8_t)(1 << mr_random_below(r, 8));
        }
    }
}

typedef struct taking {
    mr_jpeg_trap trap;
    struct jpeg_decompress_struct cinfo;
    uint8_t *row;
} taking;

static void take_all(taking *t, picture p)
{
    struct jpeg_decompress_struct *c = &t->cinfo;
    if (setjmp(t->trap.out))
        return;
    mr_jpeg_trap_create(&t->trap, c);
    jpeg_mem_src(c, p.bytes, p.len);
    jpeg_read_header(c, TRUE);
    jpeg_start_decompress(c);
    t->row = malloc((size_t)c->output_width * (size_t)c->output_components);
    assert_non_null(t->row);
    while (c->output_scanline < c->output_height)
        jpeg_read_scanlines(c, &t->row, 1);
    jpeg_finish_decompress(c);
}

bool jpeg_taken_by_libjpeg(picture p)
{
    taking t = {.row = NULL};
    mr_error err;
    mr_image_limits limits = mr_image_limits_fill(NULL);
    mr_jpeg_trap_set(&t.trap, &t.cinfo, &limits, &err);
    take_all(&t, p);
    jpeg_destroy_decompress(&t.cinfo);
    free(t.row);
    return t.trap.status == MR_OK && !t.trap.oddities;
}

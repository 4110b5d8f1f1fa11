/* parse.c - reads marker segments; see parse.h.
 * Invariant: a length is compared with what is left before any byte after it is read.
 * Source: ITU-T T.81, annex B; libjpeg-turbo's warnings and errors are in its jdmarker.c, jdinput.c, jdapimin.c. */
#include "image/jpeg/parse.h"

#include <string.h>

enum {
    SOF0 = 0xC0,
    SOF1 = 0xC1,
    DHT = 0xC4,
    SOI = 0xD8,
    SOS = 0xDA,
    DQT = 0xDB,
    DRI = 0xDD,
    APP0 = 0xE0,
    APP14 = 0xEE,
    APP15 = 0xEF,
    COM = 0xFE,
    MAX_SIDE = 65500, /* libjpeg-turbo's */
};

#define Z16 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64
_Alignas(MR_JPEG_ZIGZAG) const uint8_t mr_jpeg_zigzag[MR_JPEG_ZIGZAG] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18,  11,  4,   5,   12,  19,  26,  33,  40,  48,  41,  34,  27, 20,
    13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43,  36,  29,  22,  15,  23,  30,  37,  44,  51,  58,  59,  52, 45,
    38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63, Z16, Z16, Z16, Z16, Z16, Z16, Z16, Z16, Z16, Z16, Z16, Z16,
};

typedef struct segment {
    const uint8_t *data;
    size_t len;
} segment;

typedef struct parsing {
    mr_jpeg_header *h;
    bool frame, jfif, adobe;
    unsigned transform; /* colour transform of the Adobe segment */
} parsing;

static unsigned get16(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

static bool quantisers(parsing *p, segment s)
{
    while (s.len) {
        unsigned wide = s.data[0] >> 4, table = s.data[0] & 15;
        size_t size = 1 + (size_t)64 * (wide + 1);
        if (wide > 1 || table >= MR_JPEG_TABLES || s.len < size)
            return false;
        for (size_t k = 0; k < 64; k++)
            p->h->quant[table][mr_jpeg_zigzag[k]] = (int16_t)(wide ? get16(s.data + 1 + 2 * k) : s.data[1 + k]);
        p->h->quant_set |= 1u << table;
        s.data += size;
        s.len -= size;
    }
    return true;
}

static bool huffman(parsing *p, segment s)
{
    while (s.len) {
        unsigned kind = s.data[0] >> 4, table = s.data[0] & 15;
        size_t symbols = 0;
        if (s.len < 17 || kind > 1 || table >= MR_JPEG_TABLES)
            return false;
        for (size_t n = 1; n <= 16; n++)
            symbols += s.data[n];
        if (symbols > 256 || s.len < 17 + symbols)
            return false;
        p->h->huffman[kind][table] = s.data + 1;
        s.data += 17 + symbols;
        s.len -= 17 + symbols;
    }
    return true;
}

static bool frame(parsing *p, segment s)
{
    mr_jpeg_header *h = p->h;
    if (p->frame || s.len < 6 || s.data[0] != 8)
        return false;
    p->frame = true;
    h->height = get16(s.data + 1);
    h->width = get16(s.data + 3);
    h->components = s.data[5];
    if (!h->width || !h->height || h->width > MAX_SIDE || h->height > MAX_SIDE ||
        (h->components != 1 && h->components != 3) || s.len != 6 + (size_t)3 * h->components)
        return false;
    for (unsigned i = 0; i < h->components; i++) {
        const uint8_t *c = s.data + 6 + 3 * i;
        h->component[i] = (mr_jpeg_component){.id = c[0], .h = c[1] >> 4, .v = c[1] & 15, .quant = c[2]};
        if (c[2] >= MR_JPEG_TABLES)
            return false;
    }
    return true;
}

static bool app0(parsing *p, segment s)
{
    if (s.len < 4 || memcmp(s.data, "JFIF", 4) != 0)
        return true;
    p->jfif = true;
    return s.len >= 14 && s.data[4] == 0 && s.data[5] == 1; /* libjpeg-turbo warns of other major versions */
}

static bool app14(parsing *p, segment s)
{
    if (s.len < 5 || memcmp(s.data, "Adobe", 5) != 0)
        return true;
    p->adobe = true;
    if (s.len >= 12)
        p->transform = s.data[11];
    return s.len >= 12;
}

/* A single component is a scan without interleaving: its MCU is one block, whatever the sampling factors. */
static bool sampling(mr_jpeg_header *h)
{
    mr_jpeg_component *c = h->component;
    if (c[0].h < 1 || c[0].h > 2 || c[0].v < 1 || c[0].v > 2)
        return false;
    h->rows_together = h->components == 1 ? c[0].v : 1;
    if (h->components == 1) {
        c[0].h = c[0].v = 1;
        return true;
    }
    return c[1].h == 1 && c[1].v == 1 && c[2].h == 1 && c[2].v == 1 && c[0].id != c[1].id && c[0].id != c[2].id &&
           c[1].id != c[2].id;
}

/* Three components are YCbCr unless something indicates RGB. */
static bool colours(const parsing *p)
{
    const mr_jpeg_component *c = p->h->component;
    if (p->h->components == 1)
        return !p->adobe || p->transform <= 1;
    if (p->adobe)
        return p->transform == 1;
    return p->jfif || !(c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B');
}

static bool scan(parsing *p, segment s)
{
    mr_jpeg_header *h = p->h;
    if (!p->frame || s.len != 4 + (size_t)2 * h->components || s.data[0] != h->components)
        return false;
    for (unsigned i = 0; i < h->components; i++) {
        mr_jpeg_component *c = &h->component[i];
        const uint8_t *of = s.data + 1 + 2 * i;
        c->dc = of[1] >> 4;
        c->ac = of[1] & 15;
        if (of[0] != c->id || c->dc >= MR_JPEG_TABLES || c->ac >= MR_JPEG_TABLES || !h->huffman[0][c->dc] ||
            !h->huffman[1][c->ac] || !(h->quant_set >> c->quant & 1))
            return false;
    }
    const uint8_t *end = s.data + s.len - 3;
    return end[0] == 0 && end[1] == 63 && end[2] == 0 && sampling(h) && colours(p);
}

/* A length of 0 or 1, less than its own bytes, skips nothing, as in libjpeg. */
static bool is_skipped(unsigned marker)
{
    return marker == COM || (marker >= APP0 && marker <= APP15);
}

static bool take(parsing *p, unsigned marker, segment s)
{
    switch (marker) {
    case DQT:
        return quantisers(p, s);
    case DHT:
        return huffman(p, s);
    case SOF0:
    case SOF1:
        return frame(p, s);
    case SOS:
        return scan(p, s);
    case APP0:
        return app0(p, s);
    case APP14:
        return app14(p, s);
    case DRI:
        p->h->restart = s.len == 2 ? get16(s.data) : 0;
        return s.len == 2;
    default:
        return is_skipped(marker);
    }
}

bool mr_jpeg_parse(const uint8_t *bytes, size_t len, mr_jpeg_header *out)
{
    parsing p = {.h = out};
    out->quant_set = 0;
    out->restart = 0;
    memset(out->huffman, 0, sizeof out->huffman);
    if (len < 4 || bytes[0] != 0xFF || bytes[1] != SOI)
        return false;
    for (size_t at = 2; len - at >= 4;) {
        unsigned marker = bytes[at + 1];
        size_t size = get16(bytes + at + 2);
        size = size < 2 && is_skipped(marker) ? 2 : size;
        if (bytes[at] != 0xFF || size < 2 || size > len - at - 2)
            return false;
        if (!take(&p, marker, (segment){bytes + at + 4, size - 2}))
            return false;
        at += 2 + size;
        if (marker == SOS) {
            out->scan = at;
            return true;
        }
    }
    return false;
}

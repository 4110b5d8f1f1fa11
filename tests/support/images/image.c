/* image.c - small pictures of every kind; see support/image.h. */
#include "tests/support/images/image.h"

#include <jpeglib.h>
#include <spng.h>
#include <stdlib.h>
#include <string.h>
#include <webp/encode.h>

static void *take(size_t len)
{
    void *bytes = malloc(len ? len : 1);
    if (!bytes)
        fail_msg("out of memory");
    return bytes;
}

picture picture_copy(const uint8_t *bytes, size_t len)
{
    picture p = {take(len), len};
    if (len)
        memcpy(p.bytes, bytes, len);
    return p;
}

picture picture_splice(picture p, size_t at, const void *bytes, size_t len)
{
    picture out = {take(p.len + len), p.len + len};
    memcpy(out.bytes, p.bytes, at);
    if (len)
        memcpy(out.bytes + at, bytes, len);
    memcpy(out.bytes + at + len, p.bytes + at, p.len - at);
    return out;
}

void picture_free(picture *p)
{
    free(p->bytes);
    *p = (picture){0};
}

/* Something to look at: a gradient with a few edges. */
static void paint(uint8_t *row, size_t len, unsigned y)
{
    for (size_t i = 0; i < len; i++)
        row[i] = (uint8_t)(i * 5 + y * 9 + (i / 7 + y / 5) % 2 * 60);
}

picture make_jpeg(jpeg_kind k)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long len = 0;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &bytes, &len);
    c.image_width = k.width;
    c.image_height = k.height;
    c.input_components = (int)k.components;
    c.in_color_space = k.components == 1 ? JCS_GRAYSCALE : k.components == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 80, TRUE);
    c.arith_code = k.arithmetic;
    c.restart_interval = k.restart;
    if (k.progressive)
        jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    if (k.exif)
        jpeg_write_marker(&c, JPEG_APP0 + 1, k.exif->bytes, (unsigned)k.exif->len);
    uint8_t *row = take((size_t)k.width * k.components);
    while (c.next_scanline < c.image_height) {
        paint(row, (size_t)k.width * k.components, c.next_scanline);
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    picture p = picture_copy(bytes, len);
    free(row);
    free(bytes);
    return p;
}

picture make_png(unsigned width, unsigned height, uint8_t colour, uint8_t depth, bool interlaced)
{
    static const unsigned samples[] = {1, 0, 3, 1, 2, 0, 4};
    struct spng_ihdr ihdr = {width, height, depth, colour, 0, 0, interlaced};
    struct spng_plte plte = {.n_entries = 1u << (depth < 8 ? depth : 8)};
    size_t row = ((size_t)width * samples[colour] * depth + 7) / 8, len = 0;
    uint8_t *pixels = take(row * height);
    int e;
    for (unsigned y = 0; y < height; y++)
        paint(pixels + y * row, row, y);
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);
    spng_set_ihdr(ctx, &ihdr);
    if (colour == SPNG_COLOR_TYPE_INDEXED)
        spng_set_plte(ctx, &plte);
    e = spng_encode_image(ctx, pixels, row * height, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    if (e)
        fail_msg("spng: %s", spng_strerror(e));
    uint8_t *bytes = spng_get_png_buffer(ctx, &len, &e);
    picture p = picture_copy(bytes, len);
    free(bytes);
    free(pixels);
    spng_ctx_free(ctx);
    return p;
}

picture make_webp(unsigned width, unsigned height, bool lossless, bool alpha)
{
    int w = (int)width, h = (int)height, stride = w * 4;
    uint8_t *pixels = take((size_t)stride * height), *bytes = NULL;
    size_t len = 0;
    for (unsigned y = 0; y < height; y++) {
        paint(pixels + (size_t)y * (size_t)stride, (size_t)stride, y);
        for (unsigned x = 0; !alpha && x < width; x++)
            pixels[(size_t)y * (size_t)stride + x * 4 + 3] = 255;
    }
    if (lossless)
        len = WebPEncodeLosslessRGBA(pixels, w, h, stride, &bytes);
    else
        len = WebPEncodeRGBA(pixels, w, h, stride, 75, &bytes);
    picture p = picture_copy(bytes, len);
    WebPFree(bytes);
    free(pixels);
    return p;
}

static void put_le(uint8_t *p, uint32_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

/* Appends a chunk with `head` bytes of `front` before the body. */
static void add_chunk(picture *p, const char *tag, const uint8_t *front, size_t head, const uint8_t *body, size_t len)
{
    uint8_t begin[8], zero = 0;
    memcpy(begin, tag, 4);
    put_le(begin + 4, (uint32_t)(head + len), 4);
    const void *parts[] = {begin, front, body, &zero};
    size_t sizes[] = {8, head, len, (head + len) & 1};
    for (int i = 0; i < 4; i++) {
        picture longer = picture_splice(*p, p->len, parts[i], sizes[i]);
        picture_free(p);
        *p = longer;
    }
}

picture make_webp_extended(unsigned width, unsigned height, unsigned frames, const picture *exif)
{
    picture simple = make_webp(width, height, false, false), p = picture_copy(simple.bytes, 12);
    uint8_t canvas[10] = {0}, anim[6] = {0}, frame[16] = {0};
    canvas[0] = (uint8_t)((frames ? 2 : 0) | (exif ? 8 : 0));
    put_le(canvas + 4, width - 1, 3);
    put_le(canvas + 7, height - 1, 3);
    put_le(frame + 6, width - 1, 3);
    put_le(frame + 9, height - 1, 3);
    add_chunk(&p, "VP8X", canvas, sizeof canvas, NULL, 0);
    if (frames)
        add_chunk(&p, "ANIM", anim, sizeof anim, NULL, 0);
    for (unsigned i = 0; i < frames; i++)
        add_chunk(&p, "ANMF", frame, sizeof frame, simple.bytes + 12, simple.len - 12);
    if (!frames) {
        picture whole = picture_splice(p, p.len, simple.bytes + 12, simple.len - 12);
        picture_free(&p);
        p = whole;
    }
    if (exif)
        add_chunk(&p, "EXIF", NULL, 0, exif->bytes, exif->len);
    put_le(p.bytes + 4, (uint32_t)(p.len - 8), 4);
    picture_free(&simple);
    return p;
}

static void put(uint8_t *p, bool big, uint32_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        p[big ? bytes - 1 - i : i] = (uint8_t)(v >> 8 * i);
}

picture make_exif(bool big, unsigned type, uint32_t count, uint32_t value)
{
    uint8_t b[6 + 8 + 2 + 24 + 4] = "Exif", *t = b + 6;
    memcpy(t, big ? "MM" : "II", 2);
    put(t + 2, big, 42, 2);
    put(t + 4, big, 8, 4);
    put(t + 8, big, 2, 2);
    put(t + 10, big, 0x0100, 2); /* ImageWidth, as a red herring */
    put(t + 12, big, 3, 2);
    put(t + 14, big, 1, 4);
    put(t + 18, big, 7, 2);
    put(t + 22, big, 0x0112, 2);
    put(t + 24, big, type, 2);
    put(t + 26, big, count, 4);
    put(t + 30, big, value, type == 1 ? 1 : type == 3 ? 2 : 4);
    put(t + 34, big, 8, 4); /* the next directory is this one: a loop for a reader that follows it */
    return picture_copy(b, sizeof b);
}

size_t jpeg_marker(picture p, uint8_t marker)
{
    for (size_t at = 2; at + 4 <= p.len; at += 2 + ((size_t)p.bytes[at + 2] << 8 | p.bytes[at + 3]))
        if (p.bytes[at + 1] == marker)
            return at;
    fail_msg("the JPEG has no marker 0xff%02x", marker);
    return 0;
}

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

size_t png_chunk(picture p, const char *tag)
{
    for (size_t at = 8; at + 12 <= p.len; at += 12 + (size_t)be32(p.bytes + at))
        if (!memcmp(p.bytes + at + 4, tag, 4))
            return at;
    fail_msg("the PNG has no chunk %s", tag);
    return 0;
}

/* Bit by bit, as the standard defines it: not the tables of the code under test. */
static uint32_t crc(const uint8_t *p, size_t len)
{
    uint32_t v = 0xffffffff;
    for (size_t i = 0; i < len; i++) {
        v ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            v = v & 1 ? v >> 1 ^ 0xedb88320 : v >> 1;
    }
    return ~v;
}

void png_mend(picture p)
{
    for (size_t at = 8; at + 12 <= p.len;) {
        size_t len = be32(p.bytes + at);
        if (len > p.len - at - 12)
            return;
        put(p.bytes + at + 8 + len, true, crc(p.bytes + at + 4, len + 4), 4);
        at += 12 + len;
    }
}

picture png_with(picture p, const char *before, const char *tag, const void *body, size_t len)
{
    uint8_t *chunk = take(len + 12);
    put(chunk, true, (uint32_t)len, 4);
    memcpy(chunk + 4, tag, 4);
    if (len)
        memcpy(chunk + 8, body, len);
    picture out = picture_splice(p, png_chunk(p, before), chunk, len + 12);
    free(chunk);
    png_mend(out);
    return out;
}

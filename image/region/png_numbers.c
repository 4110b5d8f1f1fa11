/* png_numbers.c - see png_numbers.h.
 * Source: W3C PNG, third edition, 7.2 (packing of small samples: leftmost in the high bits). */
#include "image/region/png_numbers.h"

#include <string.h>

#include "base/scope.h"
#include "image/codec/png_open.h"
#include "image/region/png_quick.h"

static mr_status check(const struct spng_ihdr *header, uint32_t width, uint32_t height, mr_error *err)
{
    if (header->width != width || header->height != height)
        return mr_fail(err, MR_BAD_SAMPLE, "%u x %u pixels, and the image has %u x %u", header->width, header->height,
                       width, height);
    if (header->color_type != SPNG_COLOR_TYPE_GRAYSCALE && header->color_type != SPNG_COLOR_TYPE_INDEXED)
        return mr_fail(err, MR_BAD_SAMPLE, "it is in colour; a mask of class numbers is grey or has a palette");
    if (header->bit_depth > 8)
        return mr_fail(err, MR_BAD_SAMPLE, "its numbers have %u bits; at most 8 are supported", header->bit_depth);
    return MR_OK;
}

/* Rows of packed samples, each of whole bytes, to a byte a sample; they follow the numbers. */
static void unpack(const uint8_t *packed, unsigned depth, uint32_t width, uint32_t height, uint8_t *numbers)
{
    unsigned each = 8 / depth, most = (1u << depth) - 1;
    size_t row_bytes = ((size_t)width * depth + 7) / 8;
    for (uint32_t y = 0; y < height; y++, packed += row_bytes)
        for (uint32_t x = 0; x < width; x++)
            *numbers++ = (uint8_t)(packed[x / each] >> (8 - depth - x % each * depth) & most);
}

static mr_status copy_rows(const mr_png_quick *q, uint32_t width, uint32_t height, mr_buf *out, mr_error *err)
{
    MR_TRY(check(&q->ihdr, width, height, err));
    mr_buf_clear(out);
    if (!mr_buf_reserve(out, (size_t)width * height))
        return mr_fail_memory(err, "decoding a PNG");
    for (uint32_t y = 0; y < height; y++)
        mr_buf_add(out, q->rows + q->stride * y, width);
    return MR_OK;
}

mr_status mr_png_numbers(mr_pixels_scratch *s, const uint8_t *bytes, size_t len, uint32_t width, uint32_t height,
                         mr_buf *out, mr_error *err)
{
    mr_png_quick quick;
    if (mr_png_quick_rows(s, bytes, len, height, &quick))
        return copy_rows(&quick, width, height, out, err);
    mr_png_source source;
    struct spng_ihdr header;
    MR_AUTO(mr_png_free) spng_ctx *ctx = NULL;
    size_t size;
    MR_TRY(mr_png_open(bytes, len, &source, &ctx, &header, err));
    MR_TRY(check(&header, width, height, err));
    int e = spng_decoded_image_size(ctx, SPNG_FMT_PNG, &size);
    if (e)
        return mr_png_failure(e, err);
    bool small = header.bit_depth < 8;
    size_t count = (size_t)width * height;
    mr_buf_clear(out);
    if (!mr_buf_reserve(out, small ? count + size : count))
        return mr_fail_memory(err, "decoding a PNG");
    uint8_t *samples = out->data + (small ? count : 0);
    memset(samples, 0, size); /* libspng 0.7 ORs interlaced samples of less than a byte into it */
    e = spng_decode_image(ctx, samples, size, SPNG_FMT_PNG, 0);
    if (e)
        return mr_png_failure(e, err);
    if (small)
        unpack(samples, header.bit_depth, width, height, out->data);
    out->len = count;
    return MR_OK;
}

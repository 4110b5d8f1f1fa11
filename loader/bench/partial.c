/* partial.c - sets of kernels in which some do nothing; see partial.h. */
#include "loader/bench/partial.h"

#include "image/jpeg/decoder.h"

static mr_jpeg_unstuffed unstuff(const uint8_t *in, size_t len, uint8_t *out)
{
    return mr_jpeg_kernels_best()->unstuff(in, len, out);
}

static bool store(mr_jpeg_stream *s, const mr_jpeg_mcu *mcu, unsigned count, int16_t *blocks)
{
    return mr_jpeg_kernels_best()->store(s, mcu, count, blocks);
}

static bool skip(mr_jpeg_stream *s, const mr_jpeg_mcu *mcu, unsigned count)
{
    return mr_jpeg_kernels_best()->skip(s, mcu, count);
}

static bool store_two(mr_jpeg_stream *const s[2], const mr_jpeg_mcu *mcu, unsigned count, int16_t *const blocks[2])
{
    return mr_jpeg_kernels_best()->store_two(s, mcu, count, blocks);
}

static bool skip_two(mr_jpeg_stream *const s[2], const mr_jpeg_mcu *mcu, unsigned count)
{
    return mr_jpeg_kernels_best()->skip_two(s, mcu, count);
}

static void idct(int16_t *const *block, unsigned count, const int16_t quant[64], uint8_t *out, size_t stride)
{
    mr_jpeg_kernels_best()->idct(block, count, quant, out, stride);
}

/* Stores, not memset(), which gcc turns into `rep stosq`, slower than the IDCT itself. */
typedef int16_t eight __attribute__((vector_size(16)));

/* As an IDCT does: store() needs zeroed blocks. */
static void clear(int16_t *const *block, unsigned count, const int16_t quant[64], uint8_t *out, size_t stride)
{
    (void)quant;
    (void)out;
    (void)stride;
    for (unsigned i = 0; i < count; i++) {
        eight *b = (eight *)(void *)block[i];
        b[0] = b[1] = b[2] = b[3] = b[4] = b[5] = b[6] = b[7] = b[8] = (eight){0};
    }
}

static void no_across(const uint8_t *row, size_t count, uint8_t *out)
{
    (void)row;
    (void)count;
    (void)out;
}

static void no_across_between(const uint8_t *near, const uint8_t *far, size_t count, uint8_t *out)
{
    (void)near;
    (void)far;
    (void)count;
    (void)out;
}

static void no_between(const uint8_t *near, const uint8_t *far, unsigned bias, size_t count, uint8_t *out)
{
    (void)near;
    (void)far;
    (void)bias;
    (void)count;
    (void)out;
}

static void no_rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t count, uint8_t *out)
{
    (void)y;
    (void)cb;
    (void)cr;
    (void)count;
    (void)out;
}

mr_jpeg_decoder *mr_jpeg_partial_new(mr_jpeg_parts parts)
{
    static const mr_jpeg_kernels sets[] = {
        [MR_JPEG_PARTS_ENTROPY] = {"entropy", MR_PLAIN_C, unstuff, store, skip, store_two, skip_two, clear, no_across,
                                   no_across_between, no_between, no_rgb},
        [MR_JPEG_PARTS_SAMPLES] = {"samples", MR_PLAIN_C, unstuff, store, skip, store_two, skip_two, idct, no_across,
                                   no_across_between, no_between, no_rgb},
    };
    mr_jpeg_decoder *d = mr_jpeg_decoder_new();
    if (d && parts != MR_JPEG_PARTS_ALL)
        d->kernels = &sets[parts];
    return d;
}

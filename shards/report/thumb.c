/* thumb.c - decodes an image, scales it down, and encodes it again for a page.
 * Invariant: only pixels are lost; the sample itself is not changed. */
#include "shards/report/thumb.h"

#include "base/scope.h"
#include "image/jpeg/parse.h"
#include "image/encode/encode.h"

/* The table of luminance in ITU T.81, K.1, row by row: libjpeg scales it by (200 - 2 q) / 100, or 50 / q below 50. */
static const uint8_t standard[64] = {16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,
                                     14, 13, 16, 24, 40,  57,  69,  56,  14, 17, 22, 29, 51,  87,  80,  62,
                                     18, 22, 37, 56, 68,  109, 103, 77,  24, 35, 55, 64, 81,  104, 113, 92,
                                     49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99};

unsigned mr_jpeg_quality(const int16_t quant[64])
{
    double scale = 0;
    for (size_t i = 0; i < 64; i++)
        scale += (double)(uint16_t)quant[i] / standard[i] * 100 / 64;
    double quality = scale <= 100 ? (200 - scale) / 2 : 5000 / scale;
    return quality < 1 ? 1 : quality > 100 ? 100 : (unsigned)(quality + 0.5);
}

static void look(mr_thumbs *t, const mr_sample_view *v)
{
    mr_jpeg_header h;
    if (v->codec != MR_CODEC_JPEG)
        return;
    t->jpegs.all++;
    if (!mr_jpeg_parse(v->image, v->image_len, &h) || !(h.quant_set >> h.component[0].quant & 1))
        return; /* progressive, for example */
    unsigned quality = mr_jpeg_quality(h.quant[h.component[0].quant]);
    unsigned parts = h.component[0].h * h.component[0].v;
    t->jpegs.quality_sum += quality;
    t->jpegs.lowest = !t->jpegs.read || quality < t->jpegs.lowest ? quality : t->jpegs.lowest;
    t->jpegs.highest = quality > t->jpegs.highest ? quality : t->jpegs.highest;
    t->jpegs.read++;
    *(h.components == 1 ? &t->jpegs.grey
      : parts == 1      ? &t->jpegs.full
      : parts == 2      ? &t->jpegs.half
                        : &t->jpegs.quarter) += 1;
}

static void add_base64(mr_buf *out, const uint8_t *bytes, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (!mr_buf_reserve(out, (len + 2) / 3 * 4))
        return;
    for (size_t i = 0; i < len; i += 3) {
        uint32_t word = (uint32_t)bytes[i] << 16 | (i + 1 < len ? (uint32_t)bytes[i + 1] << 8 : 0) |
                        (i + 2 < len ? bytes[i + 2] : 0);
        char four[4] = {digits[word >> 18], digits[word >> 12 & 63], digits[word >> 6 & 63], digits[word & 63]};
        if (i + 1 >= len)
            four[2] = '=';
        if (i + 2 >= len)
            four[3] = '=';
        mr_buf_add(out, four, 4);
    }
}

/* What the image itself says, before any memory is allocated for its pixels. */
static mr_status check_size(const mr_thumbs *t, const mr_sample_view *v, mr_error *err)
{
    const mr_image_limits limits = {.max_pixels = t->max_pixels};
    mr_image_facts facts;
    MR_TRY(mr_image_examine(v->image, v->image_len, &limits, &facts, err));
    if (facts.width == v->width && facts.height == v->height)
        return MR_OK;
    return mr_fail(err, MR_BAD_SAMPLE, "an image of %u x %u pixels is %u x %u in the index", facts.width, facts.height,
                   v->width, v->height);
}

static mr_status shrink(mr_thumbs *t, const mr_sample_view *v, mr_picture *out, mr_error *err)
{
    const mr_image_facts facts = {.width = v->width,
                                  .height = v->height,
                                  .codec = v->codec,
                                  .orientation = v->orientation,
                                  .components = v->components,
                                  .bits = v->bits,
                                  .flags = v->flags};
    uint32_t longer = v->width > v->height ? v->width : v->height;
    mr_resize_job job = {.in_width = v->width, .in_height = v->height, .out_width = v->width, .out_height = v->height};
    if (longer > MR_THUMB_SIDE) {
        job.out_width = (uint32_t)(((uint64_t)v->width * MR_THUMB_SIDE + longer / 2) / longer);
        job.out_height = (uint32_t)(((uint64_t)v->height * MR_THUMB_SIDE + longer / 2) / longer);
        job.out_width += !job.out_width;
        job.out_height += !job.out_height;
    }
    job.crop_width = job.out_width;
    job.crop_height = job.out_height;
    mr_buf_clear(&t->pixels);
    if (!mr_buf_reserve(&t->pixels, (size_t)job.out_width * job.out_height * 3))
        return mr_fail_memory(err, "making a thumbnail");
    MR_TRY(mr_pixels_decode(t->scratch, v->image, v->image_len, &facts, &(mr_region){0, 0, v->width, v->height},
                            &job.rgb, err));
    MR_TRY(mr_resize_u8(t->resizer, &job, t->pixels.data, err));
    *out = (mr_picture){job.out_width, job.out_height, 3, t->pixels.data};
    return MR_OK;
}

mr_status mr_thumb_add(mr_thumbs *t, const mr_sample_view *v, mr_buf *out, mr_error *err)
{
    mr_picture small;
    t->scratch = t->scratch ? t->scratch : mr_pixels_scratch_new();
    t->resizer = t->resizer ? t->resizer : mr_resizer_new();
    if (!t->scratch || !t->resizer)
        return mr_fail_memory(err, "making a thumbnail");
    MR_TRY(check_size(t, v, err));
    MR_TRY(shrink(t, v, &small, err));
    mr_buf_clear(&t->jpeg);
    MR_TRY(mr_picture_jpeg(&small, &(mr_jpeg_style){.quality = MR_THUMB_QUALITY}, &t->jpeg, err));
    look(t, v);
    mr_buf_add_text(out, "data:image/jpeg;base64,");
    add_base64(out, t->jpeg.data, t->jpeg.len);
    return mr_buf_status(out, err, "making a thumbnail");
}

void mr_thumbs_free(mr_thumbs *t)
{
    mr_pixels_scratch_free(t->scratch);
    mr_resizer_free(t->resizer);
    mr_buf_free(&t->pixels);
    mr_buf_free(&t->jpeg);
    *t = (mr_thumbs){0};
}

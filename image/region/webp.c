/* webp.c - a region of a WebP by libwebp: a still image is cropped with a margin; of an animation, the first frame.
 * Invariant: the pixels equal a full decode with fancy upsampling; what the first frame does not cover is black.
 *
 * libwebp's crop starts at even pixels and repeats the chroma at its edges, as libjpeg's does: hence the margin.  Alpha
 * is never decoded. */
#include <string.h>

#include "base/scope.h"
#include "image/codec/webp_open.h"
#include "image/region/parts.h"

enum {
    MARGIN = 2,      /* pixels: one chroma sample */
    LARGE = 2 << 20, /* pixels that take some 20 ms */
    PIECES = 256,
};

/* The region and its neighbours, from an even pixel. */
static mr_region widen(const mr_region *r, uint32_t width, uint32_t height)
{
    uint32_t left = r->left > MARGIN ? (r->left - MARGIN) & ~1u : 0;
    uint32_t top = r->top > MARGIN ? (r->top - MARGIN) & ~1u : 0;
    uint32_t right = r->left + r->width + MARGIN, bottom = r->top + r->height + MARGIN;
    right = right < width ? right : width;
    bottom = bottom < height ? bottom : height;
    return (mr_region){left, top, right - left, bottom - top};
}

/* Passes a large file in pieces, so that decoding can be stopped between them; the same pixels. */
static VP8StatusCode decode_in_pieces(const mr_pixels_scratch *s, const uint8_t *bytes, size_t len,
                                      WebPDecoderConfig *config)
{
    VP8StatusCode code = VP8_STATUS_SUSPENDED;
    WebPIDecoder *decoder = WebPIDecode(NULL, 0, config);
    if (!decoder)
        return VP8_STATUS_OUT_OF_MEMORY;
    for (size_t n = 1; n <= PIECES && code == VP8_STATUS_SUSPENDED && !mr_pixels_stopped(s); n++)
        code = WebPIUpdate(decoder, bytes, n < PIECES ? len / PIECES * n : len);
    WebPIDelete(decoder);
    return code;
}

/* `region` of one image into `rgb`, `stride` bytes per row. */
static mr_status decode_picture(mr_pixels_scratch *s, const uint8_t *bytes, size_t len, const mr_region *region,
                                uint8_t *rgb, size_t stride, mr_error *err)
{
    WebPDecoderConfig config;
    MR_TRY(mr_webp_config(bytes, len, &config, err));
    uint32_t width = (uint32_t)config.input.width, height = (uint32_t)config.input.height;
    if (region->left + region->width > width || region->top + region->height > height)
        return mr_fail(err, MR_BAD_SAMPLE, "WebP cannot be decoded: its image is smaller than its header states");
    mr_region cut = widen(region, width, height);
    uint8_t *work = mr_pixels_reserve(&s->work, cut.width, cut.height, 3);
    if (!work)
        return mr_fail_memory(err, "decoding a WebP");
    config.options.use_cropping = cut.width != width || cut.height != height;
    config.options.crop_left = (int)cut.left;
    config.options.crop_top = (int)cut.top;
    config.options.crop_width = (int)cut.width;
    config.options.crop_height = (int)cut.height;
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = work;
    config.output.u.RGBA.stride = (int)(cut.width * 3);
    config.output.u.RGBA.size = (size_t)cut.width * cut.height * 3;
    VP8StatusCode code =
        width * height < LARGE ? WebPDecode(bytes, len, &config) : decode_in_pieces(s, bytes, len, &config);
    WebPFreeDecBuffer(&config.output);
    if (mr_pixels_stopped(s))
        return MR_END;
    if (code != VP8_STATUS_OK)
        return mr_webp_failure(code, err);
    const uint8_t *from = work + ((size_t)(region->top - cut.top) * cut.width + (region->left - cut.left)) * 3;
    for (uint32_t y = 0; y < region->height; y++)
        memcpy(rgb + stride * y, from + (size_t)cut.width * 3 * y, (size_t)region->width * 3);
    return MR_OK;
}

/* The intersection of a span and a frame's side; false: empty. */
static bool intersect(uint32_t from, uint32_t length, uint32_t at, uint32_t size, uint32_t *start, uint32_t *span)
{
    uint32_t low = from > at ? from : at, high = from + length < at + size ? from + length : at + size;
    *start = low;
    *span = high - low;
    return low < high;
}

static mr_status decode_frame(mr_pixels_scratch *s, const mr_pixels_job *job, const WebPIterator *frame, mr_error *err)
{
    const mr_region *r = &job->region;
    size_t stride = (size_t)r->width * 3;
    uint32_t x = (uint32_t)frame->x_offset, y = (uint32_t)frame->y_offset;
    mr_region seen;
    memset(job->rgb, 0, stride * r->height);
    if (!intersect(r->left, r->width, x, (uint32_t)frame->width, &seen.left, &seen.width) ||
        !intersect(r->top, r->height, y, (uint32_t)frame->height, &seen.top, &seen.height))
        return MR_OK;
    uint8_t *at = job->rgb + stride * (seen.top - r->top) + (size_t)(seen.left - r->left) * 3;
    seen.left -= x;
    seen.top -= y;
    return decode_picture(s, frame->fragment.bytes, frame->fragment.size, &seen, at, stride, err);
}

static mr_status decode_animation(mr_pixels_scratch *s, const mr_pixels_job *job, mr_error *err)
{
    MR_AUTO(mr_webp_frame_free) mr_webp_frame frame = {.demux = NULL};
    MR_TRY(mr_webp_frame_open(job->bytes, job->len, &frame, err));
    return decode_frame(s, job, &frame.it, err);
}

mr_status mr_pixels_webp(mr_pixels_scratch *s, const mr_pixels_job *job, mr_error *err)
{
    WebPBitstreamFeatures f;
    VP8StatusCode code = WebPGetFeatures(job->bytes, job->len, &f);
    if (code != VP8_STATUS_OK)
        return mr_webp_failure(code, err);
    if ((uint32_t)f.width != job->facts->width || (uint32_t)f.height != job->facts->height)
        return mr_pixels_other_size("WebP", (uint64_t)f.width, (uint64_t)f.height, job->facts, err);
    if (f.has_animation)
        return decode_animation(s, job, err);
    return decode_picture(s, job->bytes, job->len, &job->region, job->rgb, (size_t)job->region.width * 3, err);
}

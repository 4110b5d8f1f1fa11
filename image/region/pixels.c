/* pixels.c - chooses the decoder, and owns its working memory.
 * Invariant: a decoder's region is not empty and inside the image. */
#include "image/region/parts.h"

#include <libdeflate.h>
#include <stdlib.h>

#include "base/scope.h"
#include "image/jpeg/region.h"

mr_pixels_scratch *mr_pixels_scratch_new(void)
{
    mr_pixels_scratch *s = mr_alloc(1, sizeof *s);
    if (s)
        s->jpeg = mr_jpeg_decoder_new();
    if (s && !s->jpeg) {
        free(s);
        return NULL;
    }
    return s;
}

void mr_pixels_scratch_free(mr_pixels_scratch *s)
{
    if (!s)
        return;
    free(s->rgb.data);
    free(s->work.data);
    free(s->turned.data);
    mr_jpeg_decoder_free(s->jpeg);
    libdeflate_free_decompressor(s->inflate);
    free(s);
}

void mr_pixels_scratch_stop(mr_pixels_scratch *s, const _Atomic bool *stop)
{
    s->stop = stop;
}

void mr_pixels_scratch_libraries(mr_pixels_scratch *s)
{
    mr_jpeg_decoder_free(s->jpeg);
    s->jpeg = NULL;
}

mr_pixels_counts mr_pixels_scratch_counts(const mr_pixels_scratch *s)
{
    return s->counts;
}

void mr_pixels_scratch_seek(mr_pixels_scratch *s, const uint8_t *seek, size_t len)
{
    s->seek = len ? seek : NULL;
    s->seek_len = s->seek ? len : 0;
}

static bool inside(const mr_region *r, const mr_image_facts *f)
{
    return r->width && r->height && r->left < f->width && r->width <= f->width - r->left && r->top < f->height &&
           r->height <= f->height - r->top;
}

mr_status mr_pixels_decode(mr_pixels_scratch *s, const uint8_t *bytes, size_t len, const mr_image_facts *facts,
                           const mr_region *region, const uint8_t **rgb, mr_error *err)
{
    static mr_status (*const decoders[])(mr_pixels_scratch *, const mr_pixels_job *, mr_error *) = {
        [MR_CODEC_JPEG] = mr_pixels_jpeg,
        [MR_CODEC_PNG] = mr_pixels_png,
        [MR_CODEC_WEBP] = mr_pixels_webp,
    };
    mr_pixels_job job = {
        .bytes = bytes, .len = len, .facts = facts, .region = *region, .seek = s->seek, .seek_len = s->seek_len};
    mr_pixels_scratch_seek(s, NULL, 0);
    if (facts->codec >= MR_COUNT(decoders) || !decoders[facts->codec])
        return mr_fail(err, MR_BAD_SAMPLE, "codec %u is not supported", facts->codec);
    if (!inside(region, facts))
        return mr_fail(err, MR_MISUSE, "a region of %u x %u pixels at %u, %u is not inside an image of %u x %u",
                       region->width, region->height, region->left, region->top, facts->width, facts->height);
    job.rgb = mr_pixels_reserve(&s->rgb, region->width, region->height, 3);
    if (!job.rgb)
        return mr_fail_memory(err, "decoding an image");
    MR_TRY(decoders[facts->codec](s, &job, err));
    *rgb = job.rgb;
    return MR_OK;
}

/* pictures.c - what the targets that decode pictures share; see pictures.h. */
#include "tests/fuzz/pictures.h"

mr_region fuzz_region(mr_random *draw, uint32_t width, uint32_t height)
{
    mr_region r = {.width = 1 + (uint32_t)mr_random_below(draw, width),
                   .height = 1 + (uint32_t)mr_random_below(draw, height)};
    if (mr_random_below(draw, 3) == 0)
        r = (mr_region){.width = width, .height = height};
    r.left = (uint32_t)mr_random_below(draw, width - r.width + 1);
    r.top = (uint32_t)mr_random_below(draw, height - r.height + 1);
    return r;
}

fuzz_judgement fuzz_decode(mr_pixels_scratch *s, const uint8_t *data, size_t size, const mr_image_facts *f,
                           const mr_region *r)
{
    fuzz_judgement j = {.status = MR_OK};
    j.status = mr_pixels_decode(s, data, size, f, r, &j.rgb, &j.err);
    FUZZ_MUST(j.status == MR_OK || j.status == MR_BAD_SAMPLE);
    if (j.status != MR_OK)
        fuzz_refused(j.status, &j.err);
    return j;
}

bool fuzz_jpeg_facts(const uint8_t *data, size_t size, mr_image_facts *f)
{
    *f = (mr_image_facts){.codec = MR_CODEC_JPEG, .orientation = 1, .components = 3, .bits = 8};
    for (size_t i = 0; i + 9 < size; i++) {
        if (data[i] != 0xFF || data[i + 1] < 0xC0 || data[i + 1] > 0xC2)
            continue;
        f->height = (uint32_t)data[i + 5] << 8 | data[i + 6];
        f->width = (uint32_t)data[i + 7] << 8 | data[i + 8];
        return f->width && f->height && (uint64_t)f->width * f->height <= FUZZ_PIXELS;
    }
    return false;
}

/* fuzz_jpeg.c - the pixels of a region of a JPEG: millrace's own decoder, the same in plain C, libjpeg-turbo alone.
 * Promises: the same pixels from all three, or the same refusal in the same words. */
#include "fuzz.h"
#include "hash.h"
#include "jpeg_region.h"
#include "pixels_parts.h"
#include "random.h"

enum { MAX_PIXELS = 1 << 16 };

typedef struct judgement {
    mr_status status;
    mr_error err;
    const uint8_t *rgb;
} judgement;

static judgement judge(mr_pixels_scratch *s, const uint8_t *data, size_t size, const mr_image_facts *f,
                       const mr_region *r)
{
    judgement j = {.status = MR_OK};
    j.status = mr_pixels_decode(s, data, size, f, r, &j.rgb, &j.err);
    FUZZ_MUST(j.status == MR_OK || j.status == MR_BAD_SAMPLE);
    if (j.status != MR_OK)
        fuzz_refused(j.status, &j.err);
    return j;
}

static void same(const judgement *a, const judgement *b, const mr_region *r)
{
    FUZZ_MUST(a->status == b->status);
    if (a->status == MR_OK)
        FUZZ_MUST(memcmp(a->rgb, b->rgb, (size_t)r->width * r->height * 3) == 0);
    else
        FUZZ_MUST(strcmp(a->err.text, b->err.text) == 0);
}

/* The size that the frame header states, wherever it is: damage behind it must not end the test. */
static bool facts_of(const uint8_t *data, size_t size, mr_image_facts *f)
{
    *f = (mr_image_facts){.codec = MR_CODEC_JPEG, .orientation = 1, .components = 3, .bits = 8};
    for (size_t i = 0; i + 9 < size; i++) {
        if (data[i] != 0xFF || data[i + 1] < 0xC0 || data[i + 1] > 0xC2)
            continue;
        f->height = (uint32_t)data[i + 5] << 8 | data[i + 6];
        f->width = (uint32_t)data[i + 7] << 8 | data[i + 8];
        return f->width && f->height && (uint64_t)f->width * f->height <= MAX_PIXELS;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_image_facts f;
    mr_random draw;
    if (!facts_of(data, size, &f))
        return 0;
    mr_random_seed(&draw, mr_hash64(data, size));
    mr_region r = {.width = 1 + (uint32_t)mr_random_below(&draw, f.width),
                   .height = 1 + (uint32_t)mr_random_below(&draw, f.height)};
    if (mr_random_below(&draw, 3) == 0)
        r = (mr_region){.width = f.width, .height = f.height};
    r.left = (uint32_t)mr_random_below(&draw, f.width - r.width + 1);
    r.top = (uint32_t)mr_random_below(&draw, f.height - r.height + 1);
    mr_pixels_scratch *own = mr_pixels_scratch_new(), *plain = mr_pixels_scratch_new();
    mr_pixels_scratch *libjpeg = mr_pixels_scratch_new();
    FUZZ_MUST(own && plain && libjpeg);
    mr_jpeg_decoder_plain(plain->jpeg);
    mr_pixels_scratch_libjpeg(libjpeg);
    judgement a = judge(own, data, size, &f, &r), b = judge(plain, data, size, &f, &r);
    judgement c = judge(libjpeg, data, size, &f, &r);
    same(&a, &c, &r);
    same(&b, &c, &r);
    mr_pixels_scratch_free(own);
    mr_pixels_scratch_free(plain);
    mr_pixels_scratch_free(libjpeg);
    return 0;
}

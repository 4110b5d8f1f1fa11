/* fuzz_pixels.c - a picture of any codec as the loader shows it: a drawn region, turned by a drawn orientation.
 * Promises: what ingest lets in with --check decode loads, and no other JPEG; where the whole picture decodes, so does
 * any part of it, with the same pixels; a turned part is that part of the turned whole; libspng alone ends in the same
 * pixels or the same failure. */
#include "base/hash.h"
#include "tests/fuzz/pictures.h"

typedef struct shown {
    fuzz_judgement judged;
    mr_region seen;     /* in the picture as it is meant to be seen */
    const uint8_t *rgb; /* its pixels; lent by the scratch */
} shown;

static shown show(mr_pixels_scratch *s, const uint8_t *data, size_t size, const mr_image_facts *f, mr_region seen)
{
    mr_region stored = mr_orient_region(f->orientation, f->width, f->height, &seen);
    uint32_t width = stored.width, height = stored.height;
    shown out = {.judged = fuzz_decode(s, data, size, f, &stored), .seen = seen};
    mr_orient_size(f->orientation, &width, &height);
    FUZZ_MUST(width == seen.width && height == seen.height);
    if (out.judged.status == MR_OK)
        FUZZ_MUST(mr_orient_pixels(s, f->orientation, out.judged.rgb, &stored, &out.rgb, NULL) == MR_OK);
    return out;
}

static void same_pixels(const shown *whole, const shown *part)
{
    const mr_region *r = &part->seen;
    for (uint32_t y = 0; y < r->height; y++) {
        size_t from = (size_t)(r->top + y) * whole->seen.width + r->left;
        FUZZ_MUST(memcmp(whole->rgb + from * 3, part->rgb + (size_t)y * r->width * 3, (size_t)r->width * 3) == 0);
    }
}

/* The checksum of every chunk set right: one that is wrong would hide what else was changed. */
static void fix_checksums(uint8_t *png, size_t size)
{
    for (size_t at = 8, len; at + 12 <= size; at += 12 + len) {
        uint32_t crc = UINT32_MAX;
        len = (size_t)png[at] << 24 | (size_t)png[at + 1] << 16 | (size_t)png[at + 2] << 8 | png[at + 3];
        if (len > size - at - 12)
            return;
        for (size_t i = at + 4; i < at + 8 + len; i++) {
            crc ^= png[i];
            for (int bit = 0; bit < 8; bit++)
                crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
        }
        for (int i = 0; i < 4; i++)
            png[at + 8 + len + i] = (uint8_t)(~crc >> (24 - 8 * i));
    }
}

static void same_by_libspng(const uint8_t *data, size_t size, const mr_image_facts *f, const shown *whole)
{
    mr_pixels_scratch *s = mr_pixels_scratch_new();
    FUZZ_MUST(s);
    mr_pixels_scratch_libraries(s);
    shown other = show(s, data, size, f, whole->seen);
    FUZZ_MUST(other.judged.status == whole->judged.status);
    if (other.judged.status == MR_OK)
        same_pixels(whole, &other);
    else
        FUZZ_MUST(strcmp(other.judged.err.text, whole->judged.err.text) == 0);
    mr_pixels_scratch_free(s);
}

static void show_parts(const uint8_t *data, size_t size)
{
    const mr_image_limits limits = {.max_pixels = FUZZ_PIXELS, .max_scans = 32, .max_segments = 1000};
    mr_image_facts f = {0};
    mr_random draw;
    mr_error err;
    if (mr_image_examine(data, size, &limits, &f, &err) != MR_OK)
        return;
    mr_random_seed(&draw, mr_hash64(data, size));
    bool sound = mr_image_decode(data, size, &limits, &err) == MR_OK;
    mr_pixels_scratch *a = mr_pixels_scratch_new(), *b = mr_pixels_scratch_new();
    FUZZ_MUST(a && b);
    if (mr_random_below(&draw, 2))
        f.orientation = (uint8_t)mr_random_between(&draw, 1, 8);
    mr_region all = {.width = f.width, .height = f.height};
    mr_orient_size(f.orientation, &all.width, &all.height);
    shown whole = show(a, data, size, &f, all);
    if (f.codec == MR_CODEC_PNG)
        same_by_libspng(data, size, &f, &whole);
    FUZZ_MUST(!sound || whole.judged.status == MR_OK);
    FUZZ_MUST(sound || f.codec != MR_CODEC_JPEG || whole.judged.status != MR_OK);
    for (int i = 0; i < 3; i++) {
        shown part = show(b, data, size, &f, fuzz_region(&draw, all.width, all.height));
        FUZZ_MUST(whole.judged.status != MR_OK || part.judged.status == MR_OK);
        if (whole.judged.status == MR_OK)
            same_pixels(&whole, &part);
    }
    mr_pixels_scratch_free(a);
    mr_pixels_scratch_free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    show_parts(data, size);
    if (size < 8 || memcmp(data, "\x89PNG", 4) != 0)
        return 0;
    uint8_t *sealed = malloc(size);
    FUZZ_MUST(sealed);
    memcpy(sealed, data, size);
    fix_checksums(sealed, size);
    show_parts(sealed, size);
    free(sealed);
    return 0;
}

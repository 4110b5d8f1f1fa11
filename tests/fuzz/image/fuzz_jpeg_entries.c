/* fuzz_jpeg_entries.c - a region of a JPEG with entries to seek by: those of this file, bent ones, and any bytes.
 *
 *      input   a JPEG up to its first end marker | entries, as they may be in a damaged index
 *
 * Promises: with the file's own entries libjpeg-turbo's pixels; with others AVX2 and plain C do the same. */
#include "base/hash.h"
#include "image/jpeg/seek.h"
#include "tests/fuzz/pictures.h"

typedef struct places {
    mr_jpeg_decoder *best, *plain;
    mr_jpeg_job job;
    uint8_t *rgb[2];
    size_t rgb_len;
} places;

/* Both sets of kernels; true: done, and the pixels are in rgb[0]. */
static bool both(places *p, const uint8_t *seek, size_t len)
{
    mr_jpeg_decoder *decoders[] = {p->best, p->plain};
    mr_jpeg_outcome outcome[2];
    for (int i = 0; i < 2; i++) {
        p->job.rgb = p->rgb[i];
        p->job.seek = seek;
        p->job.seek_len = len;
        outcome[i] = mr_jpeg_decode_region(decoders[i], &p->job);
    }
    FUZZ_MUST(outcome[0] == outcome[1]);
    if (outcome[0] == MR_JPEG_DONE)
        FUZZ_MUST(memcmp(p->rgb[0], p->rgb[1], p->rgb_len) == 0);
    return outcome[0] == MR_JPEG_DONE;
}

static void own_entries(places *p, const fuzz_judgement *want, mr_random *draw)
{
    static const unsigned spacings[] = {MR_JPEG_SEEK_ROWS, 1, 2, 4, 16};
    mr_buf a = {0}, b = {0};
    unsigned every = spacings[mr_random_below(draw, MR_COUNT(spacings))];
    mr_jpeg_outcome made = mr_jpeg_seek_make(p->best, p->job.bytes, p->job.len, every, &a);
    FUZZ_MUST(made == mr_jpeg_seek_make(p->plain, p->job.bytes, p->job.len, every, &b));
    FUZZ_MUST(a.len == b.len && a.len <= p->job.len && (made == MR_JPEG_DONE) == (a.len > 0));
    if (made == MR_JPEG_DONE) {
        FUZZ_MUST(memcmp(a.data, b.data, a.len) == 0);
        bool done = both(p, NULL, 0); /* not, if the size differs from the caller's */
        FUZZ_MUST(both(p, a.data, a.len) == done);
        FUZZ_MUST(!done || (want->status == MR_OK && memcmp(p->rgb[0], want->rgb, p->rgb_len) == 0));
        for (int i = 0; i < 3; i++) {
            a.data[mr_random_below(draw, a.len)] ^= (uint8_t)(1 << mr_random_below(draw, 8));
            both(p, a.data, a.len - (i ? mr_random_below(draw, 3) % a.len : 0));
        }
    }
    mr_buf_free(&a);
    mr_buf_free(&b);
}

/* A copy of exactly what follows the first end marker. */
static void entries_of_the_input(places *p)
{
    const uint8_t *bytes = p->job.bytes;
    size_t at = 0;
    while (at + 2 < p->job.len && !(bytes[at] == 0xFF && bytes[at + 1] == 0xD9))
        at++;
    if (at + 2 >= p->job.len)
        return;
    size_t len = p->job.len - at - 2;
    uint8_t *exact = malloc(len);
    FUZZ_MUST(exact);
    memcpy(exact, bytes + at + 2, len);
    both(p, exact, len);
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_image_facts f;
    mr_random draw;
    if (!fuzz_jpeg_facts(data, size, &f))
        return 0;
    mr_random_seed(&draw, mr_hash64(data, size));
    mr_region r = fuzz_region(&draw, f.width, f.height);
    size_t rgb_len = (size_t)r.width * r.height * 3;
    places p = {.best = mr_jpeg_decoder_new(),
                .plain = mr_jpeg_decoder_new(),
                .rgb = {malloc(rgb_len), malloc(rgb_len)},
                .rgb_len = rgb_len,
                .job = {.bytes = data,
                        .len = size,
                        .width = f.width,
                        .height = f.height,
                        .left = r.left,
                        .top = r.top,
                        .crop_width = r.width,
                        .crop_height = r.height}};
    mr_pixels_scratch *libjpeg = mr_pixels_scratch_new();
    FUZZ_MUST(p.best && p.plain && p.rgb[0] && p.rgb[1] && libjpeg);
    mr_jpeg_decoder_plain(p.plain);
    mr_pixels_scratch_libraries(libjpeg);
    fuzz_judgement want = fuzz_decode(libjpeg, data, size, &f, &r);
    own_entries(&p, &want, &draw);
    entries_of_the_input(&p);
    mr_pixels_scratch_free(libjpeg);
    mr_jpeg_decoder_free(p.best);
    mr_jpeg_decoder_free(p.plain);
    free(p.rgb[0]);
    free(p.rgb[1]);
    return 0;
}

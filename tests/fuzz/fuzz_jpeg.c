/* fuzz_jpeg.c - the pixels of a region of a JPEG: millrace's own decoder, the same in plain C, libjpeg-turbo alone;
 * then with entries to seek by: those of this file, and any bytes.
 *
 *      input   a JPEG up to its first end marker | entries, as they may lie in a damaged index
 *
 * Promises: the same pixels from all three, or the same refusal in the same words.  What is found sound, libjpeg-turbo
 * decodes without a word.  With the file's own entries the same pixels; with others AVX2 and plain C do the same. */
#include "fuzz.h"
#include "hash.h"
#include "jpeg_seek.h"
#include "jpeg_trap.h"
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

/* ---- the whole scan ---------------------------------------------------------------------------------------------- */

typedef struct taking {
    mr_jpeg_trap trap;
    struct jpeg_decompress_struct cinfo;
} taking;

static void take_all(taking *t, const uint8_t *data, size_t size)
{
    struct jpeg_decompress_struct *c = &t->cinfo;
    if (setjmp(t->trap.out))
        return;
    mr_jpeg_trap_create(&t->trap, c);
    jpeg_mem_src(c, data, size);
    jpeg_read_header(c, TRUE);
    c->out_color_space = c->jpeg_color_space;
    jpeg_start_decompress(c);
    JSAMPARRAY row = c->mem->alloc_sarray((j_common_ptr)c, JPOOL_IMAGE, c->output_width * 3, 1);
    while (c->output_scanline < c->output_height)
        jpeg_read_scanlines(c, row, 1);
    jpeg_finish_decompress(c);
}

static void check_all(mr_jpeg_decoder *best, mr_jpeg_decoder *plain, const uint8_t *data, size_t size)
{
    taking t = {.cinfo = {0}};
    mr_error err;
    mr_image_limits limits = mr_image_limits_fill(NULL);
    mr_jpeg_outcome own = mr_jpeg_check(best, data, size, MAX_PIXELS);
    FUZZ_MUST(own == mr_jpeg_check(plain, data, size, MAX_PIXELS));
    if (own != MR_JPEG_DONE)
        return;
    mr_jpeg_trap_set(&t.trap, &t.cinfo, &limits, &err);
    take_all(&t, data, size);
    jpeg_destroy_decompress(&t.cinfo);
    FUZZ_MUST(t.trap.status == MR_OK);
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

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

static void own_entries(places *p, const judgement *want, mr_random *draw)
{
    static const unsigned spacings[] = {MR_JPEG_SEEK_ROWS, 1, 2, 4, 16};
    mr_buf a = {0}, b = {0};
    unsigned every = spacings[mr_random_below(draw, MR_COUNT(spacings))];
    mr_jpeg_outcome made = mr_jpeg_seek_make(p->best, p->job.bytes, p->job.len, every, &a);
    FUZZ_MUST(made == mr_jpeg_seek_make(p->plain, p->job.bytes, p->job.len, every, &b));
    FUZZ_MUST(a.len == b.len && a.len <= p->job.len && (made == MR_JPEG_DONE) == (a.len > 0));
    if (made == MR_JPEG_DONE) {
        FUZZ_MUST(memcmp(a.data, b.data, a.len) == 0);
        bool done = both(p, NULL, 0);       /* not, if the size is another one than the caller has */
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

/* What lies behind the first end marker, a copy as long as it is. */
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

static void with_entries(mr_jpeg_decoder *best, mr_jpeg_decoder *plain, const uint8_t *data, size_t size,
                         const mr_image_facts *f, const mr_region *r, const judgement *want, mr_random *draw)
{
    size_t rgb_len = (size_t)r->width * r->height * 3;
    places p = {.best = best, .plain = plain, .rgb = {malloc(rgb_len), malloc(rgb_len)}, .rgb_len = rgb_len,
                .job = {.bytes = data, .len = size, .width = f->width, .height = f->height, .left = r->left,
                        .top = r->top, .crop_width = r->width, .crop_height = r->height}};
    FUZZ_MUST(p.rgb[0] && p.rgb[1]);
    own_entries(&p, want, draw);
    entries_of_the_input(&p);
    free(p.rgb[0]);
    free(p.rgb[1]);
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
    check_all(own->jpeg, plain->jpeg, data, size);
    with_entries(own->jpeg, plain->jpeg, data, size, &f, &r, &c, &draw);
    mr_pixels_scratch_free(own);
    mr_pixels_scratch_free(plain);
    mr_pixels_scratch_free(libjpeg);
    return 0;
}

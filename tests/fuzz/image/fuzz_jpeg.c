/* fuzz_jpeg.c - the pixels of a region of a JPEG: millrace's own decoder, the same in plain C, libjpeg-turbo alone.
 * Promises: the same pixels from all three, or the same refusal in the same words.  What is found sound, libjpeg-turbo
 * decodes without a word. */
#include "base/hash.h"
#include "image/codec/jpeg_trap.h"
#include "image/jpeg/region.h"
#include "tests/fuzz/pictures.h"

static void same(const fuzz_judgement *a, const fuzz_judgement *b, const mr_region *r)
{
    FUZZ_MUST(a->status == b->status);
    if (a->status == MR_OK)
        FUZZ_MUST(memcmp(a->rgb, b->rgb, (size_t)r->width * r->height * 3) == 0);
    else
        FUZZ_MUST(strcmp(a->err.text, b->err.text) == 0);
}

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
    mr_jpeg_outcome own = mr_jpeg_check(best, data, size, FUZZ_PIXELS);
    FUZZ_MUST(own == mr_jpeg_check(plain, data, size, FUZZ_PIXELS));
    if (own != MR_JPEG_DONE)
        return;
    mr_jpeg_trap_set(&t.trap, &t.cinfo, &limits, &err);
    take_all(&t, data, size);
    jpeg_destroy_decompress(&t.cinfo);
    FUZZ_MUST(t.trap.status == MR_OK && !t.trap.oddities);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_image_facts f;
    mr_random draw;
    if (!fuzz_jpeg_facts(data, size, &f))
        return 0;
    mr_random_seed(&draw, mr_hash64(data, size));
    mr_region r = fuzz_region(&draw, f.width, f.height);
    mr_pixels_scratch *own = mr_pixels_scratch_new(), *plain = mr_pixels_scratch_new();
    mr_pixels_scratch *libjpeg = mr_pixels_scratch_new();
    FUZZ_MUST(own && plain && libjpeg);
    mr_jpeg_decoder_plain(plain->jpeg);
    mr_pixels_scratch_libraries(libjpeg);
    fuzz_judgement a = fuzz_decode(own, data, size, &f, &r), b = fuzz_decode(plain, data, size, &f, &r);
    fuzz_judgement c = fuzz_decode(libjpeg, data, size, &f, &r);
    same(&a, &c, &r);
    same(&b, &c, &r);
    check_all(own->jpeg, plain->jpeg, data, size);
    mr_pixels_scratch_free(own);
    mr_pixels_scratch_free(plain);
    mr_pixels_scratch_free(libjpeg);
    return 0;
}

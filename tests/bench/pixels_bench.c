/* pixels_bench.c - CPU time of a random crop to 224 pixels: libjpeg-turbo's full decode, its region decode, and ours,
 * without a seek index and with one of each spacing; and what such an index takes.
 * Invariant: all ways do the same boxes of the same files in the same run, alternating, and give the same bytes.
 *
 *      pixels_bench ROUNDS FILE.jpg... */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/random.h"
#include "image/jpeg/seek.h"
#include "image/region/pixels.h"
#include "image/resize/kernels.h"
#include "tests/bench/measure.h"
#include "loader/bench/bench_limits.h"

enum { SIZE = 224, SPACINGS = 5 };

static const unsigned spacings[SPACINGS] = {MR_JPEG_SEEK_ROWS, 32, 16, 8, 4};

typedef struct file {
    uint8_t *bytes;
    size_t len;
    mr_image_facts facts;
    mr_buf seek[SPACINGS];
} file;

typedef struct spent { /* CPU ms on all images */
    double make[SPACINGS], decode[SPACINGS], bytes[SPACINGS];
} spent;

static bool take_file(const char *path, file *f)
{
    FILE *in = fopen(path, "rb");
    if (!in)
        return false;
    fseek(in, 0, SEEK_END);
    long size = ftell(in);
    rewind(in);
    f->bytes = malloc(size > 0 ? (size_t)size : 1);
    f->len = f->bytes && size > 0 ? fread(f->bytes, 1, (size_t)size, in) : 0;
    fclose(in);
    return mr_image_examine(f->bytes, f->len, NULL, &f->facts, NULL) == MR_OK && f->facts.codec == MR_CODEC_JPEG &&
           f->facts.components == 3 && mr_image_decode(f->bytes, f->len, NULL, NULL) == MR_OK;
}

/* What a program without a loader does: everything, into memory that is kept. */
static const uint8_t *full_decode(const file *f, uint8_t **rgb, size_t *capacity)
{
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr errors;
    size_t stride = (size_t)f->facts.width * 3, need = stride * f->facts.height;
    if (need > *capacity) {
        free(*rgb);
        *rgb = malloc(*capacity = need);
    }
    if (!*rgb)
        exit(3);
    c.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&c);
    jpeg_mem_src(&c, f->bytes, f->len);
    jpeg_read_header(&c, TRUE);
    c.out_color_space = JCS_RGB;
    jpeg_start_decompress(&c);
    while (c.output_scanline < c.output_height) {
        JSAMPROW row = *rgb + stride * c.output_scanline;
        jpeg_read_scanlines(&c, &row, 1);
    }
    jpeg_finish_decompress(&c);
    jpeg_destroy_decompress(&c);
    return *rgb;
}

static mr_region draw(mr_random *r, uint32_t w, uint32_t h)
{
    for (int i = 0; i < 10; i++) {
        double area = (double)w * h * mr_random_real(r, 0.08, 1);
        double ratio = exp(mr_random_real(r, log(0.75), log(4.0 / 3)));
        uint32_t cw = (uint32_t)(sqrt(area * ratio) + 0.5), ch = (uint32_t)(sqrt(area / ratio) + 0.5);
        if (cw && ch && cw <= w && ch <= h)
            return (mr_region){(uint32_t)mr_random_below(r, w - cw + 1), (uint32_t)mr_random_below(r, h - ch + 1), cw,
                               ch};
    }
    return (mr_region){0, 0, w, h};
}

/* Each spacing of the region in turn, against the pixels that are known.  A scratch each: nobody finds tables of this
 * file, which another has made. */
static void with_entries(mr_pixels_scratch *const scratch[SPACINGS], mr_jpeg_decoder *d, file *f, const mr_region *g,
                         const uint8_t *want, spent *t, bool counted)
{
    mr_error err;
    for (int i = 0; i < SPACINGS; i++) {
        mr_pixels_scratch *s = scratch[i];
        const uint8_t *rgb;
        mr_buf_clear(&f->seek[i]);
        double a = mr_bench_cpu();
        mr_jpeg_outcome made = mr_jpeg_seek_make(d, f->bytes, f->len, spacings[i], &f->seek[i]);
        double b = mr_bench_cpu();
        mr_pixels_scratch_seek(s, f->seek[i].data, made == MR_JPEG_DONE ? f->seek[i].len : 0);
        must(mr_pixels_decode(s, f->bytes, f->len, &f->facts, g, &rgb, &err), &err);
        double c = mr_bench_cpu();
        if (memcmp(rgb, want, (size_t)g->width * g->height * 3)) {
            fprintf(stderr, "with entries every %u MCUs the pixels differ\n", spacings[i]);
            exit(1);
        }
        if (counted) {
            t->make[i] += (b - a) * 1e3;
            t->decode[i] += (c - b) * 1e3;
            t->bytes[i] += (double)f->seek[i].len;
        }
    }
}

static void print_entries(const spent *t, double n, double mean, double whole, double resize)
{
    printf("entries                  bytes          made in  decode           beside full decode + our resize\n");
    for (int i = 0; i < SPACINGS; i++)
        printf("  %-5s %2.0u  %14.0f  %4.2f %%  %8.3f  %6.3f  %6.3f  %6.3f\n", spacings[i] ? "every" : "rows",
               spacings[i], t->bytes[i] / n, t->bytes[i] / n / mean * 100, t->make[i] / n, t->decode[i] / n,
               t->decode[i] / n / whole, (t->decode[i] / n + resize) / (whole + resize));
}

int main(int argc, char **argv)
{
    static const float half[3] = {0.5f, 0.5f, 0.5f};
    static float ours[3 * SIZE * SIZE], theirs[3 * SIZE * SIZE];
    double t[6] = {0}, bytes = 0, area = 0;
    size_t count = 0, images = 0, capacity = 0;
    mr_pixels_scratch *s = mr_pixels_scratch_new(), *l = mr_pixels_scratch_new(), *e[SPACINGS];
    mr_jpeg_decoder *maker = mr_jpeg_decoder_new();
    spent entries = {.make = {0}};
    mr_resizer *fast = mr_resizer_new(), *plain = mr_resizer_new();
    file *files = mr_alloc((size_t)argc, sizeof *files);
    uint8_t *whole = NULL, *cut = NULL;
    mr_random r;
    mr_error err;
    if (argc < 3 || !s || !l || !maker || !fast || !plain || !files)
        return 2;
    mr_resizer_use(plain, &mr_resize_plain);
    mr_pixels_scratch_libraries(l);
    for (int i = 0; i < SPACINGS; i++)
        if (!(e[i] = mr_pixels_scratch_new()))
            return 2;
    mr_random_seed(&r, 1);
    for (int i = 2; i < argc; i++)
        count += take_file(argv[i], &files[count]);
    for (long round = -1; round < atol(argv[1]); round++) { /* the first one is not counted */
        for (size_t i = 0; i < count; i++) {
            file *f = &files[i];
            mr_region g = draw(&r, f->facts.width, f->facts.height);
            mr_resize_job j = {.in_width = g.width,
                               .in_height = g.height,
                               .out_width = SIZE,
                               .out_height = SIZE,
                               .crop_width = SIZE,
                               .crop_height = SIZE,
                               .flip = mr_random_below(&r, 2)};
            double a = mr_bench_cpu();
            const uint8_t *rgb = full_decode(f, &whole, &capacity);
            double b = mr_bench_cpu();
            cut = realloc(cut, (size_t)g.width * g.height * 3);
            for (uint32_t y = 0; cut && y < g.height; y++)
                memcpy(cut + (size_t)g.width * 3 * y, rgb + ((size_t)f->facts.width * (g.top + y) + g.left) * 3,
                       (size_t)g.width * 3);
            double c = mr_bench_cpu();
            j.rgb = cut;
            must(mr_resize_f32(plain, &j, half, half, theirs, &err), &err);
            double decoded = mr_bench_cpu(), d = decoded;
            must(mr_pixels_decode(l, f->bytes, f->len, &f->facts, &g, &j.rgb, &err), &err);
            double region = mr_bench_cpu() - d;
            if (memcmp(j.rgb, cut, (size_t)g.width * g.height * 3)) {
                fprintf(stderr, "%s: libjpeg-turbo's region differs from its full decode\n", argv[2 + i]);
                return 1;
            }
            d = mr_bench_cpu();
            must(mr_pixels_decode(s, f->bytes, f->len, &f->facts, &g, &j.rgb, &err), &err);
            double decoded_ours = mr_bench_cpu();
            must(mr_resize_f32(fast, &j, half, half, ours, &err), &err);
            double z = mr_bench_cpu();
            if (memcmp(j.rgb, cut, (size_t)g.width * g.height * 3) || memcmp(ours, theirs, sizeof ours)) {
                fprintf(stderr, "%s: the two ways differ\n", argv[2 + i]);
                return 1;
            }
            with_entries(e, maker, f, &g, cut, &entries, round >= 0);
            if (round < 0)
                continue;
            const double took[] = {b - a, c - b, decoded - c, decoded_ours - d, z - decoded_ours, region};
            for (int k = 0; k < 6; k++)
                t[k] += took[k] * 1e3;
            bytes += (double)f->len;
            area += (double)g.width * g.height / ((double)f->facts.width * f->facts.height);
            images++;
        }
    }
    double n = images ? (double)images : 1, full = (t[0] + t[2]) / n, mine = (t[3] + t[4]) / n;
    printf("%zu images, %.0f KB, crops %.2f of the area, to %d px float32; CPU ms per image\n", images, bytes / n / 1e3,
           area / n, SIZE);
    printf("libjpeg-turbo full decode   %.3f + plain C resize %.3f = %.3f\n", t[0] / n, t[2] / n, full);
    printf("libjpeg-turbo region decode %.3f + resize         %.3f = %.3f\n", t[5] / n, t[4] / n, (t[5] + t[4]) / n);
    printf("own region decode           %.3f + resize         %.3f = %.3f\n", t[3] / n, t[4] / n, mine);
    printf("ratios: decode %.3f, resize %.3f, whole path %.3f; beside full decode + our resize: %.3f (libjpeg-turbo's "
           "region %.3f)\n",
           t[3] / t[0], t[4] / t[2], mine / full, (t[3] + t[4]) / (t[0] + t[4]), (t[5] + t[4]) / (t[0] + t[4]));
    print_entries(&entries, n, bytes / n, t[0] / n, t[4] / n);
    mr_pixels_counts share = mr_pixels_scratch_counts(s);
    printf("millrace's decoder: %" PRIu64 " of %" PRIu64 "\n", share.own, share.own + share.libjpeg);
    for (size_t i = 0; i < count; i++) {
        free(files[i].bytes);
        for (int k = 0; k < SPACINGS; k++)
            mr_buf_free(&files[i].seek[k]);
    }
    free(files);
    free(whole);
    free(cut);
    mr_pixels_scratch_free(s);
    mr_pixels_scratch_free(l);
    for (int i = 0; i < SPACINGS; i++)
        mr_pixels_scratch_free(e[i]);
    mr_jpeg_decoder_free(maker);
    mr_resizer_free(fast);
    mr_resizer_free(plain);
    return 0;
}

/* test_decode.c - the kernels that decode JPEGs, run as plain C, give the host's tensors to the bit; damaged pictures
 * are flagged or give what the host gives. Covers coded/plan.c, coded/pack.c, decode/plain.c, cpu/decode.c.
 * MILLRACE_DECODE_CASES and MILLRACE_DECODE_DAMAGED: how many cases of each; MILLRACE_DECODE_STRIDE 1: all real
 * samples. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "device/decode/decode.h"
#include "image/jpeg/parse.h"
#include "image/jpeg/seek.h"
#include "tests/support/images/coded.h"
#include "tests/support/images/jpeg.h"
#include "tests/support/images/pixels.h"

enum { BATCH = 4, CANARY = 64, SAMPLE_PIXELS = 1 << 26 };

static const float mean[3] = {0.485F, 0.456F, 0.406F}, std[3] = {0.229F, 0.224F, 0.225F};

typedef struct tools {
    mr_random rnd;
    mr_jpeg_decoder *jpeg;
    mr_pixels_scratch *pixels;
    mr_resizer *resizer;
    coded_batch batch;
    unsigned pieces;                       /* batches of several */
    unsigned same, left, flagged, refused; /* refused: flagged, and the host refuses it too */
} tools;

static unsigned count_of(const char *variable, unsigned usual)
{
    const char *text = getenv(variable);
    return text ? (unsigned)strtoul(text, NULL, 10) : usual;
}

static tools tools_open(void)
{
    tools t = {.rnd = support_random(), .jpeg = mr_jpeg_decoder_new()};
    t.pixels = mr_pixels_scratch_new();
    t.resizer = mr_resizer_new();
    assert_true(t.jpeg && t.pixels && t.resizer);
    return t;
}

static void tools_close(tools *t)
{
    mr_jpeg_decoder_free(t->jpeg);
    mr_pixels_scratch_free(t->pixels);
    mr_resizer_free(t->resizer);
    coded_free(&t->batch);
}

static uint32_t below(tools *t, uint32_t n)
{
    return (uint32_t)mr_random_below(&t->rnd, n);
}

/* A drawn box of the picture as seen, resized and cropped at random to size x size. */
static mr_coded_picture draw_job(tools *t, picture p, const mr_buf *seek, uint32_t size, const mr_image_facts *f)
{
    mr_coded_picture d = {.bytes = p.bytes,
                          .len = p.len,
                          .seek = seek->data,
                          .seek_len = seek->len,
                          .width = f->width,
                          .height = f->height,
                          .orientation = (uint8_t)(1 + below(t, 8))};
    uint32_t width = f->width, height = f->height;
    mr_orient_size(d.orientation, &width, &height);
    mr_region box = pixels_region(&t->rnd, width, height);
    mr_resize_job *j = &d.resize;
    *j = (mr_resize_job){.in_width = box.width, .in_height = box.height, .crop_width = size, .crop_height = size};
    j->out_width = size + (below(t, 2) ? below(t, 2 * size) : 0);
    j->out_height = size + (below(t, 2) ? below(t, 2 * size) : 0);
    j->crop_left = below(t, j->out_width - size + 1);
    j->crop_top = below(t, j->out_height - size + 1);
    j->flip = below(t, 2);
    j->bicubic = below(t, 2);
    mr_resize_needs(j, &j->columns, &j->rows);
    const mr_region seen = {box.left + j->columns.from, box.top + j->rows.from, j->columns.count, j->rows.count};
    d.region = mr_orient_region(d.orientation, f->width, f->height, &seen);
    return d;
}

/* What the host makes of it; false: it refuses the picture. */
static bool host(tools *t, const mr_coded_picture *d, const mr_image_facts *f, float *out)
{
    const uint8_t *rgb, *turned;
    mr_error err;
    mr_resize_job j = d->resize;
    mr_pixels_scratch_seek(t->pixels, d->seek, d->seek_len);
    if (mr_pixels_decode(t->pixels, d->bytes, d->len, f, &d->region, &rgb, &err) != MR_OK)
        return false;
    assert_int_equal(mr_orient_pixels(t->pixels, d->orientation, rgb, &d->region, &turned, &err), MR_OK);
    j.rgb = turned;
    assert_int_equal(mr_resize_f32(t->resizer, &j, mean, std, out, &err), MR_OK);
    return true;
}

/* Runs a batch; flags[i] 2: left to the host.  The tensors are followed by a canary. */
static float *device(tools *t, const mr_coded_picture *d, unsigned n, uint32_t size, uint32_t *flags)
{
    mr_error err;
    size_t tensor = (size_t)size * size * 3, at[BATCH], images = 0;
    uint32_t failed[BATCH];
    t->batch.piece_bytes = below(t, 3) ? 0 : 1 + below(t, 1 << 16); /* a picture or a few at a time */
    assert_int_equal(coded_begin(&t->batch, size, &err), MR_OK);
    for (unsigned i = 0; i < n; i++) {
        bool taken;
        assert_int_equal(coded_add(&t->batch, &d[i], &taken, &err), MR_OK);
        flags[i] = taken ? 0 : 2;
        at[i] = images;
        images += taken;
    }
    assert_int_equal(coded_end(&t->batch, mean, std, &err), MR_OK);
    float *values = pixels_take((BATCH * tensor) * sizeof(float) + CANARY),
          *out = pixels_take(BATCH * tensor * sizeof(float));
    memset(values + images * tensor, 0xA5, CANARY);
    assert_true(coded_run_plain(t->batch.slab.data, values, failed));
    t->pieces += coded_head(&t->batch)->pieces > 1;
    for (unsigned i = 0; i < CANARY; i++)
        assert_int_equal(((uint8_t *)(values + images * tensor))[i], 0xA5);
    for (unsigned i = 0; i < n; i++) {
        if (flags[i])
            continue;
        flags[i] = failed[at[i]];
        memcpy(out + i * tensor, values + at[i] * tensor, tensor * sizeof(float));
    }
    free(values);
    return out;
}

static void judge(tools *t, const mr_coded_picture *d, const mr_image_facts *f, const float *got, uint32_t flag,
                  uint32_t size)
{
    float *want = pixels_take((size_t)size * size * 3 * sizeof(float));
    bool fine = host(t, d, f, want);
    if (flag == 2)
        t->left++;
    else if (flag) {
        t->flagged++;
        t->refused += !fine;
    } else if (!fine)
        fail_msg("the device takes what the host refuses: %u x %u", f->width, f->height);
    else if (memcmp(want, got, (size_t)size * size * 3 * sizeof(float)))
        fail_msg("%u x %u, region %u x %u at %u, %u, orientation %u, to %u, flip %d: other values", f->width, f->height,
                 d->region.width, d->region.height, d->region.left, d->region.top, d->orientation, size,
                 d->resize.flip);
    else
        t->same++;
    free(want);
}

/* Up to BATCH jobs of one picture as one batch. */
static void check(tools *t, picture p, const mr_buf *seek, unsigned n, const mr_image_facts *f, uint32_t size)
{
    mr_coded_picture jobs[BATCH];
    uint32_t flags[BATCH];
    for (unsigned i = 0; i < n; i++)
        jobs[i] = draw_job(t, p, seek, size, f);
    float *got = device(t, jobs, n, size, flags);
    for (unsigned i = 0; i < n; i++)
        judge(t, &jobs[i], f, got + (size_t)i * size * size * 3, flags[i], size);
    free(got);
}

static mr_buf entries(tools *t, picture p)
{
    static const unsigned spacings[] = {MR_JPEG_SEEK_ROWS, 1, 2, 4, 16};
    mr_buf seek = {0};
    mr_jpeg_seek_make(t->jpeg, p.bytes, p.len, spacings[below(t, MR_COUNT(spacings))], &seek);
    return seek;
}

static void drawn_pictures_and_regions(void **state)
{
    (void)state;
    tools t = tools_open();
    unsigned cases = count_of("MILLRACE_DECODE_CASES", 1000);
    for (unsigned i = 0; t.same < cases; i++) {
        picture p = jpeg_draw(&t.rnd, i);
        mr_image_facts f = pixels_facts(p);
        mr_buf seek = entries(&t, p);
        check(&t, p, &seek, BATCH, &f, 1 + below(&t, 40));
        mr_buf_free(&seek);
        picture_free(&p);
        assert_true(i < cases + 100);
    }
    assert_int_equal(t.flagged, 0);
    assert_true(t.pieces > 0);
    print_message("%u tensors are equal, %u pictures were left to the host\n", t.same, t.left);
    tools_close(&t);
}

/* Blocks without AC coefficients have two symbols: DC, and the end. */
static void symbols_are_counted(void **state)
{
    (void)state;
    tools t = tools_open();
    jpeg_coded k = {.width = 61, .height = 40, .components = 3, .h = 2, .v = 2, .ladder = 3};
    k.dc_bits = k.ac_bits = 8;
    k.quant = 20;
    for (k.density = 0; k.density <= 90; k.density += 90) {
        picture p = jpeg_coded_make(&t.rnd, &k);
        mr_image_facts f = pixels_facts(p);
        mr_buf seek = entries(&t, p);
        check(&t, p, &seek, 1, &f, 8);
        const mr_coded *h = coded_head(&t.batch);
        const mr_coded_part *parts = (const mr_coded_part *)(const void *)(t.batch.slab.data + h->parts_at);
        assert_true(h->parts > 0);
        for (uint32_t i = 0; i < h->parts; i++) {
            uint32_t least = 2 * 6 * parts[i].mcus, symbols = mr_decode_symbols(h, i);
            assert_true(k.density ? symbols > least : symbols == least);
        }
        mr_buf_free(&seek);
        picture_free(&p);
    }
    assert_int_equal(t.same, 2);
    tools_close(&t);
}

static void damaged_pictures(void **state)
{
    (void)state;
    tools t = tools_open();
    unsigned cases = count_of("MILLRACE_DECODE_DAMAGED", 2000);
    for (unsigned i = 0; i < cases; i++) {
        picture p = jpeg_draw(&t.rnd, i);
        mr_image_facts f = pixels_facts(p);
        mr_buf seek = entries(&t, p);
        unsigned kind = below(&t, 4);
        if (kind == 0)
            jpeg_damage(&t.rnd, &p);
        for (unsigned n = 0; kind == 1 && n < 1 + below(&t, 4) && seek.len; n++)
            seek.data[below(&t, (uint32_t)seek.len)] ^= (uint8_t)(1 << below(&t, 8));
        for (unsigned n = 0; kind >= 2 && n < 1 + below(&t, 6); n++)
            p.bytes[p.len - 1 - below(&t, (uint32_t)(p.len / 2))] ^= (uint8_t)(1 << below(&t, 8));
        check(&t, p, &seek, 1, &f, 1 + below(&t, 16));
        mr_buf_free(&seek);
        picture_free(&p);
    }
    print_message("%u damaged: %u as on the host, %u flagged (%u refused by the host), %u left to it\n", cases, t.same,
                  t.flagged, t.refused, t.left);
    assert_true(t.same && t.flagged);
    tools_close(&t);
}

/* A file that is not for millrace's own decoder is left to the host. */
static void check_sample(tools *t, const char *path)
{
    size_t len;
    picture p = {support_read(path, &len), 0};
    mr_jpeg_header h;
    p.len = len;
    if (mr_jpeg_parse(p.bytes, len, &h) && (uint64_t)h.width * h.height < SAMPLE_PIXELS) {
        mr_image_facts f = {.codec = MR_CODEC_JPEG, .orientation = 1, .components = 3, .bits = 8};
        f.width = h.width;
        f.height = h.height;
        mr_buf seek = entries(t, p);
        check(t, p, &seek, 1, &f, 1 + below(t, 64));
        mr_buf_free(&seek);
    } else
        t->left++;
    free(p.bytes);
}

static void sample_pictures(void **state)
{
    (void)state;
    char *folder = support_data("");
    if (!folder)
        skip();
    tools t = tools_open();
    unsigned stride = count_of("MILLRACE_DECODE_STRIDE", 40), n = 0;
    char *list = support_list(folder);
    for (char *rest = list, *name; (name = strsep(&rest, "\n"));) {
        const char *end = strrchr(name, '.');
        if (!end || (strcasecmp(end, ".jpg") && strcasecmp(end, ".jpeg")) || n++ % stride)
            continue;
        char *path = support_path("%s/%s", folder, name);
        check_sample(&t, path);
        free(path);
    }
    print_message("%u samples are equal, %u were left to the host\n", t.same, t.left);
    free(list);
    free(folder);
    assert_int_equal(t.flagged, 0);
    tools_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_pictures_and_regions),
        cmocka_unit_test(symbols_are_counted),
        cmocka_unit_test(damaged_pictures),
        cmocka_unit_test(sample_pictures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

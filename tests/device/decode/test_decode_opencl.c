/* test_decode_opencl.c - the kernels that decode JPEGs give the same tensors and flags on an OpenCL device as in plain
 * C. Covers kernels/jpeg_entropy.cl, jpeg_idct.cl, jpeg_pixels.cl, jpeg_resize.cl.  Skipped where there is no OpenCL.
 */
#include <stdlib.h>
#include <string.h>

#include "decode/decode.h"
#include "jpeg/seek.h"
#include "opencl/api.h"
#include "support/jpeg.h"
#include "support/pixels.h"

enum { PICTURES = 12, SIZE = 12, GROUP = 64, KERNELS = 5, BUFFERS = 16 };

typedef struct card {
    mr_cl_api api;
    mr_cl_device device;
    mr_cl_context context;
    mr_cl_queue queue;
    mr_cl_program program;
    mr_cl_memory buffer[BUFFERS];
    unsigned buffers;
} card;

static bool card_open(card *c)
{
    mr_error err;
    mr_cl_platform platform;
    uint32_t count = 0;
    *c = (card){.buffers = 0};
    if (mr_cl_api_open(&c->api, &err) != MR_OK || c->api.GetPlatformIDs(1, &platform, &count) || !count ||
        c->api.GetDeviceIDs(platform, MR_CL_DEVICE_TYPE_ALL, 1, &c->device, &count) || !count)
        return false;
    int32_t code = 0;
    c->context = c->api.CreateContext(NULL, 1, &c->device, NULL, NULL, &code);
    assert_int_equal(code, 0);
    c->queue = c->api.CreateCommandQueue(c->context, c->device, 0, &code);
    assert_int_equal(code, 0);
    return true;
}

/* As one text, in the order in which they see each other. */
static void build(card *c)
{
    static const char *const names[] = {"dialect.h",    "jpeg_job.h",     "jpeg_entropy.cl",
                                        "jpeg_idct.cl", "jpeg_pixels.cl", "jpeg_resize.cl"};
    const char *texts[MR_COUNT(names)];
    int32_t code;
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        char *path = support_path("%s/device/kernels/%s", MILLRACE_SOURCE_DIR, names[i]);
        texts[i] = (char *)support_read(path, NULL);
        free(path);
    }
    c->program = c->api.CreateProgramWithSource(c->context, MR_COUNT(names), texts, NULL, &code);
    assert_int_equal(code, 0);
    if (c->api.BuildProgram(c->program, 1, &c->device, "-cl-std=CL1.2", NULL, NULL)) {
        char log[8192] = "";
        c->api.GetProgramBuildInfo(c->program, c->device, MR_CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
        fail_msg("the kernels do not compile: %s", log);
    }
    for (size_t i = 0; i < MR_COUNT(names); i++)
        free((char *)texts[i]);
}

static void card_close(card *c)
{
    for (unsigned i = 0; i < c->buffers; i++)
        c->api.ReleaseMemObject(c->buffer[i]);
    c->api.ReleaseProgram(c->program);
    c->api.ReleaseCommandQueue(c->queue);
    c->api.ReleaseContext(c->context);
}

/* `from` NULL: zeros. */
static mr_cl_memory memory(card *c, const void *from, size_t len)
{
    int32_t code;
    uint8_t *zeros = from ? NULL : pixels_take(len);
    mr_cl_memory m = c->api.CreateBuffer(c->context, MR_CL_MEM_READ_WRITE, len, NULL, &code);
    assert_int_equal(code, 0);
    assert_int_equal(c->api.EnqueueWriteBuffer(c->queue, m, 1, 0, len, from ? from : zeros, 0, NULL, NULL), 0);
    free(zeros);
    assert_true(c->buffers < BUFFERS);
    return c->buffer[c->buffers++] = m;
}

typedef struct argument {
    size_t len;
    const void *at;
} argument;

static void launch(card *c, const char *name, uint32_t items, uint32_t rows, const argument *arguments, uint32_t count)
{
    int32_t code;
    size_t global[2] = {(items + GROUP - 1) / GROUP * GROUP, rows}, local[2] = {GROUP, 1};
    mr_cl_kernel k = c->api.CreateKernel(c->program, name, &code);
    assert_int_equal(code, 0);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(c->api.SetKernelArg(k, i, arguments[i].len, arguments[i].at), 0);
    assert_int_equal(c->api.EnqueueNDRangeKernel(c->queue, k, 2, NULL, global, local, 0, NULL, NULL), 0);
    assert_int_equal(c->api.Finish(c->queue), 0);
    c->api.ReleaseKernel(k);
}
#define ARG(value)                                                                                                     \
    {                                                                                                                  \
        sizeof(value), &(value)                                                                                        \
    }
#define LAUNCH(c, name, items, rows, ...)                                                                              \
    launch(c, name, items, rows, (const argument[]){__VA_ARGS__}, MR_COUNT(((const argument[]){__VA_ARGS__})))

static void run(card *c, const mr_decode_slab *s, float *values, uint32_t *failed)
{
    mr_cl_memory in[MR_DECODE_SECTIONS];
    for (int i = 0; i < MR_DECODE_SECTIONS; i++) {
        uint64_t end = i + 1 < MR_DECODE_SECTIONS ? s->at[i + 1] : s->len;
        in[i] = memory(c, s->memory.data + s->at[i], end - s->at[i]);
    }
    size_t flags = s->images * sizeof *failed, tensors = (size_t)s->images * SIZE * SIZE * 3 * sizeof *values;
    mr_cl_memory coef = memory(c, NULL, s->coef), samples = memory(c, NULL, s->samples), rgb = memory(c, NULL, s->rgb);
    mr_cl_memory lines = memory(c, NULL, s->lines), out = memory(c, NULL, tensors), flag = memory(c, NULL, flags);
    mr_cl_memory *images = &in[MR_DECODE_IMAGES], *weights = &in[MR_DECODE_WEIGHTS], *starts = &in[MR_DECODE_STARTS];
    LAUNCH(c, "mr_jpeg_entropy", s->parts, 1, ARG(in[MR_DECODE_BYTES]), ARG(*images), ARG(in[MR_DECODE_PARTS]),
           ARG(s->parts), ARG(in[MR_DECODE_LUTS]), ARG(coef), ARG(flag));
    LAUNCH(c, "mr_jpeg_idct", (s->most_blocks + 7) / 8 * GROUP, s->images, ARG(*images), ARG(in[MR_DECODE_QUANTS]),
           ARG(coef), ARG(samples));
    LAUNCH(c, "mr_jpeg_pixels", s->most_pixels, s->images, ARG(*images), ARG(samples), ARG(rgb));
    LAUNCH(c, "mr_jpeg_across", s->most_lines, s->images, ARG(*images), ARG(*weights), ARG(*starts), ARG(rgb),
           ARG(lines), ARG(s->size));
    LAUNCH(c, "mr_jpeg_down", SIZE * SIZE, s->images, ARG(*images), ARG(*weights), ARG(*starts), ARG(lines),
           ARG(in[MR_DECODE_NORM]), ARG(out), ARG(s->size));
    assert_int_equal(c->api.EnqueueReadBuffer(c->queue, flag, 1, 0, flags, failed, 0, NULL, NULL), 0);
    assert_int_equal(c->api.EnqueueReadBuffer(c->queue, out, 1, 0, tensors, values, 0, NULL, NULL), 0);
}

/* A batch of drawn pictures; every third one is damaged after its entries were made. */
static void plan(mr_random *rnd, mr_decode_slab *slab)
{
    static const float mean[3] = {0.485F, 0.456F, 0.406F}, std[3] = {0.229F, 0.224F, 0.225F};
    mr_error err;
    bool taken;
    mr_jpeg_decoder *jpeg = mr_jpeg_decoder_new();
    mr_decode_plan *p = mr_decode_plan_new(SIZE);
    assert_true(jpeg && p);
    assert_int_equal(mr_decode_plan_begin(p, mean, std, &err), MR_OK);
    for (unsigned i = 0; i < PICTURES; i++) {
        picture file = jpeg_draw(rnd, i);
        mr_image_facts f = pixels_facts(file);
        mr_buf seek = {0};
        mr_jpeg_seek_make(jpeg, file.bytes, file.len, i % 5, &seek);
        if (i % 3 == 2)
            file.bytes[file.len - 3 - mr_random_below(rnd, file.len / 4)] ^= 0x10;
        mr_decode_picture d = {.bytes = file.bytes, .len = file.len, .seek = seek.data, .seek_len = seek.len};
        d.width = f.width;
        d.height = f.height;
        d.region = pixels_region(rnd, f.width, f.height);
        d.orientation = (uint8_t)(1 + i % 8);
        d.resize = (mr_resize_job){.in_width = d.region.width, .in_height = d.region.height, .flip = i & 1};
        mr_orient_size(d.orientation, &d.resize.in_width, &d.resize.in_height);
        d.resize.out_width = d.resize.out_height = d.resize.crop_width = d.resize.crop_height = SIZE;
        assert_int_equal(mr_decode_plan_add(p, &d, &taken, &err), MR_OK);
        mr_buf_free(&seek);
        picture_free(&file);
    }
    assert_int_equal(mr_decode_plan_pack(p, slab, &err), MR_OK);
    assert_true(slab->images > PICTURES / 2);
    mr_decode_plan_free(p);
    mr_jpeg_decoder_free(jpeg);
}

static void a_batch_as_in_plain_c(void **state)
{
    (void)state;
    card c;
    if (!card_open(&c)) {
        print_message("skipped: no OpenCL device\n");
        skip();
    }
    mr_error err;
    mr_random rnd = support_random();
    mr_decode_slab slab = {.len = 0};
    plan(&rnd, &slab);
    size_t tensor = (size_t)SIZE * SIZE * 3;
    float *want = pixels_take(slab.images * tensor * sizeof *want),
          *got = pixels_take(slab.images * tensor * sizeof *got);
    uint32_t want_failed[PICTURES], got_failed[PICTURES], sound = 0;
    assert_int_equal(mr_decode_run_plain(&slab, want, want_failed, &err), MR_OK);
    build(&c);
    run(&c, &slab, got, got_failed);
    for (uint32_t i = 0; i < slab.images; i++) {
        assert_int_equal(got_failed[i], want_failed[i]);
        if (!want_failed[i])
            assert_memory_equal(got + i * tensor, want + i * tensor, tensor * sizeof *want);
        sound += !want_failed[i];
    }
    assert_true(sound > 0);
    print_message("%u of %u pictures are equal, the others are flagged by both\n", sound, slab.images);
    card_close(&c);
    mr_decode_slab_free(&slab);
    free(want);
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_batch_as_in_plain_c)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

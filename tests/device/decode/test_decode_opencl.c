/* test_decode_opencl.c - the kernels that decode JPEGs give the same tensors and flags on an OpenCL device as in plain
 * C.  Skipped where there is no OpenCL.
 * Covers launch/decode.c, kernels/jpeg_entropy.cl, jpeg_idct.cl, jpeg_pixels.cl, jpeg_resize.cl. */
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "image/jpeg/seek.h"
#include "tests/support/images/coded.h"
#include "tests/support/images/jpeg.h"
#include "tests/support/images/pixels.h"

enum { PICTURES = 12, SIZE = 12, CANARY = 64 };

typedef struct lent { /* memory of the device, with a canary at either end */
    void *at;
    size_t bytes;
} lent;

typedef struct iface {
    mr_device *device;
    lent all[16];
    unsigned count;
} iface;

/* `from` NULL: zeros. */
static void *memory(iface *c, const void *from, size_t bytes)
{
    mr_error err;
    uint8_t *filled = pixels_take(bytes + 2 * CANARY);
    lent *l = &c->all[c->count++];
    assert_true(c->count <= MR_COUNT(c->all));
    if (from)
        memcpy(filled + CANARY, from, bytes);
    memset(filled, 0xA5, CANARY);
    memset(filled + CANARY + bytes, 0xA5, CANARY);
    l->bytes = bytes;
    assert_int_equal(c->device->iface->alloc(c->device, bytes + 2 * CANARY, "tests", &l->at, &err), MR_OK);
    c->device->iface->upload(c->device, l->at, filled, bytes + 2 * CANARY);
    free(filled);
    return (uint8_t *)l->at + CANARY;
}

static void check_canaries(iface *c)
{
    uint8_t ends[2 * CANARY];
    for (unsigned i = 0; i < c->count; i++) {
        const uint8_t *at = c->all[i].at;
        c->device->iface->download(c->device, ends, at, CANARY);
        c->device->iface->download(c->device, ends + CANARY, at + CANARY + c->all[i].bytes, CANARY);
        for (unsigned k = 0; k < sizeof ends; k++)
            assert_int_equal(ends[k], 0xA5);
    }
}

static void run(iface *c, const coded_batch *b, float *values, uint32_t *failed)
{
    mr_error err;
    const mr_coded *h = coded_head(b);
    const uint8_t *slab = b->slab.data;
    size_t flags = h->images * sizeof *failed, tensors = (size_t)h->slots * SIZE * SIZE * 3 * sizeof *values;
    const uint8_t *sections = memory(c, slab + h->sections_at, h->sections_bytes);
    mr_decode x = {.size = h->size, .records = memory(c, slab + h->records_at, h->records_bytes)};
    const struct {
        const void **to;
        uint64_t at;
    } places[] = {{&x.images, h->images_at}, {&x.parts, h->parts_at},     {&x.codes, h->codes_at},
                  {&x.quants, h->quants_at}, {&x.weights, h->weights_at}, {&x.starts, h->starts_at},
                  {&x.norm, h->norm_at}};
    for (size_t i = 0; i < MR_COUNT(places); i++)
        *places[i].to = sections + (places[i].at - h->sections_at);
    assert_int_equal(h->pieces, 1);
    memcpy(&x.piece, slab + h->pieces_at, sizeof x.piece);
    x.coef = memory(c, NULL, x.piece.coef);
    x.samples = memory(c, NULL, x.piece.samples);
    x.rgb = memory(c, NULL, x.piece.rgb);
    x.lines = memory(c, NULL, x.piece.lines);
    x.out = memory(c, NULL, tensors);
    x.failed = memory(c, NULL, flags);
    mr_run_decode(c->device, &x);
    c->device->iface->download(c->device, failed, x.failed, flags);
    c->device->iface->download(c->device, values, x.out, tensors);
    assert_int_equal(c->device->iface->wait(c->device, &err), MR_OK);
    check_canaries(c);
}

/* A batch of drawn pictures; every third one is damaged after its entries were made. */
static void plan(mr_random *rnd, coded_batch *batch)
{
    static const float mean[3] = {0.485F, 0.456F, 0.406F}, std[3] = {0.229F, 0.224F, 0.225F};
    mr_error err;
    bool taken;
    mr_jpeg_decoder *jpeg = mr_jpeg_decoder_new();
    assert_non_null(jpeg);
    assert_int_equal(coded_begin(batch, SIZE, &err), MR_OK);
    for (unsigned i = 0; i < PICTURES; i++) {
        picture file = jpeg_draw(rnd, i);
        mr_image_facts f = pixels_facts(file);
        mr_buf seek = {0};
        mr_jpeg_seek_make(jpeg, file.bytes, file.len, i % 5, &seek);
        if (i % 3 == 2)
            file.bytes[file.len - 3 - mr_random_below(rnd, file.len / 4)] ^= 0x10;
        mr_coded_picture d = {.bytes = file.bytes, .len = file.len, .seek = seek.data, .seek_len = seek.len};
        d.width = f.width;
        d.height = f.height;
        d.region = pixels_region(rnd, f.width, f.height);
        d.orientation = (uint8_t)(1 + i % 8);
        d.resize = (mr_resize_job){.in_width = d.region.width, .in_height = d.region.height, .flip = i & 1};
        mr_orient_size(d.orientation, &d.resize.in_width, &d.resize.in_height);
        d.resize.out_width = d.resize.out_height = d.resize.crop_width = d.resize.crop_height = SIZE;
        assert_int_equal(coded_add(batch, &d, &taken, &err), MR_OK);
        mr_buf_free(&seek);
        picture_free(&file);
    }
    assert_int_equal(coded_end(batch, mean, std, &err), MR_OK);
    assert_true(batch->count > PICTURES / 2);
    mr_jpeg_decoder_free(jpeg);
}

static void a_batch_as_in_plain_c(void **state)
{
    (void)state;
    iface c = {.count = 0};
    mr_error err;
    const mr_device_options one = {.threads = 1};
    mr_status status = mr_device_open("opencl", &one, &c.device, &err);
    if (status != MR_OK) {
        print_message("skipped: %s\n", err.text);
        skip();
    }
    mr_random rnd = support_random();
    coded_batch batch = {.count = 0};
    plan(&rnd, &batch);
    size_t tensor = (size_t)SIZE * SIZE * 3;
    float *want = pixels_take(batch.count * tensor * sizeof *want),
          *got = pixels_take(batch.count * tensor * sizeof *got);
    uint32_t want_failed[PICTURES], got_failed[PICTURES], sound = 0;
    assert_true(coded_run_plain(batch.slab.data, want, want_failed));
    run(&c, &batch, got, got_failed);
    for (uint32_t i = 0; i < batch.count; i++) {
        assert_int_equal(got_failed[i], want_failed[i]);
        if (!want_failed[i])
            assert_memory_equal(got + i * tensor, want + i * tensor, tensor * sizeof *want);
        sound += !want_failed[i];
    }
    assert_true(sound > 0);
    print_message("%u of %u pictures are equal, the others are flagged by both\n", sound, batch.count);
    for (unsigned i = 0; i < c.count; i++)
        c.device->iface->free(c.device, c.all[i].at);
    mr_device_close(c.device);
    coded_free(&batch);
    free(want);
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_batch_as_in_plain_c)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

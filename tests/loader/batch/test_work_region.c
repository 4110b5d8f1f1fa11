/* test_work_region.c - what of a picture a loader decodes for a view.
 * Invariant tested: batches are those of whole pictures, decoded by libjpeg-turbo, cut and resized; of pictures whose
 * middle is kept only what that middle is made of is decoded. */
#include <stdlib.h>
#include <string.h>

#include "loader/batch/work.h"
#include "tests/support/shards/loader.h"

enum { SAMPLES = 40 };

typedef struct by_the_book {
    mr_work work;
    mr_worker worker;      /* libjpeg-turbo, whole pictures */
    uint64_t asked, whole; /* pixels of what the loader decodes, and of the boxes */
} by_the_book;

static uint8_t *cut(const uint8_t *rgb, uint32_t width, const mr_view *v)
{
    size_t line = (size_t)v->width * 3;
    uint8_t *out = malloc(line * v->height);
    assert_non_null(out);
    for (size_t y = 0; y < v->height; y++)
        memcpy(out + line * y, rgb + ((size_t)width * (v->top + y) + v->left) * 3, line);
    return out;
}

static void *resized(by_the_book *b, const mr_resize_job *j)
{
    const mr_transform *t = &b->work.o.transform;
    void *out = malloc(mr_work_pixel_bytes(&b->work.o));
    mr_status s;
    assert_non_null(out);
    if (b->work.o.deliver == MR_DELIVER_U8_NHWC)
        s = mr_resize_u8(b->worker.resizer, j, out, NULL);
    else if (b->work.o.deliver == MR_DELIVER_F32_NCHW)
        s = mr_resize_f32(b->worker.resizer, j, t->mean, t->std, out, NULL);
    else
        s = mr_resize_bf16(b->worker.resizer, j, t->mean, t->std, out, NULL);
    assert_int_equal(s, MR_OK);
    return out;
}

/* The whole picture is decoded and turned, the box cut out of it, and all of that resized. */
static void expect_sample(by_the_book *b, const mr_batch *batch, uint64_t i)
{
    const mr_sample_facts *f = &batch->samples[i];
    const mr_transform *t = &b->work.o.transform;
    const size_t bytes = mr_work_pixel_bytes(&b->work.o);
    mr_error err;
    mr_row row;
    const uint8_t *rgb;
    if (mr_work_row(&b->work, f->sample, &row, &err) != MR_OK ||
        mr_work_fetch(&b->work, &b->worker, f->sample, &row, &err) != MR_OK)
        fail_msg("%s", err.text);
    const mr_view v = mr_work_view(&b->work, batch->epoch, f->item, &row);
    const mr_region all = {0, 0, row.width, row.height}, part = mr_work_region(&b->work, &row, &v);
    const uint8_t orientation = t->apply_orientation ? row.orientation : 1;
    uint32_t width = row.width, height = row.height;
    const picture p = {b->worker.bytes.data, row.image_len};
    mr_image_facts facts;
    if (mr_image_examine(p.bytes, p.len, NULL, &facts, &err) != MR_OK ||
        mr_pixels_decode(b->worker.pixels, p.bytes, p.len, &facts, &all, &rgb, &err) != MR_OK ||
        mr_orient_pixels(b->worker.pixels, orientation, rgb, &all, &rgb, &err) != MR_OK)
        fail_msg("%s", err.text);
    mr_orient_size(orientation, &width, &height);
    assert_true(f->left == v.left && f->top == v.top && f->crop_width == v.width && f->crop_height == v.height);
    assert_true(t->kind == MR_TRANSFORM_TRAIN || (v.width == width && v.height == height));
    uint8_t *box = cut(rgb, width, &v);
    const mr_resize_job j = {.rgb = box,
                             .in_width = v.width,
                             .in_height = v.height,
                             .out_width = v.out_width,
                             .out_height = v.out_height,
                             .crop_left = v.crop_left,
                             .crop_top = v.crop_top,
                             .crop_width = t->size,
                             .crop_height = t->size,
                             .flip = v.flip,
                             .bicubic = t->bicubic,
                             .unrounded = t->unrounded};
    void *want = resized(b, &j);
    if (memcmp(want, (const uint8_t *)batch->data + bytes * i, bytes) != 0)
        fail_msg("sample %u, %u x %u, orientation %u: kind %d, %u of %u pixels, bicubic %d, unrounded %d, delivery %d",
                 (unsigned)f->sample, width, height, orientation, (int)t->kind, t->size, t->resize, t->bicubic,
                 t->unrounded, (int)b->work.o.deliver);
    b->asked += (uint64_t)part.width * part.height;
    b->whole += (uint64_t)v.width * v.height;
    free(want);
    free(box);
}

/* The share of the boxes' pixels that was asked for. */
static double expect_batches(const mr_dataset *ds, const mr_loader_options *o)
{
    by_the_book b = {.asked = 0};
    mr_loader *l = open_loader(ds, o);
    const mr_batch *batch;
    mr_status s;
    assert_int_equal(mr_work_open(&b.work, ds, o, NULL), MR_OK);
    assert_int_equal(mr_worker_init(&b.worker, &b.work, NULL), MR_OK);
    mr_pixels_scratch_libraries(b.worker.pixels);
    while ((s = mr_loader_next(l, &batch, NULL)) == MR_OK) {
        for (uint64_t i = 0; i < batch->count; i++)
            expect_sample(&b, batch, i);
        mr_batch_release(l, batch);
    }
    assert_int_equal(s, MR_END);
    mr_worker_free(&b.worker);
    mr_work_close(&b.work);
    mr_loader_free(l);
    return (double)b.asked / (double)b.whole;
}

static void batches_are_those_of_whole_pictures(void **state)
{
    char *dir = support_tmpdir();
    mr_random r = support_random();
    double sum = 0;
    int centres = 0;
    (void)state;
    make_pictures(dir, SAMPLES, 15, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    for (int i = 0; i < 60; i++) {
        mr_delivery deliver = (mr_delivery)(MR_DELIVER_U8_NHWC + i % 3);
        mr_loader_options o = {
            .split = "train", .global_batch = 9, .seed = (uint64_t)i, .tail = MR_TAIL_PARTIAL, .deliver = deliver};
        o.transform =
            (mr_transform){.kind = (mr_transform_kind)(i / 3 % 4 ? MR_TRANSFORM_CENTER : (int)mr_random_below(&r, 2)),
                           .flip = 0.5f,
                           .bicubic = (int)mr_random_below(&r, 2),
                           .apply_orientation = (int)mr_random_below(&r, 2),
                           .libjpeg = mr_random_below(&r, 4) == 0,
                           .unrounded = deliver != MR_DELIVER_U8_NHWC && mr_random_below(&r, 2)};
        o.transform.size = 1 + (uint32_t)mr_random_below(&r, 30);
        o.transform.resize = o.transform.size + (uint32_t)mr_random_below(&r, o.transform.size + 1);
        double share = expect_batches(ds, &o);
        if (o.transform.kind == MR_TRANSFORM_CENTER) {
            sum += share;
            centres++;
        } else if (share < 1 || share > 1) {
            fail_msg("kind %d: %g of the box is asked for", (int)o.transform.kind, share);
        }
    }
    print_message("of the middle's pictures %.2f was decoded\n", sum / centres);
    assert_true(sum / centres < 0.75);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* 1024 x 768 to 341 x 256 of which 224 x 224 at 58, 16 are kept, worked out by hand: column 58 is made of 173 and more,
 * column 281 of 847 and less. */
static void the_middle_of_a_photograph(void **state)
{
    char *dir = support_tmpdir();
    const mr_loader_options o = {.split = "train",
                                 .global_batch = 1,
                                 .deliver = MR_DELIVER_U8_NHWC,
                                 .transform = {.kind = MR_TRANSFORM_CENTER, .size = 224, .apply_orientation = 1}};
    const mr_row upright = {.width = 1024, .height = 768, .orientation = 1};
    const mr_row turned = {.width = 768, .height = 1024, .orientation = 6};
    mr_work w;
    (void)state;
    make_pictures(dir, 1, 1, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    assert_int_equal(mr_work_open(&w, ds, &o, NULL), MR_OK);
    mr_view v = mr_work_view(&w, 0, 0, &upright);
    assert_true(v.left == 0 && v.top == 0 && v.width == 1024 && v.height == 768);
    mr_region g = mr_work_region(&w, &upright, &v);
    assert_true(g.left == 173 && g.top == 47 && g.width == 675 && g.height == 675);
    v = mr_work_view(&w, 0, 0, &turned);
    g = mr_work_region(&w, &turned, &v);
    assert_true(g.left == 47 && g.top == 1024 - 173 - 675 && g.width == 675 && g.height == 675);
    mr_work_close(&w);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_those_of_whole_pictures),
        cmocka_unit_test(the_middle_of_a_photograph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_loader.c - batches through the public library: what comes.
 * Invariant tested: it is the plan's, the same for any ranks and threads and from any cursor on.
 * Covers batch/batch.c, batch/batch_finish.c, batch/batch_queue.c, batch/options.c. */
#include <string.h>

#include "base/error.h"
#include "loader/order/schedule.h"
#include "tests/support/shards/loader.h"
#include "tests/support/shards/shard.h"

typedef struct shape {
    unsigned world, threads, prefetch;
} shape;

static const shape shapes[] = {{1, 0, 0}, {2, 3, 1}, {8, 1, 3}, {4, 0, 5}, {1, 4, 2}};

/* ---- what comes ------------------------------------------------------------------------------------------- */

static void check_shapes(const mr_dataset *ds, const mr_loader_options *o)
{
    seen_list first = run_ranks(ds, *o, 1, 0, 0);
    assert_int_equal(first.status, MR_END);
    assert_true(first.count > 0);
    for (size_t i = 1; i < MR_COUNT(shapes); i++) {
        mr_loader_options other = *o;
        other.prefetch = shapes[i].prefetch;
        seen_list s = run_ranks(ds, other, shapes[i].world, shapes[i].threads, 0);
        assert_int_equal(s.status, MR_END);
        assert_int_equal(s.batches, first.batches * shapes[i].world);
        assert_same_seen(&first, 0, &s);
        seen_free(&s);
    }
    seen_free(&first);
}

static void test_any_ranks_and_threads(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 9, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    for (int deliver = MR_DELIVER_ENCODED; deliver <= MR_DELIVER_BF16_NCHW; deliver++)
        for (int tail = MR_TAIL_DROP; tail <= MR_TAIL_PARTIAL; tail++) {
            mr_loader_options o = usual_options((mr_delivery)deliver, (mr_tail)tail);
            o.transform.kind = (mr_transform_kind)((deliver + tail) % 3);
            o.shuffle = (mr_shuffle)(tail % 3);
            o.window_bytes = 20000;
            check_shapes(ds, &o);
        }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* Encoded delivery against the plan and against mr_dataset_read(). */
static void test_encoded_is_what_was_stored(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    draw_dataset(dir);
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader_options o = {
        .split = "train", .global_batch = 8, .threads = 2, .seed = 3, .tail = MR_TAIL_PAD, .epochs = 2, .with_meta = 1};
    mr_loader *l = open_loader(ds, &o);
    mr_order order;
    mr_schedule plan;
    assert_int_equal(mr_order_make(MR_SHUFFLE_FULL, 70, 3, 0, 0, &order, NULL), MR_OK);
    assert_int_equal(mr_schedule_make(&order, 8, 1, MR_TAIL_PAD, &plan, NULL), MR_OK);
    assert_int_equal(mr_loader_steps(l), 9);
    mr_sample_view v = {0};
    for (uint64_t k = 0; k < 18; k++) {
        const mr_batch *b;
        assert_int_equal(mr_loader_next(l, &b, NULL), MR_OK);
        assert_true(b->epoch == k / 9 && b->step == k % 9 && b->count == 8);
        for (uint64_t i = 0; i < 8; i++) {
            const mr_sample_facts *f = &b->samples[i];
            mr_slot slot = mr_schedule_slot(&plan, k / 9, k % 9, 0, i);
            assert_true(f->sample == slot.sample && f->weight == slot.weight);
            assert_int_equal(mr_dataset_read(ds, "train", f->sample, &v, NULL), MR_OK);
            assert_int_equal(f->length, v.image_len);
            assert_memory_equal((const uint8_t *)b->data + f->offset, v.image, v.image_len);
            assert_int_equal(f->meta_len, v.meta_len);
            assert_memory_equal(f->meta, v.meta, v.meta_len);
            assert_true(f->label == v.label && f->width == v.width && f->height == v.height && f->codec == v.codec &&
                        f->flags == v.flags && f->bits == v.bits && f->components == v.components);
            assert_true(f->crop_width > 0 && f->left + f->crop_width <= f->width);
            assert_true(f->crop_height > 0 && f->top + f->crop_height <= f->height);
        }
        mr_batch_release(l, b);
    }
    const mr_batch *none = NULL;
    assert_int_equal(mr_loader_next(l, &none, NULL), MR_END);
    assert_int_equal(mr_loader_next(l, &none, NULL), MR_END);
    assert_null(none);
    mr_sample_view_free(&v);
    mr_loader_free(l);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* bfloat16 is float32 rounded, uint8 the same pixels before normalising: the three deliveries tell one story. */
static void test_deliveries_agree(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 16, 16, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader *l[3];
    const mr_batch *b[3];
    for (int i = 0; i < 3; i++) {
        mr_loader_options o = usual_options((mr_delivery)(MR_DELIVER_U8_NHWC + i), MR_TAIL_DROP);
        l[i] = open_loader(ds, &o);
        assert_int_equal(mr_loader_next(l[i], &b[i], NULL), MR_OK);
    }
    const uint8_t *u8 = b[0]->data;
    const float *f32 = b[1]->data;
    const uint16_t *bf16 = b[2]->data;
    assert_true(b[0]->data_bytes == 8 * 24 * 24 * 3 && b[1]->data_bytes == b[0]->data_bytes * 4 &&
                b[2]->data_bytes == b[0]->data_bytes * 2);
    for (size_t n = 0; n < 8; n++)
        for (size_t c = 0; c < 3; c++)
            for (size_t at = 0; at < 24 * 24; at++) {
                float want = ((float)u8[(n * 24 * 24 + at) * 3 + c] / 255 - 0.5f) / 0.5f, back;
                float got = f32[(n * 3 + c) * 24 * 24 + at];
                uint32_t bits = (uint32_t)bf16[(n * 3 + c) * 24 * 24 + at] << 16;
                memcpy(&back, &bits, sizeof back);
                assert_true(got - want < 1e-5f && want - got < 1e-5f);
                assert_true(back - got <= 0.004f && got - back <= 0.004f);
            }
    for (int i = 0; i < 3; i++)
        mr_loader_free(l[i]);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* ---- cursors and ends --------------------------------------------------------------------------------------- */

static void test_resume_anywhere(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 9, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    for (int tail = MR_TAIL_DROP; tail <= MR_TAIL_PARTIAL; tail++) {
        mr_delivery deliver = tail == MR_TAIL_PAD ? MR_DELIVER_U8_NHWC : MR_DELIVER_ENCODED;
        mr_loader_options o = usual_options(deliver, (mr_tail)tail);
        seen_list all = run_ranks(ds, o, 1, 0, 0);
        uint64_t steps = all.batches / 2;
        for (uint64_t stop = 1; stop < 2 * steps; stop++) {
            seen_list head = run_ranks(ds, o, 2, 3, stop);
            assert_true(head.cursor.epoch == stop / steps);
            mr_loader_options rest = o;
            rest.start = head.cursor;
            rest.epochs = 2 - head.cursor.epoch;
            seen_list one = run_ranks(ds, rest, 1, 1, 0), four = run_ranks(ds, rest, 4, 0, 0);
            assert_int_equal(one.status, MR_END);
            assert_same_seen(&all, head.count, &one);
            assert_same_seen(&all, head.count, &four);
            seen_free(&head);
            seen_free(&one);
            seen_free(&four);
        }
        seen_free(&all);
    }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

static void expect_end(const mr_dataset *ds, mr_loader_options o)
{
    for (unsigned threads = 0; threads < 3; threads++) {
        seen_list s = run_ranks(ds, o, 1, threads, 0);
        assert_true(s.status == MR_END && s.count == 0);
        seen_free(&s);
    }
}

static void test_nothing_to_give(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 5, 9, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader_options o = usual_options(MR_DELIVER_ENCODED, MR_TAIL_DROP);
    o.epochs = UINT64_MAX;
    expect_end(ds, o); /* a batch of 8 of 5 samples: an epoch has no steps */
    o = usual_options(MR_DELIVER_ENCODED, MR_TAIL_PARTIAL);
    o.epochs = 1;
    o.start = (mr_cursor){.epoch = 7, .position = 5};
    expect_end(ds, o); /* after the last step of the only epoch */
    o.start = (mr_cursor){.epoch = UINT64_MAX, .position = 0};
    o.epochs = UINT64_MAX;
    expect_end(ds, o);
    /* A rank without a sample in the last step has an empty batch, not one step less. */
    o = usual_options(MR_DELIVER_F32_NCHW, MR_TAIL_PARTIAL);
    o.epochs = 3;
    seen_list s = run_ranks(ds, o, 8, 1, 0);
    assert_true(s.status == MR_END && s.batches == 3 * 8 && s.count == 3 * 5);
    seen_free(&s);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

static void test_misuse(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 20, 20, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    const mr_loader_options good = {.split = "train", .global_batch = 8};
    mr_loader_options o = good;
#define EXPECT(change, words)                                                                                          \
    do {                                                                                                               \
        o = good;                                                                                                      \
        change;                                                                                                        \
        expect_no_loader(ds, &o, MR_MISUSE, words);                                                                    \
    } while (0)
    EXPECT(o.split = NULL, "it has train");
    EXPECT(o.split = "trian", "it has train");
    EXPECT(o.global_batch = 0, "global batch");
    EXPECT(o.world = 3, "6 and 9");
    EXPECT((o.world = 2, o.rank = 2), "rank 2");
    EXPECT(o.threads = 100000, "threads");
    EXPECT(o.prefetch = 100000, "prefetch");
    EXPECT(o.start.position = 5, "position 5");
    EXPECT(o.start.position = 21, "position 21");
    EXPECT(o.shuffle = MR_SHUFFLE_WINDOW, "window");
    EXPECT(o.shuffle = (mr_shuffle)9, "shuffle");
    EXPECT(o.transform.size = 100000, "size");
    EXPECT((o.transform.kind = MR_TRANSFORM_CENTER, o.transform.size = 100, o.transform.resize = 99), "resize 99");
    EXPECT(o.transform.scale_max = 2, "scale");
    EXPECT(o.transform.flip = 1.5f, "flip");
    EXPECT((o.transform.std[0] = 1, o.transform.std[1] = -1), "std");
    mr_allocator half = {0};
    EXPECT(o.allocator = &half, "allocator");
#undef EXPECT
    mr_loader_free(NULL);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_ranks_and_threads), cmocka_unit_test(test_encoded_is_what_was_stored),
        cmocka_unit_test(test_deliveries_agree),      cmocka_unit_test(test_resume_anywhere),
        cmocka_unit_test(test_nothing_to_give),       cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

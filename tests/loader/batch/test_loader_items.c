/* test_loader_items.c - a loader over a list of samples instead of the split.
 * Invariant tested: items are what is counted, ordered, resumed and keyed by; a list of all samples in order is as
 * none. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "shards/dataset/dataset.h"
#include "loader/order/augment.h"
#include "loader/order/schedule.h"
#include "tests/support/shards/loader.h"

enum { SAMPLES = 23 };

typedef struct list {
    uint64_t items[64];
    uint64_t count;
} list;

/* Some samples several times, some not at all. */
static list draw_list(uint64_t count)
{
    mr_random r = support_random();
    list l = {.count = count};
    for (uint64_t i = 0; i < count; i++)
        l.items[i] = i % 4 && i ? l.items[i - 1] : mr_random_below(&r, SAMPLES);
    return l;
}

static mr_loader_options options(const list *l, mr_delivery deliver, mr_tail tail)
{
    mr_loader_options o = usual_options(deliver, tail);
    o.items = l->items;
    o.item_count = l->count;
    return o;
}

static mr_dataset *pictures(const char *dir, const int *broken)
{
    make_pictures(dir, SAMPLES, 9, broken);
    return open_dataset_at(dir);
}

/* ---- what comes -------------------------------------------------------------------------------------------------- */

/* Every fact of an item against the plan, the list and the sample itself. */
static void check_plan(const mr_dataset *ds, const mr_loader_options *o, const list *l)
{
    mr_loader *loader = open_loader(ds, o);
    mr_order order;
    mr_schedule plan;
    mr_sample_view v = {0};
    const mr_batch *b;
    assert_int_equal(mr_order_make(o->shuffle, l->count, o->seed, 0, 0, &order, NULL), MR_OK);
    assert_int_equal(mr_schedule_make(&order, o->global_batch, 1, o->tail, &plan, NULL), MR_OK);
    assert_int_equal(mr_loader_steps(loader), plan.steps);
    for (uint64_t k = 0; k < 2 * plan.steps; k++) {
        assert_int_equal(mr_loader_next(loader, &b, NULL), MR_OK);
        assert_int_equal(b->count, mr_schedule_count(&plan, k % plan.steps, 0));
        for (uint64_t i = 0; i < b->count; i++) {
            const mr_sample_facts *f = &b->samples[i];
            mr_slot slot = mr_schedule_slot(&plan, k / plan.steps, k % plan.steps, 0, i);
            assert_true(f->item == slot.sample && f->weight == slot.weight && f->sample == l->items[f->item]);
            assert_int_equal(mr_dataset_read(ds, "train", f->sample, &v, NULL), MR_OK);
            assert_true(f->hash == mr_hash64(v.image, v.image_len) && f->label == v.label);
            assert_int_equal(f->meta_len, v.meta_len);
            assert_memory_equal(f->meta, v.meta, v.meta_len);
            mr_view view = mr_view_train(&o->transform, o->seed, b->epoch, f->item, v.width, v.height);
            assert_true(o->transform.kind != MR_TRANSFORM_TRAIN ||
                        (f->left == view.left && f->top == view.top && f->crop_width == view.width &&
                         f->crop_height == view.height && f->flip == view.flip));
        }
        mr_batch_release(loader, b);
    }
    assert_int_equal(mr_loader_next(loader, &b, NULL), MR_END);
    mr_sample_view_free(&v);
    mr_loader_free(loader);
}

static void test_plan(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    mr_dataset *ds = pictures(dir, NULL);
    list l = draw_list(53);
    for (int tail = MR_TAIL_DROP; tail <= MR_TAIL_PARTIAL; tail++) {
        mr_loader_options o = options(&l, MR_DELIVER_ENCODED, (mr_tail)tail);
        o.transform.kind = MR_TRANSFORM_TRAIN;
        o.transform.apply_orientation = 0;
        check_plan(ds, &o, &l);
    }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

static void test_ranks_threads_and_cursors(void **state)
{
    (void)state;
    static const unsigned shapes[][2] = {{2, 3}, {4, 0}, {1, 4}, {8, 1}};
    char *dir = support_tmpdir();
    mr_dataset *ds = pictures(dir, NULL);
    list l = draw_list(45);
    for (int n = 0; n < 6; n++) {
        mr_loader_options o = options(&l, n % 2 ? MR_DELIVER_F32_NCHW : MR_DELIVER_ENCODED, (mr_tail)(n % 3));
        o.shuffle = (mr_shuffle)(n % 3);
        o.window_bytes = 20000;
        o.transform.kind = MR_TRANSFORM_TRAIN;
        seen_list all = run_ranks(ds, o, 1, 0, 0);
        assert_int_equal(all.status, MR_END);
        for (size_t i = 0; i < MR_COUNT(shapes); i++) {
            seen_list s = run_ranks(ds, o, shapes[i][0], shapes[i][1], 0);
            assert_int_equal(s.status, MR_END);
            assert_same_seen(&all, 0, &s);
            seen_free(&s);
        }
        for (uint64_t batches = 1; batches < all.batches; batches += 3) {
            seen_list first = run_ranks(ds, o, 2, 1, batches);
            mr_loader_options rest = o;
            rest.start = first.cursor;
            rest.epochs = 2 - first.cursor.epoch;
            seen_list second = run_ranks(ds, rest, 4, 0, 0);
            assert_int_equal(second.status, MR_END);
            assert_int_equal(first.count + second.count, all.count);
            assert_same_seen(&all, first.count, &second);
            seen_free(&first);
            seen_free(&second);
        }
        seen_free(&all);
    }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* The split's own samples, as a list: the same bytes and the same chance. */
static void test_list_of_all(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    mr_dataset *ds = pictures(dir, NULL);
    list l = {.count = SAMPLES};
    for (uint64_t i = 0; i < SAMPLES; i++)
        l.items[i] = i;
    for (int deliver = MR_DELIVER_ENCODED; deliver <= MR_DELIVER_F32_NCHW; deliver++) {
        mr_loader_options with = options(&l, (mr_delivery)deliver, MR_TAIL_PAD), without = with;
        without.items = NULL;
        without.item_count = 0;
        seen_list a = run_ranks(ds, with, 2, 1, 0), b = run_ranks(ds, without, 2, 1, 0);
        assert_int_equal(a.count, b.count);
        assert_same_seen(&a, 0, &b);
        seen_free(&a);
        seen_free(&b);
    }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* A picture that comes several times in an epoch is cut differently each time, or, by a fixed rule, the same. */
static void test_chance_is_the_items(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    mr_dataset *ds = pictures(dir, NULL);
    list l = {.count = 16};
    for (uint64_t i = 0; i < 16; i++)
        l.items[i] = 2; /* a JPEG */
    for (int kind = MR_TRANSFORM_TRAIN; kind <= MR_TRANSFORM_SQUARE; kind++) {
        mr_loader_options o = options(&l, MR_DELIVER_U8_NHWC, MR_TAIL_DROP);
        o.transform.kind = (mr_transform_kind)kind;
        seen_list s = run_ranks(ds, o, 1, 0, 1);
        size_t equal = 0;
        assert_int_equal(s.count, 8);
        for (size_t i = 1; i < s.count; i++)
            equal += s.items[i].bytes == s.items[0].bytes;
        if (kind == MR_TRANSFORM_TRAIN)
            assert_true(equal < 3);
        else
            assert_int_equal(equal, 7);
        seen_free(&s);
    }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* ---- what is refused, what is damaged ---------------------------------------------------------------------------- */

static void test_refusals(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    mr_dataset *ds = pictures(dir, NULL);
    list l = draw_list(20);
    mr_loader_options o = options(&l, MR_DELIVER_ENCODED, MR_TAIL_DROP);
    l.items[19] = SAMPLES;
    expect_no_loader(ds, &o, MR_MISUSE, "item 19 is sample 23, but train has 23 samples");
    l.items[19] = UINT64_MAX;
    expect_no_loader(ds, &o, MR_MISUSE, "item 19");
    o.item_count = 19;
    mr_loader_free(open_loader(ds, &o));
    o.items = NULL;
    expect_no_loader(ds, &o, MR_MISUSE, "without a list");
    o.items = l.items;
    o.item_count = 0;
    o.tail = MR_TAIL_PAD;
    seen_list none = run_ranks(ds, o, 1, 1, 0);
    assert_true(none.status == MR_END && none.count == 0);
    seen_free(&none);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* A broken picture: what stands for it is another item, and says which. */
static void test_bad_items(void **state)
{
    (void)state;
    static const int broken[] = {2, -1};
    char *dir = support_tmpdir();
    mr_dataset *ds = pictures(dir, broken);
    list l = {.items = {2, 2, 7, 2, 0, 2, 2, 9}, .count = 8};
    mr_loader_options o = options(&l, MR_DELIVER_U8_NHWC, MR_TAIL_DROP);
    for (int rule = MR_ON_BAD_REPLACE; rule <= MR_ON_BAD_MASK; rule++) {
        const mr_batch *b;
        o.on_bad = (mr_on_bad)rule;
        mr_loader *loader = open_loader(ds, &o);
        assert_int_equal(mr_loader_next(loader, &b, NULL), MR_OK);
        assert_int_equal(b->replaced, 5);
        for (uint64_t i = 0; i < 8; i++) {
            const mr_sample_facts *f = &b->samples[i];
            assert_int_equal(l.items[f->item], f->sample);
            if (rule == MR_ON_BAD_MASK)
                assert_true((f->sample == 2) == (f->weight == 0) && (f->sample == 2) == (f->hash == 0));
            else
                assert_true(f->sample != 2 && f->weight == 1 && f->hash);
        }
        mr_loader_free(loader);
    }
    list hopeless = {.items = {2, 2, 2}, .count = 3};
    o = options(&hopeless, MR_DELIVER_U8_NHWC, MR_TAIL_PAD);
    o.on_bad = MR_ON_BAD_REPLACE;
    seen_list s = run_ranks(ds, o, 1, 1, 0);
    assert_int_equal(s.status, MR_BAD_DATA);
    seen_free(&s);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),        cmocka_unit_test(test_ranks_threads_and_cursors),
        cmocka_unit_test(test_list_of_all), cmocka_unit_test(test_chance_is_the_items),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_bad_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

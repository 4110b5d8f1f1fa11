/* test_loader_bad.c - damaged samples on the way to a batch.
 * Invariant tested: no damaged byte is given; the steps and the other samples stay as they are; what takes a bad
 * sample's place is the same for any ranks and threads; the first failure in the plan's order is the one told. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/support/shards/dataset_maker.h"
#include "shards/manifest/format.h"
#include "loader/order/order.h"
#include "tests/support/shards/loader.h"

enum { SAMPLES = 43, PER_SHARD = 9 };

static mr_loader_options options(mr_on_bad on_bad)
{
    return (mr_loader_options){
        .split = "train",
        .global_batch = 8,
        .seed = 5,
        .tail = MR_TAIL_PAD,
        .on_bad = on_bad,
        .epochs = 2,
        .with_meta = 1,
        .transform = {.size = 16, .flip = 0.5f},
    };
}

static bool is_bad(uint64_t n, const int *bad)
{
    for (; *bad >= 0; bad++)
        if ((uint64_t)*bad == n)
            return true;
    return false;
}

static void same_for_all_shapes(const mr_dataset *ds, const mr_loader_options *o, const seen_list *first)
{
    static const unsigned shapes[][2] = {{2, 3}, {8, 1}, {1, 4}, {4, 0}};
    for (size_t i = 0; i < MR_COUNT(shapes); i++) {
        seen_list s = run_ranks(ds, *o, shapes[i][0], shapes[i][1], 0);
        assert_int_equal(s.status, first->status);
        assert_int_equal(s.replaced, first->replaced);
        assert_same_seen(first, 0, &s);
        seen_free(&s);
    }
}

/* Against a run without damage: equal where the sample is good; else the next good one of the order, or zeros. */
static void check_places(const seen_list *whole, const seen_list *got, const int *bad, mr_on_bad on_bad)
{
    mr_order order;
    uint64_t replaced = 0;
    assert_int_equal(mr_order_make(MR_SHUFFLE_FULL, SAMPLES, 5, 0, 0, &order, NULL), MR_OK);
    assert_int_equal(got->count, whole->count);
    for (size_t i = 0; i < got->count; i++) {
        const seen *w = &whole->items[i], *g = &got->items[i];
        assert_true(w->epoch == g->epoch && w->step == g->step);
        if (!is_bad(w->sample, bad)) {
            assert_true(w->sample == g->sample && w->bytes == g->bytes && w->weight == g->weight && w->meta == g->meta);
            continue;
        }
        replaced++;
        if (on_bad == MR_ON_BAD_MASK) {
            assert_true(g->sample == w->sample && g->weight == 0 && g->label == -1 && g->meta == 0);
            continue;
        }
        uint64_t position = i % 48, next;
        do
            next = mr_order_at(&order, w->epoch, ++position % SAMPLES);
        while (is_bad(next, bad));
        assert_true(g->sample == next && g->weight == w->weight);
        for (size_t k = 0; k < whole->count; k++)
            if (whole->items[k].epoch == w->epoch && whole->items[k].sample == next)
                assert_true(whole->items[k].bytes == g->bytes && whole->items[k].meta == g->meta &&
                            whole->items[k].facts == g->facts);
    }
    assert_int_equal(got->replaced, replaced);
    assert_true(replaced > 0);
}

static void check_rules(const char *whole_dir, const char *dir, mr_delivery deliver, const int *bad)
{
    mr_dataset *whole = open_dataset_at(whole_dir), *ds = open_dataset_at(dir);
    mr_loader_options o = options(MR_ON_BAD_FAIL);
    o.deliver = deliver;
    seen_list want = run_ranks(whole, o, 1, 0, 0);
    assert_int_equal(want.status, MR_END);
    for (int rule = MR_ON_BAD_REPLACE; rule <= MR_ON_BAD_MASK; rule++) {
        o.on_bad = (mr_on_bad)rule;
        seen_list got = run_ranks(ds, o, 1, 0, 0);
        assert_int_equal(got.status, MR_END);
        check_places(&want, &got, bad, (mr_on_bad)rule);
        same_for_all_shapes(ds, &o, &got);
        seen_free(&got);
    }
    seen_free(&want);
    mr_dataset_free(whole);
    mr_dataset_free(ds);
}

static const int damaged[] = {0, 7, 8, 20, 21, 22, 42, -1};

static void test_damaged_records(void **state)
{
    (void)state;
    char *whole = support_tmpdir(), *dir = support_tmpdir();
    make_pictures(whole, SAMPLES, PER_SHARD, NULL);
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    for (size_t i = 0; damaged[i] >= 0; i++)
        (i % 2 ? hurt_meta : hurt_image)(dir, (uint64_t)damaged[i], PER_SHARD);
    for (int deliver = MR_DELIVER_ENCODED; deliver <= MR_DELIVER_U8_NHWC; deliver++)
        check_rules(whole, dir, (mr_delivery)deliver, damaged);
    support_tmpdir_remove(whole);
    support_tmpdir_remove(dir);
}

/* An index that is not the manifest's says nothing of any sample of its shard, whichever byte of it is another. */
static void test_damaged_index(void **state)
{
    (void)state;
    static const int third[] = {18, 19, 20, 21, 22, 23, 24, 25, 26, -1};
    char *whole = support_tmpdir(), *dir = support_tmpdir();
    make_pictures(whole, SAMPLES, PER_SHARD, NULL);
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    hurt_byte(dir, "train-00002.idx", MR_INDEX_HEADER + 4 * MR_INDEX_ROW + 48, 1); /* a label */
    check_rules(whole, dir, MR_DELIVER_ENCODED, third);
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader_options o = options(MR_ON_BAD_FAIL);
    seen_list s = run_ranks(ds, o, 1, 2, 0);
    assert_int_equal(s.status, MR_BAD_DATA);
    assert_non_null(
        strstr(s.error.text, "train-00002.idx: does not match the digest in the manifest; `millrace reindex`"));
    seen_free(&s);
    mr_dataset_free(ds);
    support_tmpdir_remove(whole);
    support_tmpdir_remove(dir);
}

/* Whole by their hashes, but no pictures: encoded delivery gives them, decoding does not. */
static void test_undecodable(void **state)
{
    (void)state;
    static const int broken[] = {2, 8, 13, 14, 42, -1};
    char *whole = support_tmpdir(), *dir = support_tmpdir();
    make_pictures(whole, SAMPLES, PER_SHARD, NULL);
    make_pictures(dir, SAMPLES, PER_SHARD, broken);
    check_rules(whole, dir, MR_DELIVER_F32_NCHW, broken);
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader_options o = options(MR_ON_BAD_FAIL);
    seen_list s = run_ranks(ds, o, 1, 2, 0);
    assert_true(s.status == MR_END && s.replaced == 0);
    seen_free(&s);
    mr_dataset_free(ds);
    support_tmpdir_remove(whole);
    support_tmpdir_remove(dir);
}

/* What a batch says about its bad samples: each once, in order, with a sentence. */
static void test_bad_samples_are_listed(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    hurt_image(dir, 7, PER_SHARD);
    hurt_image(dir, 20, PER_SHARD);
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader_options o = options(MR_ON_BAD_MASK);
    o.tail = MR_TAIL_PARTIAL;
    o.epochs = 1;
    mr_loader *l;
    const mr_batch *b;
    uint64_t found = 0, sum = 0;
    assert_int_equal(mr_loader_open(ds, &o, &l, NULL), MR_OK);
    while (mr_loader_next(l, &b, NULL) == MR_OK) {
        mr_bad_sample bad = {.struct_size = sizeof bad};
        mr_error err;
        for (uint64_t i = 0; i < b->replaced; i++, found++) {
            assert_int_equal(mr_batch_bad(b, i, &bad, &err), MR_OK);
            assert_true(b->samples[bad.slot].sample == bad.sample && !bad.padding);
            assert_int_equal(bad.error.status, MR_BAD_SAMPLE);
            assert_non_null(strstr(bad.error.text, "differs from what was ingested"));
            sum += bad.sample;
            mr_bad_sample first_abi = {.struct_size = offsetof(mr_bad_sample, padding), .padding = -1};
            assert_int_equal(mr_batch_bad(b, i, &first_abi, NULL), MR_OK);
            assert_true(first_abi.sample == bad.sample && first_abi.padding == -1);
        }
        assert_int_equal(mr_batch_bad(b, b->replaced, &bad, &err), MR_MISUSE);
        mr_batch_release(l, b);
    }
    assert_true(found == 2 && sum == 27);
    mr_loader_free(l);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* The place of the first bad sample in the plan, as a number of good batches in front of it. */
static uint64_t first_bad(const int *bad, uint64_t *sample)
{
    mr_order order;
    uint64_t position = 0;
    assert_int_equal(mr_order_make(MR_SHUFFLE_FULL, SAMPLES, 5, 0, 0, &order, NULL), MR_OK);
    while (!is_bad(*sample = mr_order_at(&order, 0, position), bad))
        position++;
    return position / 8;
}

static void test_fail(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    for (size_t i = 0; damaged[i] >= 0; i++)
        hurt_image(dir, (uint64_t)damaged[i], PER_SHARD);
    mr_dataset *ds = open_dataset_at(dir);
    uint64_t sample, batches = first_bad(damaged, &sample);
    char *words =
        support_path("train-%05llu.mdb: sample %llu (pictures/%llu): its image differs",
                     (unsigned long long)(sample / PER_SHARD), (unsigned long long)sample, (unsigned long long)sample);
    for (unsigned threads = 0; threads < 5; threads++)
        for (int again = 0; again < 5; again++) {
            mr_loader_options o = options(MR_ON_BAD_FAIL);
            const mr_batch *b;
            mr_error err, second;
            o.threads = threads;
            o.prefetch = 1 + (unsigned)again;
            mr_loader *l = open_loader(ds, &o);
            for (uint64_t k = 0; k < batches; k++) {
                assert_int_equal(mr_loader_next(l, &b, &err), MR_OK);
                mr_batch_release(l, b);
            }
            assert_int_equal(mr_loader_next(l, &b, &err), MR_BAD_SAMPLE);
            if (!strstr(err.text, words))
                fail_msg("\"%s\" is not about \"%s\"", err.text, words);
            assert_int_equal(mr_loader_next(l, &b, &second), MR_BAD_SAMPLE);
            assert_string_equal(err.text, second.text);
            assert_int_equal(mr_loader_next(l, &b, NULL), MR_BAD_SAMPLE);
            assert_int_equal(mr_loader_cursor(l).position, batches * 8);
            mr_loader_free(l);
        }
    free(words);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* `max_bad` are taken, the next one ends it, at the same batch for any threads. */
static void test_limit(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    for (size_t i = 0; damaged[i] >= 0; i++)
        hurt_image(dir, (uint64_t)damaged[i], PER_SHARD);
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader_options o = options(MR_ON_BAD_MASK);
    o.tail = MR_TAIL_PARTIAL;
    o.epochs = 1;
    o.epochs = 1;
    o.tail = MR_TAIL_PARTIAL;
    for (uint64_t limit = 1; limit <= 7; limit++) {
        seen_list first = {.batches = 0};
        o.max_bad = limit;
        for (unsigned threads = 0; threads < 4; threads++) {
            seen_list s = run_ranks(ds, o, 1, threads, 0);
            assert_true(s.replaced <= limit);
            if (limit < 7)
                assert_true(s.status == MR_BAD_SAMPLE && strstr(s.error.text, "bad samples allowed") &&
                            strstr(s.error.text, ": sample "));
            else
                assert_true(s.status == MR_END && s.replaced == 7);
            if (threads == 0)
                first = s;
            else
                assert_same_seen(&first, 0, &s);
            if (threads)
                seen_free(&s);
        }
        seen_free(&first);
    }
    /* Each counts once, however often it comes. */
    o.epochs = 3;
    o.max_bad = 7;
    seen_list s = run_ranks(ds, o, 1, 2, 0);
    assert_true(s.status == MR_END && s.replaced == 21);
    seen_free(&s);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* With 13 samples in batches of two times 4, rank 1 has 12 and then, as padding, 0 to 2: rank 0 counts 0. */
static void test_limit_and_padding(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 13, PER_SHARD, NULL);
    hurt_image(dir, 0, PER_SHARD);
    hurt_image(dir, 12, PER_SHARD);
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader_options o = options(MR_ON_BAD_MASK);
    o.tail = MR_TAIL_PARTIAL;
    o.epochs = 1;
    o.shuffle = MR_SHUFFLE_NONE;
    o.tail = MR_TAIL_PAD;
    o.epochs = 1;
    o.max_bad = 1;
    seen_list s = run_ranks(ds, o, 2, 1, 0);
    assert_true(s.status == MR_END && s.replaced == 3);
    seen_free(&s);
    hurt_image(dir, 1, PER_SHARD);
    s = run_ranks(ds, o, 2, 1, 0);
    assert_int_equal(s.status, MR_BAD_SAMPLE);
    seen_free(&s);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* A shard that is cut off or gone while it is read: a failure with its name, never a signal. */
static void test_shard_cut_off(void **state)
{
    (void)state;
    for (int gone = 0; gone < 2; gone++)
        for (unsigned threads = 0; threads < 4; threads += 3) {
            char *dir = support_tmpdir(), *mdb = support_path("%s/train-00002.mdb", dir);
            make_pictures(dir, SAMPLES, PER_SHARD, NULL);
            mr_dataset *ds = open_dataset_at(dir);
            mr_loader_options o = options(MR_ON_BAD_FAIL);
            if (gone)
                assert_int_equal(unlink(mdb), 0);
            else
                assert_int_equal(truncate(mdb, 5000), 0);
            seen_list s = run_ranks(ds, o, 1, threads, 0);
            assert_int_equal(s.status, MR_BAD_DATA);
            assert_non_null(strstr(s.error.text, "train-00002.mdb"));
            seen_free(&s);
            o.on_bad = MR_ON_BAD_REPLACE;
            s = run_ranks(ds, o, 2, threads, 0);
            assert_true(s.status == MR_END && s.replaced >= 18 && s.count == 96);
            for (size_t i = 0; i < s.count; i++)
                assert_true(s.items[i].sample / PER_SHARD != 2);
            seen_free(&s);
            mr_dataset_free(ds);
            free(mdb);
            support_tmpdir_remove(dir);
        }
}

static void test_nothing_good(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 10, PER_SHARD, NULL);
    for (uint64_t n = 0; n < 10; n++)
        hurt_image(dir, n, PER_SHARD);
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader_options o = options(MR_ON_BAD_REPLACE);
    seen_list s = run_ranks(ds, o, 1, 2, 0);
    assert_int_equal(s.status, MR_BAD_DATA);
    assert_non_null(strstr(s.error.text, "all 10 samples are damaged"));
    seen_free(&s);
    o.on_bad = MR_ON_BAD_MASK;
    s = run_ranks(ds, o, 1, 2, 0);
    assert_true(s.status == MR_END && s.replaced == s.count);
    seen_free(&s);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* A line of pixels, enlarged until its short side is `resize`, has millions of rows or columns, of which some in the
 * middle are kept.  Where they are more than a number holds, and only there, the sample is bad. */
static void test_long_pictures(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    made samples[] = {{.source = "usual", .image = make_png(20, 30, 2, 8, false)},
                      {.source = "tall", .image = make_png(1, 300000, 2, 8, false)},
                      {.source = "wide", .image = make_png(300000, 1, 2, 8, false)}};
    made_split split = {.name = "train", .samples = samples, .count = MR_COUNT(samples), .per_shard = 2};
    dataset_make(dir, &split, 1);
    mr_dataset *ds = open_dataset_at(dir);
    for (unsigned i = 0; i < 12; i++) {
        bool beyond = i & 1;
        mr_loader_options o = {.split = "train",
                               .global_batch = 3,
                               .shuffle = MR_SHUFFLE_NONE,
                               .transform = {.kind = MR_TRANSFORM_CENTER, .size = 16, .resize = beyond ? 16384 : 256}};
        o.deliver = i & 2 ? MR_DELIVER_F32_NCHW : MR_DELIVER_U8_NHWC;
        o.on_bad = (mr_on_bad)(i / 4);
        seen_list s = run_loader(ds, &o, 0);
        if (beyond && o.on_bad == MR_ON_BAD_FAIL) {
            assert_int_equal(s.status, MR_BAD_SAMPLE);
            assert_non_null(strstr(s.error.text, "train-00000.mdb: sample 1 (tall): 1 x 300000 pixels"));
        } else {
            assert_int_equal(s.status, MR_END);
            assert_int_equal(s.replaced, beyond ? 2 : 0);
        }
        seen_free(&s);
    }
    mr_dataset_free(ds);
    for (size_t i = 0; i < MR_COUNT(samples); i++)
        picture_free(&samples[i].image);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damaged_records),
        cmocka_unit_test(test_damaged_index),
        cmocka_unit_test(test_undecodable),
        cmocka_unit_test(test_bad_samples_are_listed),
        cmocka_unit_test(test_fail),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_limit_and_padding),
        cmocka_unit_test(test_shard_cut_off),
        cmocka_unit_test(test_nothing_good),
        cmocka_unit_test(test_long_pictures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

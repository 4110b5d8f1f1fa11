/* test_loader.c - batches through the public library.
 * Invariant tested: what comes is the plan's, the same for any ranks and threads and from any cursor on; memory is
 * bounded; a loader can be closed at any moment. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.h"
#include "hash.h"
#include "schedule.h"
#include "support_loader.h"
#include "support_shard.h"
#include "term.h"

typedef struct shape {
    unsigned world, threads, prefetch;
} shape;

static const shape shapes[] = {{1, 0, 0}, {2, 3, 1}, {8, 1, 3}, {4, 0, 5}, {1, 4, 2}};

static mr_loader_options options(mr_delivery deliver, mr_tail tail)
{
    return (mr_loader_options){
        .split = "train", .global_batch = 8, .seed = 5, .tail = tail, .deliver = deliver, .epochs = 2, .with_meta = 1,
        .transform = {.size = 24, .flip = 0.5f, .apply_orientation = tail == MR_TAIL_PAD},
    };
}

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
            mr_loader_options o = options((mr_delivery)deliver, (mr_tail)tail);
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
    mr_loader_options o = {.split = "train", .global_batch = 8, .threads = 2, .seed = 3, .tail = MR_TAIL_PAD,
                           .epochs = 2, .with_meta = 1};
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
        mr_loader_options o = options((mr_delivery)(MR_DELIVER_U8_NHWC + i), MR_TAIL_DROP);
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
        mr_loader_options o = options(tail == MR_TAIL_PAD ? MR_DELIVER_U8_NHWC : MR_DELIVER_ENCODED, (mr_tail)tail);
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
    mr_loader_options o = options(MR_DELIVER_ENCODED, MR_TAIL_DROP);
    o.epochs = UINT64_MAX;
    expect_end(ds, o);                          /* a batch of 8 of 5 samples: an epoch has no steps */
    o = options(MR_DELIVER_ENCODED, MR_TAIL_PARTIAL);
    o.epochs = 1;
    o.start = (mr_cursor){.epoch = 7, .position = 5};
    expect_end(ds, o);                          /* behind the last step of the only epoch */
    o.start = (mr_cursor){.epoch = UINT64_MAX, .position = 0};
    o.epochs = UINT64_MAX;
    expect_end(ds, o);
    /* A rank without a sample in the last step has an empty batch, not one step less. */
    o = options(MR_DELIVER_F32_NCHW, MR_TAIL_PARTIAL);
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
#define EXPECT(change, words)                              \
    do {                                                   \
        o = good;                                          \
        change;                                            \
        expect_no_loader(ds, &o, MR_MISUSE, words);        \
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

/* ---- memory ------------------------------------------------------------------------------------------------- */

typedef struct account {
    _Atomic size_t bytes, peak, calls, refuse_after;
    size_t shift;
} account;

static void *take(void *ctx, size_t bytes)
{
    account *a = ctx;
    uint8_t *block;
    if (a->calls++ >= a->refuse_after || posix_memalign((void **)&block, 64, bytes + 64) != 0)
        return NULL;
    a->bytes += bytes;
    if (a->bytes > a->peak)
        a->peak = a->bytes;
    memset(block, 0xAA, bytes + 64);
    return block + a->shift;
}

static void give_back(void *ctx, void *memory, size_t bytes)
{
    account *a = ctx;
    a->bytes -= bytes;
    free((uint8_t *)memory - a->shift);
}

static void test_allocator_and_bound(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 9, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    for (unsigned threads = 0; threads < 4; threads++) {
        for (unsigned prefetch = 1; prefetch < 5; prefetch += 3) {
            account a = {.refuse_after = SIZE_MAX};
            mr_allocator allocator = {take, give_back, &a};
            mr_loader_options o = options(MR_DELIVER_F32_NCHW, MR_TAIL_PAD);
            o.allocator = &allocator;
            o.threads = threads;
            o.prefetch = prefetch;
            o.epochs = 5;
            seen_list s = run_loader(ds, &o, 0);
            assert_int_equal(s.batches, 30);
            assert_int_equal(a.bytes, 0);
            /* Reused, not made anew: no more blocks than there may be batches. */
            assert_true(a.calls > 0 && a.calls <= prefetch + 2);
            assert_true(a.peak <= (prefetch + 2) * 8 * 24 * 24 * 3 * sizeof(float));
            seen_free(&s);
            o.deliver = MR_DELIVER_ENCODED;
            s = run_loader(ds, &o, 7);
            assert_int_equal(a.bytes, 0);
            seen_free(&s);
        }
    }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

static void test_allocator_refuses(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 9, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    for (unsigned threads = 0; threads < 3; threads++)
        for (size_t after = 0; after < 3; after++) {
            account a = {.refuse_after = after};
            mr_allocator allocator = {take, give_back, &a};
            mr_loader_options o = options(MR_DELIVER_ENCODED, MR_TAIL_PAD);
            o.allocator = &allocator;
            o.threads = threads;
            seen_list s = run_loader(ds, &o, 0);
            assert_true(s.status == MR_SYSTEM || s.status == MR_END);
            assert_true(after > 0 || (s.status == MR_SYSTEM && strstr(s.error.text, "out of memory")));
            assert_int_equal(a.bytes, 0);
            seen_free(&s);
            a = (account){.refuse_after = SIZE_MAX, .shift = 8};
            s = run_loader(ds, &o, 0);
            assert_true(s.status == MR_MISUSE && strstr(s.error.text, "aligned") && a.bytes == 0);
            seen_free(&s);
        }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

typedef struct late {
    mr_loader *loader;
    const mr_batch *batches[4];
    _Atomic int done;
} late;

static void *release_late(void *arg)
{
    late *r = arg;
    usleep(30000);
    r->done = 1;
    mr_batch_release(r->loader, r->batches[2]);
    return NULL;
}

/* A caller that holds all batches waits until another thread releases one; what is held stays as it is. */
static void test_hold_all(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 9, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    for (unsigned threads = 0; threads < 4; threads += 3) {
        mr_loader_options o = options(MR_DELIVER_ENCODED, MR_TAIL_PAD);
        o.threads = threads;
        late r = {.loader = open_loader(ds, &o)};
        pthread_t thread;
        const mr_batch *fifth;
        uint64_t before[4];
        for (int i = 0; i < 4; i++) {
            assert_int_equal(mr_loader_next(r.loader, &r.batches[i], NULL), MR_OK);
            before[i] = mr_hash64(r.batches[i]->data, r.batches[i]->data_bytes);
        }
        assert_int_equal(pthread_create(&thread, NULL, release_late, &r), 0);
        assert_int_equal(mr_loader_next(r.loader, &fifth, NULL), MR_OK);
        assert_true(r.done && fifth->step == 4);
        for (int i = 0; i < 4; i++)
            if (i != 2)
                assert_true(r.batches[i]->step == (uint64_t)i &&
                            mr_hash64(r.batches[i]->data, r.batches[i]->data_bytes) == before[i]);
        pthread_join(thread, NULL);
        mr_batch_release(r.loader, NULL);
        mr_loader_free(r.loader);
    }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* ---- closing ------------------------------------------------------------------------------------------------ */

typedef struct consumer {
    mr_loader *loader;
    uint64_t batches;               /* taken and held: then it waits in mr_loader_next() */
    _Atomic uint64_t calls;
    mr_status status;
} consumer;

static void *consume(void *arg)
{
    consumer *c = arg;
    const mr_batch *b;
    do
        c->calls++;
    while ((c->status = mr_loader_next(c->loader, &b, NULL)) == MR_OK && c->calls <= c->batches);
    return NULL;
}

static _Atomic bool closing;

/* Memory that is not to be had before the loader is being closed. */
static void *take_late(void *ctx, size_t bytes)
{
    while (!closing)
        usleep(200);
    usleep(10000);
    return take(ctx, bytes);
}

/* Closes while another thread is in its call number `batches` + 1; seconds it took. */
static double close_in_use(const mr_dataset *ds, const mr_loader_options *o, uint64_t batches, useconds_t wait)
{
    closing = false;
    consumer c = {.loader = open_loader(ds, o), .batches = batches};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, consume, &c), 0);
    while (c.calls <= batches)
        usleep(100);
    usleep(20000 + wait);           /* from counting to being inside */
    double begin = mr_seconds();
    closing = true;
    mr_loader_free(c.loader);
    double took = mr_seconds() - begin;
    pthread_join(thread, NULL);
    /* The first batch may have come after all, if this thread was kept from running for so long. */
    assert_true(c.status == MR_END || batches == 0);
    return took;
}

static void test_close_any_time(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 9, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    double best = 1e9;
    for (unsigned threads = 0; threads < 6; threads++)
        for (useconds_t wait = 0; wait < 4000; wait = wait * 4 + 700) {
            mr_loader_options o = options(MR_DELIVER_F32_NCHW, MR_TAIL_PAD);
            o.threads = threads;
            o.epochs = 1000000;
            /* By its own thread, untouched and in the middle of work. */
            mr_loader *l = open_loader(ds, &o);
            usleep(wait);
            double begin = mr_seconds();
            mr_loader_free(l);
            double took = mr_seconds() - begin;
            best = took < best ? took : best;
            /* With batches lent, in the middle of work. */
            const mr_batch *b;
            l = open_loader(ds, &o);
            assert_int_equal(mr_loader_next(l, &b, NULL), MR_OK);
            usleep(wait);
            mr_loader_free(l);
            /* While another thread waits: it holds all the batches there are. */
            took = close_in_use(ds, &o, 4, wait);
            best = took < best ? took : best;
            /* While it waits for the first batch, in whose making the loader is stuck. */
            account a = {.refuse_after = SIZE_MAX};
            mr_allocator slow = {take_late, give_back, &a};
            o.allocator = &slow;
            took = close_in_use(ds, &o, 0, wait);
            best = took < best ? took : best;
            assert_int_equal(a.bytes, 0);
        }
    /* The fastest, as this machine may be busy with other tests. */
    assert_true(best < 0.1);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* ---- many at once --------------------------------------------------------------------------------------------- */

typedef struct reader {
    const mr_dataset *ds;
    mr_loader_options options;
    pthread_t thread;
    seen_list seen;
} reader;

static void *read_all(void *arg)
{
    reader *r = arg;
    r->seen = run_loader(r->ds, &r->options, 0);
    return NULL;
}

static void test_many_loaders(void **state)
{
    (void)state;
    enum { READERS = 16 };
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 4, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    reader readers[READERS];
    for (unsigned i = 0; i < READERS; i++) {
        readers[i].ds = ds;
        readers[i].options = options(i % 2 ? MR_DELIVER_ENCODED : MR_DELIVER_U8_NHWC, MR_TAIL_PAD);
        readers[i].options.threads = i % 4;
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_all, &readers[i]), 0);
    }
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(readers[i].thread, NULL);
    for (unsigned i = 2; i < READERS; i++)
        assert_same_seen(&readers[i % 2].seen, 0, &readers[i].seen);
    for (unsigned i = 0; i < READERS; i++) {
        assert_int_equal(readers[i].seen.status, MR_END);
        seen_free(&readers[i].seen);
    }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* Runs `body` in a child, expects it to end well. */
static void in_child(int (*body)(const char *dir), const char *dir)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(body(dir));
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the child ended with status %d", status);
}

static uint64_t sum_of(const mr_dataset *ds, mr_loader_options o)
{
    uint64_t sum = 0;
    mr_loader *l;
    const mr_batch *b;
    if (mr_loader_open(ds, &o, &l, NULL) != MR_OK)
        return 0;
    while (mr_loader_next(l, &b, NULL) == MR_OK) {
        for (uint64_t i = 0; i < b->count; i++)
            sum += mr_hash64((const uint8_t *)b->data + b->samples[i].offset, b->samples[i].length) * (b->step + 1);
        mr_batch_release(l, b);
    }
    mr_loader_free(l);
    return sum;
}

/* 43 shards, and 64 files to be opened by the whole process; three loaders at once. */
static int few_files(const char *dir)
{
    struct rlimit limit = {64, 64};
    mr_dataset *ds;
    mr_loader *l[2];
    const mr_batch *b;
    mr_loader_options o = options(MR_DELIVER_ENCODED, MR_TAIL_PAD);
    if (mr_dataset_open(dir, &ds, NULL) != MR_OK)
        return 1;
    uint64_t want = sum_of(ds, o);
    o.threads = 3;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 2;
    for (int i = 0; i < 2; i++) {
        if (mr_loader_open(ds, &o, &l[i], NULL) != MR_OK)
            return 3;
        for (int k = 0; k < 6; k++) {
            if (mr_loader_next(l[i], &b, NULL) != MR_OK)
                return 4;
            mr_batch_release(l[i], b);
        }
    }
    uint64_t got = sum_of(ds, o);
    for (int i = 0; i < 2; i++)
        mr_loader_free(l[i]);
    mr_dataset_free(ds);
    return want == 0 || got != want ? 5 : 0;
}

static void test_few_files(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 1, NULL);
    in_child(few_files, dir);
    support_tmpdir_remove(dir);
}

static const mr_dataset *parents_dataset;
static mr_loader *parents_loader;
static uint64_t parents_sum;

static int open_after_fork(const char *dir)
{
    (void)dir;
    mr_loader_options o = options(MR_DELIVER_ENCODED, MR_TAIL_PAD);
    o.threads = 2;
    return sum_of(parents_dataset, o) == parents_sum ? 0 : 1;
}

/* Without threads a loader goes on in both processes. */
static int go_on_after_fork(const char *dir)
{
    (void)dir;
    const mr_batch *b;
    if (mr_loader_next(parents_loader, &b, NULL) != MR_OK || b->step != 1)
        return 1;
    mr_loader_free(parents_loader);
    return 0;
}

static int refuse_after_fork(const char *dir)
{
    (void)dir;
    const mr_batch *b;
    mr_error err;
    if (mr_loader_next(parents_loader, &b, &err) != MR_MISUSE || !strstr(err.text, "fork"))
        return 1;
    mr_loader_free(parents_loader);
    return 0;
}

static void test_fork(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 9, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader_options o = options(MR_DELIVER_ENCODED, MR_TAIL_PAD);
    const mr_batch *b;
    parents_dataset = ds;
    parents_sum = sum_of(ds, o);
    in_child(open_after_fork, dir);
    parents_loader = open_loader(ds, &o);
    assert_int_equal(mr_loader_next(parents_loader, &b, NULL), MR_OK);
    in_child(go_on_after_fork, dir);
    mr_batch_release(parents_loader, b);
    assert_int_equal(mr_loader_next(parents_loader, &b, NULL), MR_OK);
    assert_int_equal(b->step, 1);
    mr_loader_free(parents_loader);
    o.threads = 3;
    parents_loader = open_loader(ds, &o);
    assert_int_equal(mr_loader_next(parents_loader, &b, NULL), MR_OK);
    in_child(refuse_after_fork, dir);
    mr_batch_release(parents_loader, b);
    assert_int_equal(mr_loader_next(parents_loader, &b, NULL), MR_OK);
    mr_loader_free(parents_loader);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork),            /* first: TSan wants no threads before a fork */
        cmocka_unit_test(test_few_files),
        cmocka_unit_test(test_any_ranks_and_threads),
        cmocka_unit_test(test_encoded_is_what_was_stored),
        cmocka_unit_test(test_deliveries_agree),
        cmocka_unit_test(test_resume_anywhere),
        cmocka_unit_test(test_nothing_to_give),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_allocator_and_bound),
        cmocka_unit_test(test_allocator_refuses),
        cmocka_unit_test(test_hold_all),
        cmocka_unit_test(test_close_any_time),
        cmocka_unit_test(test_many_loaders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_loader_close.c - closing a loader.
 * Invariant tested: at any moment, from any thread, and in the middle of a picture however large, it ends the work at
 * once: only a small part of what was begun is still done.
 * Covers batch/hand_out.c. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/support/shards/dataset_maker.h"
#include "tests/support/cost.h"
#include "tests/support/shards/loader.h"

/* ---- at any moment ---------------------------------------------------------------------------------------------- */

typedef struct consumer {
    mr_loader *loader;
    uint64_t batches; /* taken and held: then it waits in mr_loader_next() */
    _Atomic uint64_t calls;
    _Atomic long thread; /* as the system numbers it */
    mr_status status;
} consumer;

static void *consume(void *arg)
{
    consumer *c = arg;
    const mr_batch *b;
    c->thread = syscall(SYS_gettid);
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
    return account_take(ctx, bytes);
}

/* Waits until a thread of this process sleeps. */
static void wait_for_sleep(long thread)
{
    char *path = support_path("/proc/self/task/%ld/stat", thread), text[200] = "";
    support_watch("waiting until the other thread waits");
    while (!strstr(text, ") S ")) {
        usleep(100);
        FILE *f = fopen(path, "r");
        assert_true(f && fgets(text, sizeof text, f));
        fclose(f);
    }
    support_watch(NULL);
    free(path);
}

/* Closes; the CPU seconds it took. */
static double close_loader(mr_loader *l)
{
    double begin = support_cpu();
    mr_loader_free(l);
    return support_cpu() - begin;
}

/* Closes while another thread waits in its call number `batches` + 1; the CPU seconds it took. */
static double close_in_use(const mr_dataset *ds, const mr_loader_options *o, uint64_t batches, useconds_t wait)
{
    closing = false;
    consumer c = {.loader = open_loader(ds, o), .batches = batches};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, consume, &c), 0);
    while (c.calls <= batches)
        usleep(100);
    wait_for_sleep(c.thread); /* from counting to being inside */
    usleep(wait);
    closing = true;
    double took = close_loader(c.loader);
    pthread_join(thread, NULL);
    /* The first batch may have come after all, if this thread was kept from running for so long. */
    assert_true(c.status == MR_END || batches == 0);
    return took;
}

/* What the batches cost that a loader with so large a prefetch makes ahead of its caller. */
enum { AHEAD = 100 };

static double cost_of_all(const mr_dataset *ds, const mr_loader_options *o)
{
    const mr_batch *b;
    mr_loader *l = open_loader(ds, o);
    double begin = support_cpu();
    for (int i = 0; i < AHEAD; i++) {
        assert_int_equal(mr_loader_next(l, &b, NULL), MR_OK);
        mr_batch_release(l, b);
    }
    double took = support_cpu() - begin;
    mr_loader_free(l);
    return took;
}

static void test_close_any_time(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 9, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader_options o = usual_options(MR_DELIVER_F32_NCHW, MR_TAIL_PAD);
    o.epochs = 1000000;
    double all = cost_of_all(ds, &o), least = all;
    for (unsigned threads = 0; threads < 6; threads++)
        for (useconds_t wait = 0; wait < 4000; wait = wait * 4 + 700) {
            o = usual_options(MR_DELIVER_F32_NCHW, MR_TAIL_PAD);
            o.threads = threads;
            o.epochs = 1000000;
            o.prefetch = AHEAD;
            /* By its own thread, untouched and in the middle of work. */
            mr_loader *l = open_loader(ds, &o);
            usleep(wait);
            double took = close_loader(l);
            least = threads && !wait && took < least ? took : least;
            /* With batches lent, in the middle of work. */
            const mr_batch *b;
            o.prefetch = 0;
            l = open_loader(ds, &o);
            assert_int_equal(mr_loader_next(l, &b, NULL), MR_OK);
            usleep(wait);
            mr_loader_free(l);
            /* While another thread waits: it holds all the batches there are. */
            close_in_use(ds, &o, 4, wait);
            /* While it waits for the first batch, in whose making the loader is stuck. */
            account a = {.refuse_after = SIZE_MAX};
            mr_allocator slow = {take_late, account_give_back, &a};
            o.allocator = &slow;
            close_in_use(ds, &o, 0, wait);
            assert_int_equal(a.bytes, 0);
        }
    /* What is closed at once has all of it before it. */
    if (least > all / 4)
        fail_msg("closing cost %.1f ms of CPU time, %d batches cost %.1f", least * 1e3, AHEAD, all * 1e3);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* ---- shared by threads ---------------------------------------------------------------------------------------- */

static void *read_on(void *arg)
{
    consumer *c = arg;
    const mr_batch *b;
    while ((c->status = mr_loader_next(c->loader, &b, NULL)) == MR_OK) {
        c->calls++;
        mr_batch_release(c->loader, b);
    }
    /* It may go on calling: only freeing the loader has to wait for it. */
    for (int i = 0; i < 100 && c->status == MR_END; i++)
        c->status = mr_loader_next_for(c->loader, 0, &b, NULL);
    return NULL;
}

static void *stop_it(void *arg)
{
    mr_loader_stop(arg);
    return NULL;
}

/* Stopped by two threads at once, in the middle of the calls of four others; then nobody is in it. */
static void test_stop_while_threads_read(void **state)
{
    (void)state;
    enum { READERS = 4, STOPPERS = 2 };
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 9, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    for (unsigned round = 0; round < 24; round++) {
        mr_loader_options o = usual_options(MR_DELIVER_U8_NHWC, MR_TAIL_PAD);
        const mr_batch *lent;
        mr_cursor start = {0};
        mr_error err;
        pthread_t threads[READERS], stoppers[STOPPERS];
        consumer readers[READERS];
        o.threads = round % 3;
        o.epochs = 1000000;
        mr_loader *l = open_loader(ds, &o);
        assert_int_equal(mr_loader_next(l, &lent, NULL), MR_OK);
        uint8_t first = *(const uint8_t *)lent->data;
        for (int i = 0; i < READERS; i++) {
            readers[i] = (consumer){.loader = l};
            assert_int_equal(pthread_create(&threads[i], NULL, read_on, &readers[i]), 0);
        }
        while (readers[0].calls < round)
            usleep(100);
        for (int i = 0; i < STOPPERS; i++)
            assert_int_equal(pthread_create(&stoppers[i], NULL, stop_it, l), 0);
        for (int i = 0; i < STOPPERS; i++)
            pthread_join(stoppers[i], NULL);
        for (int i = 0; i < READERS; i++) {
            pthread_join(threads[i], NULL);
            assert_int_equal(readers[i].status, MR_END);
        }
        assert_int_equal(mr_loader_seek(l, &start, &err), MR_MISUSE);
        assert_non_null(strstr(err.text, "stopped"));
        assert_int_equal(*(const uint8_t *)lent->data, first);
        mr_loader_stop(l);
        mr_loader_free(l);
    }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* ---- in the middle of a picture ------------------------------------------------------------------------------- */

typedef struct large {
    const char *what;
    picture image;
    mr_dataset *dataset;
    double whole; /* CPU seconds of one picture */
} large;

static void make_dataset_of(const char *dir, picture image)
{
    made sample = {.source = "large", .image = image};
    made_split split = {.name = "train", .samples = &sample, .count = 1, .per_shard = 1};
    dataset_make(dir, &split, 1);
}

/* The whole picture is needed, and turned if it says so. */
static mr_loader_options large_options(unsigned threads)
{
    return (mr_loader_options){
        .split = "train",
        .global_batch = 1,
        .threads = threads,
        .deliver = MR_DELIVER_F32_NCHW,
        .epochs = 1000000,
        .transform = {.kind = MR_TRANSFORM_SQUARE, .size = 24, .apply_orientation = 1},
    };
}

/* Closes after `percent` of the work that a picture is: the CPU seconds of closing, and with 100 those of the
 * picture. */
static double cost_of_close(size_t percent, void *ctx)
{
    large *k = ctx;
    mr_loader_options o = large_options(percent < 100);
    mr_loader *l = open_loader(k->dataset, &o);
    const mr_batch *b;
    double begin = support_cpu();
    if (percent < 100) {
        while (support_cpu() - begin < k->whole * (double)percent / 100)
            usleep(200);
        return close_loader(l);
    }
    assert_int_equal(mr_loader_next(l, &b, NULL), MR_OK);
    k->whole = support_cpu() - begin;
    mr_loader_free(l);
    return k->whole;
}

static void check_large(large *k)
{
    char *dir = support_tmpdir();
    make_dataset_of(dir, k->image);
    k->dataset = open_dataset_at(dir);
    cost_of_close(100, k);
    /* Without a look at `stop` on the way, closing would take the rest. */
    for (size_t percent = 10; percent <= 50; percent += 40)
        support_assert_ratio(k->what, cost_of_close, k, percent, 100, 0.25);
    mr_dataset_free(k->dataset);
    support_tmpdir_remove(dir);
}

static void test_close_in_a_large_picture(void **state)
{
    (void)state;
    picture exif = make_exif(false, 3, 1, 6);
    large kinds[] = {
        {.what = "baseline JPEG",
         .image = make_jpeg((jpeg_kind){.width = 4000, .height = 4000, .components = 3, .exif = &exif})},
        {.what = "progressive JPEG",
         .image = make_jpeg((jpeg_kind){.width = 3000, .height = 3000, .components = 3, .progressive = true})},
        {.what = "interlaced PNG", .image = make_png(4500, 4500, 2, 8, true)},
        {.what = "WebP", .image = make_webp(2600, 2400, false, false)},
    };
    for (size_t i = 0; i < MR_COUNT(kinds); i++) {
        check_large(&kinds[i]);
        picture_free(&kinds[i].image);
    }
    picture_free(&exif);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_close_any_time),
        cmocka_unit_test(test_stop_while_threads_read),
        cmocka_unit_test(test_close_in_a_large_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_loader_close.c - closing a loader.
 * Invariant tested: at any moment, from any thread, and in the middle of a picture however large, it takes less than a
 * tenth of a second. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "dataset_maker.h"
#include "error.h"
#include "support_loader.h"
#include "term.h"

/* ---- at any moment ---------------------------------------------------------------------------------------------- */

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
    return account_take(ctx, bytes);
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
            mr_loader_options o = usual_options(MR_DELIVER_F32_NCHW, MR_TAIL_PAD);
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
            mr_allocator slow = {take_late, account_give_back, &a};
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

/* ---- in the middle of a picture ------------------------------------------------------------------------------- */

typedef struct large {
    const char *what;
    picture image;
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
        .split = "train", .global_batch = 1, .threads = threads, .deliver = MR_DELIVER_F32_NCHW, .epochs = 1000000,
        .transform = {.kind = MR_TRANSFORM_SQUARE, .size = 24, .apply_orientation = 1},
    };
}

/* Seconds that a batch takes. */
static double whole_time(const mr_dataset *ds)
{
    mr_loader_options o = large_options(0);
    mr_loader *l = open_loader(ds, &o);
    const mr_batch *b;
    double begin = mr_seconds();
    assert_int_equal(mr_loader_next(l, &b, NULL), MR_OK);
    double took = mr_seconds() - begin;
    mr_loader_free(l);
    return took;
}

/* Closes after `wait` seconds of work; the quickest of a few times, as this machine may be busy with other tests. */
static double close_at(const mr_dataset *ds, double wait)
{
    double best = 1e9;
    for (int i = 0; i < 3 && best > 0.05; i++) {
        mr_loader_options o = large_options(1);
        mr_loader *l = open_loader(ds, &o);
        usleep((useconds_t)(wait * 1e6));
        double begin = mr_seconds();
        mr_loader_free(l);
        double took = mr_seconds() - begin;
        best = took < best ? took : best;
    }
    return best;
}

static void check_large(const large *k)
{
    char *dir = support_tmpdir();
    make_dataset_of(dir, k->image);
    mr_dataset *ds = open_dataset_at(dir);
    double whole = whole_time(ds);
    /* Without a look at `stop` on the way, closing after a tenth of it would take the rest. */
    if (whole < 0.12)
        print_message("%s: decoded in %.0f ms, too fast for this test to prove much\n", k->what, whole * 1e3);
    /* Where decoding is so slow, under a sanitizer on a busy machine, closing is too. */
    double limit = whole / 4 > 0.1 ? whole / 4 : 0.1;
    for (double part = 0.1; part < 0.6; part += 0.4) {
        double took = close_at(ds, whole * part);
        if (took > limit)
            fail_msg("%s: closing after %.0f of %.0f ms took %.0f ms", k->what, whole * part * 1e3, whole * 1e3,
                     took * 1e3);
    }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

static void test_close_in_a_large_picture(void **state)
{
    (void)state;
    picture exif = make_exif(false, 3, 1, 6);
    large kinds[] = {
        {"baseline JPEG", make_jpeg((jpeg_kind){.width = 4000, .height = 4000, .components = 3, .exif = &exif})},
        {"progressive JPEG",
         make_jpeg((jpeg_kind){.width = 3000, .height = 3000, .components = 3, .progressive = true})},
        {"interlaced PNG", make_png(4500, 4500, 2, 8, true)},
        {"WebP", make_webp(2600, 2400, false, false)},
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
        cmocka_unit_test(test_close_in_a_large_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

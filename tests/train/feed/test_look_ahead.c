/* test_look_ahead.c - images that are decoded ahead, beside the operations of the batch before; where the device
 * MILLRACE_TEST_DEVICE has one queue, each batch when its turn comes.
 * Invariant tested: images, facts and cursors are those of a feed that does not look ahead, and a batch stays as it was
 * while the next one is decoded.  Covers feed/feed.c, images/images.c. */
#include <stdlib.h>
#include <string.h>

#include "loader/batch/loader.h"
#include "tests/support/shards/dataset_maker.h"
#include "tests/support/shards/loader.h"
#include "tests/support/training/model.h"
#include "train/feed/feed.h"

enum { SAMPLES = 23, BATCH = 5, BATCHES = 2 * 5, SIZE = 12, FLOATS = 3 * SIZE * SIZE };

/* JPEGs that devices decode, others that the host decodes, and PNGs. */
static void make_images(const char *dir)
{
    made samples[SAMPLES];
    for (unsigned n = 0; n < SAMPLES; n++) {
        const jpeg_kind kind = {.width = 30 + n, .height = 40, .components = 3, .progressive = n % 6 == 3};
        samples[n] = (made){.source = "a.jpg", .more = ",\"label\":1"};
        samples[n].image = n % 5 == 4 ? make_png(24, 24, 2, 8, false) : make_jpeg(kind);
    }
    const made_split split = {.name = "train", .samples = samples, .count = SAMPLES, .per_shard = 9};
    dataset_make(dir, &split, 1);
    support_expect(0, "seek", "-q", "--every=2", dir, (char *)NULL); /* without it the host decodes all */
    for (unsigned n = 0; n < SAMPLES; n++)
        picture_free(&samples[n].image);
}

static mr_loader_options options(void)
{
    return (mr_loader_options){.split = "train",
                               .global_batch = BATCH,
                               .threads = 2,
                               .seed = 3,
                               .epochs = 2,
                               .tail = MR_TAIL_PARTIAL,
                               .deliver = MR_DELIVER_CODED,
                               .transform = {.kind = MR_TRANSFORM_SQUARE, .size = SIZE}};
}

static mr_feed feed_open(const mr_dataset *ds, mr_device *device)
{
    const mr_loader_options o = options();
    mr_feed out = {0};
    mr_error err;
    if (mr_feed_open(ds, &o, NULL, BATCH, device, &out, &err) != MR_OK)
        fail_msg("%s", err.text);
    return out;
}

typedef struct given { /* by a feed, for a batch */
    size_t count;
    uint64_t samples[BATCH];
    mr_cursor cursor;
    float images[BATCH * FLOATS];
} given;

static size_t bytes_of(const given *g)
{
    return g->count * FLOATS * sizeof *g->images;
}

/* Without looking ahead; each batch is waited for. */
static void take_in_turn(const mr_dataset *ds, mr_device *d, given *out)
{
    mr_feed f = feed_open(ds, d);
    mr_model_input in;
    mr_error err;
    double weight;
    for (size_t n = 0; n < BATCHES; n++) {
        assert_int_equal(mr_feed_next(&f, &in, &weight, &err), MR_OK);
        out[n] = (given){.count = in.count, .cursor = mr_feed_cursor(&f)};
        for (size_t i = 0; i < in.count; i++)
            out[n].samples[i] = f.batch->samples[i].sample;
        d->iface->download(d, out[n].images, in.images, bytes_of(&out[n]));
        assert_int_equal(d->iface->wait(d, NULL), MR_OK);
    }
    assert_int_equal(mr_feed_next(&f, &in, &weight, &err), MR_END);
    assert_true(mr_images_count(f.decoder).device > 0 && mr_images_count(f.decoder).host > 0);
    mr_feed_close(&f);
}

/* A step, which nothing waits for before all batches have come. */
static float *keep_images(mr_device *d, const mr_model_input *in)
{
    mr_error err;
    void *kept;
    assert_int_equal(d->iface->alloc(d, BATCH * FLOATS * sizeof(float), "tests", &kept, &err), MR_OK);
    mr_run_rows(d, &(mr_rows){MR_F32, in->count, FLOATS, FLOATS, FLOATS, in->images, kept, false});
    return kept;
}

static void expect_kept(mr_device *d, const given *want, float *kept)
{
    static float images[BATCH * FLOATS];
    d->iface->download(d, images, kept, bytes_of(want));
    assert_int_equal(d->iface->wait(d, NULL), MR_OK);
    assert_memory_equal(images, want->images, bytes_of(want));
    d->iface->free(d, kept);
}

/* The second queue as early as it may run. */
static void run_second(mr_device *d)
{
    if (!d->iface->second)
        return;
    d->iface->second->enter(d);
    assert_int_equal(d->iface->wait(d, NULL), MR_OK);
    d->iface->second->leave(d);
}

static void images_and_cursors_are_the_same(void **state)
{
    given *want = calloc(BATCHES, sizeof *want);
    mr_device *d = support_device(1);
    mr_model_input in;
    mr_error err;
    double weight;
    float *kept[BATCHES];
    unsigned taken = 0;
    assert_non_null(want);
    make_images(*state);
    mr_dataset *ds = open_dataset_at(*state);
    take_in_turn(ds, d, want);
    mr_feed f = feed_open(ds, d);
    for (size_t n = 0; n < BATCHES; n++) {
        assert_int_equal(mr_feed_next(&f, &in, &weight, &err), MR_OK);
        run_second(d);
        kept[n] = keep_images(d, &in);
        assert_int_equal(in.count, want[n].count);
        for (size_t i = 0; i < in.count; i++)
            assert_true(f.batch->samples[i].sample == want[n].samples[i]);
        mr_loader_settle(f.loader);
        if (n % 4 != 3)
            mr_feed_look_ahead(&f);
        run_second(d);
        taken += f.ahead.taken;
        mr_cursor here = mr_feed_cursor(&f);
        assert_true(here.epoch == want[n].cursor.epoch && here.position == want[n].cursor.position);
    }
    assert_int_equal(mr_feed_next(&f, &in, &weight, &err), MR_END);
    for (size_t n = 0; n < BATCHES; n++)
        expect_kept(d, &want[n], kept[n]);
    assert_int_equal(taken, d->iface->second ? 8 : 0);
    mr_feed_close(&f);
    mr_device_close(d);
    mr_dataset_free(ds);
    free(want);
}

/* A feed may end before a batch that is decoded ahead is asked for. */
static void closes_with_a_batch_ahead(void **state)
{
    mr_device *d = support_device(1);
    mr_model_input in;
    mr_error err;
    double weight;
    make_images(*state);
    mr_dataset *ds = open_dataset_at(*state);
    mr_feed f = feed_open(ds, d);
    assert_int_equal(mr_feed_next(&f, &in, &weight, &err), MR_OK);
    mr_loader_settle(f.loader);
    mr_feed_look_ahead(&f);
    mr_feed_close(&f);
    assert_int_equal(d->iface->wait(d, NULL), MR_OK);
    mr_device_close(d);
    mr_dataset_free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(images_and_cursors_are_the_same),
                                       IN_TMPDIR(closes_with_a_batch_ahead)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

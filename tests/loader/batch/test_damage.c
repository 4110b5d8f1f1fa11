/* test_damage.c - shards that are cut, overwritten, removed and replaced while readers run on them.
 * Invariant tested: no signal; a record is delivered as it was ingested or not at all; those that are hit, and no
 * others, are named or passed over. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "tests/support/damage.h"
#include "tests/support/shards/loader.h"

enum { SAMPLES = 120, PER_SHARD = 20, READERS = 4, EPOCHS = 12, HIT_FIRST = 3 * PER_SHARD, HIT_END = 4 * PER_SHARD };

/* ---- what one sees ---------------------------------------------------------------------------------------------- */

typedef struct reader {
    const mr_dataset *ds;
    unsigned rank;
    mr_on_bad on_bad;
    _Atomic uint64_t batches;
    _Atomic bool *go_on;            /* the last epochs are read when the damage is done */
    const uint64_t *images, *metas; /* hashes, as ingested */
    uint64_t wrong, stray;
    uint64_t replaced, masked[SAMPLES], good[SAMPLES]; /* in the last epoch */
    mr_status status;
    mr_error error;
} reader;

static void judge(reader *r, const mr_batch *b)
{
    for (uint64_t i = 0; i < b->count; i++) {
        const mr_sample_facts *f = &b->samples[i];
        bool given = f->weight > 0;
        if (given && (mr_hash64((const uint8_t *)b->data + f->offset, f->length) != r->images[f->sample] ||
                      mr_hash64(f->meta, f->meta_len) != r->metas[f->sample]))
            r->wrong++;
        if (!given && (f->sample < HIT_FIRST || f->sample >= HIT_END))
            r->stray++;
        if (b->epoch == EPOCHS - 1)
            *(given ? &r->good[f->sample] : &r->masked[f->sample]) += 1;
    }
    if (b->epoch == EPOCHS - 1)
        r->replaced += b->replaced;
}

static void *read_all(void *ctx)
{
    reader *r = ctx;
    mr_loader_options o = {.split = "train",
                           .global_batch = 8,
                           .rank = r->rank,
                           .world = READERS,
                           .threads = r->rank % 3,
                           .seed = 3,
                           .on_bad = r->on_bad,
                           .with_meta = 1,
                           .epochs = EPOCHS};
    mr_loader *l = NULL;
    const mr_batch *b;
    r->status = mr_loader_open(r->ds, &o, &l, &r->error);
    while (r->status == MR_OK && (r->status = mr_loader_next(l, &b, &r->error)) == MR_OK) {
        judge(r, b);
        bool late = b->epoch >= EPOCHS / 2;
        mr_batch_release(l, b);
        atomic_fetch_add(&r->batches, 1);
        while (late && !atomic_load(r->go_on))
            damage_nap();
    }
    atomic_fetch_add(&r->batches, 1000); /* an end is an end for those who wait */
    mr_loader_free(l);
    return NULL;
}

static void know(const mr_dataset *ds, uint64_t *images, uint64_t *metas)
{
    mr_sample_view v = {0};
    for (uint64_t n = 0; n < SAMPLES; n++) {
        assert_int_equal(mr_dataset_read(ds, "train", n, &v, NULL), MR_OK);
        images[n] = mr_hash64(v.image, v.image_len);
        metas[n] = mr_hash64(v.meta, v.meta_len);
    }
    mr_sample_view_free(&v);
}

/* Four readers, the damage while all of them are at work, and what each of them saw. */
static void run_readers(reader readers[READERS], damage kind, mr_on_bad on_bad, bool hit[DAMAGE_MAX])
{
    uint64_t images[SAMPLES], metas[SAMPLES];
    char *dir = support_tmpdir();
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    know(ds, images, metas);
    pthread_t threads[READERS];
    _Atomic bool go_on = false;
    for (unsigned i = 0; i < READERS; i++) {
        readers[i] = (reader){.ds = ds, .rank = i, .on_bad = on_bad, .go_on = &go_on, .images = images, .metas = metas};
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, &readers[i]), 0);
    }
    for (unsigned i = 0; i < READERS; i++)
        while (atomic_load(&readers[i].batches) < 16) /* an epoch: all shards are open */
            damage_nap();
    damage_do(kind, dir, "train-00003", "train-00002", hit);
    atomic_store(&go_on, true);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* Each sample that is hit has left its place in the last epoch, once, and no other has. */
static void check_last_epoch(const reader readers[READERS], damage kind, mr_on_bad on_bad, const bool hit[DAMAGE_MAX])
{
    uint64_t places = 0, hits = 0, replaced = 0;
    for (uint64_t n = 0; n < SAMPLES; n++) {
        uint64_t good = 0, masked = 0;
        for (unsigned i = 0; i < READERS; i++) {
            good += readers[i].good[n];
            masked += readers[i].masked[n];
        }
        bool is_hit = n >= HIT_FIRST && n < HIT_END && hit[n - HIT_FIRST];
        bool right = on_bad == MR_ON_BAD_MASK ? good == !is_hit && masked == is_hit : (good > 0) == !is_hit && !masked;
        if (!right)
            fail_msg("damage %d, rule %d: sample %llu was given %llu and masked %llu times", (int)kind, (int)on_bad,
                     (unsigned long long)n, (unsigned long long)good, (unsigned long long)masked);
        places += good + masked;
        hits += is_hit;
    }
    for (unsigned i = 0; i < READERS; i++)
        replaced += readers[i].replaced;
    assert_int_equal(places, SAMPLES);
    assert_int_equal(replaced, hits);
}

static void test_readers_pass_over(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 2 * KINDS; n++) {
        damage kind = n / 2;
        mr_on_bad on_bad = n % 2 ? MR_ON_BAD_REPLACE : MR_ON_BAD_MASK;
        reader readers[READERS];
        bool hit[DAMAGE_MAX];
        run_readers(readers, kind, on_bad, hit);
        check_last_epoch(readers, kind, on_bad, hit);
        for (unsigned i = 0; i < READERS; i++) {
            assert_int_equal(readers[i].wrong, 0);
            assert_int_equal(readers[i].stray, 0);
            if (readers[i].status != MR_END)
                fail_msg("damage %d, reader %u: %s", (int)kind, i, readers[i].error.text);
        }
    }
}

static void test_readers_end(void **state)
{
    (void)state;
    for (damage kind = 0; kind < KINDS; kind++) {
        reader readers[READERS];
        bool hit[DAMAGE_MAX], any = false;
        run_readers(readers, kind, MR_ON_BAD_FAIL, hit);
        for (unsigned i = 0; i < PER_SHARD; i++)
            any = any || hit[i];
        for (unsigned i = 0; i < READERS; i++) {
            assert_int_equal(readers[i].wrong, 0);
            if (!any) /* the file that was opened and checked is still read */
                assert_int_equal(readers[i].status, MR_END);
            else if (readers[i].status != MR_BAD_SAMPLE && readers[i].status != MR_BAD_DATA)
                fail_msg("damage %d, reader %u: status %d", (int)kind, i, readers[i].status);
            else if (!strstr(readers[i].error.text, "train-00003.mdb: sample "))
                fail_msg("damage %d: no sample in \"%s\"", (int)kind, readers[i].error.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readers_pass_over),
        cmocka_unit_test(test_readers_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_loader_kept.c - batches that the caller keeps, waits that end, and loaders that continue elsewhere.
 * Invariant tested: a detached batch is what the lent one was, however long it is kept and whatever becomes of the
 * loader; a loader that was sent to a place gives what one opened there gives.
 * Covers batch/detached.c. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "tests/support/shards/loader.h"

enum { SAMPLES = 29, MAX_BATCHES = 16 };

static mr_dataset *pictures(const char *dir, const int *broken)
{
    make_pictures(dir, SAMPLES, 9, broken);
    return open_dataset_at(dir);
}

/* A number for all that a batch holds. */
static uint64_t hash_of(const mr_batch *b)
{
    uint64_t h = mr_hash64(b->data, b->data_bytes) ^ b->epoch << 32 ^ b->step;
    for (uint64_t i = 0; i < b->count; i++) {
        mr_sample_facts f = b->samples[i];
        h = h * 31 + mr_hash64(f.meta, f.meta_len);
        f.meta = NULL;
        h = h * 31 + (f.sample ^ f.hash ^ (uint64_t)(uint32_t)f.label << 40 ^ f.offset);
    }
    return h;
}

static size_t lent_hashes(const mr_dataset *ds, const mr_loader_options *o, uint64_t *out)
{
    mr_loader *l = open_loader(ds, o);
    const mr_batch *b;
    size_t count = 0;
    while (mr_loader_next(l, &b, NULL) == MR_OK) {
        out[count++] = hash_of(b);
        mr_batch_release(l, b);
    }
    mr_loader_free(l);
    return count;
}

/* ---- keeping ----------------------------------------------------------------------------------------------------- */

static void keep_all(const mr_dataset *ds, mr_loader_options o, account *memory)
{
    mr_allocator allocator = {account_take, account_give_back, memory};
    uint64_t want[MAX_BATCHES];
    mr_batch *kept[MAX_BATCHES];
    const mr_batch *b;
    size_t count = lent_hashes(ds, &o, want);
    o.allocator = memory ? &allocator : NULL;
    mr_loader *l = open_loader(ds, &o);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(mr_loader_next(l, &b, NULL), MR_OK);
        const void *data = b->data;
        assert_int_equal(mr_batch_detach(l, b, &kept[i], NULL), MR_OK);
        assert_ptr_equal(kept[i]->data, data); /* not a copy */
    }
    assert_int_equal(mr_loader_next(l, &b, NULL), MR_END);
    mr_loader_free(l);
    for (size_t i = 0; i < count; i++) {
        assert_true(hash_of(kept[i]) == want[i]);
        memset((void *)(uintptr_t)kept[i]->data, 0xAB, kept[i]->data_bytes); /* the caller's own */
        mr_batch_free(kept[i]);
    }
    if (memory)
        assert_int_equal(memory->bytes, 0);
}

static void every_batch_may_be_kept(void **state)
{
    static const mr_delivery deliveries[] = {MR_DELIVER_ENCODED, MR_DELIVER_U8_NHWC, MR_DELIVER_F32_NCHW};
    mr_dataset *ds = pictures(*state, NULL);
    for (size_t i = 0; i < MR_COUNT(deliveries); i++)
        for (unsigned threads = 0; threads < 3; threads++) {
            mr_loader_options o = usual_options(deliveries[i], MR_TAIL_PARTIAL);
            account memory = {.refuse_after = SIZE_MAX};
            o.threads = threads;
            keep_all(ds, o, NULL);
            keep_all(ds, o, &memory);
        }
    mr_batch_free(NULL);
    mr_dataset_free(ds);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static void a_wait_ends(void **state)
{
    mr_dataset *ds = pictures(*state, NULL);
    for (unsigned threads = 0; threads < 3; threads += 2) {
        mr_loader_options o = usual_options(MR_DELIVER_U8_NHWC, MR_TAIL_DROP);
        const mr_batch *held[4], *b;
        o.threads = threads;
        o.prefetch = 2;
        mr_loader *l = open_loader(ds, &o);
        for (size_t i = 0; i < MR_COUNT(held); i++)
            assert_int_equal(mr_loader_next(l, &held[i], NULL), MR_OK);
        assert_int_equal(mr_loader_next_for(l, 0, &b, NULL), MR_AGAIN);
        assert_int_equal(mr_loader_next_for(l, 20, &b, NULL), MR_AGAIN); /* all of its batches are held */
        mr_batch_release(l, held[0]);
        mr_status status;
        while ((status = mr_loader_next_for(l, 1, &b, NULL)) == MR_AGAIN)
            ;
        assert_int_equal(status, MR_OK);
        assert_int_equal(b->epoch * mr_loader_steps(l) + b->step, MR_COUNT(held));
        mr_loader_stats stats = {.struct_size = sizeof stats};
        mr_loader_get_stats(l, &stats);
        assert_int_equal(stats.batches, MR_COUNT(held) + 1);
        assert_int_equal(stats.samples, stats.batches * b->count);
        assert_true(stats.waited >= 0.02 && stats.decoding > 0 && stats.replaced == 0);
        stats = (mr_loader_stats){.struct_size = offsetof(mr_loader_stats, replaced), .replaced = 77};
        mr_loader_get_stats(l, &stats); /* an older caller's, which is shorter */
        assert_true(stats.batches == MR_COUNT(held) + 1 && stats.replaced == 77);
        mr_loader_free(l);
    }
    mr_dataset_free(ds);
}

/* ---- elsewhere --------------------------------------------------------------------------------------------------- */

static void assert_same_from(const mr_dataset *ds, mr_loader *l, mr_loader_options o, const mr_cursor *from)
{
    uint64_t want[MAX_BATCHES];
    const mr_batch *b;
    o.start = *from;
    size_t count = lent_hashes(ds, &o, want);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(mr_loader_next(l, &b, NULL), MR_OK);
        assert_true(hash_of(b) == want[i]);
        mr_batch_release(l, b);
    }
    assert_int_equal(mr_loader_next(l, &b, NULL), MR_END);
}

static void a_loader_continues_elsewhere(void **state)
{
    mr_dataset *ds = pictures(*state, NULL);
    mr_random r = support_random();
    for (unsigned threads = 0; threads < 3; threads++) {
        mr_loader_options o = usual_options(MR_DELIVER_F32_NCHW, MR_TAIL_PARTIAL);
        const mr_batch *b;
        mr_error err;
        o.threads = threads;
        mr_loader *l = open_loader(ds, &o);
        for (int round = 0; round < 12; round++) {
            mr_cursor to = {mr_random_below(&r, 3), mr_random_below(&r, mr_loader_steps(l)) * o.global_batch};
            for (uint64_t i = mr_random_below(&r, 4); i > 0; i--) {
                if (mr_loader_next(l, &b, NULL) == MR_OK && i % 2)
                    mr_batch_release(l, b); /* others stay lent */
                else if (i % 2 == 0 && round % 4 == 0)
                    usleep(1000 * mr_random_below(&r, 5));
            }
            mr_loader_free(l);
            l = open_loader(ds, &o);
            if (round % 3)
                assert_int_equal(mr_loader_next(l, &b, NULL), MR_OK);
            uint64_t before = round % 3 ? hash_of(b) : 0;
            assert_int_equal(mr_loader_seek(l, &to, NULL), MR_OK);
            mr_cursor at = mr_loader_cursor(l);
            assert_true(at.epoch == to.epoch && at.position == to.position);
            if (round % 3) {
                assert_true(hash_of(b) == before); /* lent all the while */
                mr_batch_release(l, b);
            }
            assert_same_from(ds, l, o, &to);
            assert_int_equal(mr_loader_seek(l, &to, NULL), MR_OK); /* past the end, and back */
            assert_same_from(ds, l, o, &to);
        }
        assert_int_equal(mr_loader_seek(l, &(mr_cursor){0, 3}, &err), MR_MISUSE);
        mr_loader_free(l);
    }
    mr_dataset_free(ds);
}

/* A damaged sample ends the batches; elsewhere there are others. */
static void a_failure_is_left_behind(void **state)
{
    const int broken[] = {2, -1};
    mr_dataset *ds = pictures(*state, broken);
    mr_loader_options o = usual_options(MR_DELIVER_U8_NHWC, MR_TAIL_PARTIAL);
    const mr_batch *b;
    mr_error err;
    o.shuffle = MR_SHUFFLE_NONE;
    o.threads = 2;
    mr_loader *l = open_loader(ds, &o);
    assert_int_equal(mr_loader_next(l, &b, &err), MR_BAD_SAMPLE);
    assert_int_equal(mr_loader_next(l, &b, &err), MR_BAD_SAMPLE);
    assert_int_equal(mr_loader_seek(l, &(mr_cursor){0, o.global_batch}, &err), MR_OK);
    assert_int_equal(mr_loader_next(l, &b, &err), MR_OK);
    assert_int_equal(b->step, 1);
    mr_loader_free(l);
    mr_dataset_free(ds);
}

/* ---- options of another size ------------------------------------------------------------------------------------- */

static void options_may_be_of_another_size(void **state)
{
    struct {
        mr_loader_options o;
        char later[16];
    } newer = {.o = usual_options(MR_DELIVER_ENCODED, MR_TAIL_DROP)};
    mr_dataset *ds = pictures(*state, NULL);
    newer.o.struct_size = sizeof newer;
    mr_loader_free(open_loader(ds, &newer.o));
    newer.later[9] = 1;
    expect_no_loader(ds, &newer.o, MR_MISUSE, "options: a member is set that this libmillrace");
    newer.o.struct_size = sizeof newer.o;
    mr_loader_free(open_loader(ds, &newer.o));
    newer.o.struct_size = 8;
    expect_no_loader(ds, &newer.o, MR_MISUSE, "options: a struct_size of 8 bytes");
    mr_dataset_free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(every_batch_may_be_kept),        IN_TMPDIR(a_wait_ends),
        IN_TMPDIR(a_loader_continues_elsewhere),   IN_TMPDIR(a_failure_is_left_behind),
        IN_TMPDIR(options_may_be_of_another_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

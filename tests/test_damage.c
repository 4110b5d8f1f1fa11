/* test_damage.c - shards that are cut, overwritten, removed and replaced while readers and trainers run on them.
 * Invariant tested: no signal; a record is delivered as it was ingested or not at all; those that are hit, and no
 * others, are named or passed over; all ranks of a run end together. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "hash.h"
#include "index.h"
#include "support_loader.h"
#include "support_train.h"

enum { SAMPLES = 120, PER_SHARD = 20, READERS = 4, EPOCHS = 12, HIT_FIRST = 3 * PER_SHARD, HIT_END = 4 * PER_SHARD };

static void nap(void)
{
    nanosleep(&(struct timespec){0, 2000000}, NULL);
}

/* ---- what stands in the damaged shard ---------------------------------------------------------------------------- */

static mr_row row_of(const char *idx, uint64_t i)
{
    mr_row row;
    uint8_t *bytes = support_read(idx, NULL);
    mr_row_unpack(bytes + MR_INDEX_HEADER + i * MR_INDEX_ROW, &row);
    free(bytes);
    return row;
}

typedef enum damage { CUT, CUT_TO_NOTHING, OVERWRITTEN, SCRIBBLED, REMOVED, REPLACED, KINDS } damage;

static void write_at(const char *path, uint64_t at, const void *bytes, size_t len)
{
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, bytes, len, (off_t)at), len);
    close(fd);
}

/* Does it; hit[] gets the samples of the shard that a reader with the file open cannot have any more. */
static void do_damage(damage kind, const char *dir, bool hit[PER_SHARD])
{
    char *mdb = support_path("%s/train-00003.mdb", dir), *idx = support_path("%s/train-00003.idx", dir);
    char *other = support_path("%s/train-00002.mdb", dir), *copy = support_path("%s/copy", dir);
    uint64_t size = support_size(mdb), cut = size / 2;
    uint8_t junk[64];
    memset(junk, 0xA5, sizeof junk);
    memset(hit, 0, PER_SHARD * sizeof *hit);
    for (uint64_t i = 0; i < PER_SHARD; i++) {
        mr_row row = row_of(idx, i);
        if (kind == CUT || kind == CUT_TO_NOTHING)
            hit[i] = kind == CUT_TO_NOTHING || row.image_offset + row.image_len > cut ||
                     row.meta_offset + row.meta_len > cut;
        else if (kind == OVERWRITTEN && i % 3 == 0) {
            hit[i] = true;
            write_at(mdb, i % 2 ? row.meta_offset : row.image_offset + row.image_len / 2, junk, 1);
        } else if (kind == SCRIBBLED)
            hit[i] = true;
    }
    if (kind == CUT || kind == CUT_TO_NOTHING)
        assert_int_equal(truncate(mdb, kind == CUT ? (off_t)cut : 0), 0);
    for (uint64_t at = 0; kind == SCRIBBLED && at < size; at += sizeof junk)
        write_at(mdb, at, junk, sizeof junk);
    if (kind == REMOVED)
        assert_int_equal(unlink(mdb), 0);
    if (kind == REPLACED) {
        size_t len;
        uint8_t *bytes = support_read(other, &len);
        support_write(copy, bytes, len);
        assert_int_equal(rename(copy, mdb), 0);
        free(bytes);
    }
    free(mdb);
    free(idx);
    free(other);
    free(copy);
}

/* ---- readers ----------------------------------------------------------------------------------------------------- */

typedef struct reader {
    const mr_dataset *ds;
    unsigned rank;
    mr_on_bad on_bad;
    _Atomic uint64_t batches;
    _Atomic bool *go_on;                                   /* the last epochs are read when the damage is done */
    const uint64_t *images, *metas;                        /* hashes, as ingested */
    uint64_t wrong, stray, masked[SAMPLES], good[SAMPLES]; /* masked, good: in the last epoch */
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
            nap();
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
static void run_readers(reader readers[READERS], damage kind, mr_on_bad on_bad, bool hit[PER_SHARD])
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
            nap();
    do_damage(kind, dir, hit);
    atomic_store(&go_on, true);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

static void test_readers_pass_over(void **state)
{
    (void)state;
    for (damage kind = 0; kind < KINDS; kind++) {
        reader readers[READERS];
        bool hit[PER_SHARD];
        run_readers(readers, kind, MR_ON_BAD_MASK, hit);
        for (uint64_t n = 0; n < SAMPLES; n++) {
            uint64_t good = 0, masked = 0;
            for (unsigned i = 0; i < READERS; i++) {
                good += readers[i].good[n];
                masked += readers[i].masked[n];
            }
            bool is_hit = n >= HIT_FIRST && n < HIT_END && hit[n - HIT_FIRST];
            if (good != !is_hit || masked != is_hit)
                fail_msg("damage %d: sample %llu was given %llu and masked %llu times", (int)kind,
                         (unsigned long long)n, (unsigned long long)good, (unsigned long long)masked);
        }
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
        bool hit[PER_SHARD], any = false;
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

/* ---- two ranks of a trainer -------------------------------------------------------------------------------------- */

typedef struct training {
    const char *dir, *max_bad;
    support_result result;
} training;

static void *train(void *ctx)
{
    training *t = ctx;
    t->result = train_run(t->dir, 2, "--batch", "4", "--epochs", "60", "--log", "log.jsonl", "--eval-every", "0",
                          "--quiet", "--max-bad", t->max_bad, (char *)NULL);
    return NULL;
}

static void run_training(training *t, bool cut)
{
    char *log = support_path("%s/log.jsonl", t->dir), *mdb = support_path("%s/data/train-00000.mdb", t->dir);
    pthread_t thread;
    unlink(log);
    assert_int_equal(pthread_create(&thread, NULL, train, t), 0);
    for (int i = 0; i < 10000 && !(support_exists(log) && support_size(log) > 2000); i++)
        nap();
    assert_true(support_exists(log));
    uint64_t size = support_size(mdb);
    uint8_t junk[4096] = {1};
    if (cut)
        assert_int_equal(truncate(mdb, (off_t)(size / 2)), 0);
    for (uint64_t at = size / 4; !cut && at < size / 2; at += sizeof junk)
        write_at(mdb, at, junk, sizeof junk);
    pthread_join(thread, NULL);
    assert_int_equal(t->result.signal, 0);
    assert_false(t->result.timed_out);
    free(log);
    free(mdb);
}

static void test_trainers(void **state)
{
    (void)state;
    if (system("command -v mpirun >/dev/null 2>&1") != 0) {
        print_message("mpirun is not installed: ranks are not tried\n");
        skip();
    }
    for (int cut = 0; cut < 2; cut++) {
        char *dir = support_tmpdir();
        train_make_dataset(dir, 80);
        training t = {.dir = dir, .max_bad = "0"};
        run_training(&t, cut);
        support_assert_status(&t.result, 1);
        const char *said = strstr(t.result.err, "train-00000");
        said = said ? said : strstr(t.result.out, "train-00000");
        assert_non_null(said);
        assert_non_null(strstr(said, "sample "));
        support_result_free(&t.result);
        support_tmpdir_remove(dir);
    }
    char *dir = support_tmpdir();
    train_make_dataset(dir, 80);
    training t = {.dir = dir, .max_bad = "100000"};
    run_training(&t, false);
    support_assert_status(&t.result, 0);
    support_result_free(&t.result);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readers_pass_over),
        cmocka_unit_test(test_readers_end),
        cmocka_unit_test(test_trainers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

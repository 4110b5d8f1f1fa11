/* test_loader_shared.c - loaders and what they share with others: memory, open files, a fork, one another.
 * Invariant tested: memory is bounded and given back; what is lent stays as it is; loaders leave each other alone. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "tests/support/shards/loader.h"

/* ---- memory ------------------------------------------------------------------------------------------------- */

static void test_allocator_and_bound(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 9, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    for (unsigned threads = 0; threads < 4; threads++) {
        for (unsigned prefetch = 1; prefetch < 5; prefetch += 3) {
            account a = {.refuse_after = SIZE_MAX};
            mr_allocator allocator = {account_take, account_give_back, &a};
            mr_loader_options o = usual_options(MR_DELIVER_F32_NCHW, MR_TAIL_PAD);
            o.allocator = &allocator;
            o.threads = threads;
            o.prefetch = prefetch;
            o.epochs = 5;
            seen_list s = run_loader(ds, &o, 0);
            assert_int_equal(s.batches, 30);
            assert_int_equal(a.bytes, 0);
            /* Reused, not rebuilt: no more blocks than there may be batches. */
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
            mr_allocator allocator = {account_take, account_give_back, &a};
            mr_loader_options o = usual_options(MR_DELIVER_ENCODED, MR_TAIL_PAD);
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
        mr_loader_options o = usual_options(MR_DELIVER_ENCODED, MR_TAIL_PAD);
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
        readers[i].options = usual_options(i % 2 ? MR_DELIVER_ENCODED : MR_DELIVER_U8_NHWC, MR_TAIL_PAD);
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

/* ---- processes ------------------------------------------------------------------------------------------------ */

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
    mr_loader_options o = usual_options(MR_DELIVER_ENCODED, MR_TAIL_PAD);
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
    mr_loader_options o = usual_options(MR_DELIVER_ENCODED, MR_TAIL_PAD);
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
    mr_loader_options o = usual_options(MR_DELIVER_ENCODED, MR_TAIL_PAD);
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

static int free_after_fork(const char *dir)
{
    (void)dir;
    support_watch("freeing the parent's loader in a child");
    mr_loader_free(parents_loader);
    return 0;
}

/* In the middle of work, when one thread reads and the others wait until they may open a shard: none of them is in the
 * child. */
static void test_fork_at_work(void **state)
{
    (void)state;
    struct rlimit before;
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 1, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader_options o = usual_options(MR_DELIVER_F32_NCHW, MR_TAIL_PAD);
    o.threads = 6;
    o.prefetch = 500;
    o.epochs = 1000000;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (useconds_t i = 0; i < 24; i++) {
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){12, before.rlim_max}), 0);
        parents_loader = open_loader(ds, &o);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        usleep(500 * i);
        in_child(free_after_fork, dir);
        mr_loader_free(parents_loader);
    }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

static void *read_until_end(void *arg)
{
    const mr_batch *b;
    while (mr_loader_next(arg, &b, NULL) == MR_OK)
        mr_batch_release(arg, b);
    return NULL;
}

/* Either no call was under way, and the child may use the loader, or it is told; neither waits for the parent's
 * thread. */
static int use_after_fork(const char *dir)
{
    (void)dir;
    const mr_batch *b;
    mr_error err;
    mr_loader_stats stats = {.struct_size = sizeof stats};
    support_watch("using a loader that a thread of the parent was in");
    mr_loader_cursor(parents_loader);
    mr_loader_get_stats(parents_loader, &stats);
    mr_status status = mr_loader_next(parents_loader, &b, &err);
    if (status != MR_OK && (status != MR_MISUSE || !strstr(err.text, "fork")))
        return 1;
    mr_loader_stop(parents_loader);
    mr_loader_free(parents_loader);
    return 0;
}

/* Without threads of its own a loader is at work where its callers are: none of those is in the child. */
static void test_fork_in_a_call(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 9, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader_options o = usual_options(MR_DELIVER_F32_NCHW, MR_TAIL_PAD);
    o.epochs = 1000000;
    for (useconds_t i = 0; i < 24; i++) {
        pthread_t readers[2];
        o.threads = i % 4 == 3;
        parents_loader = open_loader(ds, &o);
        for (int k = 0; k < 2; k++)
            assert_int_equal(pthread_create(&readers[k], NULL, read_until_end, parents_loader), 0);
        usleep(300 * i);
        in_child(use_after_fork, dir);
        mr_loader_stop(parents_loader);
        for (int k = 0; k < 2; k++)
            pthread_join(readers[k], NULL);
        mr_loader_free(parents_loader);
    }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork), /* first: TSan wants no threads before a fork */
        cmocka_unit_test(test_fork_at_work),
        cmocka_unit_test(test_fork_in_a_call),
        cmocka_unit_test(test_few_files),
        cmocka_unit_test(test_allocator_and_bound),
        cmocka_unit_test(test_allocator_refuses),
        cmocka_unit_test(test_hold_all),
        cmocka_unit_test(test_many_loaders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

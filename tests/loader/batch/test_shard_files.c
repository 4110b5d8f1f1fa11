/* test_shard_files.c - shards that threads borrow from one another, with few of them open at a time.
 * Invariant tested: a borrowed shard stays open and is the one that was asked for, whatever other threads open and
 * close meanwhile; nobody waits for ever; and no descriptor is left. Covers batch/shard_files.c, batch/shard_rows.c. */
#include <dirent.h>
#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "loader/batch/shard_files.h"
#include "tests/support/shards/loader.h"

enum { SAMPLES = 120, PER_SHARD = 12, THREADS = 6, TURNS = 4000 };

static unsigned open_descriptors(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

typedef struct borrower {
    mr_shard_files *files;
    const mr_split *split;
    const mr_row *rows; /* of all samples, read alone */
    mr_random random;
    const char *wrong; /* NULL: nothing was */
} borrower;

static const char *borrow_once(borrower *b)
{
    const mr_open_shard *open;
    mr_row row = {0};
    mr_error err;
    uint64_t n = mr_random_below(&b->random, SAMPLES);
    if (mr_shard_files_borrow(b->files, n, &open, &err) != MR_OK)
        return "a shard cannot be borrowed";
    bool mine = open->shard == mr_dataset_shard(b->split, n) && open->mdb >= 0 && open->idx >= 0;
    bool read = mine && mr_shard_files_row(b->files, open, n, &row, &err) == MR_OK;
    mr_shard_files_return(b->files, open);
    if (!mine || !read)
        return mine ? "a row cannot be read" : "another shard";
    return memcmp(&row, &b->rows[n], sizeof row) == 0 ? NULL : "another row";
}

static void *borrow_often(void *arg)
{
    borrower *b = arg;
    for (unsigned i = 0; i < TURNS && !b->wrong; i++)
        b->wrong = borrow_once(b);
    return NULL;
}

static void read_rows(mr_shard_files *files, mr_row *rows)
{
    mr_error err;
    memset(rows, 0, SAMPLES * sizeof *rows);
    for (uint64_t n = 0; n < SAMPLES; n++) {
        const mr_open_shard *open;
        assert_int_equal(mr_shard_files_borrow(files, n, &open, &err), MR_OK);
        assert_int_equal(mr_shard_files_row(files, open, n, &rows[n], &err), MR_OK);
        mr_shard_files_return(files, open);
    }
}

/* 1: a shard that others want is closed at each return; MR_SHARD_FILES_MAX: nothing is ever closed. */
static void threads_share_few_shards(void **state)
{
    static const unsigned most[] = {1, 2, 3, 7, MR_SHARD_FILES_MAX};
    mr_row rows[SAMPLES];
    mr_random random = support_random();
    mr_error err;
    make_pictures(*state, SAMPLES, PER_SHARD, NULL);
    mr_dataset *ds = open_dataset_at(*state);
    const mr_split *split = mr_dataset_manifest(ds)->splits;
    unsigned before = open_descriptors();
    for (size_t i = 0; i < MR_COUNT(most); i++) {
        mr_shard_files *files = NULL;
        borrower b[THREADS];
        pthread_t threads[THREADS];
        assert_int_equal(mr_shard_files_new(ds, split, most[i], &files, &err), MR_OK);
        read_rows(files, rows);
        for (unsigned t = 0; t < THREADS; t++) {
            b[t] = (borrower){.files = files, .split = split, .rows = rows};
            mr_random_seed(&b[t].random, mr_random_u64(&random));
            assert_int_equal(pthread_create(&threads[t], NULL, borrow_often, &b[t]), 0);
        }
        for (unsigned t = 0; t < THREADS; t++)
            pthread_join(threads[t], NULL);
        for (unsigned t = 0; t < THREADS; t++)
            if (b[t].wrong)
                fail_msg("at most %u open: %s", most[i], b[t].wrong);
        if (most[i] <= 7)
            assert_true(open_descriptors() <= before + 3 * most[i]);
        mr_shard_files_free(files);
        assert_int_equal(open_descriptors(), before);
    }
    mr_dataset_free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(threads_share_few_shards)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

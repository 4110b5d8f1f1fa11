/* test_verify_replaced.c - datasets that others replace, reindex and seek while they are verified.  Covers
 * verify/verify.c.
 * Invariant tested: no verdict of damage about a dataset that was whole at every moment: it is whole, or the call says
 * that it was replaced. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "tests/support/shards/loader.h"
#include "tests/support/shards/shard.h"
#include "shards/verify/verify.h"

enum { TRIALS = 150 };

typedef struct other {
    char *dir, *ds;
    uint64_t turn;
    _Atomic bool stop;
} other;

/* As `ingest --force` does it: both folders change places at once, and the old one is removed. */
static void *replace(void *ctx)
{
    other *o = ctx;
    char *next = support_path("%s/next", o->dir);
    while (!o->stop) {
        mkdir(next, 0777);
        if (o->turn++ % 2)
            draw_dataset(next);
        else
            make_pictures(next, 30, 10, NULL);
        renameat2(AT_FDCWD, next, AT_FDCWD, o->ds, RENAME_EXCHANGE);
        mr_dir_remove(AT_FDCWD, next, NULL);
    }
    free(next);
    return NULL;
}

/* The files of it that commands may replace, by the same bytes. */
static void *rewrite(void *ctx)
{
    other *o = ctx;
    int dirfd = open(o->ds, O_RDONLY | O_DIRECTORY);
    char *path = support_path("%s/train-00000.idx", o->ds);
    size_t len;
    uint8_t *bytes = support_read(path, &len);
    while (!o->stop)
        mr_file_publish(dirfd, "train-00000.idx", bytes, len, NULL);
    free(bytes);
    free(path);
    close(dirfd);
    return NULL;
}

static size_t verify_beside(other *o, void *(*work)(void *))
{
    pthread_t thread;
    size_t replaced = 0;
    mkdir(o->ds, 0777);
    draw_dataset(o->ds);
    assert_int_equal(pthread_create(&thread, NULL, work, o), 0);
    char said[500] = "";
    for (int i = 0; i < TRIALS && !*said; i++) {
        const mr_verify_options options = {.level = (mr_verify_level)(i % 4), .quiet = true, .jobs = 1};
        mr_verify_report *r = NULL;
        mr_error err;
        mr_status status = mr_verify(o->ds, &options, &r, &err);
        replaced += status == MR_SYSTEM && strstr(err.text, "was replaced, moved or removed while it was verified");
        if (status == MR_OK && !mr_verify_ok(r))
            snprintf(said, sizeof said, "damaged");
        else if (status != MR_OK && !strstr(err.text, "was replaced"))
            snprintf(said, sizeof said, "%.400s", err.text);
        mr_verify_report_free(r);
    }
    o->stop = true; /* no assertion before the thread has ended */
    pthread_join(thread, NULL);
    assert_string_equal(said, "");
    return replaced;
}

static void a_dataset_that_is_replaced(void **state)
{
    other o = {.dir = *state, .ds = support_path("%s/ds", (char *)*state)};
    print_message("replaced while it was verified: %zu of %d\n", verify_beside(&o, replace), TRIALS);
    free(o.ds);
}

static void files_that_are_made_again(void **state)
{
    other o = {.dir = *state, .ds = support_path("%s/ds", (char *)*state)};
    assert_int_equal(verify_beside(&o, rewrite), 0);
    free(o.ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(a_dataset_that_is_replaced),
        IN_TMPDIR(files_that_are_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_exchange.c - the gradients of all ranks become one sum, and a rank that fails ends the run.
 * Invariant tested: the bits depend only on the ranks and their placement on hosts, and nothing is left over. The
 * ranks (exchange_rank.c) check each sum themselves.
 * Covers base/ranks/ranks.c, base/ranks/ranks_calls.c, base/ranks/ranks_watch.c, base/ranks/ranks_mpi.c. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cli/term.h"
#include "train/exchange/exchange.h"
#include "tests/support/support.h"

static char *shared; /* where OpenMPI has its shared files; /dev/shm has those of other programs, too */

static int set_up(void **state)
{
    (void)state;
    shared = support_tmpdir();
    return setenv("OMPI_MCA_btl_vader_backing_directory", shared, 1);
}

static int tear_down(void **state)
{
    (void)state;
    support_tmpdir_remove(shared);
    return 0;
}

static char *rank_program(void)
{
    const char *millrace = support_millrace_path(), *slash = strrchr(millrace, '/');
    return support_path("%.*s/exchange_rank", slash ? (int)(slash - millrace) : 1, slash ? millrace : ".");
}

static size_t times_in(const char *in, const char *what)
{
    size_t n = 0;
    for (const char *p = in; (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

/* ---- sums ------------------------------------------------------------------------------------------------------- */

enum { MOST_CASES = 10 };

/* Runs the cases COUNT:RANKS_A_HOST:BUCKET_BYTES[:apart], up to a NULL, and takes the one number that the ranks agreed
 * on in each. */
static void sums(unsigned ranks, const char *const *cases, uint64_t *numbers)
{
    char *program = rank_program();
    const char *argv[MOST_CASES + 3] = {program, "sums"};
    for (size_t i = 0; i < MOST_CASES && cases[i]; i++)
        argv[2 + i] = cases[i];
    support_result r = support_mpirun(ranks, argv);
    if (r.status != 0)
        print_message("%u ranks\n", ranks);
    support_assert_status(&r, 0);
    char *at = r.out;
    for (size_t i = 0; cases[i]; i++) {
        char *end;
        numbers[i] = strtoull(at, &end, 16);
        assert_true(end == at + 16);
        at = end + 1;
    }
    support_result_free(&r);
    free(program);
}

static void test_alone(void **state)
{
    (void)state;
    uint64_t n[MOST_CASES];
    const char *const cases[] = {"100001:0:4096", "100001:0:0", "0:0:0", "1:0:0", NULL};
    sums(1, cases, n);
    assert_true(n[0] == n[1]);
}

/* Sums within one host do not depend on the buckets, on any run. */
static void test_two_ranks(void **state)
{
    (void)state;
    uint64_t n[MOST_CASES];
    const char *const cases[] = {"700001:0:0", "700001:0:40000", "700001:0:9999", "30011:1:20000", "0:0:0", "1:0:0",
                                 NULL};
    sums(2, cases, n);
    assert_true(n[0] == n[1] && n[0] == n[2]);
}

static void test_counts_that_do_not_divide(void **state)
{
    (void)state;
    uint64_t n[MOST_CASES];
    const char *const cases[] = {"0:0:64",   "1:2:64",         "5:0:64",        "16:2:64", "17:0:64",
                                 "127:2:64", "100003:0:40000", "30011:2:20000", NULL};
    sums(3, cases, n);
}

/* Rank 1 cannot open the memory: then every rank is a host of its own, and the order of the sum says so. */
static void test_four_ranks_with_and_without_a_window(void **state)
{
    (void)state;
    uint64_t n[MOST_CASES];
    const char *const cases[] = {"50021:0:30000",       "50021:0:70000", "50021:1:30000", "50021:1:30000",
                                 "50021:0:30000:apart", "50021:2:5000",  "50021:3:20000", NULL};
    sums(4, cases, n);
    assert_true(n[0] == n[1] && n[2] == n[3] && n[2] == n[4]);
    assert_true(n[0] != n[2]);
}

/* In bf16 between hosts: the ranks know each sum to the bit, on any number of hosts; on one host it changes nothing. */
static void test_halves_between_hosts(void **state)
{
    (void)state;
    uint64_t n[MOST_CASES];
    const char *const cases[] = {
        "50021:1:30000:bf16", "50021:1:70000:bf16", "50021:2:5000:bf16", "50021:3:0:bf16",     "7:1:64:bf16",
        "0:1:64:bf16",        "50021:1:30000",      "50021:0:30000",     "50021:0:30000:bf16", NULL};
    sums(4, cases, n);
    assert_true(n[0] == n[1] && n[7] == n[8]);
    assert_true(n[0] != n[6] && n[0] != n[2]);
    const char *const three[] = {"30011:1:20000:bf16", "30011:1:20000:apart:bf16", NULL};
    sums(3, three, n);
    assert_true(n[0] == n[1]);
}

static void test_eight_ranks(void **state)
{
    (void)state;
    uint64_t n[MOST_CASES];
    const char *const cases[] = {"30011:0:20000", "30011:0:50000", "30011:3:20000", "30011:1:20000", "7:2:64", NULL};
    sums(8, cases, n);
    assert_true(n[0] == n[1]);
}

/* Between hosts the sums are taken while the ranks do something else, until the limit of the run if they are not. */
static void test_pieces_arrive_during_the_backward_pass(void **state)
{
    (void)state;
    static const char *const of_two[] = {"700001:1:40000", "700001:1:40000:bf16", "64:1:64", NULL};
    static const char *const of_four[] = {"50021:1:30000", "50021:2:30000", "50021:3:5000:bf16", NULL};
    for (size_t i = 0; i < 2; i++) {
        char *program = rank_program();
        const char *argv[MOST_CASES + 3] = {program, "overlaps"};
        const char *const *cases = i ? of_four : of_two;
        for (size_t k = 0; cases[k]; k++)
            argv[2 + k] = cases[k];
        support_result r = support_mpirun(i ? 4 : 2, argv);
        support_assert_status(&r, 0);
        support_result_free(&r);
        free(program);
    }
}

/* ---- failures --------------------------------------------------------------------------------------------------- */

/* How many processes there are of our program. */
static unsigned processes(const char *program)
{
    unsigned n = 0;
    DIR *d = opendir("/proc");
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char name[300], path[4600];
        snprintf(name, sizeof name, "/proc/%s/exe", e->d_name);
        ssize_t len = readlink(name, path, sizeof path - 1);
        path[len > 0 ? len : 0] = '\0';
        n += len > 0 && strcmp(path, program) == 0;
    }
    closedir(d);
    return n;
}

/* Whether OpenMPI's memory of all ranks is still there. */
static bool left_behind(void)
{
    char *names = support_list(shared);
    bool left = *names != '\0';
    free(names);
    return left;
}

typedef struct failure {
    const char *when;
    unsigned ranks, who, ranks_a_host;
    int status;          /* -1: any but 0 */
    const char *text;    /* ours, printed once */
    const char *or_text; /* mpirun may have ended all first, with this text; NULL: it may not */
} failure;

static void fail_and_end(const failure *f)
{
    char *program = rank_program(), *who = support_path("%u", f->who), *a_host = support_path("%u", f->ranks_a_host);
    const char *argv[] = {program, "fails", f->when, who, a_host, NULL};
    double started = mr_seconds();
    support_result r = support_mpirun(f->ranks, argv);
    print_message("%s of rank %u of %u, %u per host: %.1f s, status %d\n", f->when, f->who, f->ranks, f->ranks_a_host,
                  mr_seconds() - started, r.status);
    assert_false(r.timed_out);
    if (f->status < 0)
        assert_int_not_equal(r.status, 0);
    else
        support_assert_status(&r, f->status);
    size_t reports = times_in(r.err, "exchange_rank: ");
    if (reports > 1 || reports != times_in(r.err, f->text) || (!reports && (!f->or_text || !strstr(r.err, f->or_text))))
        fail_msg("not reported once: %s\n%s", f->text, r.err);
    support_watch("waiting for the last rank to end, and for its memory to go");
    while (processes(program) || left_behind())
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    support_watch(NULL);
    support_result_free(&r);
    free(program);
    free(who);
    free(a_host);
}

#define FAIL_AND_END(f)                                                                                                \
    for (size_t i = 0; i < sizeof(f) / sizeof *(f); i++)                                                               \
    fail_and_end(&(f)[i])

static void test_a_status_ends_all(void **state)
{
    (void)state;
    const failure f[] = {
        {"status", 2, 1, 0, 1, "exchange_rank: rank 1: train-00000.mdb: the disk has rotted", NULL},
        {"status", 4, 3, 2, 1, "exchange_rank: rank 3: train-00000.mdb: the disk has rotted", NULL},
    };
    FAIL_AND_END(f);
}

static void test_a_killed_rank_ends_all(void **state)
{
    (void)state;
    const failure f[] = {
        {"kill", 2, 1, 0, -1, "exchange_rank: rank 1 was killed", "exited on signal 9"},
        {"kill-late", 3, 0, 0, -1, "exchange_rank: rank 0 was killed", "exited on signal 9"},
        {"kill-late", 4, 3, 2, -1, "exchange_rank: rank 3 was killed", "exited on signal 9"},
        {"kill-late", 2, 1, 1, -1, "exchange_rank: rank 1 was killed", "exited on signal 9"},
        {"exit", 2, 0, 0, -1, "exchange_rank: rank 0 was killed", "exiting improperly"},
    };
    FAIL_AND_END(f);
}

/* Its process goes on, so that mpirun sees no failure: the others have to notice. */
static void test_a_rank_that_leaves_ends_all(void **state)
{
    (void)state;
    const failure f[] = {
        {"leave", 3, 1, 0, 3, "exchange_rank: rank 1 exited", NULL},
        {"leave", 4, 1, 2, 3, "exchange_rank: rank 1 exited", NULL},
    };
    FAIL_AND_END(f);
}

static void test_a_rank_without_memory_does_not_block_the_others(void **state)
{
    (void)state;
    static const char *const who[] = {"1", "2"};
    for (size_t i = 0; i < sizeof who / sizeof *who; i++) {
        char *program = rank_program();
        const char *argv[] = {program, "lacks", who[i], NULL};
        support_result r = support_mpirun(3, argv);
        support_assert_status(&r, 0);
        support_result_free(&r);
        free(program);
    }
}

static void test_impossible_sizes(void **state)
{
    (void)state;
    mr_ranks *ranks = NULL;
    mr_exchange *x = NULL;
    mr_error err = {0};
    assert_int_equal(mr_ranks_begin(&ranks, &err), MR_OK);
    assert_int_equal(mr_exchange_open(ranks, &(mr_exchange_options){.count = UINT64_MAX / 4}, &x, &err), MR_MISUSE);
    assert_int_equal(mr_exchange_open(ranks, &(mr_exchange_options){.count = (uint64_t)1 << 50}, &x, &err), MR_SYSTEM);
    assert_non_null(strstr(err.text, "out of memory"));
    assert_null(x);
    mr_exchange_free(NULL);
    mr_ranks_end(ranks);
}

/* ---- stalls ------------------------------------------------------------------------------------------------------ */

static void stall_and_end(const char *how, const char *who, const char *a_host, const char *text)
{
    char *program = rank_program();
    support_result r = support_mpirun(2, (const char *const[]){program, "stalls", how, who, a_host, NULL});
    support_assert_status(&r, 3);
    if (times_in(r.err, text) != 1)
        fail_msg("not said once: %s\n%s", text, r.err);
    support_watch("waiting for the last rank to end, and for its memory to go");
    while (processes(program) || left_behind())
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    support_watch(NULL);
    support_result_free(&r);
    free(program);
}

/* MPI itself waits for such a rank forever. */
static void test_a_stopped_rank_ends_all(void **state)
{
    (void)state;
    stall_and_end("stop", "0", "1", "has not been heard from for 1 s: it is stopped");
}

static void test_an_idle_rank_ends_all(void **state)
{
    (void)state;
    stall_and_end("sleep", "1", "1", "has made no progress for 1 s");
    stall_and_end("sleep-late", "1", "1", "has made no progress for 1 s"); /* though a thread exchanges gradients */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_impossible_sizes),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_two_ranks),
        cmocka_unit_test(test_counts_that_do_not_divide),
        cmocka_unit_test(test_four_ranks_with_and_without_a_window),
        cmocka_unit_test(test_halves_between_hosts),
        cmocka_unit_test(test_eight_ranks),
        cmocka_unit_test(test_pieces_arrive_during_the_backward_pass),
        cmocka_unit_test(test_a_status_ends_all),
        cmocka_unit_test(test_a_killed_rank_ends_all),
        cmocka_unit_test(test_a_rank_that_leaves_ends_all),
        cmocka_unit_test(test_a_stopped_rank_ends_all),
        cmocka_unit_test(test_an_idle_rank_ends_all),
        cmocka_unit_test(test_a_rank_without_memory_does_not_block_the_others),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* test_build.c - writing shards.
 * Invariant tested: an ingest that is killed at any time can be repeated, and gives the same bytes; address space is
 * taken for what a shard holds, not for its largest size. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/support.h"

static char *dir, *source;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    source = support_path("%s/source", dir);
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "120", "--seed", "3", "--quiet",
                   (char *)NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(source);
    support_tmpdir_remove(dir);
    return 0;
}

/* Kills the ingest after `ms` milliseconds; true if that came in time. */
static bool killed_ingest(const char *from, const char *target, unsigned ms)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl(support_millrace_path(), "millrace", "ingest", from, target, "--shard-size", "1MiB", "--jobs", "2",
              "--quiet", (char *)NULL);
        _exit(127);
    }
    usleep(ms * 1000);
    kill(child, SIGKILL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status);
}

static void test_killed_anywhere_then_resumed(void **state)
{
    (void)state;
    mr_random random = support_random();
    unsigned killed = 0, within = 120; /* ms: shorter, once that was too late */
    char *large = support_path("%s/large", dir), *whole = support_path("%s/whole", dir);
    support_expect(0, "sample", large, "--layout", "imagenette", "--images", "300", "--seed", "7", "--quiet",
                   (char *)NULL);
    support_expect(0, "ingest", large, whole, "--shard-size", "1MiB", "--quiet", (char *)NULL);
    uint64_t expected = support_dataset_hash(whole);
    for (unsigned i = 0; i < 12; i++) {
        char *target = support_path("%s/killed-%u", dir, i);
        for (unsigned again = 0; again < 3; again++) {
            if (!killed_ingest(large, target, (unsigned)mr_random_below(&random, within))) {
                within = within > 2 ? within / 2 : within;
                break;
            }
            killed++;
            if (support_exists(target)) /* killed between the last rename and the end: whole, as seen below */
                break;
        }
        if (!support_exists(target))
            support_expect(0, "ingest", large, target, "--shard-size", "1MiB", "--quiet", (char *)NULL);
        assert_true(expected == support_dataset_hash(target));
        char *partial = support_path("%s.partial", target);
        assert_false(support_exists(partial));
        free(partial);
        free(target);
    }
    assert_true(killed > 0);
    free(whole);
    free(large);
}

/* Address space is not taken for what a shard might become, only for what it is. */
static void test_small_shards_and_little_memory(void **state)
{
    (void)state;
    char *small = support_path("%s/small", dir), *one = support_path("%s/one", dir), *two = support_path("%s/two", dir);
    support_expect(0, "ingest", source, small, "--shard-size", "64KiB", "--quiet", (char *)NULL);
    support_expect(0, "verify", small, "--deep", "--quiet", (char *)NULL);
    char *path = support_path("%s/train-00003.mdb", small);
    assert_true(support_exists(path));
    free(path);
    support_expect(0, "ingest", source, one, "--shard-size", "1GiB", "--quiet", (char *)NULL);
    support_limits limits = {.memory = (uint64_t)1 << 30};
    const char *argv[] = {
        support_millrace_path(), "ingest", source, two, "--shard-size", "1GiB", "--jobs", "2", "--quiet", NULL};
    support_result r = support_run(argv, &limits);
    support_assert_status(&r, 0);
    support_result_free(&r);
    assert_true(support_dataset_hash(one) == support_dataset_hash(two));
    free(small);
    free(one);
    free(two);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_killed_anywhere_then_resumed),
        TEST(test_small_shards_and_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

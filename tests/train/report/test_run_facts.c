/* test_run_facts.c - which folders are taken for runs.
 * Invariant tested: what cannot be looked at is neither a run nor a dataset, but an error of the system. */
#include <sys/resource.h>
#include <unistd.h>

#include "train/report/run_facts.h"
#include "tests/support/faults.h"
#include "tests/support/support.h"

static bool is_run(const char *path)
{
    bool is;
    mr_error err;
    if (mr_run_is(path, &is, &err) != MR_OK)
        fail_msg("%s", err.text);
    return is;
}

static void folders_are_told_apart(void **state)
{
    char *empty = support_path("%s/empty", (char *)*state), *run = support_path("%s/run", (char *)*state),
         *file = support_path("%s/run/results.json", (char *)*state), *step = support_path("%s/step-00000001", run);
    support_shell(*state, "mkdir -p empty run/step-00000001");
    support_write_text(file, "{}");
    assert_false(is_run("/nonexistent/folder"));
    assert_false(is_run(empty));
    assert_false(is_run(file));
    assert_true(is_run(run));
    assert_true(is_run(step));
    free(empty);
    free(run);
    free(file);
    free(step);
}

static void without_descriptors_no_folder_is_judged(void **state)
{
    struct rlimit before;
    int probe = dup(STDERR_FILENO);
    assert_true(probe >= 0);
    close(probe);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (int more = 0; more < 8; more++) {
        struct rlimit few = {.rlim_cur = (rlim_t)(probe + more), .rlim_max = before.rlim_max};
        bool is;
        mr_error err;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        mr_status status = mr_run_is(*state, &is, &err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        if (more == 0)
            assert_int_equal(status, MR_SYSTEM);
        if (status == MR_OK)
            assert_false(is);
        else if (status != MR_SYSTEM)
            fail_msg("with %d descriptors: %s", more, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(folders_are_told_apart),
        IN_TMPDIR(without_descriptors_no_folder_is_judged),
    };
    return cmocka_run_group_tests_name("run facts", tests, NULL, NULL);
}

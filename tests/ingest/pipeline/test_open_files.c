/* test_open_files.c - files of rows that a program opens, shared among ranks (test_hub.c compares the datasets).
 * Invariant tested: nothing that was unpacked stays on disk, and a file that cannot be opened ends all ranks. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/hub.h"

enum { FILES = 4 };

static void put_files(void)
{
    for (unsigned i = 0; i < FILES; i++) {
        char *name = support_path("data/train-%05u-of-%05u.parquet", i, FILES);
        support_hub_rows(hub_source, name, 5, 2, 10 * i + 1);
        free(name);
    }
}

static void ingest_on(unsigned ranks, int status, const char *words)
{
    char *partial = support_path("%s.partial", hub_target);
    const char *argv[] = {support_millrace_path(), "ingest", hub_source, hub_target, "--jobs", "2", NULL};
    support_result r = support_mpirun(ranks, argv);
    support_assert_status(&r, status);
    if (words && !strstr(r.err, words))
        fail_msg("%u ranks: \"%s\" is not in: %s", ranks, words, r.err);
    support_result_free(&r);
    assert_false(support_exists(partial));
    free(partial);
}

static void test_no_spool_file_stays(void **state)
{
    (void)state;
    put_files();
    for (unsigned ranks = 1; ranks <= 3; ranks++) {
        ingest_on(ranks, 0, NULL);
        char *files = support_list(hub_target);
        assert_null(strstr(files, "spool"));
        free(files);
        support_expect(0, "verify", hub_target, "--quiet", (char *)NULL);
        support_tmpdir_remove(strdup(hub_target));
    }
}

static void test_a_damaged_file_ends_all_ranks(void **state)
{
    (void)state;
    put_files();
    char *path = support_path("%s/data/train-00002-of-00004.parquet", hub_source);
    support_write_text(path, "not the tar stream that a reader writes");
    for (unsigned ranks = 1; ranks <= 3; ranks++) {
        ingest_on(ranks, 1, "train-00002-of-00004.parquet: ");
        assert_false(support_exists(hub_target));
    }
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_spool_file_stays, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_a_damaged_file_ends_all_ranks, hub_set_up, hub_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_stage_target.c - what ingest does to DATASET, and what is there before.
 * Invariant tested: DATASET is replaced only if it is a dataset and --force is given; a failure changes nothing. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

static void test_target_is_left_alone(void **state)
{
    (void)state;
    char *target = support_path("%s/there", dir), *file = support_path("%s/x", target);
    support_write_text(file, "mine");
    support_expect(2, "ingest", source, target, (char *)NULL);
    support_expect(2, "ingest", source, target, "--force", (char *)NULL);
    char *list = support_list(target);
    assert_string_equal(list, "x\n");
    free(list);
    unlink(file);
    support_expect(0, "ingest", source, target, "--quiet", (char *)NULL); /* an empty folder is fine */
    support_expect(2, "ingest", source, target, (char *)NULL);
    uint64_t before = support_tree_hash(target);
    char *bad = support_path("%s/empty", dir);
    mkdir(bad, 0777);
    support_expect(1, "ingest", bad, target, "--force", (char *)NULL);
    assert_true(before == support_tree_hash(target));
    support_expect(0, "ingest", source, target, "--force", "--quiet", (char *)NULL);
    assert_true(before == support_tree_hash(target));
    char *partial = support_path("%s.partial", target);
    assert_false(support_exists(partial));
    free(partial);
    free(bad);
    free(file);
    free(target);
}

static void test_a_failure_leaves_no_folders(void **state)
{
    (void)state;
    char *target = support_path("%s/a/b/c", dir), *a = support_path("%s/a", dir), *empty = support_path("%s/none", dir);
    support_expect(2, "ingest", "/nonexistent/source", target, (char *)NULL);
    assert_false(support_exists(a));
    mkdir(empty, 0777);
    support_expect(1, "ingest", empty, target, (char *)NULL);
    assert_false(support_exists(a));
    support_expect(2, "ingest", source, "", (char *)NULL);
    support_expect(0, "ingest", source, target, "--quiet", (char *)NULL);
    support_expect(0, "verify", target, "--quiet", (char *)NULL);
    free(target);
    free(empty);
    free(a);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_target_is_left_alone),
        TEST(test_a_failure_leaves_no_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_beside.c - files in a dataset's folder that the manifest does not list.
 * Invariant tested: what could be mistaken for a shard is a problem, anything else a warning. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/support.h"
#include "shards/verify/parts.h"

static void names_are_sorted_out(void **state)
{
    static const char *const names[] = {"manifest.json",    "report.json",   "train-00000.mdb",  "train-00000.idx",
                                        "train-00000.seek", "val-00003.mdb", "train-00000.mdb~", "mdb",
                                        "train-00001.seek", ".mdb"};
    const char *dir = *state;
    mr_shard shard = {.name = "train-00000"};
    const mr_shard *list[1] = {&shard};
    mr_verify_report r = {.shard_count = 1};
    mr_verify_find find = {0};
    size_t shards;
    int dirfd = open(dir, O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        support_put(dir, names[i], "");
    }
    assert_int_equal(mr_verify_find_begin(list, 1, &find, NULL), MR_OK);
    assert_int_equal(mr_verify_beside(dirfd, dir, &find, &r, &shards, NULL), MR_OK);
    assert_int_equal(shards, 3); /* of any name */
    assert_int_equal(r.seeks, 1);
    assert_int_equal(r.problems.count, 1);
    assert_int_equal(r.problems.items[0].kind, MR_PROBLEM_EXTRA);
    assert_non_null(strstr(r.problems.items[0].detail, "val-00003.mdb: is not a shard of the manifest"));
    static const char *const warned[] = {".mdb: ", "mdb: ", "train-00000.mdb~: ", "train-00001.seek: "};
    assert_int_equal(r.warnings.count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_memory_equal(r.warnings.items[i].detail, warned[i], strlen(warned[i]));
    mr_problems_free(&r.problems);
    mr_problems_free(&r.warnings);
    mr_verify_find_end(&find);
    close(dirfd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(names_are_sorted_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

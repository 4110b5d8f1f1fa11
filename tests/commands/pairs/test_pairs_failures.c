/* test_pairs_failures.c - ranks that use each other's samples as negatives, when one of them fails.
 * Invariant tested: all end with the message of the one that failed, printed once; none is left waiting. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/training/train.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_pairs(dir);
    *state = dir;
    return 0;
}

static void expect_end_of_all(support_result r, int status, const char *words)
{
    assert_false(r.timed_out);
    support_assert_status(&r, status);
    const char *said = strstr(r.err, words) ? r.err : r.out, *first = strstr(said, words);
    if (!first)
        fail_msg("nobody says \"%s\"\n--- stdout\n%s\n--- stderr\n%s", words, r.out, r.err);
    assert_null(strstr(first + 1, "millrace:")); /* said once */
    support_result_free(&r);
}

static void a_bad_sample_ends_all_ranks(void **state)
{
    const char *dir = *state;
    IN(broken, "broken");
    IN(shard, "broken/data/train-00000.mdb");
    const char *copy[] = {"sh", "-c", "mkdir \"$1\" && cp -r \"$0\"/data \"$0\"/tok.json \"$1\"", dir, broken, NULL};
    support_result r = support_run(copy, NULL);
    support_assert_status(&r, 0);
    support_result_free(&r);
    /* Bytes in the middle of some images: their hashes no longer fit. */
    size_t len;
    uint8_t *bytes = support_read(shard, &len);
    for (size_t at = len / 2; at < len / 2 + 4096; at += 512)
        bytes[at] ^= 1;
    support_write(shard, bytes, len);
    free(bytes);
    expect_end_of_all(train_pairs_run(broken, 3, "--batch", "2", "--epochs", "2", "--gather-negatives", (char *)NULL),
                      1, "train-00000");
    expect_end_of_all(train_pairs_run(broken, 3, "--batch", "2", "--grad-accum", "3", "--epochs", "2",
                                      "--gather-negatives", (char *)NULL),
                      1, "train-00000");
    train_pairs_expect(0, broken, 2, "--steps", "13", "--batch", "4", "--gather-negatives", "--max-bad", "96",
                       "--on-bad", "mask", (char *)NULL);
}

/* What fails on one rank between two updates is known to it alone when the others wait for its negatives. */
static void a_log_that_is_full_ends_all_ranks(void **state)
{
    expect_end_of_all(train_pairs_run(*state, 2, "--steps", "4", "--log", "/dev/full", "--gather-negatives",
                                      "--grad-accum", "2", (char *)NULL),
                      3, "/dev/full: cannot write");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_sample_ends_all_ranks),
        cmocka_unit_test(a_log_that_is_full_ends_all_ranks),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}

/* test_pairs_damage.c - samples with damaged text, in training and evaluation.
 * Invariant tested: only the loader decides about a damaged sample: it is skipped as often as allowed, and then ends
 * the run and is named; the search for text beforehand does not fail on it. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/shards/loader.h"
#include "tests/support/training/train.h"

enum { FIRST = 0, ANOTHER = 30, ONE_SHARD = 1000 };

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_pairs(dir);
    IN(data, "data");
    hurt_meta(data, FIRST, ONE_SHARD);
    hurt_meta(data, ANOTHER, ONE_SHARD);
    *state = dir;
    return 0;
}

static void expect(support_result r, int status, const char *words)
{
    support_assert_status(&r, status);
    if (!strstr(r.err, words))
        fail_msg("\"%s\" does not mention \"%s\"", r.err, words);
    support_result_free(&r);
}

static void words_are_passed_over(void **state)
{
    static const char *const captions[] = {"-q", "--expand-captions"};
    for (unsigned i = 0; i < 2; i++) {
        expect(train_pairs_run(*state, 0, "--epochs", "2", "--max-bad", "2", "--output", i ? "all" : "one", captions[i],
                               (char *)NULL),
               0, "train: 2 damaged samples skipped: 0, 30;");
        expect(train_pairs_run(*state, 0, "--epochs", "2", "--max-bad", "1", "--output", "none", captions[i],
                               (char *)NULL),
               1, "exceeds the 1 bad samples allowed");
        expect(train_pairs_run(*state, 0, "--epochs", "2", "--output", "none", captions[i], (char *)NULL), 1,
               "its meta differs");
    }
    expect(train_command(0, *state, 0, "eval", "data", "one", "--split", "train", "--max-bad", "2", (char *)NULL), 0,
           "train: 2 damaged samples skipped");
    expect(train_command(1, *state, 0, "eval", "data", "one", "--split", "train", (char *)NULL), 1, "its meta differs");
}

/* The one rank that met it is named, whether or not the others wait for its negatives. */
static void the_rank_that_fails_is_named(void **state)
{
    char rank[2][8] = {"", ""};
    for (unsigned i = 0; i < 2; i++) {
        support_result r = train_pairs_run(*state, 2, "--steps", "40", "--batch", "4", "--seed", "1", "--output",
                                           "none", i ? "--gather-negatives" : "-q", (char *)NULL);
        support_assert_status(&r, 1);
        const char *said = strstr(r.err, "millrace: rank ");
        assert_non_null(said);
        snprintf(rank[i], sizeof rank[i], "%.6s", said + strlen("millrace: "));
        assert_null(strstr(said + strlen("millrace: rank 0: "), "rank "));
        support_result_free(&r);
    }
    assert_string_equal(rank[0], rank[1]);
}

/* Whom the first metas could not tell the column, all of them damaged, is told why. */
static void no_meta_is_whole(void **state)
{
    const char *dir = *state;
    IN(copy, "copy");
    IN(data, "copy/data");
    const char *make[] = {"sh", "-c", "mkdir \"$1\" && cp -r \"$0\"/data \"$0\"/tok.json \"$1\"", dir, copy, NULL};
    support_result r = support_run(make, NULL);
    support_assert_status(&r, 0);
    support_result_free(&r);
    for (uint64_t n = 1; n < 96; n++)
        if (n != ANOTHER)
            hurt_meta(data, n, ONE_SHARD);
    expect(train_pairs_run(copy, 0, "--steps", "1", "--max-bad", "200", (char *)NULL), 1, "its meta differs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_passed_over),
        cmocka_unit_test(the_rank_that_fails_is_named),
        cmocka_unit_test(no_meta_is_whole),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}

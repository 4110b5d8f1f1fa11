/* test_sight.c - what a host sees of sources.
 * Invariant tested: equal names and sizes give equal sights wherever they are and in whatever order they were made; any
 * difference gives another. */
#include <stdlib.h>
#include <string.h>

#include "ingest/source/sight.h"
#include "tests/support/faults.h"

static mr_sight sight(const char *dir, const char *name)
{
    char *path = support_path("%s/%s", dir, name);
    mr_sight s = mr_sight_of(&path, 1);
    free(path);
    return s;
}

static bool equal(mr_sight a, mr_sight b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void every_difference_is_seen(void **state)
{
    static const char *const changes[] = {
        "rm b/x/1",           /* deleted */
        "echo new >b/x/3",    /* added */
        "echo longer >b/x/1", /* of another size */
        "mv b/x/1 b/x/7",     /* renamed */
        "mv b/x/1 b/y/1",     /* moved */
        "mv b/x b/z",         /* its folder renamed */
        "mkdir b/x/4 && mv b/x/1 b/x/4/1",
        "rm b/link && ln -s x/nothing b/link",
    };
    char *dir = *state;
    support_shell(dir, "mkdir -p a/x a/y && echo 1 >a/x/1 && echo 22 >a/x/2 && echo 1 >a/y/5 && ln -s x/2 a/link");
    for (size_t i = 0; i < MR_COUNT(changes); i++) {
        support_shell(dir, "rm -rf b && mkdir -p b/y b/x && ln -s x/2 b/link && echo 1 >b/y/5 && echo 22 >b/x/2 && "
                           "echo 9 >b/x/1");
        mr_sight a = sight(dir, "a");
        assert_int_equal(a.files, 4);
        assert_int_equal(a.bytes, 2 + 3 + 2 + 3);
        assert_true(equal(a, sight(dir, "b"))); /* contents are not looked at */
        support_shell(dir, changes[i]);
        if (equal(a, sight(dir, "b")))
            fail_msg("not seen: %s", changes[i]);
    }
}

static void a_file_or_nothing_is_a_source_too(void **state)
{
    char *dir = *state, standard_input[] = "-", *in = standard_input;
    support_shell(dir, "echo 12345 >a.tar");
    assert_int_equal(sight(dir, "a.tar").files, 1);
    assert_int_equal(sight(dir, "a.tar").bytes, 6);
    assert_int_equal(sight(dir, "missing").files, 0);
    assert_int_equal(mr_sight_of(&in, 1).files, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(every_difference_is_seen),
        IN_TMPDIR(a_file_or_nothing_is_a_source_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_version.c - the version that programs see.
 * Invariant tested: header, library and program state the same one.
 * Covers base/version.c. */
#include <stdlib.h>
#include <string.h>

#include "millrace.h"
#include "tests/support/support.h"

static void all_state_the_same(void **state)
{
    (void)state;
    char *numbers = support_path("%d.%d.%d", MR_VERSION_MAJOR, MR_VERSION_MINOR, MR_VERSION_PATCH);
    assert_string_equal(numbers, MR_VERSION);
    assert_string_equal(mr_version(), MR_VERSION);
    support_result r = support_millrace("--version", (char *)NULL);
    support_assert_status(&r, 0);
    char *first = support_path("millrace %s\n", MR_VERSION);
    assert_memory_equal(r.out, first, strlen(first));
    assert_non_null(strstr(r.out, "dataset format 1"));
    assert_non_null(strstr(r.out, "libarchive "));
    support_result_free(&r);
    free(first);
    free(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_state_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

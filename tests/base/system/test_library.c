/* test_library.c - libraries are loaded by name, and their functions called.
 * Invariant tested: what is missing is reported, never called. */
#include "base/system/library.h"

#include <dlfcn.h>
#include <string.h>

#include "tests/support/support.h"

static void calls_a_function_of_a_library(void **state)
{
    double (*root)(double) = NULL;
    (void)state;
    void *library = mr_library_load("libm.so.6", NULL);
    assert_non_null(library);
    assert_true(mr_library_find(library, "sqrt", &root));
    assert_true(root(81) == 9);
    dlclose(library);
    assert_true(root(64) == 8);
}

static void says_what_is_missing(void **state)
{
    double (*root)(double) = NULL;
    const char *why = NULL;
    (void)state;
    assert_null(mr_library_load("libmillrace_has_no_such.so.1", &why));
    assert_non_null(strstr(why, "libmillrace_has_no_such.so.1"));
    assert_null(mr_library_load("libmillrace_has_no_such.so.1", NULL));
    void *library = mr_library_load("libm.so.6", &why);
    assert_true(mr_library_find(library, "sqrt", &root));
    assert_false(mr_library_find(library, "millrace_has_no_such", &root));
    assert_null(root);
    dlclose(library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_a_function_of_a_library),
        cmocka_unit_test(says_what_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

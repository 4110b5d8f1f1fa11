/* test_script.c - how the scripts that come with millrace are found.
 * Invariant tested: a program that the environment names comes first; what is missing is named with the way out. */
#include <stdlib.h>
#include <string.h>

#include "base/system/script.h"
#include "tests/support/support.h"

static void a_named_program_comes_first(void **state)
{
    mr_script script;
    mr_error err;
    (void)state;
    setenv("MILLRACE_TEST_SCRIPT", "/a/program", 1);
    assert_int_equal(mr_script_find("x.py", "MILLRACE_TEST_SCRIPT", "the test", &script, &err), MR_OK);
    assert_int_equal(script.argc, 1);
    assert_string_equal(script.argv[0], "/a/program");
    mr_script_free(&script);
    setenv("MILLRACE_TEST_SCRIPT", "/a/script.py", 1);
    setenv(MR_SCRIPT_PYTHON, "/a/python", 1);
    assert_int_equal(mr_script_find("x.py", "MILLRACE_TEST_SCRIPT", "the test", &script, &err), MR_OK);
    assert_int_equal(script.argc, 2);
    assert_string_equal(script.argv[0], "/a/python");
    assert_string_equal(script.argv[1], "/a/script.py");
    mr_script_free(&script);
    unsetenv(MR_SCRIPT_PYTHON);
    assert_int_equal(mr_script_find("x.py", "MILLRACE_TEST_SCRIPT", "the test", &script, &err), MR_OK);
    assert_string_equal(script.argv[0], "python3");
    mr_script_free(&script);
    unsetenv("MILLRACE_TEST_SCRIPT");
}

static void a_missing_script_is_named(void **state)
{
    mr_script script;
    mr_error err;
    (void)state;
    assert_int_equal(mr_script_find("none.py", "MILLRACE_TEST_SCRIPT", "the test", &script, &err), MR_SYSTEM);
    assert_non_null(strstr(err.text, "/none.py: the test is missing: reinstall millrace, or set the path of one in "
                                     "MILLRACE_TEST_SCRIPT"));
    mr_script_free(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_named_program_comes_first),
                                       cmocka_unit_test(a_missing_script_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_environment.c - variables of the environment, and the user's cache. */
#include "base/environment.h"

#include <stdlib.h>

#include "tests/support/support.h"

static void an_empty_variable_is_not_set(void **state)
{
    (void)state;
    unsetenv("MILLRACE_TEST");
    assert_null(mr_env("MILLRACE_TEST"));
    setenv("MILLRACE_TEST", "", 1);
    assert_null(mr_env("MILLRACE_TEST"));
    setenv("MILLRACE_TEST", " ", 1);
    assert_string_equal(mr_env("MILLRACE_TEST"), " ");
}

static void the_cache_is_in_an_absolute_folder(void **state)
{
    (void)state;
    static const struct {
        const char *cache, *home, *path; /* NULL: none */
    } cases[] = {
        {"/c", "/h", "/c/millrace/a/b"},
        {"", "/h", "/h/.cache/millrace/a/b"},
        {"c", "/h", "/h/.cache/millrace/a/b"},
        {"c", "h", NULL},
        {"", "", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mr_buf path = {0};
        setenv("XDG_CACHE_HOME", cases[i].cache, 1);
        setenv("HOME", cases[i].home, 1);
        assert_int_equal(mr_env_cache_path("a/b", &path), cases[i].path != NULL);
        assert_string_equal(mr_buf_text(&path), cases[i].path ? cases[i].path : "");
        mr_buf_free(&path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_variable_is_not_set),
        cmocka_unit_test(the_cache_is_in_an_absolute_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

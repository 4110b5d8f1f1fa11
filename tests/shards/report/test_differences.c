/* test_differences.c - `diff --html`: the page of what differs.
 * Invariant tested: each difference has its images, A's before B's, up to a number that is said; equal datasets have
 * none. Covers shards/report/differences.c. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

static char *dir, *a, *b, *page;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    a = support_path("%s/a", dir);
    b = support_path("%s/b", dir);
    page = support_path("%s/page.html", dir);
    char *script = support_path(
        "cd '%s' && \"$M\" sample s --layout imagenette --images 100 --quiet && cp -r s t && cd t/*/train && "
        "mv n01440764/* n02102040/ && cp \"$(ls n02102040/* | head -1)\" n01440764_x.JPEG && "
        "mkdir n01440764 2>/dev/null; mv n01440764_x.JPEG n01440764/ && rm $(ls n03028079/* | head -2)",
        dir);
    setenv("M", support_millrace_path(), 1);
    assert_int_equal(system(script), 0);
    char *s = support_path("%s/s", dir), *t = support_path("%s/t", dir);
    support_expect(0, "ingest", s, a, "--quiet", (char *)NULL);
    support_expect(0, "ingest", t, b, "--quiet", "--max-rejects", "100", (char *)NULL);
    free(script);
    free(s);
    free(t);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_tmpdir_remove(dir);
    free(a);
    free(b);
    free(page);
    return 0;
}

static size_t times(const char *text, const char *words)
{
    size_t n = 0;
    for (; (text = strstr(text, words)); text += strlen(words))
        n++;
    return n;
}

static void differences_have_images(void **state)
{
    (void)state;
    support_expect(1, "diff", a, b, "--html", page, "--summary", (char *)NULL);
    char *text = (char *)support_read(page, NULL);
    char *only_a = strstr(text, "id=\"removed\""), *changed = strstr(text, "id=\"changed\"");
    assert_non_null(strstr(text, "<title>a and b"));
    assert_non_null(changed);
    assert_non_null(only_a);
    assert_true(changed < only_a);
    assert_non_null(strstr(changed, "label"));
    assert_true(times(text, "<figure") >= 3);
    assert_int_equal(times(text, "<figure"), times(text, "data:image/jpeg;base64,"));
    assert_null(strstr(text, "http://"));
    free(text);
}

/* 60 of each kind, and the number of all. */
static void many_are_counted(void **state)
{
    (void)state;
    char *view = support_path("%s/few.view", dir);
    support_expect(0, "view", view, a, "--first", "1", (char *)NULL);
    support_expect(1, "diff", a, view, "--html", page, "--summary", (char *)NULL);
    char *text = (char *)support_read(page, NULL);
    assert_int_equal(times(text, "<figure"), 60);
    assert_non_null(strstr(text, "98 samples"));
    assert_non_null(strstr(text, "The first 60; <code>millrace diff --json</code> lists all."));
    free(text);
    free(view);
}

static void equal_datasets_have_none(void **state)
{
    (void)state;
    char *inside = support_path("%s/page.html", a);
    support_expect(0, "diff", a, a, "--html", page, (char *)NULL);
    char *text = (char *)support_read(page, NULL);
    assert_non_null(strstr(text, "All samples and the classes agree."));
    assert_int_equal(times(text, "<figure"), 0);
    support_expect(2, "diff", a, b, "--html", inside, (char *)NULL);
    assert_false(support_exists(inside));
    free(text);
    free(inside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_have_images),
        cmocka_unit_test(many_are_counted),
        cmocka_unit_test(equal_datasets_have_none),
    };
    return cmocka_run_group_tests_name("differences", tests, set_up, tear_down);
}

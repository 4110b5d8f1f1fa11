/* test_manifest_classes.c - which lists of classes are accepted.
 * Invariant tested: two classes with one name pass only if the source numbers both, differently. */
#include <string.h>

#include "shards/manifest/manifest.h"
#include "tests/support/support.h"

static char cat[] = "cat", dog[] = "dog", empty[] = "";

static void expect(const mr_class *classes, size_t count, const char *words)
{
    mr_error err = {0};
    mr_status status = mr_classes_check(classes, count, "here", &err);
    assert_int_equal(status, words ? MR_BAD_DATA : MR_OK);
    if (words && !strstr(err.text, words))
        fail_msg("%s", err.text);
}

static void names_tell_classes_apart(void **state)
{
    (void)state;
    expect(NULL, 0, NULL);
    expect((mr_class[]){{.name = cat}, {.name = dog}}, 2, NULL);
    expect((mr_class[]){{.name = dog}, {.name = cat}, {.name = dog}}, 3,
           "here: classes 0 and 2 are both named \"dog\"");
    expect((mr_class[]){{.name = cat}, {.name = empty}}, 2, "here: class 1 has no name");
}

static void ids_tell_classes_apart(void **state)
{
    const mr_class cat_7 = {.name = cat, .has_id = true, .id = 7}, cat_8 = {.name = cat, .has_id = true, .id = 8};
    const mr_class nameless = {.name = empty, .has_id = true, .id = 1};
    (void)state;
    expect((mr_class[]){cat_7, cat_8, nameless}, 3, NULL);
    expect((mr_class[]){cat_7, cat_8, cat_7}, 3, "classes 0 and 2");
    expect((mr_class[]){cat_7, {.name = cat}, cat_8}, 3, "are both named \"cat\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_tell_classes_apart),
        cmocka_unit_test(ids_tell_classes_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_yaml.c - small YAML files as trees.
 * Invariant tested: no text makes a tree larger than itself, or is taken where it is not one plain document. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"
#include "base/yaml.h"

static void test_tree(void **state)
{
    (void)state;
    static const char text[] = "# comment\nnames:\n  0: 'a b'\n  1: \"c\\u00e9\"\nval: [x, {y: z}]\nnc: 2\nempty:\n";
    mr_yaml y;
    mr_error err;
    assert_int_equal(mr_yaml_parse(text, strlen(text), "f", &y, &err), MR_OK);
    const mr_yaml_node *root = mr_yaml_root(&y), *names = mr_yaml_get(&y, root, "names");
    assert_int_equal(names->kind, MR_YAML_MAP);
    assert_string_equal(mr_yaml_text(&y, mr_yaml_get(&y, names, "0")), "a b");
    assert_string_equal(mr_yaml_text(&y, mr_yaml_get(&y, names, "1")), "c\xC3\xA9");
    const mr_yaml_node *item = mr_yaml_first(&y, mr_yaml_get(&y, root, "val"));
    assert_string_equal(mr_yaml_text(&y, item), "x");
    assert_string_equal(mr_yaml_text(&y, mr_yaml_get(&y, mr_yaml_next(&y, item), "y")), "z");
    assert_null(mr_yaml_next(&y, mr_yaml_next(&y, item)));
    assert_int_equal(mr_yaml_get(&y, root, "nc")->line, 6);
    assert_string_equal(mr_yaml_text(&y, mr_yaml_get(&y, root, "empty")), "");
    assert_null(mr_yaml_get(&y, root, "x"));
    assert_null(mr_yaml_get(&y, item, "x"));
    mr_yaml_free(&y);
    assert_int_equal(mr_yaml_parse("", 0, "f", &y, &err), MR_OK);
    assert_null(mr_yaml_root(&y));
    mr_yaml_free(&y);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } trials[] = {
        {"a: &x [1,2]\nb: [*x,*x]\n", "f: line 2: an alias"},
        {"a: 1\n--- \nb: 2\n", "f: line 2: a second document"},
        {"a: [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]\n", "f: line 1: lists and maps are nested more than 16 deep"},
        {"a: [1\n", "f: line 2, column 1: not YAML"},
        {"a: \"x\\0y\"\n", "f: line 1: a string contains a NUL"},
        {"a: \xFF\n", "not YAML"},
        {"\ta: 1\n", "not YAML"},
        {"names: [a]\nnc: 1\n'names': [b]\n", "f: line 3: \"names\" occurs twice, first in line 1: remove one of them"},
        {"a:\n  - {x: 1, y: 2, x: 3}\n", "f: line 2: \"x\" occurs twice, first in line 2"},
        {"{a: 1, ? [b] : 2, ? [b] : 3, \"\\u0061\": 4}\n", "f: line 1: \"a\" occurs twice"},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        mr_yaml y;
        mr_error err;
        assert_int_equal(mr_yaml_parse(trials[i].text, strlen(trials[i].text), "f", &y, &err), MR_BAD_DATA);
        if (!strstr(err.text, trials[i].why))
            fail_msg("%s: %s", trials[i].why, err.text);
        assert_null(y.nodes);
    }
}

/* Brackets without end: the depth ends it long before the file does. */
static void test_depth(void **state)
{
    (void)state;
    char *text = malloc(MR_YAML_MAX);
    mr_yaml y;
    mr_error err;
    assert_non_null(text);
    memset(text, '[', MR_YAML_MAX);
    assert_int_equal(mr_yaml_parse(text, MR_YAML_MAX, "f", &y, &err), MR_BAD_DATA);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tree), cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_depth)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_names.c - names for files that strangers named.
 * Invariant tested: whatever is asked for, a name is one safe path component, and no two of a folder are equal without
 * case. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/export/names.h"
#include "tests/support/support.h"

static bool take(mr_names *n, const char *folder, const char *wanted, size_t len, unsigned rules, mr_buf *out)
{
    bool changed;
    mr_error err;
    const mr_name_request request = {folder, wanted, len, rules & MR_NAME_FOLDER ? NULL : "jpg", rules};
    mr_buf_clear(out);
    assert_int_equal(mr_names_take(n, &request, out, &changed, &err), MR_OK);
    return changed;
}

static void expect(mr_names *n, const char *folder, unsigned rules, const char *wanted, const char *name)
{
    MR_AUTO(mr_buf_free) mr_buf out = {0};
    bool changed = take(n, folder, wanted, strlen(wanted), rules, &out);
    assert_string_equal(mr_buf_text(&out), name);
    const char *slash = strrchr(wanted, '/');
    assert_int_equal(changed, strcmp(slash ? slash + 1 : wanted, name) != 0);
}

static void names_are_kept_or_changed_by_rule(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"a.jpg", "a.jpg"},
        {"x/y/b.JPEG", "b.JPEG"},
        {"c", "c.jpg"},
        {"d.tif", "d.tif.jpg"},
        {"../e.jpg", "e.jpg"},
        {"/f.png", "f.png"},
        {"..", "__.jpg"},
        {"", "_.jpg"},
        {"g/", "_-2.jpg"},
        {".h.jpg", "_h.jpg"},
        {"i:j?.jpg", "i_j_.jpg"},
        {"con.jpg", "_con.jpg"},
        {"COM1", "_COM1.jpg"},
        {"LPT\xC2\xB9", "LPT\xC2\xB9.jpg"},
        {"aux.k.jpg", "_aux.k.jpg"},
        {"a.jpg", "a-2.jpg"},
        {"A.JPG", "A-3.JPG"},
        {"a-2.jpg", "a-2-2.jpg"},
        {"\xC3\xA9.webp", "\xC3\xA9.webp"},
        {"\xFF.jpg", "_-3.jpg"},
        {"l\\m.jpg", "l_m.jpg"},
        {"n. ", "n._.jpg"},
        {"o\n.jpg", "o_.jpg"},
        {"p q.jpg", "p q.jpg"},
        {"r.Jpg", "r.Jpg.jpg"},
        {"\xE2\x80\xAEs.png", "___s.png"},
    };
    MR_AUTO(mr_names_free) mr_names n = {0};
    for (size_t i = 0; i < MR_COUNT(pairs); i++)
        expect(&n, "train", 0, pairs[i][0], pairs[i][1]);
    expect(&n, "val", 0, "a.jpg", "a.jpg"); /* another folder */
    expect(&n, "val", MR_NAME_SOLID, "p q.jpg", "p_q.jpg");
    expect(&n, "/classes", MR_NAME_FOLDER, "C/C++", "C_C++");
    expect(&n, "/classes", MR_NAME_FOLDER, "..", "__");
    expect(&n, "/classes", MR_NAME_FOLDER, "v1.2", "v1.2");
    expect(&n, "/classes", MR_NAME_FOLDER, "V1.2", "V1.2-2");
    expect(&n, "/classes", MR_NAME_FOLDER, "nul", "_nul");
}

/* labels/a.txt belongs to one picture. */
static void stems_differ_where_files_are_named_after_them(void **state)
{
    (void)state;
    MR_AUTO(mr_names_free) mr_names n = {0};
    expect(&n, "", MR_NAME_STEM, "a.jpg", "a.jpg");
    expect(&n, "", MR_NAME_STEM, "a.png", "a-2.png");
    expect(&n, "", MR_NAME_STEM, "a.jpg.png", "a.jpg-2.png"); /* whose stem is the first picture */
    expect(&n, "", MR_NAME_STEM, "b.png.jpg", "b.png.jpg");
    expect(&n, "", MR_NAME_STEM, "b.png", "b-2.png");
}

static void drawn_names_are_safe_and_differ(void **state)
{
    enum { COUNT = 3000 };
    (void)state;
    static const char bytes[] = "aA.. /\\:-2\x01\x80\xC3\xA9%jpg";
    MR_AUTO(mr_names_free) mr_names n = {0};
    mr_random random = support_random();
    char *taken[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        char wanted[400];
        MR_AUTO(mr_buf_free) mr_buf out = {0};
        size_t len = (size_t)mr_random_below(&random, i % 50 ? 6 : sizeof wanted);
        for (size_t k = 0; k < len; k++)
            wanted[k] = bytes[mr_random_below(&random, sizeof bytes)];
        take(&n, "f", wanted, len, i % 3 ? MR_NAME_STEM : 0, &out);
        taken[i] = strdup(mr_buf_text(&out));
        assert_int_equal(strlen(taken[i]), out.len); /* no NUL */
        assert_true(out.len && out.len <= MR_NAME_MAX + 1 && mr_utf8_valid(taken[i], out.len));
        assert_true(taken[i][0] != '.' && !strpbrk(taken[i], "/\\:\x01"));
        for (size_t k = 0; k < i; k++)
            if (strcasecmp(taken[i], taken[k]) == 0)
                fail_msg("%s twice", taken[i]);
    }
    for (size_t i = 0; i < COUNT; i++)
        free(taken[i]);
}

/* A hundred thousand pictures of one name take no search from 2 for each. */
static void equal_names_are_numbered_without_a_search(void **state)
{
    (void)state;
    MR_AUTO(mr_names_free) mr_names n = {0};
    MR_AUTO(mr_buf_free) mr_buf out = {0};
    for (int i = 0; i < 100000; i++)
        take(&n, "f", "image.jpg", 9, 0, &out);
    assert_string_equal(mr_buf_text(&out), "image-100000.jpg");
    assert_int_equal(n.count, 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_kept_or_changed_by_rule),
        cmocka_unit_test(stems_differ_where_files_are_named_after_them),
        cmocka_unit_test(drawn_names_are_safe_and_differ),
        cmocka_unit_test(equal_names_are_numbered_without_a_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_path.c - whether one path is inside another.
 * Invariant tested: what would be written counts by where it would land, under any name, and whether it exists yet. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/path.h"
#include "tests/support/faults.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    support_shell(dir, "mkdir -p ds/inner beside; touch ds/file beside/file; ln beside/file twin\n"
                       "ln -s ds to_ds; ln -s ds/new to_new; ln -s ../ds/new beside/to_new; ln -s to_new to_link\n"
                       "ln -s none/x to_none; ln -s loop loop; ln -s deep/er deep; ln -s \"$PWD/ds/deep/new\" to_deep");
    *state = dir;
    return 0;
}

static void a_path_counts_by_where_it_leads(void **state)
{
    static const struct {
        bool inside;
        const char *path, *folder;
    } cases[] = {
        {true, "ds", "ds"},
        {true, "ds/", "ds"},
        {true, "ds", "ds//"},
        {true, "./ds/./inner/..", "ds"},
        {true, "ds/file", "ds"},
        {true, "ds/new", "ds"},
        {true, "ds/new/deeper", "ds"},
        {true, "to_ds/new", "ds"},
        {true, "ds/new", "to_ds"},
        {true, "to_new", "ds"},
        {true, "beside/to_new", "ds"},
        {true, "to_link", "ds"},
        {true, "to_deep", "ds"},
        {true, "beside/../ds/new", "ds"},
        {true, "ds/inner/../new", "ds"},
        {true, "new/manifest.json", "new"},
        {true, "new", "new"},
        {true, "beside/new/x", "to_ds/../beside/new"},
        {true, "twin", "beside/file"},
        {true, "beside/file", "twin"},
        {true, "none/x", "to_none"},
        {true, "ds", "/"},
        {true, "new", "."},
        {false, "ds2", "ds"},
        {false, "d", "ds"},
        {false, ".", "ds"},
        {false, "beside/new", "ds"},
        {false, "new", "ds"},
        {false, "newer", "new"},
        {false, "new.partial", "new"},
        {false, "to_none", "ds"},
        {false, "loop", "ds"},
        {false, "ds", "loop"},
        {false, "ds/../new", "ds"},
        {false, "/", "ds"},
        {true, "none/../ds/new", "ds"},
        {true, "none/./../to_new", "ds"},
        {true, "ds", "none/../ds"},
        {false, "deep", "ds"},
        {false, "deep/x", "ds"},
        {false, "ds", "deep"},
        {false, "ds", ""},
        {false, "", "ds"},
        {false, "none/../ds/../new", "ds"},
        {true, "...", "."},
        {true, "ds/..x", "ds"},
        {false, "beside/file", "ds/file"},
        {false, "beside/file/x", "ds"},
    };
    char *here = getcwd(NULL, 0);
    assert_int_equal(chdir(*state), 0);
    for (size_t i = 0; i < MR_COUNT(cases); i++)
        if (mr_path_inside(cases[i].path, cases[i].folder) != cases[i].inside)
            fail_msg("%s in %s: not %d", cases[i].path, cases[i].folder, cases[i].inside);
    assert_int_equal(chdir(here), 0);
    free(here);
}

/* Deeper than a path may be long: the system knows only names from here on. */
static void far_from_the_root(void **state)
{
    char *here = getcwd(NULL, 0), name[201];
    memset(name, 'd', sizeof name);
    name[200] = '\0';
    assert_int_equal(chdir(*state), 0);
    for (int i = 0; i < 30; i++)
        assert_true(mkdir(name, 0777) == 0 && chdir(name) == 0);
    assert_int_equal(mkdir("ds", 0777), 0);
    assert_int_equal(symlink("ds", "to_ds"), 0);
    assert_int_equal(symlink("../none/x", "ds/to_none"), 0);
    assert_true(mr_path_inside("to_ds/x", "ds"));
    assert_true(mr_path_inside("ds/x", "to_ds"));
    assert_true(mr_path_inside("to_ds/to_none", "none"));
    assert_false(mr_path_inside("to_ds/../x", "ds"));
    assert_int_equal(chdir(*state), 0);
    support_shell(*state, "rm -rf dddd*");
    assert_int_equal(chdir(here), 0);
    free(here);
}

static void links_are_followed_one_by_one(void **state)
{
    char *path = support_path("%s/beside/to_new", (char *)*state),
         *last = support_path("%s/beside/../ds/new", (char *)*state);
    mr_error err;
    assert_int_equal(mr_path_follow(&path, &err), MR_OK);
    assert_string_equal(path, last);
    assert_int_equal(mr_path_follow(&path, &err), MR_SYSTEM); /* not there */
    assert_string_equal(path, last);
    free(last);
    free(path);
}

static void what_is_read_is_kept_out_of(void **state)
{
    char *file = support_path("%s/ds/file", (char *)*state), *new = support_path("%s/beside/to_new", (char *)*state);
    char *ds = support_path("%s/ds", (char *)*state), *beside = support_path("%s/beside/new", (char *)*state);
    mr_error err;
    assert_int_equal(mr_path_keep_out("", ds, &err), MR_OK);
    assert_int_equal(mr_path_keep_out(beside, ds, &err), MR_OK);
    assert_int_equal(mr_path_keep_out(file, file, &err), MR_MISUSE);
    assert_int_equal(mr_path_keep_out(new, ds, &err), MR_MISUSE);
    assert_ptr_equal(strstr(err.text, new), err.text);
    assert_non_null(strstr(err.text, ": is the input ("));
    free(beside);
    free(ds);
    free(new);
    free(file);
}

static void parts(void **state)
{
    static const struct {
        const char *path, *dir, *name;
    } cases[] = {
        {"a", ".", "a"},   {"a/", ".", "a"},    {"a/b", "a", "b"},   {"a//b///", "a", "b"}, {"/a", "/", "a"},
        {"//a", "/", "a"}, {"/a/b", "/a", "b"}, {"../x", "..", "x"}, {"", ".", ""},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        char *dir, *name;
        assert_int_equal(mr_path_split(cases[i].path, &dir, &name, NULL), MR_OK);
        assert_string_equal(dir, cases[i].dir);
        assert_string_equal(name, cases[i].name);
        free(dir);
        free(name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_counts_by_where_it_leads),
        cmocka_unit_test(far_from_the_root),
        cmocka_unit_test(links_are_followed_one_by_one),
        cmocka_unit_test(what_is_read_is_kept_out_of),
        cmocka_unit_test(parts),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}

/* test_temp.c - claims of temporary names, and folders that take the place of others.
 * Invariant tested: whatever fails, the folder that is replaced is whole under the name that is reported. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/temp.h"
#include "tests/support/faults.h"

static int enter(void **state)
{
    char *dir = *state;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void test_a_claim_needs_the_lock_and_the_name(void **state)
{
    int dir = enter(state);
    int first = openat(dir, "x.tmp", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int second = openat(dir, "x.tmp", O_WRONLY | O_CLOEXEC);
    assert_true(mr_temp_claim(first, dir, "x.tmp", false));
    assert_false(mr_temp_claim(second, dir, "x.tmp", false)); /* locked by the first */
    assert_int_equal(renameat(dir, "x.tmp", dir, "x"), 0);
    assert_false(mr_temp_claim(first, dir, "x.tmp", false)); /* no longer its name */
    assert_int_equal(close(openat(dir, "x.tmp", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)), 0);
    assert_false(mr_temp_claim(first, dir, "x.tmp", false)); /* another file by now */
    close(first);
    assert_true(mr_temp_claim(second, dir, "x", true));
    close(second);
    close(dir);
}

static void make_folder(int dir, const char *name, const char *file)
{
    assert_int_equal(mkdirat(dir, name, 0777), 0);
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(close(openat(fd, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666)), 0);
    close(fd);
}

static bool has(int dir, const char *path)
{
    return faccessat(dir, path, F_OK, 0) == 0;
}

static void test_a_folder_takes_the_place_of_another(void **state)
{
    static const char *const asides[] = {NULL, "aside"};
    for (size_t i = 0; i < 2; i++) {
        const char *gone;
        int dir = enter(state);
        make_folder(dir, "old", "a");
        make_folder(dir, "new.tmp", "b");
        int failed = mr_temp_replace(dir, "new.tmp", "old", asides[i], &gone);
        if (i == 0 && mr_temp_cannot_exchange(failed)) {
            support_cannot("an exchange of names", "this file system has none");
            failed = mr_temp_replace(dir, "new.tmp", "old", "new.tmp.old", &gone);
        }
        assert_int_equal(failed, 0);
        assert_true(has(dir, "old/b"));
        char *path = support_path("%s/a", gone);
        assert_true(has(dir, path));
        free(path);
        close(dir);
        support_shell(*state, "rm -r -- *");
    }
}

static void test_what_cannot_be_replaced_stays(void **state)
{
    const char *gone = "";
    int dir = enter(state);
    make_folder(dir, "old", "a");
    /* there is nothing to take its place: it goes back to its name */
    assert_int_equal(mr_temp_replace(dir, "new.tmp", "old", "aside", &gone), ENOENT);
    assert_null(gone);
    assert_true(has(dir, "old/a") && !has(dir, "aside"));
    assert_int_equal(mr_temp_replace(dir, "new.tmp", "old", NULL, &gone), ENOENT);
    assert_null(gone);
    /* `aside` is taken */
    make_folder(dir, "new.tmp", "b");
    make_folder(dir, "aside", "c");
    assert_true(mr_temp_replace(dir, "new.tmp", "old", "aside", &gone) != 0);
    assert_null(gone);
    assert_true(has(dir, "old/a") && has(dir, "new.tmp/b") && has(dir, "aside/c"));
    close(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_a_claim_needs_the_lock_and_the_name),
        IN_TMPDIR(test_a_folder_takes_the_place_of_another),
        IN_TMPDIR(test_what_cannot_be_replaced_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

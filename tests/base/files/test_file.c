/* test_file.c - files and folders that are opened, read, made and removed.
 * Invariant tested: only regular files are read, never more than allowed; a removal does not follow links. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "tests/support/faults.h"

static void test_only_regular_files_are_opened(void **state)
{
    static const struct {
        const char *name, *words;
        mr_status plain, followed;
    } cases[] = {
        {"file", NULL, MR_OK, MR_OK},
        {"link", "symbolic link", MR_BAD_DATA, MR_OK},
        {"folder", "not a regular file", MR_BAD_DATA, MR_BAD_DATA},
        {"fifo", "not a regular file", MR_BAD_DATA, MR_BAD_DATA}, /* without waiting for a writer */
        {"none", "No such file", MR_SYSTEM, MR_SYSTEM},
    };
    support_shell(*state, "echo text >file; ln -s file link; mkdir folder; mkfifo fifo");
    int dir = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd;
        uint64_t size;
        mr_error err = {0};
        assert_int_equal(mr_file_open(dir, cases[i].name, false, &fd, &size, &err), cases[i].plain);
        if (cases[i].plain == MR_OK) {
            assert_int_equal(size, 5);
            close(fd);
        } else {
            assert_non_null(strstr(err.text, cases[i].words));
        }
        assert_int_equal(mr_file_open(dir, cases[i].name, true, &fd, NULL, &err), cases[i].followed);
        if (cases[i].followed == MR_OK)
            close(fd);
    }
    close(dir);
}

static void test_no_more_is_read_than_allowed(void **state)
{
    mr_buf text = {0};
    mr_error err;
    char five[6] = "";
    support_shell(*state, "printf 12345 >file");
    char *path = support_path("%s/file", (char *)*state);
    mr_buf_add_text(&text, ">");
    assert_int_equal(mr_file_read_all(AT_FDCWD, path, 5, &text, &err), MR_OK);
    assert_string_equal(mr_buf_text(&text), ">12345");
    assert_int_equal(mr_file_read_all(AT_FDCWD, path, 4, &text, &err), MR_BAD_DATA);
    assert_string_equal(mr_buf_text(&text), ">12345");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(mr_file_pread(fd, five, 5, 0, "file", &err), MR_OK);
    assert_string_equal(five, "12345");
    assert_int_equal(mr_file_pread(fd, five, 5, 1, "file", &err), MR_BAD_DATA); /* past the end */
    close(fd);
    mr_buf_free(&text);
    free(path);
}

static void test_folders_are_made_and_removed(void **state)
{
    mr_error err;
    char *deep = support_path("%s/a/b/c", (char *)*state), *a = support_path("%s/a", (char *)*state);
    char *file = support_path("%s/file/x", (char *)*state);
    assert_int_equal(mr_dir_make(deep, &err), MR_OK);
    assert_int_equal(mr_dir_make(deep, &err), MR_OK); /* it exists */
    assert_true(mr_dir_is(deep));
    support_shell(*state, "echo kept >file; mkdir out; echo kept >out/x; ln -s ../out a/link; ln -s ../file a/b/f; "
                          "echo >a/b/c/x");
    assert_int_equal(mr_dir_make(file, &err), MR_SYSTEM);
    assert_int_equal(mr_dir_make("", &err), MR_MISUSE);
    assert_int_equal(mr_dir_remove(AT_FDCWD, a, &err), MR_OK);
    assert_false(support_exists(a));
    support_shell(*state, "test -f file && test -f out/x");
    assert_int_equal(mr_dir_remove(AT_FDCWD, a, &err), MR_OK); /* gone already */
    free(deep);
    free(a);
    free(file);
}

static void test_scratch_files_have_no_name(void **state)
{
    int fd;
    mr_error err;
    char text[4] = "";
    setenv("TMPDIR", *state, 1);
    assert_int_equal(mr_file_scratch(&fd, &err), MR_OK);
    unsetenv("TMPDIR");
    assert_int_equal(mr_file_pwrite(fd, "abc", 3, 7, "scratch", &err), MR_OK);
    assert_int_equal(mr_file_pread(fd, text, 3, 7, "scratch", &err), MR_OK);
    assert_string_equal(text, "abc");
    char *left = support_list(*state);
    assert_string_equal(left, "");
    free(left);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_only_regular_files_are_opened),
        IN_TMPDIR(test_no_more_is_read_than_allowed),
        IN_TMPDIR(test_folders_are_made_and_removed),
        IN_TMPDIR(test_scratch_files_have_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_support.c - the helpers of all other tests. */
#include "tests/support/support.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static support_result shell(const char *line, const support_limits *limits)
{
    const char *argv[] = {"sh", "-c", line, NULL};
    return support_run(argv, limits);
}

static void both_outputs_and_the_status_are_kept(void **state)
{
    (void)state;
    support_result r = shell("echo one; echo two >&2; exit 7", NULL);
    assert_int_equal(r.status, 7);
    assert_int_equal(r.signal, 0);
    assert_string_equal(r.out, "one\n");
    assert_string_equal(r.err, "two\n");
    assert_true(r.peak_memory > 4096 && !r.timed_out);
    support_result_free(&r);
    const char *argv[] = {"/no/such/program", NULL};
    r = support_run(argv, NULL);
    assert_int_equal(r.status, 127);
    support_result_free(&r);
}

static void a_signal_is_told_from_a_status(void **state)
{
    (void)state;
    support_result r = shell("kill -SEGV $$", NULL);
    assert_int_equal(r.status, -1);
    assert_int_equal(r.signal, SIGSEGV);
    support_result_free(&r);
}

static void large_input_and_output_pass_through(void **state)
{
    (void)state;
    size_t len = 3 << 20;
    char *bytes = malloc(len);
    assert_non_null(bytes);
    mr_random random = support_random();
    mr_random_bytes(&random, bytes, len);
    support_limits limits = {.input = bytes, .input_len = len};
    support_result r = shell("cat", &limits);
    assert_int_equal(r.status, 0);
    assert_int_equal(r.out_len, len);
    assert_memory_equal(r.out, bytes, len);
    support_result_free(&r);
    r = shell("exit 0", &limits); /* reads none of it */
    assert_int_equal(r.status, 0);
    support_result_free(&r);
    free(bytes);
}

/* A killed process stays a zombie until the process that adopted it waits for it. */
static bool is_running(const char *stat_path)
{
    char text[200] = "";
    FILE *f = fopen(stat_path, "r");
    bool read = f && fgets(text, sizeof text, f);
    if (f)
        fclose(f);
    return read && !strstr(text, ") Z ");
}

static void endless_commands_end_with_their_children(void **state)
{
    (void)state;
    support_limits limits = {.seconds = 1};
    support_result r = shell("sleep 1000 & echo $!; wait", &limits);
    assert_true(r.timed_out);
    assert_int_equal(r.signal, SIGKILL);
    char *path = support_path("/proc/%ld/stat", strtol(r.out, NULL, 10));
    support_watch("waiting for a killed process to end");
    while (is_running(path))
        usleep(10000);
    support_watch(NULL);
    free(path);
    support_result_free(&r);
}

static void limits_are_in_force(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *file = support_path("%s/big", dir);
    support_limits limits = {.file_size = 1000, .directory = dir};
    support_result r = shell("head -c 5000 /dev/zero > big", &limits);
    assert_int_not_equal(r.status, 0);
    assert_int_equal(r.signal, 0);
    assert_int_equal(support_size(file), 1000);
    support_result_free(&r);
    free(file);
    support_tmpdir_remove(dir);
}

static void folders_go_whatever_is_in_them(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *deep = support_path("%s/a/b/c.txt", dir), *link = support_path("%s/link", dir);
    char *locked = support_path("%s/a/b", dir), *copy = support_path("%s", dir);
    support_write_text(deep, "x");
    assert_int_equal(symlink("/usr", link), 0);
    char *names = support_list(dir);
    assert_string_equal(names, "a/b/c.txt\nlink\n");
    free(names);
    assert_int_equal(chmod(locked, 0), 0);
    support_tmpdir_remove(dir);
    assert_false(support_exists(copy));
    assert_true(support_exists("/usr/bin"));
    free(copy);
    free(deep);
    free(link);
    free(locked);
}

static void tree_hashes_see_names_and_bytes(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *a = support_path("%s/a", dir), *b = support_path("%s/b", dir);
    support_write_text(a, "xy");
    uint64_t first = support_tree_hash(dir);
    support_write_text(a, "xz");
    assert_int_not_equal(support_tree_hash(dir), first);
    support_write_text(a, "xy");
    assert_int_equal(support_tree_hash(dir), first);
    assert_int_equal(rename(a, b), 0);
    assert_int_not_equal(support_tree_hash(dir), first);
    free(a);
    free(b);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_outputs_and_the_status_are_kept),
        cmocka_unit_test(a_signal_is_told_from_a_status),
        cmocka_unit_test(large_input_and_output_pass_through),
        cmocka_unit_test(endless_commands_end_with_their_children),
        cmocka_unit_test(limits_are_in_force),
        cmocka_unit_test(folders_go_whatever_is_in_them),
        cmocka_unit_test(tree_hashes_see_names_and_bytes),
    };
    return cmocka_run_group_tests_name("support", tests, NULL, NULL);
}

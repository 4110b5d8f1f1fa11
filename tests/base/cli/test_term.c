/* test_term.c - tables, untrusted text and progress, on what is not a terminal.
 * Invariant tested: columns line up by code points, control characters are never printed raw, and the last report of a
 * step has its final numbers. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cli/term.h"
#include "tests/support/support.h"

static void test_tables_line_up(void **state)
{
    (void)state;
    char *text;
    size_t len;
    mr_error err;
    FILE *out = open_memstream(&text, &len);
    mr_table *t = mr_table_new(3);
    mr_table_row(t, "split", ">samples", "note");
    mr_table_row(t, "train", "1,200", "caf\xC3\xA9");
    mr_table_row(t, "\xC3\xA4", "7", "");
    assert_int_equal(mr_table_print(t, out, &err), MR_OK);
    fclose(out);
    assert_string_equal(text, "  split  samples  note\n"
                              "  train    1,200  caf\xC3\xA9\n"
                              "  \xC3\xA4            7\n");
    free(text);
}

static void test_untrusted_text_is_harmless(void **state)
{
    (void)state;
    char *text;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    size_t printed = mr_term_text(out, "a\033[31m\nb\x07\xFF\xC3\xA9");
    fclose(out);
    for (size_t i = 0; i < len; i++)
        assert_true((unsigned char)text[i] >= ' ' && text[i] != 0x7F);
    assert_non_null(strstr(text, "\xC3\xA9"));
    assert_int_equal(printed, len - 1); /* the last one is two bytes */
    free(text);
}

static void test_no_colours_without_a_terminal(void **state)
{
    (void)state;
    FILE *null = fopen("/dev/null", "w");
    assert_string_equal(mr_sgr(null, MR_RED), "");
    assert_false(mr_term_redraw(null, "line"));
    fclose(null);
    assert_null(mr_progress_begin("checking", 10, MR_PROGRESS_QUIET));
    mr_progress_add(NULL, 1, 1);
    mr_progress_end(NULL);
}

static void test_lines_end_with_whole_words(void **state)
{
    (void)state;
    static const struct {
        unsigned short columns;
        const char *drawn;
    } cases[] = {
        {40, "lr=9e-06 wait_ms=0.25"}, {22, "lr=9e-06 wait_ms=0.25"}, {21, "lr=9e-06"}, {9, "lr=9e-06"}, {8, "lr=9e-0"},
        {1, "lr=9e-06 wait_ms=0.25"}};
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        struct winsize size = {.ws_row = 24, .ws_col = cases[i].columns};
        char seen[64] = "", wanted[64];
        int master = posix_openpt(O_RDWR | O_NOCTTY);
        assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
        int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
        assert_true(slave >= 0 && ioctl(slave, TIOCSWINSZ, &size) == 0);
        FILE *out = fdopen(slave, "w");
        setenv("TERM", "xterm", 1);
        assert_true(mr_term_redraw(out, "lr=9e-06 wait_ms=0.25"));
        assert_true(read(master, seen, sizeof seen - 1) > 0);
        snprintf(wanted, sizeof wanted, "\r\033[K%s", cases[i].drawn);
        assert_string_equal(seen, wanted);
        fclose(out);
        close(master);
    }
}

static void test_progress_as_json(void **state)
{
    (void)state;
    int ends[2];
    char text[4096];
    assert_int_equal(pipe(ends), 0);
    mr_progress *p = mr_progress_begin("checking", 20, ends[1]);
    assert_non_null(p);
    for (unsigned i = 0; i < 20; i++)
        mr_progress_add(p, 1, 100);
    mr_progress_end(p);
    close(ends[1]);
    ssize_t n = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    assert_true(n > 0);
    text[n] = '\0';
    text[n - 1] = text[n - 1] == '\n' ? '\0' : '!';
    const char *last = strrchr(text, '\n');
    assert_string_equal(last ? last + 1 : text,
                        "{\"step\": \"checking\", \"done\": 20, \"total\": 20, \"bytes\": 2000}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_line_up),
        cmocka_unit_test(test_untrusted_text_is_harmless),
        cmocka_unit_test(test_no_colours_without_a_terminal),
        cmocka_unit_test(test_lines_end_with_whole_words),
        cmocka_unit_test(test_progress_as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_log.c - the JSON log of runs that were killed and resumed, and files that cannot be written.
 * Invariant tested: a log consists of whole lines, however often the run was killed, and loses none. */
#include "train/journal/parts.h"
#include "tests/support/training/journal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- runs that were killed -------------------------------------------------------------------------------------- */

/* The steps of the lines, "1 2 e2 3": e before an evaluation's, ? for any other line. */
static char *steps_in(const char *path)
{
    char *out = calloc(1, 1 << 12), line[1 << 12];
    FILE *f = fopen(path, "r");
    assert_true(out && f);
    while (fgets(line, sizeof line, f)) {
        json_t *doc = json_loads(line, 0, NULL), *step = json_object_get(doc, "step");
        size_t len = strlen(out);
        assert_true(line[strlen(line) - 1] == '\n');
        if (json_is_integer(step))
            snprintf(out + len, (1 << 12) - len, "%s%s%d", len ? " " : "", json_object_get(doc, "eval_loss") ? "e" : "",
                     (int)json_integer_value(step));
        else
            snprintf(out + len, (1 << 12) - len, "%s?", len ? " " : "");
        json_decref(doc);
    }
    fclose(f);
    return out;
}

/* What a run of two updates leaves of a log that holds `before`. */
static void expect_log(const char *before, bool resume, uint64_t first, const char *expected)
{
    support_journal p = support_journal_begin();
    mr_journal_options o = {.log = p.log, .steps = 100, .resume = resume, .first = first};
    support_write_text(p.log, before);
    mr_journal *j = support_journal_open(&o);
    support_journal_updates(j, first + 1, first + 2);
    mr_journal_free(j);
    char *steps = steps_in(p.log), *list = support_list(p.dir);
    if (strcmp(steps, expected) != 0)
        fail_msg("after update %d: '%s', expected '%s'", (int)first, steps, expected);
    assert_string_equal(list, "logs/run.jsonl\n");
    free(steps);
    free(list);
    support_journal_end(&p);
}

#define L(step) "{\"step\": " #step ", \"loss\": 1}\n"
#define E(step) "{\"step\": " #step ", \"eval_loss\": 1}\n"

static void test_resume(void **state)
{
    (void)state;
    /* Whole lines stay: what a killed run did after its checkpoint occurs twice. */
    expect_log(L(1) L(2) E(2) L(3) L(4) E(4), true, 2, "1 2 e2 3 4 e4 3 4");
    expect_log(L(1) L(2) E(2) L(3), true, 3, "1 2 e2 3 4 5");
    expect_log(L(1) L(2), true, 5, "1 2 6 7");
    expect_log(L(1) L(2) L(3), true, 0, "1 2 3 1 2");
    expect_log("", true, 2, "3 4");
    expect_log(L(1) L(2) L(3), false, 0, "1 2 3 1 2");
}

static void test_unfinished_line(void **state)
{
    (void)state;
    expect_log(L(1) L(2) "{\"step\": 3, \"lo", true, 2, "1 2 3 4");
    expect_log(L(1) L(2) "{\"st", true, 2, "1 2 3 4");
    expect_log(L(1) "{\"step\": 2, \"loss\": 1}", true, 2, "1 3 4");
    expect_log("{\"step\": 1", true, 0, "1 2");
    /* Not a line of a run, or not resumed: it stays and is ended. */
    expect_log(L(1) L(2) "{\"lo", true, 2, "1 2 ? 3 4");
    expect_log(L(1) L(2) "# a note without an end", true, 1, "1 2 ? 2 3");
    expect_log("x", true, 1, "? 2 3");
    expect_log(L(1) L(2) "{\"step\": 3, \"lo", false, 0, "1 2 ? 1 2");
}

/* What a power loss may leave: zeros instead of what was written last, or after its beginning. */
static void test_resume_zeros(void **state)
{
    (void)state;
    static const struct {
        const char *before, *half, *expected;
        size_t zeros;
    } cases[] = {
        {L(1) L(2) L(3), "", "1 2 3 3 4", 300},
        {L(1) L(2) L(3), "{\"step\": 4, \"lo", "1 2 3 3 4", 5000},
        {L(1) L(2) L(3), "{\"st", "1 2 3 3 4", 1},
    };
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        support_journal p = support_journal_begin();
        size_t len = strlen(cases[i].before), half = strlen(cases[i].half);
        char *bytes = calloc(1, len + half + cases[i].zeros);
        assert_non_null(bytes);
        memcpy(bytes, cases[i].before, len);
        memcpy(bytes + len, cases[i].half, half);
        support_write(p.log, bytes, len + half + cases[i].zeros);
        mr_journal_options o = {.log = p.log, .steps = 100, .resume = true, .first = 2};
        mr_journal *j = support_journal_open(&o);
        support_journal_updates(j, 3, 4);
        mr_journal_free(j);
        char *steps = steps_in(p.log);
        if (strcmp(steps, cases[i].expected) != 0)
            fail_msg("case %zu: '%s', expected '%s'", i, steps, cases[i].expected);
        free(steps);
        free(bytes);
        support_journal_end(&p);
    }
}

/* Longer than any block that is read at once. */
static void test_unfinished_long_line(void **state)
{
    (void)state;
    support_journal p = support_journal_begin();
    mr_journal_options o = {.log = p.log, .steps = 100, .first = 1};
    char *text = support_path("%s%s%0100000d", L(1), "{\"step\": 2, ", 0);
    support_write_text(p.log, text);
    mr_journal_free(support_journal_open(&o));
    assert_int_equal(support_size(p.log), strlen(L(1)));
    free(text);
    support_journal_end(&p);
}

/* Whatever bytes a killed machine left: the log opens, and what stays is a beginning of what was there. */
static void test_resume_any_bytes(void **state)
{
    (void)state;
    mr_random r = support_random();
    support_journal p = support_journal_begin();
    static const char good[] = L(1) L(2) E(2) L(3) L(4);
    for (int turn = 0; turn < 300; turn++) {
        uint8_t bytes[sizeof good];
        size_t len = mr_random_below(&r, sizeof good);
        memcpy(bytes, good, sizeof bytes);
        for (uint64_t k = mr_random_below(&r, 4); k; k--)
            bytes[mr_random_below(&r, sizeof good)] = (uint8_t)mr_random_below(&r, 256);
        support_write(p.log, bytes, len);
        mr_journal_options o = {.log = p.log, .steps = 100, .resume = true, .first = mr_random_below(&r, 5)};
        mr_journal_free(support_journal_open(&o));
        size_t left;
        uint8_t *now = support_read(p.log, &left);
        size_t same = left && left > len ? left - 1 : left; /* an end of line may have come */
        if (same > len || memcmp(now, bytes, same) != 0 || (left && now[left - 1] != '\n'))
            fail_msg("turn %d: %zu bytes became %zu", turn, len, left);
        free(now);
    }
    support_journal_end(&p);
}

/* ---- failing files ---------------------------------------------------------------------------------------------- */

static void test_full_disk(void **state)
{
    (void)state;
    support_journal p = support_journal_begin();
    struct rlimit old, small;
    mr_error err = {0};
    mr_journal_options o = {.log = p.log, .steps = 10};
    mr_journal *j = support_journal_open(&o);
    support_journal_updates(j, 1, 2);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = support_size(p.log) + 20;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    mr_journal_update u = support_journal_update(3);
    mr_status status = mr_journal_update_done(j, &u, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, MR_SYSTEM);
    assert_non_null(strstr(err.text, p.log));
    assert_non_null(strstr(err.text, "cannot write"));
    mr_journal_free(j);
    o.first = 2; /* the half line does not stay either */
    j = support_journal_open(&o);
    support_journal_updates(j, 3, 4);
    mr_journal_free(j);
    char *steps = steps_in(p.log);
    assert_string_equal(steps, "1 2 3 4");
    free(steps);
    support_journal_end(&p);
}

static void test_bad_places(void **state)
{
    (void)state;
    support_journal p = support_journal_begin();
    char *file = support_path("%s/file", p.dir), *under = support_path("%s/file/x/y", p.dir);
    mr_journal_options options[] = {{.log = under}, {.log = p.dir}, {.events = under}, {.results = under}};
    support_write_text(file, "x");
    for (size_t i = 0; i < MR_COUNT(options); i++) {
        mr_journal *j = NULL;
        mr_error err = {0};
        assert_int_equal(mr_journal_open(&options[i], &j, &err), MR_SYSTEM);
        assert_null(j);
        assert_non_null(strstr(err.text, p.dir));
    }
    free(file);
    free(under);
    support_journal_end(&p);
}

/* A program may listen instead of a file. */
static void test_log_to_pipe(void **state)
{
    (void)state;
    support_journal p = support_journal_begin();
    char *fifo = support_path("%s/fifo", p.dir), line[512];
    assert_int_equal(mkfifo(fifo, 0600), 0);
    int reader = open(fifo, O_RDONLY | O_NONBLOCK);
    mr_journal_options o = {.log = fifo, .steps = 10, .resume = true, .first = 4};
    mr_journal *j = support_journal_open(&o);
    assert_false(fcntl(j->log, F_GETFL) & O_NONBLOCK); /* a reader that is slow loses nothing */
    support_journal_updates(j, 5, 5);
    ssize_t n = read(reader, line, sizeof line - 1);
    assert_true(n > 0);
    line[n] = '\0';
    assert_true(strncmp(line, "{\"step\": 5, ", 12) == 0 && strchr(line, '\n') == line + n - 1);
    mr_journal_free(j);
    close(reader);
    free(fifo);
    support_journal_end(&p);
}

/* Opening it would block until a reader comes. */
static void test_pipe_without_reader(void **state)
{
    (void)state;
    support_journal p = support_journal_begin();
    char *fifo = support_path("%s/fifo", p.dir);
    mr_journal_options o = {.log = fifo, .events = p.events, .steps = 10};
    mr_journal *j = NULL;
    mr_error err = {0};
    assert_int_equal(mkfifo(fifo, 0600), 0);
    support_watch("opening a log that is a pipe without a reader");
    assert_int_equal(mr_journal_open(&o, &j, &err), MR_MISUSE);
    support_watch(NULL);
    assert_non_null(strstr(err.text, "fifo: no process reads from it"));
    assert_false(support_exists(p.events));
    free(fifo);
    support_journal_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_unfinished_line),
        cmocka_unit_test(test_resume_zeros),
        cmocka_unit_test(test_unfinished_long_line),
        cmocka_unit_test(test_resume_any_bytes),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_bad_places),
        cmocka_unit_test(test_log_to_pipe),
        cmocka_unit_test(test_pipe_without_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

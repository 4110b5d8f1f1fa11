/* test_help.c - what --help, --help=all and --usage print, and the words of the version before.
 * Covers base/cli/cli_help.c.
 * Invariant tested: help fits two screens, no line is too wide, and --help=all has every option by its new name only.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    SAYS(dir, 0, "", "", "sample", "drawn", "--layout", "imagenette", "--images", "12", "--size", "32", "-q");
    SAYS(dir, 0, "", "", "ingest", "drawn", "ds", "--quiet");
    *state = dir;
    return 0;
}

static support_result run(const char *dir, const char *const *args)
{
    const char *argv[8] = {support_millrace_path()};
    for (size_t n = 1; *args; n++)
        argv[n] = *args++;
    return support_run(argv, &(support_limits){.directory = dir});
}

#define RUN(dir, ...) run(dir, (const char *const[]){__VA_ARGS__, NULL})

static void assert_holds(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("no \"%s\" in:\n%s", words, text);
}

static bool is_wrapped(const char *text)
{
    for (; *text; text += strcspn(text, "\n") + 1)
        if (*text != ' ' && strcspn(text, "\n") > 79)
            return false;
    return true;
}

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

/* Two screens of what most people use; the rest, with details, on demand. */
static void test_help_of_many_options(void **state)
{
    static const char *const commands[] = {"train", "ingest", "replay", "bench", "predict"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        support_result some = RUN(*state, commands[i], "--help"), all = RUN(*state, commands[i], "--help=all");
        support_assert_status(&some, 0);
        support_assert_status(&all, 0);
        if (count_lines(some.out) > 60)
            fail_msg("%zu lines:\n%s", count_lines(some.out), some.out);
        char *hint = support_path("\n'millrace %s --help=all' shows ", commands[i]);
        assert_holds(some.out, hint);
        assert_null(strstr(all.out, hint));
        assert_holds(all.out, "      --max-pixels=N ");
        assert_null(strstr(some.out, "--max-pixels"));
        assert_holds(all.out, "\nExit status: 0 done;");
        free(hint);
        support_result_free(&some);
        support_result_free(&all);
    }
    SAYS(*state, 2, "", "millrace seek: --help=some: use --help, --help=all or --usage\nTry 'millrace seek --help'.\n",
         "seek", "--help=some");
}

/* Words of the version before are accepted, and shown nowhere. */
static void test_old_words(void **state)
{
    static const char *const words[][2] = {{"ingest", "--leave-out"}, {"seek", "--threads"}, {"inspect", "--threads"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        support_result help = RUN(*state, words[i][0], "--help=all");
        assert_null(strstr(help.out, words[i][1]));
        support_result_free(&help);
    }
    SAYS(*state, 0, "", "", "seek", "ds", "--threads=1", "-q");
    support_result r = RUN(*state, "inspect", "ds", "--near-duplicates", "--threads", "1");
    support_assert_status(&r, 0);
    support_result_free(&r);
    SAYS(*state, 0, "", "millrace: drawn: 1 annotated but missing\n", "ingest", "drawn", "some", "--leave-out", "*/val",
         "-q");
}

static void test_help(void **state)
{
    const char *dir = *state;
    static const char *const commands[] = {"ingest",  "verify",  "inspect",   "show",   "export", "reindex",
                                           "seek",    "plan",    "replay",    "bench",  "train",  "eval",
                                           "predict", "devices", "tokenizer", "sample", "pull",   "push"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        support_result r = RUN(dir, commands[i], "--help");
        support_assert_status(&r, 0);
        char *usage = support_path("Usage: millrace %s [OPTION...]", commands[i]);
        assert_int_equal(strncmp(r.out, usage, strlen(usage)), 0);
        free(usage);
        if (strstr(r.out, " \n") || !is_wrapped(r.out))
            fail_msg("a blank at a line's end, or a long line: %s", r.out);
        SAYS(dir, 0, r.out, "", "help", commands[i]);
        SAYS(dir, 0, r.out, "", commands[i], "-?", "further");
        support_result_free(&r);
        r = RUN(dir, commands[i], "--help=all");
        support_assert_status(&r, 0);
        if (strstr(r.out, " \n") || !is_wrapped(r.out))
            fail_msg("a blank at a line's end, or a long line: %s", r.out);
        support_result_free(&r);
    }
    /* Examples can be pasted, however long they are. */
    support_result r = RUN(dir, "help", "train");
    assert_holds(r.out, "\n  millrace train flowers --pretrained ViT-B_16.npz --image-size 160 --batch 16 --steps 500 "
                        "--output run\n");
    support_result_free(&r);
    SAYS(dir, 0,
         "Usage: millrace seek [-q?] [--every=N] [--force] [--check] [--drop] [--jobs=N]\n"
         "            [--json] [--quiet] [--help[=all]] [--usage] DATASET\n",
         "", "seek", "--usage");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, support_tmpdir_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_help),
        TEST(test_help_of_many_options),
        TEST(test_old_words),
    };
    return cmocka_run_group_tests_name("help", tests, NULL, NULL);
}

/* test_cli_file.c - options from a YAML file, and written as one.
 * Invariant tested: a file says what a command line says, and the command line overrides it. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

#define TAIL "\nTry 'millrace replay --help'.\n"

/* What is set in the file that --write-config prints. */
static char *settings(const char *directory, const char *const *args)
{
    support_limits in = {.directory = directory};
    support_result r = support_millrace_under(args, &in);
    support_assert_status(&r, 0);
    size_t len = 0;
    for (char *line = strtok(r.out, "\n"); line; line = strtok(NULL, "\n")) /* in place */
        if (*line != '#') {
            size_t size = strlen(line);
            memmove(r.out + len, line, size);
            len += size;
            r.out[len++] = '\n';
        }
    char *text = support_path("%.*s", (int)len, r.out);
    support_result_free(&r);
    return text;
}

#define SETTINGS(directory, expected, ...)                                                                             \
    do {                                                                                                               \
        char *got = settings(directory, (const char *const[]){__VA_ARGS__, "--write-config", NULL});                   \
        assert_string_equal(got, expected);                                                                            \
        free(got);                                                                                                     \
    } while (0)

static void test_a_file_is_a_command_line(void **state)
{
    support_put(*state, "empty.yaml", "# nothing yet\n");
    SETTINGS(*state, "", "replay", "--options=empty.yaml");
    support_put(*state, "run.yaml", "# ours\nseed: 7\nsplit: 'a \"b\\'\nno-shuffle: true\nlist: false\n");
    SETTINGS(*state, "split: \"a \\\"b\\\\\"\nseed: 7\nno-shuffle: true\nlist: false\n", "replay", "--options",
             "run.yaml");
}

static void test_the_command_line_wins(void **state)
{
    support_put(*state, "run.yaml", "seed: 7\nlist: true\nepoch: 1\n");
    SETTINGS(*state, "epoch: 1\nseed: 8\nlist: false\n", "replay", "--seed=8", "--options", "run.yaml", "--list=false");
    support_put(*state, "in.yaml", "leave-out: [a, b c]\njobs: 3\n"); /* the old name */
    SETTINGS(*state, "exclude: [a, \"b c\"]\njobs: 3\n", "ingest", "--options", "in.yaml");
    SETTINGS(*state, "exclude: [d]\njobs: 3\n", "ingest", "--options", "in.yaml", "--exclude", "d");
}

/* The file's name must not take the place of an operand that came before it. */
static void test_the_file_may_follow_the_operands(void **state)
{
    support_put(*state, "run.yaml", "seed: 1\n");
    support_put(*state, "verify.yaml", "quiet: true\n");
    static const char *says = "millrace: nowhere: no such folder; name the folder that `millrace ingest` wrote\n";
    SAYS(*state, 2, "", says, "train", "--options", "run.yaml", "nowhere");
    SAYS(*state, 2, "", says, "train", "nowhere", "--options", "run.yaml");
    SAYS(*state, 2, "", says, "verify", "nowhere", "--options=verify.yaml");
}

/* What --write-config prints is read as the same options, whatever is in them. */
static void test_round_trip(void **state)
{
    static const char odd[] = "a\"b\\c\n\t: #'- \xc3\xa9";
    support_limits in = {.directory = *state};
    const char *first[] = {"train",   "--output", odd,  "--batch",        "3",
                           "--quiet", "--model",  "no", "--write-config", NULL};
    support_result a = support_millrace_under(first, &in);
    support_assert_status(&a, 0);
    support_put(*state, "run.yaml", a.out);
    const char *second[] = {"train", "--options", "run.yaml", "--write-config", NULL};
    support_result b = support_millrace_under(second, &in);
    assert_string_equal(b.out, a.out);
    support_result_free(&a);
    support_result_free(&b);
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } trials[] = {
        {"seed: 1\nsede: 2\n", "line 2: unknown option sede; did you mean seed?"},
        {"seed: x\n", "line 1: --seed x: expected a number from 0"},
        {"seed: 99999999999999999999\n",
         "line 1: --seed 99999999999999999999: expected a number from 0 to 9223372036854775807"},
        {"seed:\n", "line 1: --seed: the value is empty; leave the option out for its default"},
        {"seed: 1\nseed: 2\n", "line 2: \"seed\" occurs twice, first in line 1: remove one of them"},
        {"seed: [1, 2]\n", "line 1: seed takes one value, not a list"},
        {"seed: {a: 1}\n", "line 1: seed takes a value, not a map"},
        {"list: yes\n", "line 1: --list yes: use true or false"},
        {"--seed: 1\n", "line 1: unknown option --seed; did you mean seed?"},
        {"[seed]: 1\n", "line 1: a key must be the name of an option"},
        {"help: true\n", "line 1: unknown option help"},
        {"options: run.yaml\n", "line 1: unknown option options"},
        {"- seed\n", "not a map of options; write one per line, for example: split: VALUE"},
        {"seed\n", "not a map of options; write one per line, for example: split: VALUE"},
        {"a: *b\n", "line 1: an alias (*NAME), which is not supported; write out its value"},
        {"seed: \"\n", "line 2, column 1: not YAML: found unexpected end of stream"},
    };
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        support_put(*state, "run.yaml", trials[i].text);
        char *says = support_path("millrace replay: run.yaml: %s%s", trials[i].says, TAIL);
        SAYS(*state, 2, "", says, "replay", "nowhere", "--options", "run.yaml");
        free(says);
    }
    SAYS(*state, 2, "",
         "millrace show: unknown option --options"
         "\nTry 'millrace show --help'.\n",
         "show", "a", "b", "1", "--options", "run.yaml");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_a_file_is_a_command_line),
        IN_TMPDIR(test_the_command_line_wins),
        IN_TMPDIR(test_the_file_may_follow_the_operands),
        IN_TMPDIR(test_round_trip),
        IN_TMPDIR(test_what_is_refused),
    };
    return cmocka_run_group_tests_name("cli file", tests, NULL, NULL);
}

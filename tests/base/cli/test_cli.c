/* test_cli.c - command lines, read by a table that has a row of every kind.
 * Covers base/error.c. */
#include <stdlib.h>
#include <string.h>

#include "base/cli/cli.h"
#include "tests/support/support.h"

typedef struct inner {
    uint32_t depth;
    bool deep;
} inner;

typedef struct request {
    const char *where, *form, *log;
    uint64_t jobs, bytes, every;
    double rate;
    int tail;
    bool quiet, seek, rate_given;
    mr_cli_list names, rest;
    inner in;
    char other[8];
} request;

static mr_status take_other(void *field, const char *text, mr_error *err)
{
    if (strlen(text) > 7)
        return mr_fail(err, MR_MISUSE, "--other %s: too long", text);
    strcpy(field, text);
    return MR_OK;
}

static const mr_option inner_options[] = {
    {"depth", 'd', MR_ARG_COUNT, MR_FIELD(inner, depth), .value = "N", .standard = "3", .help = "depth"},
    {"deep", 0, MR_ARG_FLAG, MR_FIELD(inner, deep), .help = "deep"},
    {0},
};

static const mr_option options[] = {
    {"jobs", 'j', MR_ARG_COUNT, MR_FIELD(request, jobs), .value = "N", .low = 1, .high = 8, .alias = "threads",
     .own = true, .help = "jobs"},
    {"size", 0, MR_ARG_SIZE, MR_FIELD(request, bytes), .value = "SIZE", .low = 1024, .high = 1 << 20,
     .standard = "4KiB", .help = "bytes"},
    {"every", 0, MR_ARG_COUNT, MR_FIELD(request, every), .value = "N", .optional = "16", .help = "every"},
    {"rate", 0, MR_ARG_REAL, MR_FIELD(request, rate), .value = "R", .above = true, .high = 2, .standard = "0.5",
     .given = offsetof(request, rate_given), .help = "rate"},
    {"tail", 0, MR_ARG_WORD, MR_FIELD(request, tail), .words = MR_WORDS("drop", "pad"), .help = "tail"},
    {"form", 0, MR_ARG_TEXT, MR_FIELD(request, form), .words = MR_WORDS("csv", "json"), .help = "form"},
    {"log", 0, MR_ARG_PATH, MR_FIELD(request, log), .value = "FILE", .help = "log"},
    {"name", 'n', MR_ARG_LIST, MR_FIELD(request, names), .value = "NAME", .help = "name"},
    {"other", 0, MR_ARG_OTHER, MR_FIELD(request, other), .value = "TEXT", .take = take_other, .help = "other"},
    {"no-seek", 0, MR_ARG_SET, MR_FIELD(request, seek), .low = false, .help = "no seek"},
    {"quiet", 'q', MR_ARG_FLAG, MR_FIELD(request, quiet), .own = true, .help = "quiet"},
    {.kind = MR_ARG_TABLE, MR_FIELD(request, in), .rows = inner_options},
    {0},
};

static const mr_option arguments[] = {
    {.value = "WHERE", .kind = MR_ARG_PATH, MR_FIELD(request, where)},
    {.value = "REST", .kind = MR_ARG_LIST, MR_FIELD(request, rest)},
    {0},
};

static const mr_command command = {
    .name = "test",
    .usage = "WHERE REST...",
    .example = "millrace test here",
    .summary = "",
    .notes = "",
    .options = options,
    .arguments = arguments,
};

#define PARSE(cli, q, ...) parse(cli, q, (const char *[]){"test", __VA_ARGS__, NULL})

static bool parse(mr_cli *cli, request *q, const char **argv)
{
    int argc = 0;
    while (argv[argc])
        argc++;
    *q = (request){.seek = true};
    return mr_cli_parse(cli, &command, argc, (char **)argv, q);
}

static void release(request *q)
{
    free(q->names.items);
    free(q->rest.items);
}

static void test_defaults(void **state)
{
    (void)state;
    mr_cli cli;
    request q;
    assert_true(PARSE(&cli, &q, "here"));
    assert_string_equal(q.where, "here");
    assert_true(q.bytes == 4096 && q.rate == 0.5 && q.in.depth == 3 && q.seek);
    assert_true(!q.rate_given && !q.quiet && !q.jobs && !q.form && !q.rest.count);
    release(&q);
}

static void test_every_kind(void **state)
{
    (void)state;
    mr_cli cli;
    request q;
    assert_true(PARSE(&cli, &q, "-qj4", "--si=8KiB", "here", "--rate", "2", "--tail=pad", "-n", "a", "--form", "json",
                      "-nb", "there", "--every", "--deep", "-d7", "--other=x", "--no-seek", "--log=-", "--", "--tail",
                      "-"));
    assert_true(q.quiet && q.jobs == 4 && q.bytes == 8192 && q.rate == 2 && q.rate_given && q.tail == 1);
    assert_true(q.every == 16 && q.in.deep && q.in.depth == 7 && !q.seek);
    assert_string_equal(q.form, "json");
    assert_string_equal(q.other, "x");
    assert_string_equal(q.log, "-");
    assert_int_equal(q.names.count, 2);
    assert_string_equal(q.names.items[1], "b");
    assert_int_equal(q.rest.count, 3); /* what is after "--" is an argument */
    assert_string_equal(q.rest.items[1], "--tail");
    release(&q);
    assert_true(PARSE(&cli, &q, "here", "--every=5", "--threads", "2", "--jobs=3"));
    assert_true(q.every == 5 && q.jobs == 3); /* the last one counts */
    release(&q);
}

/* A list has no limit of its own. */
static void test_long_lists(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    const char *argv[COUNT + 3] = {"test", "here"};
    mr_cli cli;
    request q;
    for (size_t i = 0; i < COUNT; i++)
        argv[i + 2] = "-nx";
    assert_true(parse(&cli, &q, argv));
    assert_int_equal(q.names.count, COUNT);
    release(&q);
}

static void test_wrong_use(void **state)
{
    (void)state;
    static const char *const wrong[][3] = {
        {"here", "--jobs=0"},         {"here", "--jobs=9"},     {"here", "--jobs=x"},    {"here", "--jobs"},
        {"here", "--jobs="},          {"here", "--size=1"},     {"here", "--size=2MiB"}, {"here", "--rate=0"},
        {"here", "--rate=2.1"},       {"here", "--rate=nan"},   {"here", "--tail=pa"},   {"here", "--form=xml"},
        {"here", "--quiet=yes"},      {"here", "--d"},          {"here", "--nosuch"},    {"here", "-x"},
        {"here", "--other=12345678"}, {"here", "-d4294967296"}, {"here", "-qj"},         {"--quiet", "--deep"},
    };
    for (size_t i = 0; i < MR_COUNT(wrong); i++) {
        mr_cli cli = {.code = 0};
        request q;
        if (PARSE(&cli, &q, wrong[i][0], wrong[i][1]) || cli.code != 2)
            fail_msg("%s %s: code %d", wrong[i][0], wrong[i][1], cli.code);
        release(&q);
    }
}

/* Ranks agree on what is done, in any order of the options, but not on paths and on how the work is done. */
static void test_what_ranks_share(void **state)
{
    (void)state;
    mr_cli a, b;
    request q;
    assert_true(PARSE(&a, &q, "here", "--tail=pad", "--rate", "1", "--log=a"));
    assert_true(PARSE(&b, &q, "--rate=1", "there", "-qj2", "--log=b", "--tail", "pad"));
    assert_true(a.agreed == b.agreed);
    assert_true(PARSE(&b, &q, "here", "--tail=drop", "--rate=1"));
    assert_true(a.agreed != b.agreed);
    assert_true(PARSE(&b, &q, "here", "--tail=pad"));
    assert_true(a.agreed != b.agreed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),  cmocka_unit_test(test_every_kind),       cmocka_unit_test(test_long_lists),
        cmocka_unit_test(test_wrong_use), cmocka_unit_test(test_what_ranks_share),
    };
    return cmocka_run_group_tests_name("cli", tests, NULL, NULL);
}

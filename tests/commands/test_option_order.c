/* test_option_order.c - every option of every command means the same before the operands and after them.
 * Covers base/cli/cli.c.
 * Invariant tested: the request and what ranks agree on depend on which options are given, not on where. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/cli_line.h"
#include "base/cli/commands.h"
#include "ingest/commands.h"
#include "loader/commands.h"
#include "shards/commands.h"
#include "tests/support/support.h"
#include "train/commands.h"
#include "train/report/commands.h"

enum { OPERANDS = 8, REQUEST = 1 << 13 };

static const mr_command *const commands[] = {
    &mr_cmd_ingest,    &mr_cmd_verify, &mr_cmd_inspect,    &mr_cmd_show,   &mr_cmd_diff, &mr_cmd_view,
    &mr_cmd_report,    &mr_cmd_export, &mr_cmd_reindex,    &mr_cmd_pull,   &mr_cmd_push, &mr_cmd_seek,
    &mr_cmd_plan,      &mr_cmd_replay, &mr_cmd_bench,      &mr_cmd_train,  &mr_cmd_eval, &mr_cmd_predict,
    &mr_cmd_tokenizer, &mr_cmd_sample, &mr_cmd_completion, &mr_cmd_manual,
};

/* Values that an option or an operand may take; the first that is accepted is used. */
static const char *const values[] = {
    "3",    "0.5",  "64MiB",       "300",
    "/",    "a=b",  "a=0.5,b=0.5", "0:2",
    "full", "eval", "64:128",      "1111111111111111111111111111111111111111111111111111111111111111", /* a digest */
};

typedef struct trial {
    mr_command command; /* without checks across options */
    const char *operands[OPERANDS];
    int operand_count;
    size_t options_tried;
    char file[4096]; /* of options */
} trial;

typedef struct request {
    struct request *before;
    max_align_t unused;
    char bytes[REQUEST];
} request;

/* Requests are kept: options of their own type allocate what only their command knows how to free. */
static request *requests;

static request *new_request(void)
{
    request *q = calloc(1, sizeof *q);
    assert_non_null(q);
    q->before = requests;
    return requests = q;
}

static bool parse(const trial *t, const char *option, bool first, mr_cli *cli, request *q)
{
    const char *argv[OPERANDS + 3] = {t->command.name};
    int argc = 1;
    static char text[4200]; /* options are taken apart in place, and point into it */
    if (option)
        snprintf(text, sizeof text, "%s", option);
    if (option && first)
        argv[argc++] = text;
    for (int i = 0; i < t->operand_count; i++)
        argv[argc++] = t->operands[i];
    if (option && !first)
        argv[argc++] = text;
    return mr_cli_parse(cli, &t->command, argc, (char **)argv, q->bytes);
}

/* Compares the lists, which are allocated, by what is in them, and clears them; what is left is compared as bytes. */
static void compare_lists(const mr_option *rows, char *a, char *b, const char *what)
{
    for (; rows && (rows->name || rows->value || rows->kind == MR_ARG_TABLE); rows++) {
        assert_true(rows->offset + rows->size <= REQUEST);
        if (rows->kind == MR_ARG_TABLE)
            compare_lists(rows->rows, a + rows->offset, b + rows->offset, what);
        if (rows->kind != MR_ARG_LIST || !rows->size)
            continue;
        mr_cli_list *x = (mr_cli_list *)(void *)(a + rows->offset), *y = (mr_cli_list *)(void *)(b + rows->offset);
        if (x->count != y->count)
            fail_msg("%s: %zu and %zu values of a list", what, x->count, y->count);
        for (size_t i = 0; i < x->count; i++)
            assert_ptr_equal(x->items[i], y->items[i]);
        free(x->items);
        free(y->items);
        *x = *y = (mr_cli_list){0};
    }
}

/* false: the value is not accepted before the operands.  Of rows of their own type, `agreed` has the value. */
static bool compare(const trial *t, const mr_option *row, const char *option)
{
    request *a = new_request(), *b = new_request();
    mr_cli before, after;
    char what[256];
    snprintf(what, sizeof what, "%s %.200s", t->command.name, option ? option : "without options");
    if (!parse(t, option, true, &before, a))
        return false;
    if (!parse(t, option, false, &after, b))
        fail_msg("%s: accepted before the operands only", what);
    if (before.agreed != after.agreed)
        fail_msg("%s: ranks would disagree", what);
    compare_lists(t->command.options, a->bytes, b->bytes, what);
    compare_lists(t->command.arguments, a->bytes, b->bytes, what);
    for (size_t i = 0; i < REQUEST && !(row && row->kind == MR_ARG_OTHER); i++)
        if (a->bytes[i] != b->bytes[i])
            fail_msg("%s: byte %zu of the request depends on the place", what, i);
    mr_cli_release(&before);
    mr_cli_release(&after);
    return true;
}

static void try_option(trial *t, const mr_option *row)
{
    char text[4200];
    bool accepted = false;
    if (!mr_option_has_value(row)) {
        snprintf(text, sizeof text, "--%s", row->name);
        accepted = compare(t, row, text);
    } else if (row->words || strcmp(row->name, "options") == 0) {
        snprintf(text, sizeof text, "--%s=%s", row->name, row->words ? row->words[0] : t->file);
        accepted = compare(t, row, text);
    }
    for (size_t i = 0; i < sizeof values / sizeof *values && !accepted; i++) {
        snprintf(text, sizeof text, "--%s=%s", row->name, values[i]);
        accepted = compare(t, row, text);
    }
    if (!accepted)
        fail_msg("%s --%s: no value of this test is accepted; add one", t->command.name, row->name);
    t->options_tried++;
}

static void try_rows(trial *t, const mr_option *rows)
{
    for (; rows && (rows->name || rows->kind == MR_ARG_TABLE); rows++)
        if (rows->kind == MR_ARG_TABLE)
            try_rows(t, rows->rows);
        else if (strcmp(rows->name, "write-config") != 0) /* prints, and ends */
            try_option(t, rows);
}

static void test_every_option_of_every_command(void **state)
{
    size_t tried = 0;
    for (size_t c = 0; c < sizeof commands / sizeof *commands; c++) {
        trial t = {.command = *commands[c]};
        t.command.check = NULL;
        snprintf(t.file, sizeof t.file, "%s/options.yaml", (const char *)*state);
        for (const mr_option *row = t.command.arguments; row && row->value; row++) {
            assert_true(t.operand_count < OPERANDS);
            t.operands[t.operand_count++] = row->words ? row->words[0] : row->kind == MR_ARG_COUNT ? "3" : "/";
        }
        if (t.operand_count == 0)
            continue;
        if (!compare(&t, NULL, NULL))
            fail_msg("%s: the operands of this test are refused", t.command.name);
        try_rows(&t, t.command.options);
        if (mr_cli_takes_file(&t.command))
            try_rows(&t, mr_file_options);
        tried += t.options_tried;
    }
    print_message("%zu options\n", tried);
    assert_true(tried > 200);
}

static int set_up(void **state)
{
    *state = support_tmpdir();
    char path[4096];
    snprintf(path, sizeof path, "%s/options.yaml", (const char *)*state);
    FILE *f = fopen(path, "w");
    return f ? fclose(f) : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_option_of_every_command)};
    mr_commands = commands;
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}

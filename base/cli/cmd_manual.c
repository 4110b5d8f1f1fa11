/* cmd_manual.c - `millrace manual [COMMAND]`: manual pages for man(1).
 * Invariant: a page is written completely or not at all. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "base/cli/commands.h"
#include "base/cli/pages.h"

const mr_command *const *mr_commands;

typedef struct request {
    const char *output;
    mr_cli_list names;
} request;

static const mr_option options[] = {
    {"output", 'o', MR_ARG_PATH, MR_FIELD(request, output), .value = "DIR",
     .help = "write all pages to this folder: millrace.1, millrace-COMMAND.1"},
    MR_OPTION_QUIET_IGNORED,
    {0},
};

static const mr_option arguments[] = {{.value = "COMMAND", .kind = MR_ARG_LIST, MR_FIELD(request, names)}, {0}};

static mr_status check(void *request_, mr_error *err)
{
    const request *q = request_;
    if (q->names.count > 1 || (q->names.count && q->output))
        return mr_fail(err, MR_MISUSE, "name one command, or give --output alone");
    return MR_OK;
}

static mr_status find(const char *name, const mr_command **out, mr_error *err)
{
    const char *names[64] = {0};
    for (size_t i = 0; mr_commands[i] && i + 1 < MR_COUNT(names); i++) {
        names[i] = mr_commands[i]->name;
        *out = mr_commands[i];
        if (strcmp(names[i], name) == 0)
            return MR_OK;
    }
    const char *near = mr_text_nearest(name, names);
    return mr_fail(err, MR_MISUSE, "unknown command '%s'%s%s%s", name, near ? "; did you mean '" : "", near ? near : "",
                   near ? "'?" : "");
}

/* `command` NULL: the program's page. */
static mr_status write_page(const char *dir, const mr_command *command, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf page = {0}, path = {0};
    mr_buf_printf(&path, "%s/millrace%s%s.1", dir, command ? "-" : "", command ? command->name : "");
    mr_manual_page(mr_commands, command, &page);
    MR_TRY(mr_buf_status(&path, err, "writing manual pages"));
    MR_TRY(mr_buf_status(&page, err, "writing manual pages"));
    return mr_file_publish(AT_FDCWD, mr_buf_text(&path), page.data, page.len, err);
}

static mr_status write_all(const char *dir, mr_error *err)
{
    MR_TRY(mr_dir_make(dir, err));
    MR_TRY(write_page(dir, NULL, err));
    for (size_t i = 0; mr_commands[i]; i++)
        MR_TRY(write_page(dir, mr_commands[i], err));
    return MR_OK;
}

static mr_status print(const request *q, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf page = {0};
    const mr_command *command = NULL;
    if (q->names.count)
        MR_TRY(find(q->names.items[0], &command, err));
    mr_manual_page(mr_commands, command, &page);
    MR_TRY(mr_buf_status(&page, err, "writing a manual page"));
    fwrite(page.data, 1, page.len, stdout);
    return MR_OK;
}

static int start(int argc, char **argv)
{
    request q = {0};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    bool good = mr_cli_parse(&cli, &mr_cmd_manual, argc, argv, &q);
    int code = good ? mr_cli_end(NULL, q.output ? write_all(q.output, &err) : print(&q, &err), &err) : cli.code;
    free(q.names.items);
    return code;
}

const mr_command mr_cmd_manual = {
    .name = "manual",
    .title = "print manual pages, for man",
    .usage = "[COMMAND]",
    .example = "millrace manual ingest | man -l -",
    .summary =
        "Prints the manual page of a command, or of millrace, in the form that man reads.  An installed millrace "
        "comes with its pages: 'man millrace-ingest'.",
    .notes = "Examples:\n"
             "  millrace manual ingest | man -l -\n"
             "  millrace manual --output ~/.local/share/man/man1\n"
             "\n"
             "Exit status: 0 done; 2 usage error; 3 system error.",
    .options = options,
    .arguments = arguments,
    .check = check,
    .run = start,
};

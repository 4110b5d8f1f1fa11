/* cmd_completion.c - `millrace completion SHELL`: what a shell offers after TAB.
 * Invariant: the script is made from the program's own tables, so it cannot be older than the program. */
#include <stdio.h>

#include "base/scope.h"
#include "base/cli/term.h"
#include "base/cli/commands.h"
#include "base/cli/pages.h"

typedef struct request {
    int shell;
} request;

static const mr_option options[] = {MR_OPTION_QUIET_IGNORED, {0}};

static const mr_option arguments[] = {
    {.value = "bash|zsh|fish", .kind = MR_ARG_WORD, MR_FIELD(request, shell), .words = MR_WORDS("bash", "zsh", "fish")},
    {0},
};

static int start(int argc, char **argv)
{
    static void (*const make[])(const mr_command *const *, mr_buf *) = {mr_completion_bash, mr_completion_zsh,
                                                                        mr_completion_fish};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    MR_AUTO(mr_buf_free) mr_buf out = {0};
    request q = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &mr_cmd_completion, argc, argv, &q))
        return cli.code;
    make[q.shell](mr_commands, &out);
    mr_status status = mr_buf_status(&out, &err, "writing the completion");
    if (status == MR_OK)
        fwrite(out.data, 1, out.len, stdout);
    return mr_cli_end(NULL, status, &err);
}

const mr_command mr_cmd_completion = {
    .name = "completion",
    .title = "print a completion script for bash, zsh or fish",
    .usage = "bash|zsh|fish",
    .example = "millrace completion bash",
    .summary = "Prints a script that completes commands, options and their values.  An installed millrace comes with "
               "these scripts; this command is for one that is not installed.",
    .notes = "Examples:\n"
             "  eval \"$(millrace completion bash)\"                            in ~/.bashrc\n"
             "  eval \"$(millrace completion zsh)\"                             in ~/.zshrc, after compinit\n"
             "  millrace completion fish > ~/.config/fish/completions/millrace.fish\n"
             "\n"
             "Exit status: 0 done; 2 usage error; 3 system error.",
    .options = options,
    .arguments = arguments,
    .run = start,
};

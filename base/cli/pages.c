/* pages.c - the options of a command, one after another.
 * Invariant: the order is that of --help. */
#include "base/cli/pages.h"

#include <string.h>

#include "base/cli/cli_line.h"

static void each(const mr_option *rows, void (*take)(void *context, const mr_option *row), void *context)
{
    for (const mr_option *row = rows; row->name || row->kind == MR_ARG_TABLE; row++)
        if (row->kind == MR_ARG_TABLE)
            each(row->rows, take, context);
        else if (!row->hidden || row->group)
            take(context, row);
}

void mr_each_option(const mr_command *command, void (*take)(void *context, const mr_option *row), void *context)
{
    each(command->options, take, context);
    if (mr_cli_takes_file(command))
        each(mr_file_options, take, context);
    each(mr_help_options, take, context);
}

bool mr_option_is_path(const mr_option *row)
{
    static const char *const names[] = {"FILE", "DIR", "FOLDER", "PATH"};
    if (row->kind == MR_ARG_PATH)
        return true;
    for (size_t i = 0; row->value && i < MR_COUNT(names); i++)
        if (strcmp(row->value, names[i]) == 0)
            return true;
    return false;
}

/* cli_line.c - an option's place in the command's tables, and the value that it is given.
 * Invariant: the file and the command line store values by the same function. */
#include "base/cli/cli_line.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/ranks/launch.h"
#include "base/scope.h"
#include "base/text.h"

enum { FEW = 10 }; /* commands with no more options than that are not worth a file */

const mr_option mr_help_options[] = {
    {"help", '?', MR_ARG_TEXT, .words = MR_WORDS("all"), .optional = "", .help = "print this help, or all of it"},
    {"usage", 0, MR_ARG_FLAG, .rare = true, .help = "print a short usage message"},
    {0},
};

const mr_option mr_file_options[] = {
    {"options", 0, MR_ARG_PATH, .value = "FILE", .input = true,
     .help = "read options from a YAML file (name: value); the command line takes precedence"},
    {"write-config", 0, MR_ARG_FLAG, .own = true, .rare = true, .help = "print the options as YAML and exit"},
    {0},
};

static size_t count_options(const mr_option *rows)
{
    size_t count = 0;
    for (const mr_option *row = rows; row->name || row->kind == MR_ARG_TABLE; row++)
        count += row->kind == MR_ARG_TABLE ? count_options(row->rows) : !row->hidden;
    return count;
}

bool mr_cli_takes_file(const mr_command *command)
{
    return count_options(command->options) > FEW;
}

mr_status mr_cli_unknown(const mr_cli_line *l, const char *dashes, const char *name, mr_error *err)
{
    MR_AUTO(mr_scope_free) const char **names = mr_alloc(l->count + 1, sizeof *names);
    for (size_t i = 0; names && i < l->count && (*dashes || l->entries[i].row != &mr_help_options[0]); i++)
        names[i] = l->entries[i].row->name;
    const char *near = names ? mr_text_nearest(name, names) : NULL;
    return mr_fail(err, MR_MISUSE, "unknown option %s%s%s%s%s%s", dashes, name, near ? "; did you mean " : "",
                   near ? dashes : "", near ? near : "", near ? "?" : "");
}

mr_cli_entry *mr_cli_first(const mr_cli_line *l, const mr_cli_entry *e)
{
    size_t at = (size_t)(e - l->entries);
    while (at && l->entries[at - 1].row == e->row)
        at--;
    return &l->entries[at];
}

static mr_status store_value(const mr_cli_entry *e, const char *value, mr_error *err)
{
    return e->request ? mr_option_take(e->row, e->request, value, err) : MR_OK;
}

/* "--quiet", "quiet: true" in a file, or "--quiet=false", which overrides the file. */
static mr_status take_flag(mr_cli_line *l, const mr_cli_entry *e, const char *value, mr_error *err)
{
    if (value && strcmp(value, "false") == 0)
        return MR_OK;
    if (value && strcmp(value, "true") != 0)
        return mr_fail(err, MR_MISUSE, "--%s %s: use true or false", e->row->name, value);
    if (!e->row->own)
        l->agreed += mr_hash64(e->row->name, strlen(e->row->name));
    return store_value(e, NULL, err);
}

mr_status mr_cli_find_input(const mr_option *row, const char *path, mr_error *err)
{
    /* Only the first of several ranks has to see it; anything else that is wrong shows when it is opened. */
    if (!row->input || mr_launch_look().by || access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR))
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "--%s %s: no such file or folder", row->name, path);
}

mr_status mr_cli_take(mr_cli_line *l, const mr_cli_entry *e, const char *value, mr_error *err)
{
    const mr_option *row = e->row;
    mr_cli_entry *first = mr_cli_first(l, e);
    if (value && !*value) /* typically an unset variable in a script */
        return mr_fail(err, MR_MISUSE, "--%s: the value is empty; leave the option out for its default", row->name);
    value = value ? value : row->optional;
    first->value = value ? value : "";
    if (l->look) {
        first->on_line = true;
        return MR_OK;
    }
    MR_TRY(mr_cli_find_input(row, value ? value : "", err));
    if (!mr_option_has_value(row))
        MR_TRY(take_flag(l, e, value, err));
    else
        MR_TRY(store_value(e, value, err));
    if (!row->own && row->kind != MR_ARG_PATH && value && mr_option_has_value(row))
        l->agreed += mr_hash64_seeded(value, strlen(value), mr_hash64(row->name, strlen(row->name)));
    if (row->given)
        *(bool *)(e->request + row->given) = true;
    return MR_OK;
}

/* cli.c - a command line, read by the command's table of options.
 * Invariant: the command line is read before the options file, to know what it gives, and after it, to store that.
 *
 *   argv --> which row? --> its value --> mr_option_take() --> the field of the command's request
 *              |
 *     "unknown option --spilt; did you mean --split?"
 *
 * As in getopt_long(): options and arguments in any order, "--" ends options, -qj4 is -q -j 4, and an unambiguous
 * prefix of a long name is enough. */
#include "base/cli/cli_line.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/hash.h"
#include "base/ranks/launch.h"
#include "base/ranks/meeting.h"
#include "base/scope.h"
#include "base/cli/term.h"

enum { PROGRAM_MAX = 1 << 30 };

static mr_status add_entry(mr_cli_line *l, const char *name, const mr_option *row, void *request, mr_error *err)
{
    if (!MR_GROW(l->entries, l->count, l->capacity))
        return mr_fail_memory(err, "reading the command line");
    l->entries[l->count++] = (mr_cli_entry){.name = name, .row = row, .request = request};
    return MR_OK;
}

static mr_status list_options(mr_cli_line *l, const mr_option *rows, char *request, mr_error *err)
{
    for (const mr_option *row = rows; row->name || row->kind == MR_ARG_TABLE; row++) {
        if (row->kind == MR_ARG_TABLE) {
            MR_TRY(list_options(l, row->rows, request + row->offset, err));
            continue;
        }
        MR_TRY(add_entry(l, row->name, row, request, err));
        if (row->alias)
            MR_TRY(add_entry(l, row->alias, row, request, err));
    }
    return MR_OK;
}

/* ---- finding an option ------------------------------------------------------------------------------------------ */

/* By its name, or by an unambiguous prefix of it.  NULL: none, and `err` says so. */
static const mr_cli_entry *find_long(const mr_cli_line *l, const char *name, mr_error *err)
{
    const mr_cli_entry *found = NULL, *other = NULL;
    for (size_t i = 0; i < l->count; i++) {
        const mr_cli_entry *e = &l->entries[i];
        if (strcmp(e->name, name) == 0)
            return e;
        if (strncmp(e->name, name, strlen(name)) != 0)
            continue;
        other = found;
        found = e;
    }
    if (!found)
        mr_cli_unknown(l, "--", name, err);
    else if (other)
        mr_fail(err, MR_MISUSE, "--%s could be --%s or --%s", name, other->name, found->name);
    return other ? NULL : found;
}

static const mr_cli_entry *find_short(const mr_cli_line *l, char key)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->entries[i].row->key == key)
            return &l->entries[i];
    return NULL;
}

/* ---- reading its value ------------------------------------------------------------------------------------------ */

/* MR_END: printed. */
static mr_status help(const mr_cli_line *l, const mr_option *row, const char *value, mr_error *err)
{
    if (value && (row != &mr_help_options[0] || strcmp(value, "all") != 0))
        return mr_fail(err, MR_MISUSE, "--%s=%s: use --help, --help=all or --usage", row->name, value);
    mr_help which = row != &mr_help_options[0] ? MR_HELP_USAGE : value ? MR_HELP_ALL : MR_HELP_SHORT;
    MR_TRY(mr_cli_help(l->command, which, err));
    return MR_END;
}

/* As mr_cli_take(); MR_END: it was --help. */
static mr_status take(mr_cli_line *l, const mr_cli_entry *e, const char *value, mr_error *err)
{
    bool helps = e->row == &mr_help_options[0] || e->row == &mr_help_options[1];
    return helps ? help(l, e->row, value, err) : mr_cli_take(l, e, value, err);
}

static mr_status needs_value(const mr_option *row, const char *dashes, const char *name, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf value = {0};
    mr_option_add_value(row, &value);
    return mr_fail(err, MR_MISUSE, "%s%s needs a value: %s%s %s", dashes, name, dashes, name, mr_buf_text(&value));
}

/* If the option needs a value and `arg` holds none, `*next` is the value, and is cleared. */
static mr_status take_long(mr_cli_line *l, const char *arg, char **next, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *name = strdup(arg + 2);
    if (!name)
        return mr_fail_memory(err, "reading the command line");
    name[strcspn(name, "=")] = '\0';
    const mr_cli_entry *e = find_long(l, name, err);
    if (!e)
        return err->status;
    const char *value = strchr(arg, '=');
    if (value || !mr_option_has_value(e->row) || e->row->optional)
        return take(l, e, value ? value + 1 : NULL, err);
    if (!*next)
        return needs_value(e->row, "--", e->name, err);
    value = *next;
    *next = NULL;
    return take(l, e, value, err);
}

/* The same for "-qj4". */
static mr_status take_short(mr_cli_line *l, const char *arg, char **next, mr_error *err)
{
    for (const char *at = arg + 1; *at; at++) {
        const mr_cli_entry *e = find_short(l, *at);
        if (!e)
            return mr_fail(err, MR_MISUSE, "unknown option %s", arg);
        if (!mr_option_has_value(e->row)) {
            MR_TRY(take(l, e, NULL, err));
            continue;
        }
        if (at[1] || e->row->optional)
            return take(l, e, at[1] ? at + 1 : NULL, err);
        if (!*next)
            return needs_value(e->row, "-", (const char[]){*at, '\0'}, err);
        const char *value = *next;
        *next = NULL;
        return take(l, e, value, err);
    }
    return MR_OK;
}

static mr_status take_argument(mr_cli_line *l, const char *text, mr_error *err)
{
    const mr_option *row = l->argument;
    if (!row->value)
        return mr_fail(err, MR_MISUSE, "unexpected argument '%s'", text);
    if (row->kind != MR_ARG_LIST)
        l->argument++;
    if (row->kind == MR_ARG_PATH && !*text)
        return mr_fail(err, MR_MISUSE, "%s: the path is empty", row->value);
    return mr_option_take(row, l->request, text, err);
}

static mr_status read_line(mr_cli_line *l, int argc, char **argv, mr_error *err)
{
    bool plain = false; /* after "--" */
    for (int i = 1; i < argc && argv[i]; i++) {
        char *next = argv[i + 1];
        if (plain || argv[i][0] != '-' || !argv[i][1]) {
            if (!l->look)
                MR_TRY(take_argument(l, argv[i], err));
        } else if (strcmp(argv[i], "--") == 0) {
            plain = true;
        } else {
            MR_TRY((argv[i][1] == '-' ? take_long : take_short)(l, argv[i], &next, err));
            i += !next && argv[i + 1];
        }
    }
    return MR_OK;
}

static const char *value_of(const mr_cli_line *l, const mr_option *row)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->entries[i].row == row)
            return l->entries[i].value;
    return NULL;
}

static mr_status read_file(mr_cli_line *l, int argc, char **argv, mr_error *err)
{
    l->look = true;
    MR_TRY(read_line(l, argc, argv, err));
    l->look = false;
    const char *path = value_of(l, &mr_file_options[0]);
    for (size_t i = 0; i < l->count; i++)
        l->entries[i].value = NULL;
    return path ? mr_cli_read_file(l, path, err) : MR_OK;
}

static mr_status parse(mr_cli_line *l, int argc, char **argv, mr_error *err)
{
    const mr_command *c = l->command;
    MR_TRY(list_options(l, c->options, l->request, err));
    MR_TRY(list_options(l, mr_help_options, NULL, err));
    MR_TRY(mr_options_defaults(c->options, l->request, err));
    if (mr_cli_takes_file(c)) {
        MR_TRY(list_options(l, mr_file_options, NULL, err));
        MR_TRY(read_file(l, argc, argv, err));
    }
    MR_TRY(read_line(l, argc, argv, err));
    if (mr_cli_takes_file(c) && value_of(l, &mr_file_options[1])) /* --write-config */
        return mr_cli_write_file(l, err) == MR_OK ? MR_END : err->status;
    if (l->argument->value && l->argument->kind != MR_ARG_LIST)
        return mr_fail(err, MR_MISUSE, "%s is missing, for example: %s", l->argument->value, c->example);
    return c->check ? c->check(l->request, err) : MR_OK;
}

void mr_cli_release(mr_cli *cli)
{
    mr_yaml_free(&cli->file);
}

bool mr_cli_parse(mr_cli *cli, const mr_command *command, int argc, char **argv, void *request)
{
    mr_cli_line l = {.cli = cli,
                     .command = command,
                     .request = request,
                     .argument = command->arguments,
                     .agreed = mr_hash64(command->name, strlen(command->name))};
    mr_error err, apart;
    *cli = (mr_cli){0};
    mr_status status = parse(&l, argc, argv, &err);
    free(l.entries);
    cli->agreed = l.agreed;
    /* Processes that cannot form one run would all print the same misuse: report first how they were started. */
    if (status != MR_END && mr_launch_check(command->name, &apart) != MR_OK) {
        mr_term_error(&apart);
        cli->code = mr_exit_code(apart.status);
        return false;
    }
    if (status == MR_MISUSE)
        fprintf(stderr, "%smillrace %s:%s %s\nTry 'millrace %s --help'.\n", mr_sgr(stderr, MR_RED), command->name,
                mr_sgr(stderr, MR_PLAIN), err.text, command->name);
    else if (status != MR_OK && status != MR_END)
        mr_term_error(&err);
    cli->code = mr_exit_code(status);
    return status == MR_OK;
}

/* ---- several ranks ---------------------------------------------------------------------------------------------- */

/* What has to be equal on all ranks. */
typedef struct start_facts {
    uint64_t build, agreed;
    char version[16];
} start_facts;

/* The bytes of the program tell builds of one version apart. */
static mr_status look_at_build(start_facts *mine, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf program = {0};
    MR_TRY(mr_file_read_all(AT_FDCWD, "/proc/self/exe", PROGRAM_MAX, &program, err));
    mine->build = mr_hash64(program.data, program.len);
    snprintf(mine->version, sizeof mine->version, "%s", MILLRACE_VERSION);
    return MR_OK;
}

/* Collective. */
static mr_status compare_starts(const mr_cli *cli, mr_ranks *ranks, mr_error *err)
{
    start_facts mine = {.agreed = cli->agreed}, first, theirs;
    MR_AUTO(mr_buf_free) mr_buf all = {0};
    unsigned other;
    if (mr_ranks_world(ranks) == 1)
        return MR_OK;
    MR_TRY(mr_ranks_agree(ranks, look_at_build(&mine, err), err));
    MR_TRY(mr_ranks_compare(ranks, &mine, sizeof mine, &other, &all, err));
    if (!other)
        return MR_OK;
    memcpy(&first, all.data, sizeof first);
    memcpy(&theirs, all.data + other * sizeof theirs, sizeof theirs);
    const mr_ranks_name zero = mr_ranks_name_of(ranks, 0), name = mr_ranks_name_of(ranks, other);
    if (first.build != theirs.build || strcmp(first.version, theirs.version) != 0)
        return mr_fail(
            err, MR_MISUSE,
            "mpirun: %s runs a different build of millrace (%s, %016llx) than %s (%s, %016llx); install the same "
            "one on all hosts",
            name.text, theirs.version, (unsigned long long)theirs.build, zero.text, first.version,
            (unsigned long long)first.build);
    return mr_fail(err, MR_MISUSE,
                   "mpirun: %s was given a different command or different options than %s; give all ranks the same",
                   name.text, zero.text);
}

static void end_meeting(mr_meeting **m)
{
    mr_meeting_end(*m);
}

static mr_status meet(const mr_cli *cli, uint64_t stall_seconds, mr_ranks **ranks, mr_error *err)
{
    mr_error unwatched;
    MR_TRY(mr_ranks_begin(ranks, err));
    MR_TRY(compare_starts(cli, *ranks, err));
    if (mr_ranks_watch(*ranks, stall_seconds, mr_term_error, &unwatched) != MR_OK && mr_ranks_rank(*ranks) == 0)
        mr_term_warn(unwatched.text);
    return MR_OK;
}

mr_status mr_cli_ranks(const mr_cli *cli, uint64_t stall_seconds, mr_ranks **ranks, mr_error *err)
{
    MR_AUTO(end_meeting) mr_meeting *meeting = NULL;
    uint64_t limit = stall_seconds ? stall_seconds + MR_MEETING_MORE : 0;
    MR_TRY(mr_meeting_begin(limit, mr_term_error, &meeting, err));
    return meet(cli, stall_seconds, ranks, err);
}

int mr_cli_end(mr_ranks *ranks, mr_status status, const mr_error *err)
{
    if (status != MR_OK && (!ranks || mr_ranks_rank(ranks) == 0))
        mr_term_error(err);
    mr_ranks_end(ranks);
    return mr_exit_code(status);
}

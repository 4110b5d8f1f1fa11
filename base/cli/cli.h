/* cli.h - command lines: one table of options per command, from which parsing, errors and --help come.
 * Invariant: misuse prints one sentence and what to do on stderr; the exit code is 2.
 *
 *      static const mr_option options[] = {
 *          {"jobs", 'j', MR_ARG_COUNT, MR_FIELD(request, jobs), .low = 1, .high = 1024, .help = "threads"},
 *          {.kind = MR_ARG_TABLE, MR_FIELD(request, plan), .rows = plan_options},
 *          {0},
 *      }; */
#ifndef MR_CLI_H
#define MR_CLI_H

#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/ranks/ranks.h"
#include "base/yaml.h"

typedef enum mr_option_kind {               /* what the value is, and the type of the field that it goes to */
                              MR_ARG_FLAG,  /* none: bool, int or enum, becomes 1; without a field nothing happens */
                              MR_ARG_SET,   /* none: the same, becomes `low` */
                              MR_ARG_COUNT, /* from low to high (0: the type's limit): uint32_t or uint64_t */
                              MR_ARG_SIZE,  /* bytes, "256MiB", from low to high: uint64_t */
                              MR_ARG_REAL,  /* from low to high (0: no limit): double */
                              MR_ARG_WORD,  /* one of `words`: bool, int or enum, becomes its number */
                              MR_ARG_TEXT,  /* any, or one of `words`: const char * into argv */
                              MR_ARG_PATH,  /* a file or directory: const char * into argv; ranks may differ in it */
                              MR_ARG_LIST,  /* may be repeated: mr_cli_list of pointers into argv */
                              MR_ARG_OTHER, /* read by take() */
                              MR_ARG_TABLE, /* no option: the options of `rows`, for the struct at the field */
} mr_option_kind;

typedef struct mr_cli_list {
    char **items; /* the command frees this array */
    size_t count, capacity;
} mr_cli_list;

typedef struct mr_option {
    const char *name; /* without "--"; NULL: a positional argument, or the end of a table */
    char key;         /* "-j"; 0: none */
    mr_option_kind kind;
    size_t offset, size;  /* of the field: MR_FIELD() */
    const char *value;    /* name of the value in help; NULL: the words themselves */
    const char *standard; /* the default, as text; NULL: the field stays as the command set it */
    const char *optional; /* the value when the option is given without one; NULL: a value is required */
    const char *help;     /* the first clause, up to a ';', has to do where rows are `rare` */
    const char *group;    /* heading, in the first row of a group */
    const char *alias;    /* the name of an earlier version: accepted, and shown nowhere */
    const char *const *words;
    uint64_t low, high;
    size_t given; /* offset of a bool that becomes true when the option is given; 0: none */
    bool above;   /* MR_ARG_REAL: `low` itself is excluded */
    bool own;     /* ranks of one run may differ in it: it controls how the work is done, not what is done */
    bool hidden;  /* not in --help */
    bool rare;    /* in --help=all only */
    bool input;   /* MR_ARG_PATH: must exist, which is checked before the command begins */
    const struct mr_option *rows;
    mr_status (*take)(void *field, const char *text, mr_error *err);
} mr_option;

#define MR_FIELD(type, field) .offset = offsetof(type, field), .size = sizeof(((type *)0)->field)
#define MR_WORDS(...)         ((const char *const[]){__VA_ARGS__, NULL})

/* A number that is a macro, as text: for `standard`. */
#define MR_TEXT_OF(macro)   MR_TEXT_OF_(macro)
#define MR_TEXT_OF_(number) #number

/* For commands that print no progress: accepted, so that scripts can pass it to all. */
#define MR_OPTION_QUIET_IGNORED                                                                                        \
    {                                                                                                                  \
        "quiet", 'q', MR_ARG_FLAG, .own = true, .hidden = true                                                         \
    }

typedef struct mr_command {
    const char *name, *title; /* "verify", and what it does in a few words */
    const char *usage;        /* the arguments: "DATASET" */
    const char *example;      /* a whole command line, shown when one is missing */
    const char *summary;      /* a paragraph */
    const char *notes;        /* examples, exit codes; lines that begin with a blank are printed as they are */
    const char *more;         /* more of them, for --help=all; or NULL */
    const mr_option *options;
    const mr_option *arguments; /* rows without a name; each is required; a list takes all the rest */
    mr_status (*check)(void *request, mr_error *err); /* after parsing: checks across options; or NULL */
    int (*run)(int argc, char **argv); /* returns the exit code: 0 done, 1 bad data, 2 usage error, 3 system error */
} mr_command;

typedef struct mr_cli {
    int code;        /* the exit code if the command does not run */
    uint64_t agreed; /* hash of the command and its options, in any order; must be equal on all ranks */
    mr_yaml file;    /* the file of --options: the request points into its texts */
} mr_cli;

/* Sets defaults in `request`, then reads argv[1..] (argv[0] is the command's name, argv ends with NULL) and, for
 * commands with more than ten options, the file of --options before it.  The request is valid until mr_cli_release().
 * False: exit with cli->code, because help was printed, the command line is wrong, or a launcher started several
 * processes that cannot form one run (mr_launch_check()). */
bool mr_cli_parse(mr_cli *cli, const mr_command *command, int argc, char **argv, void *request);

void mr_cli_release(mr_cli *cli); /* a zeroed one is fine */

/* For commands whose ranks may stall: the field is a uint64_t, for mr_cli_ranks(). */
#define MR_OPTION_STALL(type, field)                                                                                   \
    {                                                                                                                  \
        "stall-timeout", 0, MR_ARG_COUNT, MR_FIELD(type, field), .value = "SECONDS", .high = UINT32_MAX,               \
                                                                 .standard = "60", .help = MR_STALL_HELP               \
    }
#define MR_STALL_HELP "abort if a rank makes no progress for this long (0: never)"

/* After mr_cli_parse(): calls mr_ranks_begin(), checks that all ranks run the same build and were given the same
 * command and options, except paths and rows marked `own`, and begins to watch for ranks that stall (mr_ranks_watch()).
 * MR_MISUSE: they do not, or were not; pass *ranks to mr_cli_end() in that case as well. */
mr_status mr_cli_ranks(const mr_cli *cli, uint64_t stall_seconds, mr_ranks **ranks, mr_error *err);

/* Ends a command: rank 0 (or the only process) prints `err` unless `status` is MR_OK; `ranks`, which may be NULL, is
 * ended.  Returns the exit code. */
int mr_cli_end(mr_ranks *ranks, mr_status status, const mr_error *err);

/* Sets every field that has a default.  MR_SYSTEM: out of memory. */
mr_status mr_options_defaults(const mr_option *rows, void *request, mr_error *err);
/* Stores one value in its field of `request`; `text` is NULL for options without a value.  MR_MISUSE: the message lists
 * what is accepted. */
mr_status mr_option_take(const mr_option *row, void *request, const char *text, mr_error *err);
bool mr_option_has_value(const mr_option *row);
/* Appends the value's name in help: "N", "drop|pad|partial". */
void mr_option_add_value(const mr_option *row, mr_buf *out);

/* On standard output: how to call a command, the options that most people use, or all. */
typedef enum mr_help { MR_HELP_USAGE, MR_HELP_SHORT, MR_HELP_ALL } mr_help;
mr_status mr_cli_help(const mr_command *command, mr_help which, mr_error *err); /* MR_SYSTEM: out of memory */
extern const mr_option mr_help_options[]; /* options of every command: help, usage */

#endif

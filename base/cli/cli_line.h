/* cli_line.h - a command line while it is read: for the files base/cli*.c alone.
 * Invariant: an option's value is stored once, by the last place that gives it: the file, then the command line. */
#ifndef MR_CLI_LINE_H
#define MR_CLI_LINE_H

#include "base/cli/cli.h"

typedef struct mr_cli_entry {
    const char *name; /* the row's, or its alias */
    const mr_option *row;
    char *request;     /* base of the row's offsets; NULL: the row has no field, and `value` is all that is kept */
    const char *value; /* last given, "" for an option without one; NULL: not given.  Kept in the row's first entry */
    bool on_line;      /* the command line gives it: the file's value does not count.  As above */
} mr_cli_entry;

typedef struct mr_cli_line {
    mr_cli *cli;
    const mr_command *command;
    void *request;
    mr_cli_entry *entries;
    size_t count, capacity;
    const mr_option *argument; /* the next one to read */
    uint64_t agreed;
    bool look; /* nothing is stored: which options are there? */
} mr_cli_line;

/* Where `value` and `on_line` of the entry's row are kept. */
mr_cli_entry *mr_cli_first(const mr_cli_line *l, const mr_cli_entry *e);
/* Stores a value, or its optional one (NULL), of an option but --help.  MR_MISUSE: the value is not accepted. */
mr_status mr_cli_take(mr_cli_line *l, const mr_cli_entry *e, const char *value, mr_error *err);
/* MR_MISUSE: no such option.  `dashes`: what precedes names here; "" in a file, where --help is not an option. */
mr_status mr_cli_unknown(const mr_cli_line *l, const char *dashes, const char *name, mr_error *err);

/* Options of commands that take their options from a file: options, write-config. */
extern const mr_option mr_file_options[];
/* MR_MISUSE: the option names an input, and nothing is there; under a launcher the first rank finds out later. */
mr_status mr_cli_find_input(const mr_option *row, const char *path, mr_error *err);
bool mr_cli_takes_file(const mr_command *command); /* it has more than ten options */
/* Takes the options of the YAML file `path` that are not `on_line`; their texts belong to l->cli.
 * MR_MISUSE: the file cannot be used; names its line. */
mr_status mr_cli_read_file(mr_cli_line *l, const char *path, mr_error *err);
/* Prints all options as an options file; those not given are comments, with their defaults. */
mr_status mr_cli_write_file(const mr_cli_line *l, mr_error *err);

#endif

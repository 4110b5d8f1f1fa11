/* cli.h - command lines: argp with suggestions for near misses, and one form of usage errors.
 * Invariant: wrong use prints one sentence and the way out on stderr and ends with exit code 2. */
#ifndef MR_CLI_H
#define MR_CLI_H

#include <argp.h>

#include "base/error.h"
#include "base/ranks.h"

/* Parses argv[1..] by `argp` (argv[0] is the command's name; argv ends with NULL).  Unknown long options get the
 * nearest known one suggested.  On --help prints and exits 0; exits 2 on wrong use, and where a launcher started
 * several processes that cannot form one run (mr_launch_check()).  Behind the \v of argp's doc, lines that begin with a
 * blank are printed as they are. */
void mr_cli_parse(const struct argp *argp, int argc, char **argv, void *input);

/* Whether an option is each rank's own affair: how it does its work, and what it says of it. */
bool mr_cli_is_own(const char *name);
/* Whether an option's value, as help calls it, is a place: FILE, FILE.npz, DIR. */
bool mr_cli_is_place(const char *value);

/* After it: mr_ranks_begin(), and all ranks were given this command and these options; where paths lead, and how many
 * threads one has, is each rank's own affair.  MR_MISUSE: they were not; *ranks is to be ended then, too, and rank 0
 * says it.  NULL: no rank knows of others. */
mr_status mr_cli_ranks(mr_ranks **ranks, mr_error *err);

/* Ends with exit code 2: "millrace COMMAND: message" and the hint to --help.  For use inside argp parsers. */
_Noreturn void mr_cli_misuse(struct argp_state *state, const char *format, ...) MR_PRINTF(2, 3);

/* The same of a word that is none of `words` (NULL behind them): suggests the nearest, and lists them.  `what`: what
 * the words are. */
_Noreturn void mr_cli_no_such(struct argp_state *state, const char *option, const char *word, const char *what,
                              const char *const *words);

/* The same with the sentence in `err`, unless `status` is MR_OK. */
void mr_cli_must(struct argp_state *state, mr_status status, const mr_error *err);

/* For argp parsers of commands that read one dataset: takes its directory from ARGP_KEY_ARG and insists on it at
 * ARGP_KEY_END; ARGP_ERR_UNKNOWN for any other key. */
error_t mr_cli_dataset(int key, char *arg, struct argp_state *state, const char **dir);

#endif

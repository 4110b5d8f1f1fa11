/* pages.h - manual pages and completion scripts, made from the commands' tables of options.
 * Invariant: equal tables give equal bytes; every option that --help=all shows is in them, by the name that it has
 * now. */
#ifndef MR_PAGES_H
#define MR_PAGES_H

#include "base/cli/cli.h"

/* Appends millrace-NAME(1), or millrace(1) if `command` is NULL, as man(7) macros; `all` ends with NULL. */
void mr_manual_page(const mr_command *const *all, const mr_command *command, mr_buf *out);

/* Appends the script of "bash", "zsh" or "fish". */
void mr_completion_bash(const mr_command *const *all, mr_buf *out);
void mr_completion_zsh(const mr_command *const *all, mr_buf *out);
void mr_completion_fish(const mr_command *const *all, mr_buf *out);

/* Calls take(context, row) for each option that --help shows, those of every command last. */
void mr_each_option(const mr_command *command, void (*take)(void *context, const mr_option *row), void *context);
bool mr_option_is_path(const mr_option *row); /* its value names a file or a folder */

#endif

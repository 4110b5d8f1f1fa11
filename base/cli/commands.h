/* commands.h - the commands that describe commands, for the table in millrace.c. */
#ifndef MR_CLI_COMMANDS_H
#define MR_CLI_COMMANDS_H

#include "base/cli/cli.h"

extern const mr_command mr_cmd_completion, mr_cmd_manual;

/* Every command, ended by NULL; set by main(), which alone knows them all. */
extern const mr_command *const *mr_commands;

#endif

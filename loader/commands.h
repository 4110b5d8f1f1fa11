/* commands.h - the commands that work on batches, for the table in millrace.c. */
#ifndef MR_LOADER_COMMANDS_H
#define MR_LOADER_COMMANDS_H

#include "base/cli/cli.h"

extern const mr_command cmd_plan, cmd_replay, cmd_bench;

#endif

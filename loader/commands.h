/* commands.h - the commands that work on batches, for the table in millrace.c. */
#ifndef MR_LOADER_COMMANDS_H
#define MR_LOADER_COMMANDS_H

#include "base/cli/cli.h"

extern const mr_command mr_cmd_plan, mr_cmd_replay, mr_cmd_bench;

#endif

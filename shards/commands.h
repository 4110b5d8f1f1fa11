/* commands.h - the commands that read finished datasets, for the table in millrace.c. */
#ifndef MR_SHARDS_COMMANDS_H
#define MR_SHARDS_COMMANDS_H

#include "base/cli/cli.h"

extern const mr_command cmd_verify, cmd_show, cmd_export, cmd_reindex, cmd_seek, cmd_pull, cmd_push, cmd_diff, cmd_view;
#endif

/* commands.h - the commands that read finished datasets, for the table in millrace.c. */
#ifndef MR_SHARDS_COMMANDS_H
#define MR_SHARDS_COMMANDS_H

#include "base/cli/cli.h"

extern const mr_command mr_cmd_verify, mr_cmd_show, mr_cmd_export, mr_cmd_reindex, mr_cmd_seek, mr_cmd_pull,
    mr_cmd_push, mr_cmd_diff, mr_cmd_view;
#endif

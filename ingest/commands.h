/* commands.h - the commands that make datasets, for the table in millrace.c. */
#ifndef MR_INGEST_COMMANDS_H
#define MR_INGEST_COMMANDS_H

#include "base/cli/cli.h"

extern const mr_command mr_cmd_ingest, mr_cmd_sample;

#endif

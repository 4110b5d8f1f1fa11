/* commands.h - the commands that show a dataset or a run, for the table in millrace.c. */
#ifndef MR_REPORT_COMMANDS_H
#define MR_REPORT_COMMANDS_H

#include "base/cli/cli.h"

extern const mr_command mr_cmd_report, mr_cmd_inspect;

#endif

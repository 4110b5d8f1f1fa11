/* commands.h - the command that draws a dataset, for the table in millrace.c. */
#ifndef MR_REPORT_COMMANDS_H
#define MR_REPORT_COMMANDS_H

#include "base/cli.h"

extern const mr_command cmd_report;

#endif

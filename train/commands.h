/* commands.h - the commands that train models and use them, for the table in millrace.c. */
#ifndef MR_TRAIN_COMMANDS_H
#define MR_TRAIN_COMMANDS_H

#include "base/cli/cli.h"

extern const mr_command cmd_train, cmd_eval, cmd_predict, cmd_devices, cmd_tokenizer;

#endif

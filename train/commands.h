/* commands.h - the commands that train models and use them, for the table in millrace.c. */
#ifndef MR_TRAIN_COMMANDS_H
#define MR_TRAIN_COMMANDS_H

#include "base/cli/cli.h"

extern const mr_command mr_cmd_train, mr_cmd_saw, mr_cmd_eval, mr_cmd_weights, mr_cmd_predict, mr_cmd_devices,
    mr_cmd_tokenizer;

#endif

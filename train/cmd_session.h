/* cmd_session.h - the options and arguments that eval and predict share: which model on which samples. */
#ifndef MR_CMD_SESSION_H
#define MR_CMD_SESSION_H

#include "base/cli/cli.h"
#include "train/run/model_session.h"

extern const mr_option mr_cmd_session_options[]; /* the options of mr_session_request */

/* Says on stderr if the model was trained on another dataset, or by another version of the program. */
mr_status mr_cmd_session_note(const mr_session *t, mr_error *err);

/* DATASET RUN, for a request that has the mr_session_request as `field`. */
#define CMD_SESSION_ARGUMENTS(type, field)                                                                             \
    {.value = "DATASET", .kind = MR_ARG_PATH, MR_FIELD(type, field.dataset)},                                          \
        {.value = "RUN", .kind = MR_ARG_PATH, MR_FIELD(type, field.checkpoint)},                                       \
    {                                                                                                                  \
        0                                                                                                              \
    }

#endif

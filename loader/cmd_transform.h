/* cmd_transform.h - the options for how images are shown, shared by replay and bench.
 * Invariant: they fill a zeroed transform except its size. */
#ifndef MR_CMD_TRANSFORM_H
#define MR_CMD_TRANSFORM_H

#include "base/cli/cli.h"

extern const mr_option mr_cmd_transform_options[]; /* of mr_transform */

#endif

/* cmd_transform.h - the options that say how pictures are shown: replay and bench share them.
 * Invariant: they fill a zeroed transform but for its size. */
#ifndef MR_CMD_TRANSFORM_H
#define MR_CMD_TRANSFORM_H

#include "base/cli.h"

extern const mr_option cmd_transform_options[]; /* of mr_transform */

#endif

/* cmd_verify.h - what verify found, as human-readable text.
 * Invariant: on standard output only, but for warnings. */
#ifndef MR_CMD_VERIFY_H
#define MR_CMD_VERIFY_H

#include "shards/verify/verify.h"

void mr_cmd_verify_print(const mr_verify_report *r, const char *dir, const mr_verify_options *o);

#endif

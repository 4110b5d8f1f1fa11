/* cmd_inspect_near.h - near-duplicates as `millrace inspect --near-duplicates` shows them.
 * Invariant: every pair names both samples, by split, number and source. */
#ifndef MR_CMD_INSPECT_NEAR_H
#define MR_CMD_INSPECT_NEAR_H

#include "shards/similar/similar.h"

/* `distance`: what was asked for. */
mr_status mr_cmd_near_print(const mr_dataset *ds, const mr_similar *n, unsigned distance, mr_error *err);
/* Adds a member. */
mr_status mr_cmd_near_json(const mr_dataset *ds, const mr_similar *n, unsigned distance, json_t *doc, mr_error *err);

#endif

/* cmd_local.h - --local and --local-size: copies of shards on a disk of each host.
 * Invariant: what is computed does not depend on them. */
#ifndef MR_LOADER_CMD_LOCAL_H
#define MR_LOADER_CMD_LOCAL_H

#include "base/cli/cli.h"
#include "base/ranks/ranks.h"

typedef struct mr_local_request {
    const char *dir; /* NULL: none */
    uint64_t size;   /* 0: no limit */
} mr_local_request;

extern const mr_option mr_cmd_local_options[]; /* of mr_local_request */

/* Collective: on each host one rank copies.  MR_MISUSE: --local-size alone, or a folder in the dataset. */
mr_status mr_cmd_local_open(const mr_local_request *q, mr_ranks *ranks, mr_dataset *ds, mr_error *err);

#endif

/* cmd_local.c - the options of staging, and its start. */
#include "loader/cmd_local.h"

#include "base/scope.h"
#include "shards/dataset/dataset_ranks.h"

const mr_option mr_cmd_local_options[] = {
    {"local", 0, MR_ARG_PATH, MR_FIELD(mr_local_request, dir), .value = "DIR", .own = true, .help = MR_LOCAL_HELP,
     .rare = true},
    {"local-size", 0, MR_ARG_SIZE, MR_FIELD(mr_local_request, size), .value = "SIZE", .low = 1, .high = INT64_MAX,
     .own = true, .help = MR_LOCAL_SIZE_HELP, .rare = true},
    {0},
};

mr_status mr_cmd_local_open(const mr_local_request *q, mr_ranks *ranks, mr_dataset *ds, mr_error *err)
{
    return mr_ranks_agree(ranks, mr_dataset_stage_here(ds, q->dir, q->size, ranks, err), err);
}

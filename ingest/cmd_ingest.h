/* cmd_ingest.h - the command ingest: what is asked for, and what it prints.
 * Invariant: in ingest/ only cmd_*.c print. */
#ifndef MR_CMD_INGEST_H
#define MR_CMD_INGEST_H

#include "base/cli/cli.h"
#include "ingest/cmd_annotations.h"
#include "ingest/pipeline/ingest_state.h"

typedef struct mr_ingest_request {
    mr_ingest_options o;
    mr_cli_list paths, left_out, annotations;
    mr_cmd_annotations settled;
    mr_split_map maps[32], lists[32];
    bool json;
    const char *report;
    char *downloads; /* rank 0's folder of downloads; NULL: no source is a URL */
    uint64_t progress_fd, stall;
    bool near_distance_given;
} mr_ingest_request;

#define MR_INGEST_EXAMPLE "millrace ingest imagenette2-160.tgz imagenette"
extern const mr_option mr_ingest_option_rows[], mr_ingest_arguments[];
/* For a mr_ingest_request that has been filled.  MR_MISUSE: options that exclude each other, or nothing to read. */
mr_status mr_ingest_request_check(void *ctx, mr_error *err);

mr_status mr_cmd_ingest_summary(const mr_ingest *in, FILE *stream, mr_error *err);
mr_status mr_cmd_ingest_quiet(const mr_ingest *in, FILE *stream, mr_error *err); /* rejected and missing, in a line */
void mr_cmd_ingest_failure(const mr_ingest *in); /* on stderr, before the error's own sentence */
json_t *mr_cmd_ingest_sources(const mr_ingest_options *o);
mr_status mr_cmd_ingest_json(const mr_ingest *in, mr_status status, const mr_error *why, mr_error *err);

#endif

/* cmd_ingest.h - what the command ingest prints.
 * Invariant: in ingest/ only cmd_*.c print. */
#ifndef MR_CMD_INGEST_H
#define MR_CMD_INGEST_H

#include "ingest/pipeline/ingest_state.h"

mr_status mr_cmd_ingest_summary(const mr_ingest *in, FILE *stream, mr_error *err);
mr_status mr_cmd_ingest_quiet(const mr_ingest *in, FILE *stream, mr_error *err); /* only what was rejected, in a line */
void mr_cmd_ingest_failure(const mr_ingest *in); /* on stderr, before the error's own sentence */
json_t *mr_cmd_ingest_sources(const mr_ingest_options *o);
mr_status mr_cmd_ingest_json(const mr_ingest *in, mr_status status, const mr_error *why, mr_error *err);

#endif

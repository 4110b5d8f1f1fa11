/* cmd_ingest.h - between the command line of ingest and what it prints.
 * Invariant: these print; nothing else in ingest/ but cmd_*.c does. */
#ifndef MR_CMD_INGEST_H
#define MR_CMD_INGEST_H

#include "pipeline/ingest.h"

mr_status cmd_ingest_summary(const mr_ingest *in, FILE *stream, mr_error *err);
void cmd_ingest_failure(const mr_ingest *in); /* on stderr, before the error's own sentence */
json_t *cmd_ingest_sources(const mr_ingest_options *o);
mr_status cmd_ingest_json(const mr_ingest *in, mr_status status, const mr_error *why, mr_error *err);

#endif

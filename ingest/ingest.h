/* ingest.h - a source tree becomes a dataset, by all steps.
 * Invariant: DATASET is absent or unchanged until the one rename that makes the complete new dataset visible. */
#ifndef MR_INGEST_H
#define MR_INGEST_H

#include "ingest/pipeline/ingest_state.h"

/* Runs everything.  On MR_BAD_DATA the notes have the details.  `in` is filled as far as ingest got; the caller
 * releases it with mr_ingest_release() in any case.  Collective. */
mr_status mr_ingest_run(const mr_ingest_options *o, mr_ranks *ranks, mr_ingest *in, mr_error *err);

#endif

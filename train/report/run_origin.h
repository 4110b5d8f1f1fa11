/* run_origin.h - the note below a section of a run's page.
 * Invariant: it says nothing that the evaluation's own files do not. */
#ifndef MR_RUN_ORIGIN_H
#define MR_RUN_ORIGIN_H

#include "train/report/run_facts.h"

/* A note that says which evaluation a section comes from, and why there are no images. */
void mr_run_origin_add(const mr_run_facts *f, mr_buf *out);

#endif

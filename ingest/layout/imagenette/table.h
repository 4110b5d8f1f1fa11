/* table.h - the csv of noisy labels at the root of Imagenette and Imagewoof.
 * Invariant: it never adds or drops a sample; it gives columns to the meta, and the label only if requested. */
#ifndef MR_IMAGENETTE_TABLE_H
#define MR_IMAGENETTE_TABLE_H

#include "ingest/layout/layout.h"

const char *mr_imagenette_csv(const mr_tree *t); /* its name, NULL: none */

/* Reads it, if it exists, and gives each sample of the plan its row: sample.aux is the row's number plus 1. */
mr_status mr_imagenette_table(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err);
mr_status mr_imagenette_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out,
                             mr_error *err);
void mr_imagenette_free(void *state);

#endif

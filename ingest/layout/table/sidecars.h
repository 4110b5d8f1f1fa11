/* sidecars.h - images beside texts of the same name.
 * Invariant: a sample's aux is the entry of its text plus 1, or 0. */
#ifndef MR_LAYOUT_SIDECARS_H
#define MR_LAYOUT_SIDECARS_H

#include "ingest/layout/table/table.h"

/* Cheap: whether any of the first texts is beside an image of its name, and whether that is in a folder. */
bool mr_sidecars_may_be(const mr_tree *t, bool *below);
/* Whether most images have a text of words beside them, judging by a few. */
mr_status mr_sidecars_are(const mr_tree *t, const mr_picture_index *index, bool *found, mr_error *err);
mr_status mr_sidecars_plan(const mr_tree *t, const mr_layout_options *o, const mr_picture_index *index, mr_plan *plan,
                           mr_error *err);
mr_status mr_sidecars_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err);

#endif

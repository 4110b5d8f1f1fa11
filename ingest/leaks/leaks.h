/* leaks.h - images of one content in several splits: found in a source that has splits, avoided where ingest divides
 * it. Invariant: equal bytes and, if asked, images that look alike are one group to both. */
#ifndef MR_LEAKS_H
#define MR_LEAKS_H

#include "ingest/pipeline/ingest_state.h"

/* divide.c: --split, and before any image is read whether it fits the source; mr_divide() is collective. */
mr_status mr_divide_check(const mr_ingest *in, mr_error *err);
mr_status mr_divide(mr_ingest *in, mr_error *err);
mr_status mr_find_leaks(mr_ingest *in, mr_error *err); /* leak.c; collective */

#endif

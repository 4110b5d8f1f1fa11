/* foreign.h - forms of datasets that no layout reads, recognised by their files, and what to do instead.
 * Invariant: used only where no layout bids, so a form that becomes supported needs no change here. */
#ifndef MR_FOREIGN_H
#define MR_FOREIGN_H

#include "source/source.h"

/* Appends a sentence on what the source is and what to do instead; nothing if it is unknown. */
void mr_foreign_hint(const mr_source *s, mr_buf *out);

#endif

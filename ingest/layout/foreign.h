/* foreign.h - forms of datasets that no layout reads, told by their files, with the way out.
 * Invariant: asked only where no layout bids, so a form that is read one day needs no change here. */
#ifndef MR_FOREIGN_H
#define MR_FOREIGN_H

#include "source/source.h"

/* Appends a sentence on what the source is and what to do instead; nothing where it is not known. */
void mr_foreign_hint(const mr_source *s, mr_buf *out);

#endif

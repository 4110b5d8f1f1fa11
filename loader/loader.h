/* loader.h - mr_loader_* for the commands: what millrace.h does not offer.
 * Invariant: none of it changes what is loaded. */
#ifndef MR_LOADER_H
#define MR_LOADER_H

#include "millrace.h"

/* Waits until the threads have nothing to do: the prefetched batches stand ready.  For measuring. */
void mr_loader_settle(mr_loader *l);

#endif

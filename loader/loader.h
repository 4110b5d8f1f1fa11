/* loader.h - mr_loader_* for the commands: what millrace.h does not offer.
 * Invariant: none of it changes what is loaded. */
#ifndef MR_LOADER_H
#define MR_LOADER_H

#include "millrace.h"

/* Waits until the threads have nothing to do: the prefetched batches stand ready.  For measuring. */
void mr_loader_settle(mr_loader *l);

/* Seconds that the loader's threads, all together, spent so far on reading (and hashing) and on decoding (and resizing)
 * the samples of decoded batches. */
typedef struct mr_loader_spent {
    double reading, decoding;
} mr_loader_spent;
mr_loader_spent mr_loader_time(const mr_loader *l);

#endif

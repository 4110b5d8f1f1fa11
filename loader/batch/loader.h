/* loader.h - mr_loader_* for the commands: what millrace.h does not offer.
 * Invariant: none of it changes what is loaded. */
#ifndef MR_LOADER_H
#define MR_LOADER_H

#include <stdbool.h>

#include "millrace.h"

/* Another loader of the split of `first`, beside it: they share the shards that are open, so that any number of loaders
 * takes the descriptors of one.  NULL: alone, as mr_loader_open() does. */
mr_status mr_loader_open_beside(const mr_loader *first, const mr_dataset *ds, const mr_loader_options *options,
                                mr_loader **out, mr_error *err);

/* Waits until the threads have nothing to do: the prefetched batches stand ready.  For measuring. */
void mr_loader_settle(mr_loader *l);

/* Seconds that the loader's threads, all together, spent so far on reading (and hashing) and on decoding (and resizing)
 * the samples of decoded batches. */
typedef struct mr_loader_spent {
    double reading, decoding;
} mr_loader_spent;
mr_loader_spent mr_loader_time(const mr_loader *l);

/* What was bad in a lent batch: batch->replaced of them, in the order of their slots. */
typedef struct mr_bad_slot {
    uint64_t slot, sample; /* sample: the damaged one, whatever stands in its place */
    bool padding;          /* the slot only fills up the batch: another one is answerable for the sample */
    mr_error error;
} mr_bad_slot;
const mr_bad_slot *mr_batch_bad(const mr_batch *batch);

#endif

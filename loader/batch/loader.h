/* loader.h - what the commands need from the loader beyond millrace.h.
 * Invariant: none of it changes what is loaded.
 *
 * This module, from a sample's number to a batch:   shard_files <- work <- batch <- batch_queue <- loader
 *   options       mr_loader_options checked, defaults filled in
 *   shard_files   the split's shards, kept open          work      one sample: read, hash, decode, resize
 *   batch         one batch and its slots                batch_queue, loader   batches in flight; their threads
 *   hand_out      batches to callers                     loader_state          what loader and hand_out share
 *   damage        damaged samples that were skipped */
#ifndef MR_LOADER_H
#define MR_LOADER_H

#include <stdbool.h>

#include "millrace.h"

/* Opens another loader of the same split as `first`.  They share open shards, so that any number of loaders needs only
 * the descriptors of one.  `first` NULL: as mr_loader_open(). */
mr_status mr_loader_open_beside(const mr_loader *first, const mr_dataset *ds, const mr_loader_options *options,
                                mr_loader **out, mr_error *err);

/* Waits until the threads are idle: all batches to prefetch are ready.  For measuring. */
void mr_loader_settle(mr_loader *l);

/* Seconds that all of the loader's threads together have spent on reading (and hashing) and on decoding (and resizing)
 * the samples of decoded batches. */
typedef struct mr_loader_spent {
    double reading, decoding;
} mr_loader_spent;
mr_loader_spent mr_loader_time(const mr_loader *l);

/* The bad slots of a lent batch: batch->replaced of them, in order. */
typedef struct mr_bad_slot {
    uint64_t slot, sample; /* sample: the damaged one, not its replacement */
    bool padding;          /* the slot only pads the batch: the sample counts in another slot */
    mr_error error;
} mr_bad_slot;
const mr_bad_slot *mr_batch_bad_slots(const mr_batch *batch);

#endif

/* record.h - NAME.done, by which a later run knows that a shard was finished, and takes it over.
 * Invariant: a record ends with a seal as the manifest does; one without, or whose seal does not fit, is none. */
#ifndef MR_RECORD_H
#define MR_RECORD_H

#include "manifest.h"

/* `recipe`: what the shard was made from; of `shard` its images, image_bytes and the digests of .mdb and .idx. */
mr_status mr_record_write(int dir, const char *name, const mr_digest *recipe, const mr_shard *shard, mr_error *err);
bool mr_record_read(int dir, const char *name, mr_digest *recipe, mr_shard *shard);

#endif

/* ahead.h - records of a remote dataset, fetched before they are read.
 * Invariant: what is fetched ahead changes no result: a reader of a record that is not here, or could not be fetched,
 * reads it by itself. */
#ifndef MR_AHEAD_H
#define MR_AHEAD_H

#include "shards/remote/remote.h"

typedef struct mr_ahead mr_ahead;

/* Its threads start when there is work for them. */
mr_status mr_ahead_open(mr_remote *r, mr_ahead **out, mr_error *err);
void mr_ahead_close(mr_ahead *a); /* ends requests at once; NULL is fine */

/* From any thread: */

/* These bytes of the shard's .mdb will be read soon.  What does not fit is not fetched. */
void mr_ahead_want(mr_ahead *a, const mr_shard *shard, uint64_t from, size_t len);
/* Moves bytes that were wanted to `out`, once they are there; false: they are not, or *stop was set. */
bool mr_ahead_take(mr_ahead *a, const mr_shard *shard, uint64_t from, void *out, size_t len, const atomic_bool *stop);

#endif

/* index_trust.h - which indexes of an open dataset were compared with the manifest, by the digest of all their bytes.
 * Invariant: an index is trusted only as the very file that was compared: one that was changed or replaced since is
 * compared again.  Any number of threads may ask at once. */
#ifndef MR_INDEX_TRUST_H
#define MR_INDEX_TRUST_H

#include "shards/manifest/manifest.h"

typedef struct mr_index_trust mr_index_trust;

/* The splits that the manifest has now are lent, and must outlive it. */
mr_status mr_index_trust_new(const mr_manifest *m, mr_index_trust **out, mr_error *err);
void mr_index_trust_free(mr_index_trust *t); /* NULL is fine */

/* Whether the open .idx, which has the right size, is the one that the shard's manifest names.  It is read at the first
 * call for the shard; later ones look at the file's facts alone.  MR_BAD_DATA: it is another. */
mr_status mr_index_trust_check(mr_index_trust *t, const mr_shard *shard, int idx, mr_error *err);

#endif

/* digest.h - one XXH3-128 over bytes that several ranks hold.
 * Invariant: the digest is that of all bytes in order, whichever ranks add the parts.
 *
 *   rank 0: begin, add, save --blob--> rank 1: load, add, save --blob--> ... last: end */
#ifndef MR_LOADER_DIGEST_H
#define MR_LOADER_DIGEST_H

#include "base/buf.h"

typedef struct mr_running_digest mr_running_digest;

mr_running_digest *mr_running_digest_new(void); /* begun; NULL: out of memory */
void mr_running_digest_free(mr_running_digest *d);
void mr_running_digest_begin(mr_running_digest *d);
void mr_running_digest_add(mr_running_digest *d, const void *bytes, size_t len);
void mr_running_digest_end(const mr_running_digest *d, uint8_t out[16]); /* canonical (big-endian) form */

/* For another process of the same program.  Save appends to `out`; load reads the front of `bytes`, false: too
 * short. */
void mr_running_digest_save(const mr_running_digest *d, mr_buf *out);
bool mr_running_digest_load(mr_running_digest *d, const void *bytes, size_t len);
size_t mr_running_digest_size(void); /* bytes that save appends */

#endif

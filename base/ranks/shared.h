/* shared.h - bytes that the ranks of a host have in memory once.
 * Invariant: they never change: the memory is sealed before anyone reads it, and no rank can make it shorter.
 *
 * It is a memfd without a name in the file system, which the other ranks open through /proc; where they cannot (other
 * pid namespaces, no /proc), each rank has a copy. */
#ifndef MR_SHARED_H
#define MR_SHARED_H

#include "base/ranks/ranks.h"

typedef struct mr_shared mr_shared;

/* Collective over `host`: the `len` bytes, at least 1, of its first rank; the others give NULL and 0.  The failure of
 * one is that of all.  The result lives until mr_shared_free(), whatever becomes of the ranks and of `bytes`. */
mr_status mr_shared_make(mr_ranks *host, const void *bytes, uint64_t len, mr_shared **out, mr_error *err);
const void *mr_shared_bytes(const mr_shared *s); /* aligned to 16; read-only */
uint64_t mr_shared_len(const mr_shared *s);
bool mr_shared_is_one(const mr_shared *s); /* false: a copy of this rank's own */
void mr_shared_free(mr_shared *s);         /* NULL is fine */

#endif

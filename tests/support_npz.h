/* support_npz.h - arrays out of numpy's .npz files, and where the parity fixtures are.
 * Invariant: a missing or odd array fails the running test. */
#ifndef MR_SUPPORT_NPZ_H
#define MR_SUPPORT_NPZ_H

#include "support.h"

typedef struct support_npz support_npz;

/* "$MILLRACE_PARITY/sub" (default ../shared/parity beside the source folder) on the heap, NULL if it is not there. */
char *support_parity(const char *sub);

support_npz *support_npz_open(const char *path);
void support_npz_close(support_npz *z);
/* A C-ordered array of this type ("|u1", "<f4"); shape gets up to 4 sides, missing ones 1. The bytes are lent. */
const void *support_npz_get(const support_npz *z, const char *name, const char *type, size_t shape[4]);

#endif

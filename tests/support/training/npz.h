/* npz.h - arrays out of numpy's .npz files by name, and where the parity fixtures are.
 * Invariant: a missing or odd array fails the running test. */
#ifndef MR_SUPPORT_NPZ_H
#define MR_SUPPORT_NPZ_H

#include "train/files/npz.h"
#include "tests/support/support.h"

typedef struct support_npz support_npz;

/* "$MILLRACE_PARITY/sub" (default ../shared/parity beside the source folder) on the heap, NULL if it is not there. */
char *support_parity(const char *sub);

support_npz *support_npz_open(const char *path);
void support_npz_close(support_npz *z); /* NULL is fine */
/* An array of this type; shape gets its sides, missing ones 1. The elements are lent, 16-byte aligned. */
const void *support_npz_get(const support_npz *z, const char *name, mr_npz_type type, uint64_t shape[MR_NPZ_DIMS]);
/* Array i in the file's order; NULL: there are no more. */
const mr_npz_array *support_npz_at(const support_npz *z, size_t i);

#endif

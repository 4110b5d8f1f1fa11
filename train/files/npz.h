/* npz.h - .npz files (a zip of .npy arrays), read as untrusted input and written for numpy.
 * Invariant: a member is used only after its header was checked against its size; nothing is read past a member,
 * and no array is larger than its file could hold, deflated or not.
 * Source: numpy/lib/format.py, "NPY format" 1.0 to 3.0; members stored or deflated, zip64 where needed. */
#ifndef MR_NPZ_H
#define MR_NPZ_H

#include "base/hash.h"

enum { MR_NPZ_DIMS = 8, MR_NPZ_NAME = 256 };

typedef enum mr_npz_type { MR_NPZ_F32 = 0, MR_NPZ_I64, MR_NPZ_U8 } mr_npz_type; /* '<f4', '<i8', '|u1' */

typedef struct mr_npz_array {
    char name[MR_NPZ_NAME]; /* without ".npy" */
    mr_npz_type type;
    unsigned dims;
    uint64_t shape[MR_NPZ_DIMS]; /* C order */
    uint64_t count;              /* elements */
} mr_npz_array;

/* Bytes of all elements. */
uint64_t mr_npz_bytes(const mr_npz_array *array);

/* Reading: members in the file's order, each taken or skipped (skipping 64 MB costs nothing when stored). */
typedef struct mr_npz_reader mr_npz_reader;
mr_status mr_npz_open(const char *path, mr_npz_reader **out, mr_error *err);
/* The same for a file that is open already: `fd` stays the caller's and must outlive the reader; `name`: in
 * messages. */
mr_status mr_npz_open_fd(int fd, const char *name, mr_npz_reader **out, mr_error *err);
/* MR_END: no more.  MR_BAD_DATA: not a zip, a member that is not a .npy of a known type, Fortran order, big-endian, a
 * name that is not plain ASCII or occurs twice: the message names file and member.  *array is valid until the next
 * call. A file without any array is not one. */
mr_status mr_npz_next(mr_npz_reader *r, const mr_npz_array **array, mr_error *err);
/* All elements of the current member to `to`, which has room for `bytes`, exactly as many.  Their CRC is
 * checked: after a failure `to` holds anything.  MR_MISUSE: another number of bytes, or taken already. */
mr_status mr_npz_take(mr_npz_reader *r, void *to, size_t bytes, mr_error *err);
void mr_npz_reader_free(mr_npz_reader *r); /* NULL is fine */

/* Writing to an empty open file: members are stored, not deflated; the same arrays give the same bytes.  The file is
 * whole after mr_npz_finish(), which frees in any case; the caller syncs and names it.  *digest (XXH3 only; may be
 * NULL): the digest of the whole file, taken while writing.  A failure to write is final: finish then gives it again.
 * MR_MISUSE: a name that the reader would refuse, or a count that is not the shape's. */
typedef struct mr_npz_writer mr_npz_writer;
mr_status mr_npz_create(int fd, const char *name, mr_npz_writer **out, mr_error *err);
mr_status mr_npz_add(mr_npz_writer *w, const mr_npz_array *array, const void *elements, mr_error *err);
mr_status mr_npz_finish(mr_npz_writer *w, mr_digest *digest, mr_error *err); /* NULL: MR_OK, nothing to do */

#endif

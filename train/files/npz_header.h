/* npz_header.h - the parts that reading and writing of .npz files share: the .npy header, names of members.
 * Invariant: a header that was parsed holds a known type, C order, and a shape whose count of bytes fits in 63 bits. */
#ifndef MR_NPZ_HEADER_H
#define MR_NPZ_HEADER_H

#include "base/string_map.h"
#include "train/files/npz.h"

enum {
    MR_NPY_PREFIX = 12,    /* most bytes before the dictionary */
    MR_NPY_TEXT = 1 << 16, /* a longer dictionary is not read */
    MR_NPY_HEADER = 320,   /* room for mr_npy_header() */
};

/* The first 10 bytes of a .npy file: how many more precede the dictionary (0, or 2 of a longer length field) and, if
 * none, its length.  With all 12 bytes of a longer one `more` is 0 too.  `why` of a rejection is static. */
bool mr_npy_prefix(const uint8_t *bytes, size_t len, size_t *more, size_t *text_len, const char **why);
/* The dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } in any order; fills all but the name. */
bool mr_npy_parse(const char *text, size_t len, mr_npz_array *array, const char **why);
/* Writes the header of version 1.0 to out[MR_NPY_HEADER]; its length is a multiple of 64, as in numpy. */
size_t mr_npy_header(const mr_npz_array *array, uint8_t *out);

/* Counts the elements of a shape and their bytes; false where they do not fit in 63 bits. */
bool mr_npz_count(mr_npz_type type, unsigned dims, const uint64_t *shape, uint64_t *count, uint64_t *bytes);

/* Names so far, as hashes. */
typedef struct mr_npz_names {
    uint64_t *items;
    size_t count, capacity;
    mr_string_map by_hash;
} mr_npz_names;

/* Why a name (without ".npy") cannot be an array's; NULL: it can. */
const char *mr_npz_name_fault(const char *name, size_t len);
/* MR_BAD_DATA: it occurs twice, or there are too many.  `where`: for the message. */
mr_status mr_npz_names_add(mr_npz_names *names, const char *name, const char *where, mr_error *err);
void mr_npz_names_release(mr_npz_names *names);

#endif

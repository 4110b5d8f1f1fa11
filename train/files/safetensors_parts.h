/* safetensors_parts.h - what reading and writing of .safetensors files share: the header, the index, names.
 * Invariant: a tensor that came out of a header has all of its bytes inside of the file, and shares none with
 * another. */
#ifndef MR_SAFETENSORS_PARTS_H
#define MR_SAFETENSORS_PARTS_H

#include "train/files/safetensors.h"
#include "base/json/json.h"

enum {
    MR_TENSORS_HEADER = 100000000, /* bytes; the reference's MAX_HEADER_SIZE */
    MR_TENSORS_MEMORY = 96 << 20,  /* what a header or an index may take when it is parsed: 80,000 tensors */
    MR_TENSORS_INDEX = 64 << 20,   /* bytes */
    MR_TENSORS_MAX = 1 << 18,      /* tensors of a header or an index, however short their text */
    MR_TENSORS_FILES = 512,        /* files of one index, each kept open; the largest models of the hub have 200 */
};

typedef struct mr_tensor_item {
    mr_tensor tensor;
    size_t file;      /* which of an index's */
    uint64_t at, len; /* its bytes, from the end of the header; the reader makes that from the file */
} mr_tensor_item;

/* The JSON text of a header before `data` bytes.  *items: by name; caller frees. */
mr_status mr_tensors_header(const void *text, size_t len, uint64_t data, const char *name, mr_tensor_item **items,
                            size_t *count, mr_error *err);

/* The "weight_map" of an index, each of its values the plain name of a file.  Caller: json_decref(*map). */
mr_status mr_tensors_index(const void *text, size_t len, const char *name, json_t **map, mr_error *err);

/* Elements of a shape and their bytes at `size` each; false where they do not fit in 63 bits. */
bool mr_tensors_count(unsigned dims, const uint64_t *shape, unsigned size, uint64_t *count, uint64_t *bytes);

/* All elements of an F16 or BF16 tensor of this file, as float32. */
mr_status mr_tensors_widen(int fd, const char *name, const mr_tensor_item *item, float *to, mr_error *err);

#endif

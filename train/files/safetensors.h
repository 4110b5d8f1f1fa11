/* safetensors.h - weights in the hub's format, read as untrusted input and written for others.
 * Invariant: nothing is used before the whole header was checked against the size of the file; a tensor's bytes are
 * never read outside of its file.
 * Source: github huggingface/safetensors, README "Format" and src/tensor.rs (as of 0.5); of the index: github
 * huggingface/transformers, load_sharded_checkpoint().
 *
 *      | u64 length of the header | JSON: {"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}, ...} | bytes |
 *
 * A model in several files has an index, model.safetensors.index.json: {"weight_map":{"name":"file", ...}}.  What it
 * names must be in the file that it gives; unnamed tensors are ignored, as in the reference. */
#ifndef MR_SAFETENSORS_H
#define MR_SAFETENSORS_H

#include "base/hash.h"

enum { MR_TENSOR_DIMS = 8, MR_TENSOR_NAME = 256 };

typedef enum mr_tensor_type { MR_TENSOR_F32 = 0, MR_TENSOR_F16, MR_TENSOR_BF16, MR_TENSOR_OTHER } mr_tensor_type;

typedef struct mr_tensor {
    char name[MR_TENSOR_NAME];
    mr_tensor_type type;
    unsigned dims;
    uint64_t shape[MR_TENSOR_DIMS];
    uint64_t count; /* elements */
} mr_tensor;

typedef struct mr_safetensors mr_safetensors;

/* `path`: a .safetensors file, an index (*.index.json), or a directory with model.safetensors or its index.  The
 * files stay open until the reader is freed; if one is truncated meanwhile, taking its tensors fails.
 * MR_BAD_DATA: overlapping or missing bytes, a name twice, an unknown type's size, a shard's name with a slash ... */
mr_status mr_safetensors_open(const char *path, mr_safetensors **out, mr_error *err);
/* The same for one .safetensors file that is open already: `fd` remains the caller's and must outlive the reader;
 * `name`: in messages. */
mr_status mr_safetensors_open_fd(int fd, const char *name, mr_safetensors **out, mr_error *err);
void mr_safetensors_free(mr_safetensors *s); /* NULL is fine */
size_t mr_safetensors_count(const mr_safetensors *s);
const mr_tensor *mr_safetensors_at(const mr_safetensors *s, size_t i);           /* in the order of names */
const mr_tensor *mr_safetensors_find(const mr_safetensors *s, const char *name); /* NULL: none */
/* All elements as float32 to `to`, which has room for them.  MR_BAD_DATA: MR_TENSOR_OTHER, or a file that shrank. */
mr_status mr_safetensors_take(const mr_safetensors *s, const mr_tensor *t, float *to, mr_error *err);

/* Writing float32 tensors to an empty open file in the order given, the header as Python's safetensors lays it out
 * (padded with blanks to 8 bytes; "__metadata__":{"format":"pt"}).  The caller syncs and names the file.  *digest (XXH3
 * only; may be NULL): the digest of the whole file.  MR_MISUSE: a name twice or one that the reader rejects, a shape
 * that is too large. */
typedef struct mr_tensor_source {
    const char *name;
    unsigned dims;
    uint64_t shape[MR_TENSOR_DIMS];
    const float *values;
} mr_tensor_source;
mr_status mr_safetensors_write(int fd, const char *name, const mr_tensor_source *tensors, size_t count,
                               mr_digest *digest, mr_error *err);

#endif

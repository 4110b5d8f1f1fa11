/* tensors.h - what must hold of a tensor that a file or a header alone was found to have. */
#ifndef MR_FUZZ_TENSORS_H
#define MR_FUZZ_TENSORS_H

#include "train/files/safetensors_parts.h"
#include "tests/fuzz/fuzz.h"

/* `before`: the tensor before it in the order of names, NULL: it is the first. */
static inline void fuzz_tensor(const mr_tensor *t, const mr_tensor *before)
{
    uint64_t count = 1;
    FUZZ_MUST(memchr(t->name, '\0', sizeof t->name));
    FUZZ_MUST(!before || strcmp(before->name, t->name) < 0);
    FUZZ_MUST((unsigned)t->type <= MR_TENSOR_OTHER && t->dims <= MR_TENSOR_DIMS);
    for (unsigned i = 0; i < t->dims; i++)
        FUZZ_MUST(!__builtin_mul_overflow(count, t->shape[i], &count));
    FUZZ_MUST(count == t->count);
}

#endif

/* safetensors_widen.c - elements of two bytes, F16 and BF16, as float32.
 * Invariant: every value of a narrow type is one of float32, so nothing is rounded; the bits go through integers, and a
 * NaN keeps its bits. */
#include <stdlib.h>
#include <string.h>

#include "base/f16.h"
#include "base/files/file.h"
#include "train/files/safetensors_parts.h"

enum { SLICE = 128 * 1024 }; /* elements at a time */

static void widen(mr_tensor_type type, const uint16_t *from, size_t count, uint32_t *to)
{
    if (type == MR_TENSOR_F16)
        for (size_t i = 0; i < count; i++)
            to[i] = mr_f16_bits(from[i]);
    else
        for (size_t i = 0; i < count; i++)
            to[i] = (uint32_t)from[i] << 16;
}

mr_status mr_tensors_widen(int fd, const char *name, const mr_tensor_item *item, float *to, mr_error *err)
{
    uint64_t left = item->tensor.count, at = item->at;
    uint16_t *slice = mr_alloc(left < SLICE ? (size_t)left : SLICE, sizeof *slice);
    uint32_t *bits = (uint32_t *)(void *)to;
    mr_status status = slice ? MR_OK : mr_fail_memory(err, name);
    while (left && status == MR_OK) {
        size_t n = left < SLICE ? (size_t)left : SLICE;
        status = mr_file_pread(fd, slice, n * sizeof *slice, at, name, err);
        if (status == MR_OK)
            widen(item->tensor.type, slice, n, bits);
        bits += n;
        at += n * sizeof *slice;
        left -= n;
    }
    free(slice);
    return status;
}

/* safetensors_write.c - writing a .safetensors file.
 * Invariant: the whole header is known before the first byte is written; bytes pass once, a slice is hashed and written
 * while it is in the cache, and the same tensors give the same bytes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "base/text.h"
#include "train/files/safetensors_parts.h"

enum { SLICE = 256 * 1024, ALIGN = 8 };

static int by_name(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

static mr_status check_twice(const char *name, const mr_tensor_source *tensors, size_t count, mr_error *err)
{
    const char **names = mr_alloc(count, sizeof *names);
    mr_status status = names ? MR_OK : mr_fail_memory(err, name);
    for (size_t i = 0; i < count && names; i++)
        names[i] = tensors[i].name;
    if (names && count)
        qsort(names, count, sizeof *names, by_name);
    for (size_t i = 1; i < count && status == MR_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = mr_fail(err, MR_MISUSE, "%s: there are two tensors '%.255s'", name, names[i]);
    free(names);
    return status;
}

/* Appends `"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}`; *end moves past the tensor. */
static mr_status add_entry(mr_buf *out, const char *name, const mr_tensor_source *t, uint64_t *end, mr_error *err)
{
    uint64_t count, bytes, begin = *end;
    size_t len = strlen(t->name);
    if (len >= MR_TENSOR_NAME || !mr_utf8_valid(t->name, len) || strcmp(t->name, "__metadata__") == 0)
        return mr_fail(err, MR_MISUSE, "%s: '%.255s' cannot be a tensor's name", name, t->name);
    if (t->dims > MR_TENSOR_DIMS || !mr_tensors_count(t->dims, t->shape, sizeof *t->values, &count, &bytes) ||
        __builtin_add_overflow(begin, bytes, end) || *end > INT64_MAX)
        return mr_fail(err, MR_MISUSE, "%s: '%s' has a shape that no file could hold", name, t->name);
    mr_json_add_string(out, t->name, len);
    mr_buf_add_text(out, ":{\"dtype\":\"F32\",\"shape\":[");
    for (unsigned i = 0; i < t->dims; i++)
        mr_buf_printf(out, "%s%" PRIu64, i ? "," : "", t->shape[i]);
    mr_buf_printf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, *end);
    return MR_OK;
}

/* The length and the JSON text, padded so that the elements begin at a multiple of 8. */
static mr_status make_header(const char *name, const mr_tensor_source *tensors, size_t count, mr_buf *out,
                             mr_error *err)
{
    uint64_t end = 0;
    MR_TRY(check_twice(name, tensors, count, err));
    mr_buf_add(out, "\0\0\0\0\0\0\0\0", 8);
    mr_buf_add_text(out, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < count; i++) {
        mr_buf_add(out, ",", 1);
        MR_TRY(add_entry(out, name, &tensors[i], &end, err));
    }
    mr_buf_add(out, "}", 1);
    while (out->len % ALIGN && !out->failed)
        mr_buf_add(out, " ", 1);
    MR_TRY(mr_buf_status(out, err, name));
    uint64_t len = out->len - 8;
    if (len > MR_TENSORS_HEADER)
        return mr_fail(err, MR_MISUSE, "%s: has too many tensors for one file", name);
    for (int i = 0; i < 8; i++)
        out->data[i] = (uint8_t)(len >> (8 * i));
    return MR_OK;
}

static mr_status put(int fd, const char *name, const void *bytes, uint64_t len, mr_hasher *hasher, mr_error *err)
{
    const uint8_t *at = bytes;
    mr_status status = MR_OK;
    while (len && status == MR_OK) {
        size_t n = len < SLICE ? (size_t)len : SLICE;
        mr_hasher_add(hasher, at, n);
        status = mr_file_write(fd, at, n, name, err);
        at += n;
        len -= n;
    }
    return status;
}

mr_status mr_safetensors_write(int fd, const char *name, const mr_tensor_source *tensors, size_t count,
                               mr_digest *digest, mr_error *err)
{
    mr_buf header = {0};
    mr_hasher *hasher = NULL;
    mr_status status = make_header(name, tensors, count, &header, err);
    if (status == MR_OK)
        status = mr_hasher_begin(false, &hasher, err);
    if (status == MR_OK)
        status = put(fd, name, header.data, header.len, hasher, err);
    for (size_t i = 0; i < count && status == MR_OK; i++) {
        uint64_t elements, bytes;
        (void)mr_tensors_count(tensors[i].dims, tensors[i].shape, sizeof *tensors[i].values, &elements, &bytes);
        status = put(fd, name, tensors[i].values, bytes, hasher, err);
    }
    mr_buf_free(&header);
    if (status == MR_OK)
        return mr_hasher_end(hasher, digest, err);
    if (hasher)
        mr_hasher_end(hasher, NULL, NULL);
    return status;
}

/* fuzz_safetensors.c - a stranger's .safetensors file.
 * Promises: tensors come in the order of names, each once, with a count that is its shape's; what is taken is written
 * and read back the same. */
#include <stdio.h>
#include <unistd.h>

#include "tests/fuzz/tensors.h"

/* Writes what was taken, and reads it again. */
static void check_again(const mr_tensor *t, const float *values)
{
    mr_tensor_source source = {.name = t->name, .dims = t->dims, .values = values};
    mr_safetensors *s = NULL;
    mr_error err;
    int fd = fuzz_file("", 0);
    float *have = malloc(t->count * sizeof *have + 1);
    memcpy(source.shape, t->shape, sizeof source.shape);
    FUZZ_MUST(have && mr_safetensors_write(fd, "again", &source, 1, NULL, &err) == MR_OK);
    FUZZ_MUST(mr_safetensors_open_fd(fd, "again", &s, &err) == MR_OK && mr_safetensors_count(s) == 1);
    const mr_tensor *u = mr_safetensors_find(s, t->name);
    FUZZ_MUST(u && u->type == MR_TENSOR_F32 && u->dims == t->dims && u->count == t->count);
    FUZZ_MUST(memcmp(u->shape, t->shape, t->dims * sizeof *t->shape) == 0);
    FUZZ_MUST(mr_safetensors_take(s, u, have, &err) == MR_OK);
    FUZZ_MUST(memcmp(have, values, t->count * sizeof *have) == 0);
    mr_safetensors_free(s);
    free(have);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_safetensors *s = NULL;
    mr_error err;
    int fd = fuzz_file(data, size);
    mr_status status = mr_safetensors_open_fd(fd, "in.safetensors", &s, &err);
    if (status != MR_OK) {
        FUZZ_MUST(status == MR_BAD_DATA);
        fuzz_refused(status, &err);
    }
    for (size_t i = 0; status == MR_OK && i < mr_safetensors_count(s); i++) {
        const mr_tensor *t = mr_safetensors_at(s, i);
        fuzz_tensor(t, i ? mr_safetensors_at(s, i - 1) : NULL);
        FUZZ_MUST(mr_safetensors_find(s, t->name) == t && t->count <= size);
        float *values = malloc(t->count * sizeof *values + 1);
        FUZZ_MUST(values != NULL);
        mr_status taken = mr_safetensors_take(s, t, values, &err);
        FUZZ_MUST(taken == (t->type == MR_TENSOR_OTHER ? MR_BAD_DATA : MR_OK));
        if (taken == MR_OK && (i < 4 || t->count < 16))
            check_again(t, values);
        free(values);
    }
    mr_safetensors_free(s);
    close(fd);
    return 0;
}

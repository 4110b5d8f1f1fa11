/* fuzz_safetensors.c - a stranger's .safetensors file, a header alone, and the index of a model in several files.
 * Promises: tensors come in the order of names, each once, with a count that is its shape's and bytes inside of the
 * file that are nobody else's; what is taken is written and read back the same; an index names plain files only. */
#include <stdio.h>
#include <unistd.h>

#include "fuzz.h"
#include "safetensors_parts.h"

enum { AHEAD = 8 };

static void check_tensor(const mr_tensor *t, const mr_tensor *before)
{
    uint64_t count = 1;
    FUZZ_MUST(memchr(t->name, '\0', sizeof t->name));
    FUZZ_MUST(!before || strcmp(before->name, t->name) < 0);
    FUZZ_MUST((unsigned)t->type <= MR_TENSOR_OTHER && t->dims <= MR_TENSOR_DIMS);
    for (unsigned i = 0; i < t->dims; i++)
        FUZZ_MUST(!__builtin_mul_overflow(count, t->shape[i], &count));
    FUZZ_MUST(count == t->count);
}

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

static void check_file(const uint8_t *data, size_t size)
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
        check_tensor(t, i ? mr_safetensors_at(s, i - 1) : NULL);
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
}

/* The number behind the last comma: as many bytes as the last tensor's offsets ask for, in most inputs. */
static uint64_t last_number(const char *text, size_t size)
{
    uint64_t number = 0;
    size_t at = size;
    while (at > 0 && text[at - 1] != ',')
        at--;
    for (; at < size && text[at] >= '0' && text[at] <= '9'; at++)
        number = number * 10 + (uint64_t)(text[at] - '0');
    return number;
}

/* The text alone, so that a change of its length does no harm. */
static void check_header(const char *text, size_t size)
{
    mr_tensor_item *items = NULL;
    size_t count = 0;
    mr_error err;
    uint64_t data = last_number(text, size), end = 0, sum = 0;
    mr_status status = mr_tensors_header(text, size, data, "in", &items, &count, &err);
    if (status != MR_OK) {
        FUZZ_MUST(status == MR_BAD_DATA && !items);
        fuzz_refused(status, &err);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        check_tensor(&items[i].tensor, i ? &items[i - 1].tensor : NULL);
        FUZZ_MUST(!__builtin_add_overflow(items[i].at, items[i].len, &end) && end <= data);
        sum += items[i].len;
    }
    FUZZ_MUST(sum == data);
    free(items);
}

static void check_index(const uint8_t *data, size_t size)
{
    json_t *map = NULL, *value;
    const char *key;
    mr_error err;
    mr_status status = mr_tensors_index(data, size, "in.index.json", &map, &err);
    if (status != MR_OK) {
        FUZZ_MUST(status == MR_BAD_DATA && !map);
        fuzz_refused(status, &err);
        return;
    }
    json_object_foreach(map, key, value) {
        const char *file = json_string_value(value);
        FUZZ_MUST(file && *file && !strchr(file, '/') && strcmp(file, ".") != 0 && strcmp(file, "..") != 0);
    }
    json_decref(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_file(data, size);
    check_index(data, size);
    if (size > AHEAD)
        check_header((const char *)data + AHEAD, size - AHEAD);
    return 0;
}

/* fuzz_tensors_json.c - the JSON of .safetensors: a header alone, and the index of a model in several files.
 * Promises: tensors come in the order of names, each once, with bytes inside the file that no other has and
 * leave none over; an index names plain files only. */
#include "tests/fuzz/tensors.h"

/* The number after the last comma: as many bytes as the last tensor's offsets ask for, in most inputs. */
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
        fuzz_tensor(&items[i].tensor, i ? &items[i - 1].tensor : NULL);
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
    json_object_foreach(map, key, value)
    {
        const char *file = json_string_value(value);
        FUZZ_MUST(file && *file && !strchr(file, '/') && strcmp(file, ".") != 0 && strcmp(file, "..") != 0);
    }
    json_decref(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_index(data, size);
    check_header((const char *)data, size);
    return 0;
}

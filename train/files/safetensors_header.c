/* safetensors_header.c - the header of a .safetensors file and the index of a model in several.
 * Invariant: as in the reference, the tensors' bytes are side by side, from the end of the header to the end of the
 * file, without a hole or an overlap; other members of a header are ignored. */
#include "train/files/safetensors_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

static const struct {
    const char *word;
    mr_tensor_type type;
    unsigned size;
} types[] = {
    {"F32", MR_TENSOR_F32, 4},    {"F16", MR_TENSOR_F16, 2},       {"BF16", MR_TENSOR_BF16, 2},
    {"F64", MR_TENSOR_OTHER, 8},  {"I64", MR_TENSOR_OTHER, 8},     {"U64", MR_TENSOR_OTHER, 8},
    {"I32", MR_TENSOR_OTHER, 4},  {"U32", MR_TENSOR_OTHER, 4},     {"I16", MR_TENSOR_OTHER, 2},
    {"U16", MR_TENSOR_OTHER, 2},  {"I8", MR_TENSOR_OTHER, 1},      {"U8", MR_TENSOR_OTHER, 1},
    {"BOOL", MR_TENSOR_OTHER, 1}, {"F8_E4M3", MR_TENSOR_OTHER, 1}, {"F8_E5M2", MR_TENSOR_OTHER, 1},
};

bool mr_tensors_count(unsigned dims, const uint64_t *shape, unsigned size, uint64_t *count, uint64_t *bytes)
{
    uint64_t n = 1, all;
    for (unsigned i = 0; i < dims; i++)
        if (__builtin_mul_overflow(n, shape[i], &n))
            return false;
    if (__builtin_mul_overflow(n, size, &all) || all > INT64_MAX)
        return false;
    *count = n;
    *bytes = all;
    return true;
}

/* ---- one tensor -------------------------------------------------------------------------------------------------- */

static mr_status get_type(const json_t *doc, const char *name, const char *key, mr_tensor *t, unsigned *size,
                          mr_error *err)
{
    const char *word = json_string_value(json_object_get(doc, "dtype"));
    for (size_t i = 0; word && i < MR_COUNT(types); i++)
        if (strcmp(types[i].word, word) == 0) {
            t->type = types[i].type;
            *size = types[i].size;
            return MR_OK;
        }
    return mr_fail(err, MR_BAD_DATA, "%s: '%s' has the \"dtype\" %.40s%s", name, key, word ? word : "(none)",
                   word ? ", which is not known to this version of millrace" : "");
}

/* A list of numbers that are not negative; false: anything else, or too many of them. */
static bool get_numbers(const json_t *doc, const char *what, uint64_t *numbers, size_t capacity, size_t *count)
{
    const json_t *list = json_object_get(doc, what);
    *count = json_array_size(list);
    if (!json_is_array(list) || *count > capacity)
        return false;
    for (size_t i = 0; i < *count; i++) {
        const json_t *n = json_array_get(list, i);
        if (!json_is_integer(n) || json_integer_value(n) < 0)
            return false;
        numbers[i] = (uint64_t)json_integer_value(n);
    }
    return true;
}

static mr_status get_tensor(const char *key, const json_t *doc, const char *name, mr_tensor_item *item, mr_error *err)
{
    mr_tensor *t = &item->tensor;
    unsigned size = 0;
    size_t dims, ends;
    uint64_t offsets[2], bytes;
    if (strlen(key) >= sizeof t->name)
        return mr_fail(err, MR_BAD_DATA, "%s: a tensor's name is longer than %zu bytes: '%.60s...'", name,
                       sizeof t->name - 1, key);
    if (!json_is_object(doc))
        return mr_fail(err, MR_BAD_DATA, "%s: '%s' is not an object", name, key);
    MR_TRY(get_type(doc, name, key, t, &size, err));
    if (!get_numbers(doc, "shape", t->shape, MR_TENSOR_DIMS, &dims))
        return mr_fail(err, MR_BAD_DATA, "%s: '%s' has a \"shape\" that is not a list of at most %d sizes", name, key,
                       MR_TENSOR_DIMS);
    if (!get_numbers(doc, "data_offsets", offsets, 2, &ends) || ends != 2 || offsets[0] > offsets[1])
        return mr_fail(err, MR_BAD_DATA, "%s: '%s' has \"data_offsets\" that are not a start and an end", name, key);
    if (!mr_tensors_count((unsigned)dims, t->shape, size, &t->count, &bytes))
        return mr_fail(err, MR_BAD_DATA, "%s: '%s' has more elements than a file could hold", name, key);
    if (offsets[1] - offsets[0] != bytes)
        return mr_fail(err, MR_BAD_DATA, "%s: '%s' has %" PRIu64 " bytes where its shape asks for %" PRIu64, name, key,
                       offsets[1] - offsets[0], bytes);
    memcpy(t->name, key, strlen(key) + 1);
    t->dims = (unsigned)dims;
    item->at = offsets[0];
    item->len = bytes;
    return MR_OK;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static mr_status check_metadata(json_t *doc, const char *name, mr_error *err)
{
    const char *key;
    json_t *value;
    if (!json_is_object(doc))
        return mr_fail(err, MR_BAD_DATA, "%s: \"__metadata__\" is not an object", name);
    json_object_foreach(doc, key, value) if (!json_is_string(value)) return mr_fail(
        err, MR_BAD_DATA, "%s: '%.60s' of \"__metadata__\" is not a text", name, key);
    return MR_OK;
}

/* Where a tensor without bytes and one with some begin at the same place, the empty one comes first. */
static int by_place(const void *a, const void *b)
{
    const mr_tensor_item *x = a, *y = b;
    int order = (x->at > y->at) - (x->at < y->at);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

static int by_name(const void *a, const void *b)
{
    const mr_tensor_item *x = a, *y = b;
    return strcmp(x->tensor.name, y->tensor.name);
}

static mr_status check_places(mr_tensor_item *items, size_t count, uint64_t data, const char *name, mr_error *err)
{
    uint64_t end = 0;
    if (count)
        qsort(items, count, sizeof *items, by_place);
    for (size_t i = 0; i < count; i++) {
        const mr_tensor_item *t = &items[i];
        if (t->at != end)
            return mr_fail(err, MR_BAD_DATA,
                           "%s: '%s' starts at byte %" PRIu64 " where the one before it ends at %" PRIu64, name,
                           t->tensor.name, t->at, end);
        if (t->len > data - end)
            return mr_fail(err, MR_BAD_DATA,
                           "%s: '%s' ends past the end of the file, which is truncated; download it "
                           "again",
                           name, t->tensor.name);
        end += t->len;
    }
    if (end != data)
        return mr_fail(err, MR_BAD_DATA, "%s: %" PRIu64 " bytes at its end belong to no tensor", name, data - end);
    return MR_OK;
}

static mr_status take_items(json_t *doc, const char *name, mr_tensor_item *items, size_t *count, mr_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(doc, key, value)
    {
        if (strcmp(key, "__metadata__") == 0)
            MR_TRY(check_metadata(value, name, err));
        else
            MR_TRY(get_tensor(key, value, name, &items[(*count)++], err));
    }
    return MR_OK;
}

static mr_status parse_object(const void *text, size_t len, const char *name, json_t **doc, mr_error *err)
{
    if (len == 0 || *(const char *)text != '{')
        return mr_fail(err, MR_BAD_DATA, "%s: does not start with a JSON object", name);
    MR_TRY(mr_json_bounded(text, len, MR_TENSORS_MEMORY, name, err));
    return mr_json_parse(text, len, name, doc, err);
}

static mr_status check_most(const json_t *names, const char *name, mr_error *err)
{
    if (json_object_size(names) <= MR_TENSORS_MAX)
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA, "%s: names %zu tensors, the limit is %d", name, json_object_size(names),
                   MR_TENSORS_MAX);
}

mr_status mr_tensors_header(const void *text, size_t len, uint64_t data, const char *name, mr_tensor_item **items,
                            size_t *count, mr_error *err)
{
    MR_AUTO(json_decrefp) json_t *doc = NULL;
    MR_AUTO(mr_buf_free) mr_buf place = {0};
    MR_AUTO(mr_scope_free) mr_tensor_item *made = NULL;
    size_t n = 0;
    mr_buf_printf(&place, "%s: its header", name);
    mr_buf_text(&place);
    MR_TRY(mr_buf_status(&place, err, name));
    MR_TRY(parse_object(text, len, mr_buf_text(&place), &doc, err));
    MR_TRY(check_most(doc, name, err));
    made = mr_alloc(json_object_size(doc), sizeof *made);
    if (!made)
        return mr_fail_memory(err, name);
    MR_TRY(take_items(doc, name, made, &n, err));
    MR_TRY(check_places(made, n, data, name, err));
    if (n)
        qsort(made, n, sizeof *made, by_name);
    *items = made;
    *count = n;
    made = NULL;
    return MR_OK;
}

/* ---- the index --------------------------------------------------------------------------------------------------- */

/* Only a file of the same directory: the index is not trusted. */
static bool plain_name(const char *file)
{
    return file && *file && !strchr(file, '/') && strcmp(file, ".") != 0 && strcmp(file, "..") != 0;
}

mr_status mr_tensors_index(const void *text, size_t len, const char *name, json_t **map, mr_error *err)
{
    MR_AUTO(json_decrefp) json_t *doc = NULL;
    json_t *weights = NULL, *value;
    const char *key;
    MR_TRY(parse_object(text, len, name, &doc, err));
    MR_TRY(mr_json_get(doc, "weight_map", JSON_OBJECT, name, &weights, err));
    MR_TRY(check_most(weights, name, err));
    json_object_foreach(weights, key, value)
    {
        if (!plain_name(json_string_value(value)))
            return mr_fail(err, MR_BAD_DATA, "%s: the file of '%.255s' is not a plain file name", name, key);
    }
    *map = json_incref(weights);
    return MR_OK;
}

/* head_file.c - names from lines, columns from an .npz.
 * Invariant: no more than NAMES_MAX bytes of names are read, and only the head of the .npz. */
#include "train/setup/head_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "base/string_map.h"
#include "train/files/npz.h"
#include "base/json/json.h"

enum { NAMES_MAX = 64 << 20 };

static const char *const parts[] = {"head/kernel", "head/bias"};

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* One line without its end; an object's keys tell whether a name was seen before. */
static mr_status add_name(const char *path, size_t number, const char *name, size_t len, json_t *seen, json_t *list,
                          mr_error *err)
{
    if (len && name[len - 1] == '\r')
        len--;
    if (!len)
        return mr_fail(err, MR_BAD_DATA, "%s: line %zu is empty; each line names one class of the head", path, number);
    MR_AUTO(json_decrefp) json_t *text = mr_json_path(name, len);
    if (!text)
        return mr_fail_memory(err, path);
    const char *key = json_string_value(text);
    const json_t *before = json_object_get(seen, key);
    if (before)
        return mr_fail(err, MR_BAD_DATA, "%s: line %zu names the class of line %" JSON_INTEGER_FORMAT " again, \"%s\"",
                       path, number, json_integer_value(before), key);
    bool added =
        json_object_set_new(seen, key, json_integer((json_int_t)number)) == 0 && json_array_append(list, text) == 0;
    return added ? MR_OK : mr_fail_memory(err, path);
}

static mr_status read_names(const char *path, json_t *list, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_AUTO(json_decrefp) json_t *seen = json_object();
    size_t number = 0;
    MR_TRY(mr_file_read_all(AT_FDCWD, path, NAMES_MAX, &text, err));
    if (!seen)
        return mr_fail_memory(err, path);
    const char *at = (const char *)text.data, *end = at + text.len;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        MR_TRY(add_name(path, ++number, at, (size_t)(stop - at), seen, list, err));
        at = newline ? newline + 1 : end;
    }
    return MR_OK;
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

static void close_reader(mr_npz_reader **r)
{
    mr_npz_reader_free(*r);
}

/* The shapes first, as all values are one block. */
static mr_status list_parts(const char *path, mr_params *params, mr_error *err)
{
    MR_AUTO(close_reader) mr_npz_reader *reader = NULL;
    const mr_npz_array *a;
    mr_status status;
    MR_TRY(mr_npz_open(path, &reader, err));
    while ((status = mr_npz_next(reader, &a, err)) == MR_OK)
        for (size_t i = 0; i < MR_COUNT(parts); i++)
            if (strcmp(a->name, parts[i]) == 0 && a->type == MR_NPZ_F32 && a->dims == 2 - i)
                MR_TRY(mr_params_add(params, a->name, a->dims, a->shape, false, NULL, err));
    if (status != MR_END)
        return status;
    const mr_param *kernel = mr_params_find(params, parts[0]), *bias = mr_params_find(params, parts[1]);
    if (!kernel || !bias || kernel->shape[1] != bias->shape[0])
        return mr_fail(
            err, MR_BAD_DATA,
            "%s: has no head, head/kernel and head/bias, whose classes --pretrained-classes could name; leave "
            "that option out",
            path);
    return MR_OK;
}

static mr_status read_parts(const char *path, const mr_params *params, float *values, mr_error *err)
{
    MR_AUTO(close_reader) mr_npz_reader *reader = NULL;
    const mr_npz_array *a;
    mr_status status;
    MR_TRY(mr_npz_open(path, &reader, err));
    while ((status = mr_npz_next(reader, &a, err)) == MR_OK) {
        const mr_param *p = mr_params_find(params, a->name);
        if (!p)
            continue;
        MR_TRY(mr_npz_take(reader, values + p->offset, p->count * sizeof *values, err));
        MR_TRY(mr_param_check_finite(p, path, values + p->offset, err));
    }
    return status == MR_END ? MR_OK : status;
}

mr_status mr_head_file_read(const char *weights, const char *names, mr_checkpoint *out, mr_error *err)
{
    json_t *list = json_array();
    out->facts = list ? json_pack("{s:o}", "classes", list) : NULL;
    if (!out->facts)
        return mr_fail_memory(err, names);
    MR_TRY(read_names(names, list, err));
    MR_TRY(list_parts(weights, &out->params, err));
    uint64_t classes = mr_params_find(&out->params, parts[1])->count;
    if (json_array_size(list) != classes)
        return mr_fail(err, MR_BAD_DATA, "%s: names %zu classes, and the head of %s has %" PRIu64, names,
                       json_array_size(list), weights, classes);
    out->model.classes = (uint32_t)classes;
    out->values = mr_alloc(out->params.total, sizeof *out->values);
    if (!out->values)
        return mr_fail_memory(err, weights);
    return read_parts(weights, &out->params, out->values, err);
}

/* arrays.c - the parameters' values and the optimizer's buffers, each a named array of a file.
 * Invariant: a file that is accepted has every parameter once, as float32 of the model's shape, and nothing else; no
 * more memory is allocated than the file holds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "train/checkpoint/parts.h"
#include "train/files/safetensors.h"

/* The hub's format, or numpy's? */
static bool is_tensors(const mr_checkpoint *c, size_t file)
{
    return file == MR_FILE_WEIGHTS && c->model.iface->describe;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Each parameter of one flat buffer as an array "PREFIXname". */
static mr_status add_arrays(mr_npz_writer *npz, const mr_params *params, const char *prefix, const float *values,
                            mr_error *err)
{
    for (size_t i = 0; i < params->count; i++) {
        const mr_param *p = &params->items[i];
        mr_npz_array array = {.type = MR_NPZ_F32, .dims = p->dims, .count = p->count};
        snprintf(array.name, sizeof array.name, "%s%s", prefix, p->name);
        memcpy(array.shape, p->shape, p->dims * sizeof *p->shape);
        MR_TRY(mr_npz_add(npz, &array, values + p->offset, err));
    }
    return MR_OK;
}

static mr_status write_npz(const mr_checkpoint *c, size_t file, int fd, const char *name, mr_digest *digest,
                           mr_error *err)
{
    mr_npz_writer *npz = NULL;
    mr_error why;
    mr_status status = mr_npz_create(fd, name, &npz, err);
    if (status == MR_OK && file == MR_FILE_WEIGHTS)
        status = add_arrays(npz, &c->params, "", c->values, err);
    for (unsigned slot = 0; slot < c->slots && file == MR_FILE_OPTIMIZER && status == MR_OK; slot++)
        status = add_arrays(npz, &c->params, mr_checkpoint_prefix(c->optimizer, slot), c->state[slot], err);
    mr_status finished = mr_npz_finish(npz, digest, &why);
    if (status == MR_OK && finished != MR_OK) {
        status = finished;
        if (err)
            *err = why;
    }
    return status;
}

static mr_status write_tensors(const mr_checkpoint *c, int fd, const char *name, mr_digest *digest, mr_error *err)
{
    const mr_params *params = &c->params;
    MR_AUTO(mr_scope_free) mr_tensor_source *tensors = mr_alloc(params->count, sizeof *tensors);
    if (!tensors)
        return mr_fail_memory(err, name);
    for (size_t i = 0; i < params->count; i++) {
        const mr_param *p = &params->items[i];
        tensors[i] = (mr_tensor_source){.name = p->name, .dims = p->dims, .values = c->values + p->offset};
        memcpy(tensors[i].shape, p->shape, p->dims * sizeof *p->shape);
    }
    return mr_safetensors_write(fd, name, tensors, params->count, digest, err);
}

mr_status mr_arrays_write(const mr_checkpoint *c, size_t file, int fd, const char *name, mr_digest *digest,
                          mr_error *err)
{
    return is_tensors(c, file) ? write_tensors(c, fd, name, digest, err) : write_npz(c, file, fd, name, digest, err);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct arrays { /* arrays of one file: `slots` buffers, each of all parameters */
    const char *name;
    mr_npz_reader *npz;
    const mr_params *params;
    const char *prefixes[MR_CHECKPOINT_STATES];
    unsigned slots;
    float *buffers[MR_CHECKPOINT_STATES];
    bool *seen; /* [slots * params->count] */
    size_t taken;
} arrays;

static mr_status check_shape(const char *file, const char *key, bool is_float, unsigned dims, const uint64_t *shape,
                             const mr_param *p, mr_error *err)
{
    char have[256], want[256];
    if (!is_float)
        return mr_fail(err, MR_BAD_DATA, "%s: '%s' is not float32", file, key);
    if (dims == p->dims && memcmp(shape, p->shape, dims * sizeof *shape) == 0)
        return MR_OK;
    mr_shape_text(dims, shape, have, sizeof have);
    mr_shape_text(p->dims, p->shape, want, sizeof want);
    return mr_fail(err, MR_BAD_DATA, "%s: '%s' has the shape %s, the model needs %s", file, key, have, want);
}

static mr_status unknown(const char *file, const char *key, mr_error *err)
{
    return mr_fail(err, MR_BAD_DATA, "%s: '%s' is not a parameter of this model", file, key);
}

/* The parameter that an array holds; files are written in order, so the next one is tried first. */
static const mr_param *find_param(const arrays *a, const char *name, unsigned *slot)
{
    const mr_params *p = a->params;
    for (*slot = 0; *slot < a->slots; ++*slot) {
        size_t len = strlen(a->prefixes[*slot]);
        if (strncmp(name, a->prefixes[*slot], len) != 0)
            continue;
        const mr_param *next = &p->items[a->taken % p->count], *found;
        if ((found = strcmp(next->name, name + len) == 0 ? next : mr_params_find(p, name + len)))
            return found;
    }
    return NULL;
}

static mr_status take_array(arrays *a, const mr_npz_array *array, mr_error *err)
{
    unsigned slot;
    const mr_param *p = find_param(a, array->name, &slot);
    if (!p)
        return unknown(a->name, array->name, err);
    MR_TRY(check_shape(a->name, array->name, array->type == MR_NPZ_F32, array->dims, array->shape, p, err));
    a->seen[slot * a->params->count + (size_t)(p - a->params->items)] = true;
    a->taken++;
    return mr_npz_take(a->npz, a->buffers[slot] + p->offset, p->count * sizeof(float), err);
}

static mr_status take_all(arrays *a, mr_error *err)
{
    const mr_npz_array *array;
    mr_status status;
    while ((status = mr_npz_next(a->npz, &array, err)) == MR_OK)
        MR_TRY(take_array(a, array, err));
    if (status != MR_END)
        return status;
    for (size_t i = 0; i < a->slots * a->params->count; i++)
        if (!a->seen[i])
            return mr_fail(err, MR_BAD_DATA, "%s: '%s%s' is missing", a->name, a->prefixes[i / a->params->count],
                           a->params->items[i % a->params->count].name);
    return MR_OK;
}

static mr_status read_npz(arrays *a, int fd, mr_error *err)
{
    a->seen = mr_alloc(a->slots * a->params->count, sizeof *a->seen);
    mr_status status = a->seen ? mr_npz_open_fd(fd, a->name, &a->npz, err) : mr_fail_memory(err, a->name);
    if (status == MR_OK)
        status = take_all(a, err);
    mr_npz_reader_free(a->npz);
    free(a->seen);
    return status;
}

static mr_status take_tensors(const arrays *a, const mr_safetensors *s, mr_error *err)
{
    const mr_params *params = a->params;
    for (size_t i = 0; i < mr_safetensors_count(s) && mr_safetensors_count(s) > params->count; i++)
        if (!mr_params_find(params, mr_safetensors_at(s, i)->name))
            return unknown(a->name, mr_safetensors_at(s, i)->name, err);
    for (size_t i = 0; i < params->count; i++) {
        const mr_param *p = &params->items[i];
        const mr_tensor *t = mr_safetensors_find(s, p->name);
        if (!t)
            return mr_fail(err, MR_BAD_DATA, "%s: '%s' is missing", a->name, p->name);
        MR_TRY(check_shape(a->name, p->name, t->type == MR_TENSOR_F32, t->dims, t->shape, p, err));
        MR_TRY(mr_safetensors_take(s, t, a->buffers[0] + p->offset, err));
    }
    return MR_OK; /* no more tensors than parameters, and each parameter was found: there are no others */
}

static mr_status read_tensors(const arrays *a, int fd, mr_error *err)
{
    mr_safetensors *s = NULL;
    mr_status status = mr_safetensors_open_fd(fd, a->name, &s, err);
    if (status == MR_OK)
        status = take_tensors(a, s, err);
    mr_safetensors_free(s);
    return status;
}

mr_status mr_arrays_read(mr_checkpoint *c, size_t file, int fd, uint64_t bytes, const char *name, mr_error *err)
{
    arrays a = {.name = name, .params = &c->params, .slots = file == MR_FILE_WEIGHTS ? 1 : c->slots, .prefixes = {""}};
    if (c->params.elements > bytes / sizeof(float) / a.slots)
        return mr_fail(err, MR_BAD_DATA, "%s: is too small for the model's %" PRIu64 " parameters", name,
                       c->params.elements);
    for (unsigned i = 0; i < a.slots; i++) {
        float **buffer = file == MR_FILE_WEIGHTS ? &c->values : &c->state[i];
        a.buffers[i] = *buffer = mr_alloc(c->params.total, sizeof(float));
        if (file == MR_FILE_OPTIMIZER)
            a.prefixes[i] = mr_checkpoint_prefix(c->optimizer, i);
        if (!a.buffers[i])
            return mr_fail_memory(err, name);
    }
    return is_tensors(c, file) ? read_tensors(&a, fd, err) : read_npz(&a, fd, err);
}

/* params.c - the parameters of a model by name.
 * Invariant: offsets only grow, and each is a multiple of ALIGN elements: 64 bytes, which suits vector loads. */
#include "train/model/params.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 16 };

static const void *name_of(const void *params, size_t number, size_t *len)
{
    const mr_params *p = params;
    *len = strlen(p->items[number].name);
    return p->items[number].name;
}

const mr_param *mr_params_find(const mr_params *p, const char *name)
{
    size_t n = mr_string_map_find(&p->by_name, name_of, p, name, strlen(name));
    return n == SIZE_MAX ? NULL : &p->items[n];
}

/* Elements of the shape; 0: a side is 0, or more bytes than an address can name. */
static uint64_t count_elements(unsigned dims, const uint64_t *shape)
{
    uint64_t count = 1;
    for (unsigned i = 0; i < dims; i++)
        if (__builtin_mul_overflow(count, shape[i], &count))
            return 0;
    return count > SIZE_MAX / (4 * sizeof(float)) ? 0 : count;
}

mr_status mr_params_add(mr_params *p, const char *name, unsigned dims, const uint64_t *shape, bool decays,
                        uint64_t *offset, mr_error *err)
{
    char text[128];
    if (strlen(name) >= MR_PARAM_NAME || dims > MR_PARAM_DIMS)
        return mr_fail(err, MR_MISUSE, "parameter '%s': its name or its shape is too long", name);
    uint64_t count = count_elements(dims, shape), total;
    mr_shape_text(dims, shape, text, sizeof text);
    if (!count || __builtin_add_overflow(p->total, (count + ALIGN - 1) / ALIGN * ALIGN, &total) ||
        total > SIZE_MAX / sizeof(float))
        return mr_fail(err, MR_MISUSE, "parameter '%s': the shape %s cannot fit in memory", name, text);
    if (mr_params_find(p, name))
        return mr_fail(err, MR_MISUSE, "parameter '%s' was already added", name);
    if (!MR_GROW(p->items, p->count, p->capacity) || !mr_string_map_add(&p->by_name, name_of, p, name, strlen(name)))
        return mr_fail_memory(err, "listing a model's parameters");
    mr_param *item = &p->items[p->count++];
    *item = (mr_param){.dims = dims, .offset = p->total, .count = count, .decays = decays};
    snprintf(item->name, sizeof item->name, "%s", name);
    for (unsigned i = 0; i < dims; i++)
        item->shape[i] = shape[i];
    if (offset)
        *offset = item->offset;
    p->total = total;
    p->elements += count;
    return MR_OK;
}

void mr_params_release(mr_params *p)
{
    free(p->items);
    mr_string_map_release(&p->by_name);
    *p = (mr_params){0};
}

void mr_shape_text(unsigned dims, const uint64_t *shape, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "[");
    for (unsigned i = 0; i < dims && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%" PRIu64, i ? ", " : "", shape[i]);
    if (at < size)
        snprintf(text + at, size - at, "]");
}

bool mr_param_fits(const mr_param *p, unsigned dims, const uint64_t *shape)
{
    return dims == p->dims && memcmp(shape, p->shape, dims * sizeof *shape) == 0;
}

mr_status mr_param_misfit(const mr_param *p, const char *path, unsigned dims, const uint64_t *have, const char *advice,
                          mr_error *err)
{
    char got[256], want[256];
    mr_shape_text(dims, have, got, sizeof got);
    mr_shape_text(p->dims, p->shape, want, sizeof want);
    return mr_fail(err, MR_BAD_DATA, "%s: '%s' has the shape %s, this model needs %s; %s", path, p->name, got, want,
                   advice);
}

mr_status mr_param_check_finite(const mr_param *p, const char *path, const float *values, mr_error *err)
{
    for (uint64_t i = 0; i < p->count; i++)
        if (!isfinite(values[i]))
            return mr_fail(err, MR_BAD_DATA, "%s: '%s' holds %g at element %" PRIu64, path, p->name, (double)values[i],
                           i);
    return MR_OK;
}

mr_status mr_param_missing(const mr_param *first, size_t count, const char *path, const char *advice, mr_error *err)
{
    char shape[256], more[64] = "";
    if (!count)
        return MR_OK;
    mr_shape_text(first->dims, first->shape, shape, sizeof shape);
    if (count > 1)
        snprintf(more, sizeof more, " and %zu more", count - 1);
    return mr_fail(err, MR_BAD_DATA, "%s: has no '%s' %s%s%s", path, first->name, shape, more, advice);
}

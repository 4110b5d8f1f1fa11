/* hub.c - weights of transformers and timm into the flat buffer, and out of it.
 * Invariant: each tensor of the file is used, or belongs to the head or the pooler; any other is an error, as the model
 * that it belongs to computes something else. */
#include "train/model/vit/hub.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "train/files/safetensors.h"
#include "train/model/vit/hub_names.h"
#include "train/model/vit/vit.h"

enum { POSITIONS_MAX = 256 };

/* Read and not used: heads are taken apart (mr_vit_hub_head), and the pooler is not part of a classifier. */
static const char *const aside[] = {"classifier.", "head.", "pooler.", "vit.pooler."};
static const char POSITION[] = "Transformer/posembed_input/pos_embedding";
static const char OTHER_MODEL[] = "use the --model, or the sizes, that the file was made for";

/* ---- loading ----------------------------------------------------------------------------------------------------- */

typedef struct loading {
    const mr_params *params;
    const char *path;
    mr_safetensors *file;
    mr_vit_dialect dialect;
    float *values, *scratch; /* room for the largest tensor that fits */
    mr_buf *said;
    mr_error *err;
} loading;

static void close_file(mr_safetensors **file)
{
    mr_safetensors_free(*file);
}

static mr_status find_dialect(const mr_safetensors *file, const char *path, mr_vit_dialect *out, mr_error *err)
{
    static const char *const signs[MR_VIT_DIALECTS] = {"vit.embeddings.cls_token", "embeddings.cls_token", "cls_token"};
    for (unsigned d = 0; d < MR_VIT_DIALECTS; d++)
        if (mr_safetensors_find(file, signs[d])) {
            *out = (mr_vit_dialect)d;
            return MR_OK;
        }
    return mr_fail(err, MR_BAD_DATA,
                   "%s: not a Vision Transformer of transformers or timm: it has no tensor named %s, %s or %s", path,
                   signs[0], signs[1], signs[2]);
}

/* The parameter as it should be in the file, for messages. */
static mr_param as_theirs(const mr_param *p, const mr_vit_tensor *n)
{
    mr_param t = {.count = n->parts * p->count};
    uint64_t shape[4];
    t.dims = mr_vit_tensor_shape(p, n->parts, shape);
    memcpy(t.shape, shape, t.dims * sizeof *shape);
    snprintf(t.name, sizeof t.name, "%.*s", (int)sizeof t.name - 1, n->name);
    return t;
}

static mr_status misfit(const loading *l, const mr_tensor *t, const mr_param *p, const mr_vit_tensor *n)
{
    const mr_param wanted = as_theirs(p, n);
    return mr_param_misfit(&wanted, l->path, t->dims, t->shape, OTHER_MODEL, l->err);
}

/* A grid that differs from ours: theirs are [1, 1 + from * from, width]. */
static mr_status take_positions(const loading *l, const mr_tensor *t, const mr_param *p, const mr_vit_tensor *n)
{
    uint64_t from = t->dims == 3 && t->shape[1] > 1 ? (uint64_t)lround(sqrt((double)(t->shape[1] - 1))) : 0;
    uint32_t to = (uint32_t)lround(sqrt((double)(p->shape[1] - 1)));
    if (!from || from > POSITIONS_MAX || t->shape[0] != 1 || 1 + from * from != t->shape[1] ||
        t->shape[2] != p->shape[2])
        return misfit(l, t, p, n);
    MR_AUTO(mr_scope_free) float *old = mr_alloc(t->count, sizeof *old);
    if (!old)
        return mr_fail_memory(l->err, "resizing the position embedding");
    MR_TRY(mr_safetensors_take(l->file, t, old, l->err));
    mr_vit_resize_positions(old, (uint32_t)from, l->values + p->offset, to, p->shape[2]);
    mr_buf_printf(l->said, "position embedding resized from %u x %u to %u x %u patches\n", (unsigned)from,
                  (unsigned)from, to, to);
    return mr_param_check_finite(p, l->path, l->values + p->offset, l->err);
}

static mr_status take(const loading *l, const mr_tensor *t, const mr_param *p, const mr_vit_tensor *n)
{
    uint64_t shape[4];
    unsigned dims = mr_vit_tensor_shape(p, n->parts, shape);
    if (t->dims != dims || memcmp(t->shape, shape, dims * sizeof *shape) != 0)
        return strcmp(p->name, POSITION) == 0 ? take_positions(l, t, p, n) : misfit(l, t, p, n);
    MR_TRY(mr_safetensors_take(l->file, t, l->scratch, l->err));
    mr_vit_convert(p, l->scratch + n->part * p->count, l->values + p->offset, true);
    return mr_param_check_finite(p, l->path, l->values + p->offset, l->err);
}

static bool is_known(const loading *l, const char *name)
{
    mr_vit_tensor n;
    for (size_t i = 0; i < MR_COUNT(aside); i++)
        if (strncmp(name, aside[i], strlen(aside[i])) == 0)
            return true;
    for (size_t i = 0; i < l->params->count; i++) {
        mr_vit_theirs(l->dialect, &l->params->items[i], &n);
        if (strcmp(n.name, name) == 0)
            return true;
    }
    return false;
}

/* Layer scales, registers, a distillation token ... */
static mr_status check_known(const loading *l)
{
    for (size_t i = 0; i < mr_safetensors_count(l->file); i++) {
        const mr_tensor *t = mr_safetensors_at(l->file, i);
        char shape[256];
        if (is_known(l, t->name))
            continue;
        mr_shape_text(t->dims, t->shape, shape, sizeof shape);
        return mr_fail(l->err, MR_BAD_DATA, "%s: '%s' %s is not a parameter of this model; %s", l->path, t->name, shape,
                       OTHER_MODEL);
    }
    return MR_OK;
}

static mr_status take_all(const loading *l)
{
    mr_param first = {0};
    size_t missing = 0;
    mr_vit_tensor n;
    for (size_t i = 0; i < l->params->count; i++) {
        const mr_param *p = &l->params->items[i];
        if (strncmp(p->name, "head/", 5) == 0)
            continue;
        mr_vit_theirs(l->dialect, p, &n);
        const mr_tensor *t = mr_safetensors_find(l->file, n.name);
        if (t)
            MR_TRY(take(l, t, p, &n));
        if (!t && !missing++)
            first = as_theirs(p, &n);
    }
    MR_TRY(mr_param_missing(&first, missing, l->path, "; use the --model, or the sizes, that the file was made for",
                            l->err));
    return check_known(l);
}

mr_status mr_vit_hub_load(const mr_params *p, const char *path, float *values, mr_buf *said, mr_error *err)
{
    MR_AUTO(close_file) mr_safetensors *file = NULL;
    uint64_t most = 0;
    for (size_t i = 0; i < p->count; i++)
        most = p->items[i].count > most ? p->items[i].count : most;
    MR_AUTO(mr_scope_free) float *scratch = mr_alloc(3 * most, sizeof *scratch);
    if (!scratch)
        return mr_fail_memory(err, "loading weights");
    MR_TRY(mr_safetensors_open(path, &file, err));
    loading l = {
        .params = p, .path = path, .file = file, .values = values, .scratch = scratch, .said = said, .err = err};
    MR_TRY(find_dialect(file, path, &l.dialect, err));
    memset(values, 0, p->total * sizeof *values);
    MR_TRY(take_all(&l));
    return mr_buf_status(said, err, "loading weights");
}

static mr_status read_head(const char *path, uint32_t hidden, uint32_t *classes, float **kernel, float **bias,
                           mr_error *err)
{
    MR_AUTO(close_file) mr_safetensors *file = NULL;
    mr_vit_dialect d;
    MR_TRY(mr_safetensors_open(path, &file, err));
    MR_TRY(find_dialect(file, path, &d, err));
    const mr_tensor *w = mr_safetensors_find(file, d == MR_VIT_TIMM ? "head.weight" : "classifier.weight");
    const mr_tensor *b = mr_safetensors_find(file, d == MR_VIT_TIMM ? "head.bias" : "classifier.bias");
    if (!w || !b || w->dims != 2 || b->dims != 1 || w->shape[0] != b->shape[0] || w->shape[1] != hidden ||
        w->shape[0] > UINT32_MAX)
        return MR_END;
    MR_AUTO(mr_scope_free) float *stored = mr_alloc(w->count, sizeof *stored);
    MR_AUTO(mr_scope_free) float *turned = mr_alloc(w->count, sizeof *turned);
    MR_AUTO(mr_scope_free) float *offsets = mr_alloc(b->count, sizeof *offsets);
    if (!stored || !turned || !offsets)
        return mr_fail_memory(err, "loading a head");
    MR_TRY(mr_safetensors_take(file, w, stored, err));
    MR_TRY(mr_safetensors_take(file, b, offsets, err));
    mr_vit_transpose(stored, turned, w->shape[1], w->shape[0]);
    *classes = (uint32_t)w->shape[0];
    *kernel = turned;
    *bias = offsets;
    turned = offsets = NULL;
    return MR_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static mr_status write_tensors(const mr_params *p, const float *values, int fd, const char *name, mr_error *err)
{
    MR_AUTO(mr_scope_free) float *turned = mr_alloc(p->total, sizeof *turned);
    MR_AUTO(mr_scope_free) mr_vit_tensor *names = mr_alloc(p->count, sizeof *names);
    MR_AUTO(mr_scope_free) mr_tensor_source *tensors = mr_alloc(p->count, sizeof *tensors);
    if (!turned || !names || !tensors)
        return mr_fail_memory(err, name);
    for (size_t i = 0; i < p->count; i++) {
        const mr_param *item = &p->items[i];
        mr_vit_theirs(MR_VIT_TRANSFORMERS, item, &names[i]);
        mr_vit_convert(item, values + item->offset, turned + item->offset, false);
        tensors[i] = (mr_tensor_source){.name = names[i].name, .values = turned + item->offset};
        tensors[i].dims = mr_vit_tensor_shape(item, 1, tensors[i].shape);
    }
    return mr_safetensors_write(fd, name, tensors, p->count, NULL, err);
}

/* ---- which files ------------------------------------------------------------------------------------------------- */

static bool is_hub(const char *path)
{
    static const char *const files[] = {"model.safetensors", "model.safetensors.index.json"};
    static const char *const ends[] = {".safetensors", ".safetensors.index.json"};
    char found[4096];
    size_t len = strlen(path);
    for (size_t i = 0; i < MR_COUNT(ends); i++)
        if (len > strlen(ends[i]) && strcmp(path + len - strlen(ends[i]), ends[i]) == 0)
            return true;
    for (size_t i = 0; i < MR_COUNT(files); i++)
        if (snprintf(found, sizeof found, "%s/%s", path, files[i]) < (int)sizeof found && access(found, F_OK) == 0)
            return true;
    return false;
}

const mr_model_hub mr_vit_hub = {
    .is = is_hub,
    .configure = mr_vit_hub_configure,
    .head = read_head,
    .write = write_tensors,
    .describe = mr_vit_hub_describe,
};

/* load.c - weights of the hub's BridgeTower (.safetensors) into the flat buffer.
 * Invariant: when it returns MR_OK every parameter was written once, from the file, with finite numbers.
 * Source: names as transformers 4.55.4 saves BridgeTowerForContrastiveLearning. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "bridgetower/parts.h"
#include "files/safetensors.h"
#include "model/model_shape.h"

enum { NAMED = 3 }; /* of the tensors left out */

static const char PLACES[] = "bridgetower.vision_model.visual.embeddings.position_embedding.weight";
static const char TEXT_POOLER[] = "bridgetower.text_model.pooler.";

typedef struct loading {
    const mr_model_config *config;
    const mr_params *params;
    const char *path;
    float *values;
    mr_safetensors *file;
    mr_error *err;
} loading;

/* ---- what is taken ---------------------------------------------------------------------------------------------- */

/* The side of the pictures that the file's table of places is for; 0: it is something else that does not fit. */
static uint64_t image_of(const loading *l, const mr_tensor *t, const mr_param *p)
{
    if (strcmp(p->name, PLACES) != 0 || t->dims != 2 || t->shape[1] != p->shape[1] || t->shape[0] < 2)
        return 0;
    uint64_t grid = (uint64_t)llround(sqrt((double)(t->shape[0] - 1)));
    return 1 + grid * grid == t->shape[0] && grid <= UINT32_MAX ? grid * l->config->patch : 0;
}

static mr_status misshapen(const loading *l, const mr_tensor *t, const mr_param *p)
{
    char have[256], want[256];
    uint64_t image = image_of(l, t, p);
    mr_shape_text(t->dims, t->shape, have, sizeof have);
    mr_shape_text(p->dims, p->shape, want, sizeof want);
    if (image)
        return mr_fail(l->err, MR_BAD_DATA,
                       "%s: '%s' has the shape %s, this model needs %s; the file is for pictures "
                       "of --image-size %" PRIu64,
                       l->path, t->name, have, want, image);
    return mr_fail(l->err, MR_BAD_DATA,
                   "%s: '%s' has the shape %s, this model needs %s; take the config.json that "
                   "belongs to the file",
                   l->path, t->name, have, want);
}

static bool same_shape(const mr_tensor *t, const mr_param *p)
{
    bool same = t->dims == p->dims;
    for (unsigned i = 0; same && i < p->dims; i++)
        same = t->shape[i] == p->shape[i];
    return same;
}

static mr_status take(const loading *l, const mr_tensor *t, const mr_param *p)
{
    float *values = l->values + p->offset;
    if (!same_shape(t, p))
        return misshapen(l, t, p);
    mr_status status = mr_safetensors_take(l->file, t, values, l->err);
    for (uint64_t i = 0; i < p->count && !status; i++)
        if (!isfinite(values[i]))
            status = mr_fail(l->err, MR_BAD_DATA, "%s: '%s' holds %g at element %" PRIu64, l->path, p->name,
                             (double)values[i], i);
    return status;
}

/* Files of other tasks have all but these. */
static bool of_this_task(const char *name)
{
    return strncmp(name, "itc_", 4) == 0 || strcmp(name, "logit_scale") == 0;
}

static mr_status check_complete(const loading *l)
{
    const mr_param *first = NULL;
    size_t missing = 0, heads = 0;
    char shape[256], more[64] = "";
    for (size_t i = 0; i < l->params->count; i++) {
        const mr_param *p = &l->params->items[i];
        if (mr_safetensors_find(l->file, p->name))
            continue;
        first = first ? first : p;
        missing++;
        heads += of_this_task(p->name);
    }
    if (!first)
        return MR_OK;
    mr_shape_text(first->dims, first->shape, shape, sizeof shape);
    if (missing > 1)
        snprintf(more, sizeof more, " and %zu more", missing - 1);
    if (missing == heads)
        return mr_fail(l->err, MR_BAD_DATA,
                       "%s: has no '%s' %s%s: these weights are of another task, without the "
                       "heads that match pictures and texts; take those of bridgetower-large-itm-mlm-itc",
                       l->path, first->name, shape, more);
    return mr_fail(l->err, MR_BAD_DATA, "%s: has no '%s' %s%s; take the config.json that belongs to the file", l->path,
                   first->name, shape, more);
}

static mr_status take_all(const loading *l)
{
    mr_status status = check_complete(l);
    uint64_t end = 0;
    for (size_t i = 0; i < l->params->count && !status; i++) {
        const mr_param *p = &l->params->items[i];
        memset(l->values + end, 0, (p->offset - end) * sizeof *l->values); /* the gap in front of it */
        end = p->offset + p->count;
        status = take(l, mr_safetensors_find(l->file, p->name), p);
    }
    if (!status)
        memset(l->values + end, 0, (l->params->total - end) * sizeof *l->values);
    return status;
}

/* ---- what is left out ------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const mr_param *const *)a)->name, (*(const mr_param *const *)b)->name);
}

static int name_to_param(const void *name, const void *param)
{
    return strcmp(name, (*(const mr_param *const *)param)->name);
}

static void say_unknown(const loading *l, const mr_param *const *sorted, mr_buf *said)
{
    size_t count = 0, pooler = 0, all = mr_safetensors_count(l->file);
    mr_buf names = {0};
    char number[32];
    for (size_t i = 0; i < all; i++) {
        const char *name = mr_safetensors_at(l->file, i)->name;
        if (bsearch(name, sorted, l->params->count, sizeof *sorted, name_to_param))
            continue;
        if (strncmp(name, TEXT_POOLER, sizeof TEXT_POOLER - 1) == 0) {
            pooler++;
            continue;
        }
        if (count < NAMED) {
            mr_buf_add_text(&names, count ? ", '" : "'");
            mr_text_show(&names, name, strlen(name));
            mr_buf_add_text(&names, "'");
        }
        count++;
    }
    if (pooler)
        mr_buf_add_text(said, "text_model.pooler left out: matching pictures and texts has no use for it\n");
    if (count)
        mr_buf_printf(said, "%s tensor%s left out that this model does not have: %s%s\n", mr_text_count(count, number),
                      count == 1 ? "" : "s", mr_buf_text(&names), count > NAMED ? ", ..." : "");
    said->failed |= names.failed;
    mr_buf_free(&names);
}

/* A file may have many more tensors than the model: each is looked up in a sorted list. */
static mr_status say_left_out(const loading *l, mr_buf *said)
{
    const mr_param **sorted = mr_alloc(l->params->count, sizeof *sorted);
    if (!sorted)
        return mr_fail_memory(l->err, "loading weights");
    for (size_t i = 0; i < l->params->count; i++)
        sorted[i] = &l->params->items[i];
    qsort(sorted, l->params->count, sizeof *sorted, by_name);
    say_unknown(l, sorted, said);
    free(sorted);
    return mr_buf_status(said, l->err, "loading weights");
}

mr_status mr_bt_load(const mr_model_config *c, const mr_params *p, const char *path, float *values, mr_buf *said,
                     mr_error *err)
{
    loading l = {.config = c, .params = p, .path = path, .values = values, .err = err};
    mr_status status = mr_safetensors_open(path, &l.file, err);
    if (!status)
        status = take_all(&l);
    if (!status)
        status = say_left_out(&l, said);
    mr_safetensors_free(l.file);
    return status;
}

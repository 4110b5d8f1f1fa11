/* load.c - weights of the hub's BridgeTower (.safetensors) into the flat buffer.
 * Invariant: when it returns MR_OK every parameter was written once, from the file, with finite numbers.
 * Source: names as transformers 4.55.4 saves BridgeTowerForContrastiveLearning. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "train/model/bridgetower/parts.h"
#include "train/files/safetensors.h"

enum { NAMED = 3 }; /* how many of the tensors left out are named */

static const char POSITIONS[] = "bridgetower.vision_model.visual.embeddings.position_embedding.weight";
static const char TEXT_POOLER[] = "bridgetower.text_model.pooler.";

typedef struct loading {
    const mr_model_config *config;
    const mr_params *params;
    const char *path;
    float *values;
    mr_safetensors *file;
    mr_error *err;
} loading;

/* ---- what is loaded --------------------------------------------------------------------------------------------- */

/* The image size that the file's table of positions is for; 0: another misfit. */
static uint64_t image_of(const loading *l, const mr_tensor *t, const mr_param *p)
{
    if (strcmp(p->name, POSITIONS) != 0 || t->dims != 2 || t->shape[1] != p->shape[1] || t->shape[0] < 2)
        return 0;
    uint64_t grid = (uint64_t)llround(sqrt((double)(t->shape[0] - 1)));
    return 1 + grid * grid == t->shape[0] && grid <= UINT32_MAX ? grid * l->config->patch : 0;
}

static mr_status misfit(const loading *l, const mr_tensor *t, const mr_param *p)
{
    char advice[80] = "use the config.json that belongs to the file";
    uint64_t image = image_of(l, t, p);
    if (image)
        snprintf(advice, sizeof advice, "the file is for images of --image-size %" PRIu64, image);
    return mr_param_misfit(p, l->path, t->dims, t->shape, advice, l->err);
}

static mr_status take(const loading *l, const mr_tensor *t, const mr_param *p)
{
    float *values = l->values + p->offset;
    if (!mr_param_fits(p, t->dims, t->shape))
        return misfit(l, t, p);
    MR_TRY(mr_safetensors_take(l->file, t, values, l->err));
    return mr_param_check_finite(p, l->path, values, l->err);
}

/* Files of other tasks lack these only. */
static bool of_this_task(const char *name)
{
    return strncmp(name, "itc_", 4) == 0 || strcmp(name, "logit_scale") == 0;
}

static mr_status check_complete(const loading *l)
{
    const mr_param *first = NULL;
    size_t missing = 0, heads = 0;
    for (size_t i = l->params->count; i-- > 0;) {
        const mr_param *p = &l->params->items[i];
        if (mr_safetensors_find(l->file, p->name))
            continue;
        first = p;
        missing++;
        heads += of_this_task(p->name);
    }
    return mr_param_missing(first, missing, l->path,
                            missing == heads ? ": these weights are for another task and lack the heads that match "
                                               "images and texts; use those of bridgetower-large-itm-mlm-itc"
                                             : "; use the config.json that belongs to the file",
                            l->err);
}

static mr_status take_all(const loading *l)
{
    uint64_t end = 0;
    MR_TRY(check_complete(l));
    for (size_t i = 0; i < l->params->count; i++) {
        const mr_param *p = &l->params->items[i];
        memset(l->values + end, 0, (p->offset - end) * sizeof *l->values); /* the gap before it */
        end = p->offset + p->count;
        MR_TRY(take(l, mr_safetensors_find(l->file, p->name), p));
    }
    memset(l->values + end, 0, (l->params->total - end) * sizeof *l->values);
    return MR_OK;
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

static void report_unknown(const loading *l, const mr_param *const *sorted, mr_buf *said)
{
    size_t count = 0, pooler = 0, all = mr_safetensors_count(l->file);
    MR_AUTO(mr_buf_free) mr_buf names = {0};
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
        mr_buf_add_text(said, "text_model.pooler not loaded: matching images and texts does not use it\n");
    if (count)
        mr_buf_printf(said, "%s tensor%s not loaded, because this model does not have them: %s%s\n",
                      mr_text_count(count, number), count == 1 ? "" : "s", mr_buf_text(&names),
                      count > NAMED ? ", ..." : "");
    said->failed |= names.failed;
}

/* A file may have many more tensors than the model: each is looked up in a sorted list. */
static mr_status report_left_out(const loading *l, mr_buf *said)
{
    MR_AUTO(mr_scope_free) const mr_param **sorted = mr_alloc(l->params->count, sizeof *sorted);
    if (!sorted)
        return mr_fail_memory(l->err, "loading weights");
    for (size_t i = 0; i < l->params->count; i++)
        sorted[i] = &l->params->items[i];
    qsort(sorted, l->params->count, sizeof *sorted, by_name);
    report_unknown(l, sorted, said);
    return mr_buf_status(said, l->err, "loading weights");
}

static void close_file(mr_safetensors **file)
{
    mr_safetensors_free(*file);
}

mr_status mr_bt_load(const mr_model_config *c, const mr_params *p, const char *path, float *values, mr_buf *said,
                     mr_error *err)
{
    MR_AUTO(close_file) mr_safetensors *file = NULL;
    MR_TRY(mr_safetensors_open(path, &file, err));
    const loading l = {.config = c, .params = p, .path = path, .values = values, .file = file, .err = err};
    MR_TRY(take_all(&l));
    return report_left_out(&l, said);
}

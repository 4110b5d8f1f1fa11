/* load.c - Google's Vision Transformer weights (.npz, as vit_jax writes them) into the flat buffer.
 * Invariant: when it returns MR_OK every parameter was written once: from the file, or zeros for the head.
 * Source: google-research/vision_transformer, vit_jax/checkpoint.py. */
#include <math.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "train/model/vit/hub.h"
#include "train/model/vit/parts.h"

/* Patches per side of a table that is resized: images of 4096 pixels and more, beyond all known models.  A deflated
 * table may be a thousand times as large as its file, and only the file says how large. */
enum { POSITIONS_MAX = 256 };

static const char HEAD[] = "head/", PRE_LOGITS[] = "pre_logits/";
static const char POSITION[] = "Transformer/posembed_input/pos_embedding";

typedef struct loading {
    const mr_params *params;
    const char *path;
    float *values;
    mr_buf *said;
    bool *seen;       /* [params->count] */
    uint64_t classes; /* classes of the file's head; 0: it has none */
    bool pre_logits;
    mr_npz_reader *reader;
    mr_error *err;
} loading;

static const char OTHER_MODEL[] = "use the --model that the file was made for";

static mr_status misfit(const loading *l, const mr_npz_array *a, const mr_param *p)
{
    return mr_param_misfit(p, l->path, a->dims, a->shape, OTHER_MODEL, l->err);
}

/* [1, 1 + from * from, width] for a grid that differs from ours. */
static mr_status take_positions(loading *l, const mr_npz_array *a, const mr_param *p)
{
    if (a->dims != 3 || a->shape[0] != 1 || a->shape[2] != p->shape[2] || a->shape[1] < 2 || a->shape[1] > UINT32_MAX)
        return misfit(l, a, p);
    uint32_t from = (uint32_t)lround(sqrt((double)(a->shape[1] - 1)));
    uint32_t to = (uint32_t)lround(sqrt((double)(p->shape[1] - 1)));
    if (1 + (uint64_t)from * from != a->shape[1])
        return misfit(l, a, p);
    if (from > POSITIONS_MAX)
        return mr_fail(l->err, MR_BAD_DATA, "%s: '%s' is of %u x %u patches; up to %d x %d are resized", l->path,
                       a->name, from, from, POSITIONS_MAX, POSITIONS_MAX);
    MR_AUTO(mr_scope_free) float *old = mr_alloc(a->count, sizeof *old);
    if (!old)
        return mr_fail_memory(l->err, "resizing the position embedding");
    MR_TRY(mr_npz_take(l->reader, old, a->count * sizeof *old, l->err));
    mr_vit_resize_positions(old, from, l->values + p->offset, to, p->shape[2]);
    mr_buf_printf(l->said, "position embedding resized from %u x %u to %u x %u patches\n", from, from, to, to);
    return MR_OK;
}

static mr_status take_parameter(loading *l, const mr_npz_array *a, const mr_param *p)
{
    float *values = l->values + p->offset;
    if (a->type != MR_NPZ_F32)
        return mr_fail(l->err, MR_BAD_DATA, "%s: '%s' is of type %s, not float32", l->path, a->name,
                       a->type == MR_NPZ_I64 ? "int64" : "uint8");
    if (mr_param_fits(p, a->dims, a->shape))
        MR_TRY(mr_npz_take(l->reader, values, p->count * sizeof *values, l->err));
    else if (strcmp(p->name, POSITION) == 0)
        MR_TRY(take_positions(l, a, p));
    else
        return misfit(l, a, p);
    l->seen[p - l->params->items] = true;
    return mr_param_check_finite(p, l->path, values, l->err);
}

static mr_status unknown(const loading *l, const mr_npz_array *a)
{
    char shape[256];
    mr_shape_text(a->dims, a->shape, shape, sizeof shape);
    if (strncmp(a->name, "params/", 7) == 0)
        return mr_fail(l->err, MR_BAD_DATA,
                       "%s: '%s' %s: keys that begin with 'params/' are big_vision's, whose blocks have other names; "
                       "use the file of vit_jax",
                       l->path, a->name, shape);
    return mr_fail(l->err, MR_BAD_DATA, "%s: '%s' %s is not a parameter of this model; %s", l->path, a->name, shape,
                   OTHER_MODEL);
}

static bool of_head(const char *name)
{
    return strncmp(name, HEAD, sizeof HEAD - 1) == 0;
}

static mr_status take_member(loading *l, const mr_npz_array *a)
{
    if (of_head(a->name)) {
        l->classes = a->dims ? a->shape[a->dims - 1] : 1;
        return MR_OK;
    }
    if (strncmp(a->name, PRE_LOGITS, sizeof PRE_LOGITS - 1) == 0) {
        l->pre_logits = true;
        return MR_OK;
    }
    const mr_param *p = mr_params_find(l->params, a->name);
    return p ? take_parameter(l, a, p) : unknown(l, a);
}

/* The head's parameters need not be in the file. */
static mr_status check_complete(const loading *l)
{
    const mr_param *first = NULL;
    size_t missing = 0;
    for (size_t i = l->params->count; i-- > 0;) {
        if (l->seen[i] || of_head(l->params->items[i].name))
            continue;
        first = &l->params->items[i];
        missing++;
    }
    return mr_param_missing(first, missing, l->path, "; use the --model that the file was made for", l->err);
}

static void report_head(const loading *l, uint32_t classes)
{
    char have[32], want[32];
    if (l->pre_logits)
        mr_buf_add_text(l->said, "pre_logits not loaded: fine-tuning does not use it\n");
    mr_text_count(classes, want);
    if (l->classes)
        mr_buf_printf(l->said, "head not loaded: it has %s classes; a new head of %s classes starts from zeros\n",
                      mr_text_count(l->classes, have), want);
    else
        mr_buf_printf(l->said, "no head in the file: a new head of %s classes starts from zeros\n", want);
}

static void close_reader(mr_npz_reader **r)
{
    mr_npz_reader_free(*r);
}

mr_status mr_vit_load(const mr_model_config *c, const mr_params *p, const char *path, float *values, mr_buf *said,
                      mr_error *err)
{
    MR_AUTO(close_reader) mr_npz_reader *reader = NULL;
    MR_AUTO(mr_scope_free) bool *seen = mr_alloc(p->count, sizeof *seen);
    const mr_npz_array *array;
    mr_status status;
    if (mr_vit_hub.is(path))
        return mr_vit_hub_load(p, path, values, said, err);
    if (!seen)
        return mr_fail_memory(err, "loading weights");
    MR_TRY(mr_npz_open(path, &reader, err));
    loading l = {.params = p, .path = path, .values = values, .said = said, .seen = seen, .reader = reader, .err = err};
    memset(values, 0, p->total * sizeof *values);
    while ((status = mr_npz_next(reader, &array, err)) == MR_OK)
        MR_TRY(take_member(&l, array));
    if (status != MR_END)
        return status;
    MR_TRY(check_complete(&l));
    report_head(&l, c->classes);
    return mr_buf_status(said, err, "loading weights");
}

/* load.c - Google's Vision Transformer weights (.npz, as vit_jax writes them) into the flat buffer.
 * Invariant: when it returns MR_OK every parameter was written once: from the file, or zeros for the head.
 * Source: google-research/vision_transformer, vit_jax/checkpoint.py; the resize is scipy.ndimage.zoom(order=1)'s. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "vit/parts.h"

/* Patches a side of a table that is resized: of pictures of 4096 pixels and more, beyond all that are known.  A
 * deflated one may be a thousand times what its file is, and its side is the file's alone to say. */
enum { POSITIONS_MAX = 256 };

static const char HEAD[] = "head/", PRE_LOGITS[] = "pre_logits/";
static const char POSITION[] = "Transformer/posembed_input/pos_embedding";

typedef struct loading {
    const mr_params *params;
    const char *path;
    float *values;
    mr_buf *said;
    bool *seen;       /* [params->count] */
    uint64_t classes; /* of the file's head; 0: it has none */
    bool pre_logits;
    mr_npz_reader *reader;
    mr_error *err;
} loading;

void mr_vit_resize_positions(const float *in, uint32_t from, float *out, uint32_t to, size_t width)
{
    double step = to > 1 ? (double)(from - 1) / (to - 1) : 0;
    memcpy(out, in, width * sizeof *out);
    in += width;
    out += width;
    for (uint32_t y = 0; y < to; y++) {
        uint32_t y0 = (uint32_t)(y * step), y1 = y0 + 1 < from ? y0 + 1 : from - 1;
        double below = y * step - y0;
        for (uint32_t x = 0; x < to; x++, out += width) {
            uint32_t x0 = (uint32_t)(x * step), x1 = x0 + 1 < from ? x0 + 1 : from - 1;
            double right = x * step - x0;
            const float *a = in + ((size_t)y0 * from + x0) * width, *b = in + ((size_t)y0 * from + x1) * width;
            const float *c = in + ((size_t)y1 * from + x0) * width, *d = in + ((size_t)y1 * from + x1) * width;
            for (size_t k = 0; k < width; k++)
                out[k] = (float)((1 - below) * ((1 - right) * a[k] + right * b[k]) +
                                 below * ((1 - right) * c[k] + right * d[k]));
        }
    }
}

static mr_status misshapen(const loading *l, const mr_npz_array *a, const mr_param *p)
{
    char have[256], want[256];
    mr_shape_text(a->dims, a->shape, have, sizeof have);
    mr_shape_text(p->dims, p->shape, want, sizeof want);
    return mr_fail(l->err, MR_BAD_DATA,
                   "%s: '%s' has the shape %s, this model needs %s; take the --model that the "
                   "file was made for",
                   l->path, a->name, have, want);
}

static mr_status check_finite(const loading *l, const mr_param *p)
{
    const float *values = l->values + p->offset;
    for (uint64_t i = 0; i < p->count; i++)
        if (!isfinite(values[i]))
            return mr_fail(l->err, MR_BAD_DATA, "%s: '%s' holds %g at element %" PRIu64, l->path, p->name,
                           (double)values[i], i);
    return MR_OK;
}

/* [1, 1 + from * from, width] for another grid than ours. */
static mr_status take_positions(loading *l, const mr_npz_array *a, const mr_param *p)
{
    if (a->dims != 3 || a->shape[0] != 1 || a->shape[2] != p->shape[2] || a->shape[1] < 2 || a->shape[1] > UINT32_MAX)
        return misshapen(l, a, p);
    uint32_t from = (uint32_t)lround(sqrt((double)(a->shape[1] - 1)));
    uint32_t to = (uint32_t)lround(sqrt((double)(p->shape[1] - 1)));
    if (1 + (uint64_t)from * from != a->shape[1])
        return misshapen(l, a, p);
    if (from > POSITIONS_MAX)
        return mr_fail(l->err, MR_BAD_DATA, "%s: '%s' is of %u x %u patches; up to %d x %d are resized", l->path,
                       a->name, from, from, POSITIONS_MAX, POSITIONS_MAX);
    float *old = mr_alloc(a->count, sizeof *old);
    if (!old)
        return mr_fail_memory(l->err, "resizing the position embedding");
    mr_status status = mr_npz_take(l->reader, old, a->count * sizeof *old, l->err);
    if (!status) {
        mr_vit_resize_positions(old, from, l->values + p->offset, to, p->shape[2]);
        mr_buf_printf(l->said, "position embedding resized from %u x %u to %u x %u patches\n", from, from, to, to);
    }
    free(old);
    return status;
}

static bool same_shape(const mr_npz_array *a, const mr_param *p)
{
    bool same = a->dims == p->dims;
    for (unsigned i = 0; same && i < a->dims; i++)
        same = a->shape[i] == p->shape[i];
    return same;
}

static mr_status take_parameter(loading *l, const mr_npz_array *a, const mr_param *p)
{
    mr_status status;
    if (a->type != MR_NPZ_F32)
        return mr_fail(l->err, MR_BAD_DATA, "%s: '%s' is of type %s, not float32", l->path, a->name,
                       a->type == MR_NPZ_I64 ? "int64" : "uint8");
    if (same_shape(a, p))
        status = mr_npz_take(l->reader, l->values + p->offset, p->count * sizeof *l->values, l->err);
    else if (strcmp(p->name, POSITION) == 0)
        status = take_positions(l, a, p);
    else
        status = misshapen(l, a, p);
    l->seen[p - l->params->items] = true;
    return status ? status : check_finite(l, p);
}

static mr_status unknown(const loading *l, const mr_npz_array *a)
{
    char shape[256];
    mr_shape_text(a->dims, a->shape, shape, sizeof shape);
    if (strncmp(a->name, "params/", 7) == 0)
        return mr_fail(l->err, MR_BAD_DATA,
                       "%s: '%s' %s: keys that begin with 'params/' are big_vision's, whose "
                       "blocks have other names; take the file of vit_jax",
                       l->path, a->name, shape);
    return mr_fail(l->err, MR_BAD_DATA,
                   "%s: '%s' %s is no parameter of this model; take the --model that the file was "
                   "made for",
                   l->path, a->name, shape);
}

static mr_status take_member(loading *l, const mr_npz_array *a)
{
    if (strncmp(a->name, HEAD, sizeof HEAD - 1) == 0) {
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

/* Every parameter but the head's must have come; gaps between parameters and the head are zeros. */
static mr_status check_complete(const loading *l)
{
    const mr_param *first = NULL;
    size_t missing = 0;
    char shape[256], what[64] = "";
    for (size_t i = 0; i < l->params->count; i++) {
        const mr_param *p = &l->params->items[i];
        if (l->seen[i] || strncmp(p->name, HEAD, sizeof HEAD - 1) == 0)
            continue;
        first = first ? first : p;
        missing++;
    }
    if (!first)
        return MR_OK;
    mr_shape_text(first->dims, first->shape, shape, sizeof shape);
    if (missing > 1)
        snprintf(what, sizeof what, " and %zu more", missing - 1);
    return mr_fail(l->err, MR_BAD_DATA, "%s: has no '%s' %s%s; take the --model that the file was made for", l->path,
                   first->name, shape, what);
}

static void say_head(const loading *l, uint32_t classes)
{
    char have[32], want[32];
    if (l->pre_logits)
        mr_buf_add_text(l->said, "pre_logits left out: fine-tuning has no use for it\n");
    mr_text_count(classes, want);
    if (l->classes)
        mr_buf_printf(l->said, "head left out: it has %s classes; a new one of %s starts from zeros\n",
                      mr_text_count(l->classes, have), want);
    else
        mr_buf_printf(l->said, "no head in the file: a new one of %s classes starts from zeros\n", want);
}

mr_status mr_vit_load(const mr_model_config *c, const mr_params *p, const char *path, float *values, mr_buf *said,
                      mr_error *err)
{
    loading l = {.params = p, .path = path, .values = values, .said = said, .err = err};
    const mr_npz_array *array;
    l.seen = mr_alloc(p->count, sizeof *l.seen);
    if (!l.seen)
        return mr_fail_memory(err, "loading weights");
    mr_status status = mr_npz_open(path, &l.reader, err);
    memset(values, 0, p->total * sizeof *values);
    while (!status && !(status = mr_npz_next(l.reader, &array, err)))
        status = take_member(&l, array);
    if (status == MR_END)
        status = check_complete(&l);
    if (!status)
        say_head(&l, c->classes);
    mr_npz_reader_free(l.reader);
    free(l.seen);
    return status ? status : mr_buf_status(said, err, "loading weights");
}

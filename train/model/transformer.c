/* transformer.c - the operations that the models are made of, on the device.
 * Invariant: the order of operations is fixed: gradients of a dense layer go to its kernel, its bias, then its
 * input. */
#include "train/model/transformer.h"

#include <math.h>

#include "base/scope.h"

/* ---- an open model ---------------------------------------------------------------------------------------------- */

void mr_transformer_init(mr_transformer *t, const mr_model_config *c, size_t batch, bool training)
{
    *t = (mr_transformer){.base.iface = c->iface, .config = *c, .batch = batch, .training = training};
}

mr_status mr_transformer_open(mr_transformer *t, const mr_params *own, const mr_params *given,
                              bool (*plan)(mr_transformer *t), mr_error *err)
{
    if (own->total != given->total)
        return mr_fail(err, MR_MISUSE, "%s: these parameters belong to a model of another shape", t->config.name);
    if (!plan(t))
        return mr_fail(err, MR_MISUSE, "--batch %zu: its activations cannot fit in memory; use a smaller one",
                       t->batch);
    MR_TRY(t->device->iface->alloc(t->device, t->bytes, "activations", &t->memory, err));
    plan(t);
    return MR_OK;
}

void mr_transformer_close(mr_transformer *t)
{
    if (t->memory)
        t->device->iface->free(t->device, t->memory);
}

void mr_transformer_begin(mr_transformer *t, const float *values, const mr_model_input *in)
{
    t->values = values;
    t->in = *in;
    t->in.training = in->training && t->training;
}

mr_dropout mr_dropout_at(const mr_transformer *t, double rate, uint32_t site)
{
    return (mr_dropout){.rate = t->in.training ? (float)rate : 0, .site = site, .keys = t->in.keys};
}

/* ---- dense layers ----------------------------------------------------------------------------------------------- */

void mr_dense_forward(const mr_transformer *t, const mr_dense *at, size_t rows, const void *x, void *y, mr_type y_type)
{
    const mr_gemm g = {.a_type = t->config.compute,
                       .b_type = MR_F32,
                       .c_type = y_type,
                       .m = rows,
                       .n = at->out,
                       .k = at->in,
                       .a = x,
                       .b = t->values + at->kernel,
                       .transpose_b = at->out_first,
                       .c = y,
                       .bias = at->bias == MR_NO_BIAS ? NULL : t->values + at->bias};
    mr_run_gemm(t->device, &g);
}

void mr_dense_backward(const mr_transformer *t, const mr_dense *at, size_t rows, const void *x, const void *d_y,
                       void *d_x, bool accumulate)
{
    mr_type type = t->config.compute;
    const mr_gemm kernel = {.a_type = type,
                            .b_type = type,
                            .c_type = MR_F32,
                            .m = at->out_first ? at->out : at->in,
                            .n = at->out_first ? at->in : at->out,
                            .k = rows,
                            .a = at->out_first ? d_y : x,
                            .transpose_a = true,
                            .b = at->out_first ? x : d_y,
                            .c = t->gradients + at->kernel,
                            .accumulate = true};
    const mr_gemm input = {.a_type = type,
                           .b_type = MR_F32,
                           .c_type = type,
                           .m = rows,
                           .n = at->in,
                           .k = at->out,
                           .a = d_y,
                           .b = t->values + at->kernel,
                           .transpose_b = !at->out_first,
                           .c = d_x,
                           .accumulate = accumulate};
    mr_run_gemm(t->device, &kernel);
    if (at->bias != MR_NO_BIAS)
        mr_run_sum_rows(t->device, &(mr_sum_rows){type, rows, at->out, d_y, t->gradients + at->bias});
    if (d_x)
        mr_run_gemm(t->device, &input);
}

/* ---- norms ------------------------------------------------------------------------------------------------------ */

void mr_normed_plan(const mr_transformer *t, mr_memory_plan *p, mr_normed *k, size_t rows, bool has_total, bool has_y)
{
    size_t size = mr_type_size(t->config.compute);
    k->total = has_total ? k->total : mr_memory_take(p, rows, t->config.hidden, size);
    k->y = has_y ? k->y : mr_memory_take(p, rows, t->config.hidden, size);
    k->mean = mr_memory_take(p, rows, 1, sizeof(float));
    k->rstd = mr_memory_take(p, rows, 1, sizeof(float));
}

void mr_norm_forward(const mr_transformer *t, const mr_norm_at *at, const mr_normed *k, size_t sample_rows,
                     const void *x, const void *residual, mr_dropout dropout)
{
    const mr_norm n = {.type = t->config.compute,
                       .rows = t->in.count * sample_rows,
                       .width = t->config.hidden,
                       .sample_rows = sample_rows,
                       .x = x,
                       .residual = residual,
                       .total = x == k->total ? NULL : k->total,
                       .y = k->y,
                       .gain = t->values + at->gain,
                       .bias = t->values + at->bias,
                       .mean = k->mean,
                       .rstd = k->rstd,
                       .eps = t->eps,
                       .dropout = dropout};
    mr_run_norm(t->device, &n);
}

void mr_norm_backward(const mr_transformer *t, const mr_norm_at *at, const mr_normed *k, size_t rows, const void *d_y,
                      const void *d_residual, void *d_total)
{
    const mr_norm_back n = {.type = t->config.compute,
                            .rows = rows,
                            .width = t->config.hidden,
                            .d_y = d_y,
                            .total = k->total,
                            .gain = t->values + at->gain,
                            .mean = k->mean,
                            .rstd = k->rstd,
                            .d_residual = d_residual,
                            .d_total = d_total,
                            .d_gain = t->gradients + at->gain,
                            .d_bias = t->gradients + at->bias};
    mr_run_norm_back(t->device, &n);
}

/* ---- attention -------------------------------------------------------------------------------------------------- */

mr_attention mr_attention_shape(const mr_transformer *t, size_t count, size_t heads, size_t queries, size_t keys)
{
    size_t head_dim = t->config.hidden / heads;
    return (mr_attention){.type = t->config.compute,
                          .batch = count,
                          .heads = heads,
                          .head_dim = head_dim,
                          .queries = queries,
                          .keys = keys,
                          .scale = (float)(1 / sqrt((double)head_dim))};
}

void mr_attended_plan(const mr_transformer *t, mr_memory_plan *p, mr_attended *k, const mr_attention *shape,
                      size_t saved)
{
    size_t size = mr_type_size(t->config.compute), hidden = t->config.hidden;
    size_t asking = t->batch * shape->queries, answering = t->batch * shape->keys;
    k->q = mr_memory_take(p, asking, hidden, size);
    k->k = mr_memory_take(p, answering, hidden, size);
    k->v = mr_memory_take(p, answering, hidden, size);
    k->out = mr_memory_take(p, asking, hidden, size);
    k->saved = mr_memory_take(p, saved, 1, 1);
}

void mr_attended_forward(const mr_transformer *t, const mr_attention_at *at, mr_attended *k, const mr_attention *shape)
{
    size_t asking = shape->batch * shape->queries, answering = shape->batch * shape->keys;
    mr_type type = t->config.compute;
    k->attention = *shape;
    k->attention.q = k->q;
    k->attention.k = k->k;
    k->attention.v = k->v;
    k->attention.out = k->out;
    k->attention.saved = k->saved;
    mr_dense_forward(t, &at->query, asking, k->x, k->q, type);
    mr_dense_forward(t, &at->key, answering, k->from, k->k, type);
    mr_dense_forward(t, &at->value, answering, k->from, k->v, type);
    mr_run_attention(t->device, &k->attention);
    mr_dense_forward(t, &at->out, asking, k->out, t->branch, type);
}

/* ---- MLPs ------------------------------------------------------------------------------------------------------- */

void mr_mlp_plan(const mr_transformer *t, mr_memory_plan *p, mr_mlp_kept *k, size_t rows, size_t width, bool keeps)
{
    size_t size = mr_type_size(t->config.compute);
    k->wide = mr_memory_take(p, rows, width, size);
    k->active = keeps ? mr_memory_take(p, rows, width, size) : k->wide;
}

void mr_mlp_widen(const mr_transformer *t, const mr_mlp_at *at, mr_mlp_kept *k, const void *x, const mr_activate *f)
{
    k->x = x;
    k->activation = *f;
    k->activation.type = t->config.compute;
    k->activation.width = at->wide.out;
    k->activation.x = k->wide;
    k->activation.y = k->active;
    mr_dense_forward(t, &at->wide, f->rows, x, k->wide, t->config.compute);
    mr_run_activate(t->device, &k->activation);
}

void mr_mlp_forward(const mr_transformer *t, const mr_mlp_at *at, mr_mlp_kept *k, const void *x, const mr_activate *f)
{
    mr_mlp_widen(t, at, k, x, f);
    mr_dense_forward(t, &at->narrow, f->rows, k->active, t->branch, t->config.compute);
}

void mr_mlp_backward(const mr_transformer *t, const mr_mlp_at *at, const mr_mlp_kept *k, const void *d_y, void *d_x,
                     bool accumulate)
{
    mr_activate f = k->activation;
    f.d_y = f.d_x = t->d_wide;
    mr_dense_backward(t, &at->narrow, f.rows, k->active, d_y, t->d_wide, false);
    mr_run_activate_back(t->device, &f);
    mr_dense_backward(t, &at->wide, f.rows, k->x, t->d_wide, d_x, accumulate);
}

const void *mr_branch_gradient(const mr_transformer *t, size_t sample_rows, mr_dropout dropout, const void *d)
{
    if (!(dropout.rate > 0))
        return d;
    mr_run_drop(t->device, &(mr_drop){t->config.compute, t->in.count * sample_rows, t->config.hidden, sample_rows,
                                      dropout, d, t->branch});
    return t->branch;
}

/* ---- images and rows -------------------------------------------------------------------------------------------- */

static mr_tokens tokens_of(const mr_transformer *t, mr_dropout dropout)
{
    size_t grid = t->config.image / t->config.patch;
    return (mr_tokens){.type = t->config.compute,
                       .batch = t->in.count,
                       .rows = 1 + grid * grid,
                       .width = t->config.hidden,
                       .dropout = dropout};
}

void mr_image_forward(const mr_transformer *t, const mr_image_at *at, void *pixels, void *y, mr_dropout dropout)
{
    mr_tokens tokens = tokens_of(t, dropout);
    const mr_patches patches = {.type = t->config.compute,
                                .batch = t->in.count,
                                .side = t->config.image,
                                .patch = t->config.patch,
                                .channel_first = at->channel_first,
                                .images = t->in.images,
                                .rows = pixels};
    tokens.x = t->branch;
    tokens.first = t->values + at->cls;
    tokens.position = t->values + at->position;
    tokens.y = y;
    mr_run_patches(t->device, &patches);
    mr_dense_forward(t, &at->patches, t->in.count * (tokens.rows - 1), pixels, t->branch, t->config.compute);
    mr_run_tokens(t->device, &tokens);
}

/* Pixels need no gradient. */
void mr_image_backward(const mr_transformer *t, const mr_image_at *at, const void *pixels, const void *d_y,
                       mr_dropout dropout)
{
    mr_tokens tokens = tokens_of(t, dropout);
    tokens.d_y = d_y;
    tokens.d_x = t->branch;
    tokens.d_first = t->gradients + at->cls;
    tokens.d_position = t->gradients + at->position;
    mr_run_tokens_back(t->device, &tokens);
    mr_dense_backward(t, &at->patches, t->in.count * (tokens.rows - 1), pixels, t->branch, NULL, false);
}

void mr_first_rows(const mr_transformer *t, const void *from, size_t from_rows, void *to, size_t to_rows,
                   bool accumulate)
{
    const mr_rows r = {.type = t->config.compute,
                       .rows = t->in.count,
                       .width = t->config.hidden,
                       .from_stride = from_rows * t->config.hidden,
                       .to_stride = to_rows * t->config.hidden,
                       .from = from,
                       .to = to,
                       .accumulate = accumulate};
    mr_run_rows(t->device, &r);
}

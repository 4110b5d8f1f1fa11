/* apart.c - the card of the device `apart`: the CPU's operations, each with its own blocks opened. */
#include <stdio.h>
#include <stdlib.h>

#include "apart/apart.h"

static void close_apart(mr_device *device)
{
    mr_apart *d = mr_apart_of(device);
    mr_apart_free_all(d);
    mr_device_close(d->cpu);
    free(d);
}

static mr_status open_apart(const mr_device_options *options, mr_device **out, mr_error *err)
{
    mr_apart *d = mr_alloc(1, sizeof *d);
    if (!d)
        return mr_fail_memory(err, "opening the device");
    *d = (mr_apart){.device = {.card = &mr_device_apart}};
    mr_status status = mr_device_open("cpu", options, &d->cpu, err);
    if (status != MR_OK) {
        free(d);
        return status;
    }
    snprintf(d->text, sizeof d->text, "memory apart, %s", d->cpu->card->describe(d->cpu));
    *out = &d->device;
    return MR_OK;
}

static const char *describe(const mr_device *device)
{
    return ((const mr_apart *)(const void *)device)->text;
}

static const char *products(const mr_device *device, mr_type type)
{
    const mr_device *cpu = ((const mr_apart *)(const void *)device)->cpu;
    return cpu->card->products(cpu, type);
}

/* Opens the blocks that a call's pointers are in until it returns; `cpu` is the device that does the work. */
#define OPEN(device, operation, ...)                                                                                   \
    MR_AUTO(mr_apart_end) mr_apart_opening opening_;                                                                   \
    const void *const arguments_[] = {__VA_ARGS__};                                                                    \
    mr_apart_begin(&opening_, device, operation, arguments_, MR_COUNT(arguments_));                                    \
    mr_device *const cpu = opening_.device->cpu

static void upload(mr_device *device, void *to, const void *from, size_t bytes)
{
    OPEN(device, "upload", bytes ? to : NULL);
    cpu->card->upload(cpu, to, from, bytes);
}

static void download(mr_device *device, void *to, const void *from, size_t bytes)
{
    OPEN(device, "download", bytes ? from : NULL);
    cpu->card->download(cpu, to, from, bytes);
}

static void zero(mr_device *device, void *memory, size_t bytes)
{
    OPEN(device, "zero", bytes ? memory : NULL);
    cpu->card->zero(cpu, memory, bytes);
}

static mr_status wait_done(mr_device *device, mr_error *err)
{
    mr_apart *d = mr_apart_of(device);
    if (d->wrong[0])
        return mr_fail(err, MR_SYSTEM, "apart: %s", d->wrong);
    return d->cpu->card->wait(d->cpu, err);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static const void *keys_of(const mr_dropout *d)
{
    return d->rate > 0 ? d->keys : NULL;
}

static void gemm(mr_device *device, const mr_gemm *g)
{
    OPEN(device, "gemm", g->a, g->b, g->c, g->bias);
    cpu->card->gemm(cpu, g);
}

static void sum_rows(mr_device *device, mr_type type, size_t rows, size_t width, const void *x, float *sums)
{
    OPEN(device, "sum_rows", x, sums);
    cpu->card->sum_rows(cpu, type, rows, width, x, sums);
}

static void norm(mr_device *device, const mr_norm *n)
{
    OPEN(device, "norm", n->x, n->residual, n->total, n->y, n->gain, n->bias, n->mean, n->rstd, keys_of(&n->dropout));
    cpu->card->norm(cpu, n);
}

static void norm_back(mr_device *device, const mr_norm_back *n)
{
    OPEN(device, "norm_back", n->d_y, n->total, n->gain, n->mean, n->rstd, n->d_residual, n->d_total, n->d_gain,
         n->d_bias);
    cpu->card->norm_back(cpu, n);
}

static void drop(mr_device *device, mr_type type, size_t rows, size_t width, size_t sample_rows,
                 const mr_dropout *dropout, const void *d_y, void *d_x)
{
    OPEN(device, "drop", d_y, d_x, keys_of(dropout));
    cpu->card->drop(cpu, type, rows, width, sample_rows, dropout, d_y, d_x);
}

static void activate(mr_device *device, const mr_activate *a)
{
    OPEN(device, "activate", a->x, a->y, keys_of(&a->dropout));
    cpu->card->activate(cpu, a);
}

static void activate_back(mr_device *device, const mr_activate *a)
{
    OPEN(device, "activate_back", a->x, a->d_y, a->d_x, keys_of(&a->dropout));
    cpu->card->activate_back(cpu, a);
}

static mr_status plan_attention(mr_device *device, const mr_attention *a, size_t *saved_bytes, mr_error *err)
{
    mr_device *cpu = mr_apart_of(device)->cpu;
    return cpu->card->plan_attention(cpu, a, saved_bytes, err);
}

static void attention(mr_device *device, const mr_attention *a)
{
    OPEN(device, "attention", a->q, a->k, a->v, a->key_mask, a->saved, a->out, keys_of(&a->dropout));
    cpu->card->attention(cpu, a);
}

static void attention_back(mr_device *device, const mr_attention_back *b)
{
    const mr_attention *a = b->forward;
    OPEN(device, "attention_back", a->q, a->k, a->v, a->key_mask, a->saved, a->out, keys_of(&a->dropout), b->d_out,
         b->d_q, b->d_k, b->d_v);
    cpu->card->attention_back(cpu, b);
}

static void patches(mr_device *device, const mr_patches *p)
{
    OPEN(device, "patches", p->images, p->rows);
    cpu->card->patches(cpu, p);
}

static void tokens(mr_device *device, const mr_tokens *t)
{
    OPEN(device, "tokens", t->x, t->first, t->position, t->y, keys_of(&t->dropout));
    cpu->card->tokens(cpu, t);
}

static void tokens_back(mr_device *device, const mr_tokens *t)
{
    OPEN(device, "tokens_back", t->d_y, t->d_x, t->d_first, t->d_position, keys_of(&t->dropout));
    cpu->card->tokens_back(cpu, t);
}

static void rows(mr_device *device, const mr_rows *r)
{
    OPEN(device, "rows", r->from, r->to);
    cpu->card->rows(cpu, r);
}

static void add(mr_device *device, mr_type type, size_t count, const void *a, const void *b, void *sum)
{
    OPEN(device, "add", a, b, sum);
    cpu->card->add(cpu, type, count, a, b, sum);
}

static void cross_entropy(mr_device *device, const mr_cross_entropy *c)
{
    OPEN(device, "cross_entropy", c->logits, c->labels, c->weights, c->losses, c->d_logits, c->best, c->columns,
         c->groups);
    cpu->card->cross_entropy(cpu, c);
}

static void sigmoid_loss(mr_device *device, const mr_sigmoid_loss *l)
{
    OPEN(device, "sigmoid_loss", l->logits, l->targets, l->positive, l->weights, l->losses, l->d_logits, l->best);
    cpu->card->sigmoid_loss(cpu, l);
}

static void lookup(mr_device *device, const mr_lookup *l)
{
    OPEN(device, "lookup", l->ids, l->table, l->y);
    cpu->card->lookup(cpu, l);
}

static void lookup_back(mr_device *device, const mr_lookup *l)
{
    OPEN(device, "lookup_back", l->ids, l->d_y, l->d_table);
    cpu->card->lookup_back(cpu, l);
}

static void unit(mr_device *device, const mr_unit *u)
{
    OPEN(device, "unit", u->x, u->y, u->lengths);
    cpu->card->unit(cpu, u);
}

static void unit_back(mr_device *device, const mr_unit *u)
{
    OPEN(device, "unit_back", u->y, u->lengths, u->d_y, u->d_x);
    cpu->card->unit_back(cpu, u);
}

static void scale(mr_device *device, const mr_scale *s)
{
    OPEN(device, "scale", s->log_scale, s->x, s->y);
    cpu->card->scale(cpu, s);
}

static void scale_back(mr_device *device, const mr_scale *s)
{
    OPEN(device, "scale_back", s->log_scale, s->y, s->d_y, s->d_x, s->d_log_scale);
    cpu->card->scale_back(cpu, s);
}

static double sum_squares(mr_device *device, size_t count, const float *x)
{
    OPEN(device, "sum_squares", count ? x : NULL);
    return cpu->card->sum_squares(cpu, count, x);
}

static void sgd(mr_device *device, const mr_update *u)
{
    OPEN(device, "sgd", u->w, u->g, u->m);
    cpu->card->sgd(cpu, u);
}

static void adamw(mr_device *device, const mr_update *u)
{
    OPEN(device, "adamw", u->w, u->g, u->m, u->v);
    cpu->card->adamw(cpu, u);
}

static void decode(mr_device *device, const mr_decode *x)
{
    OPEN(device, "decode", x->records, x->images, x->parts, x->codes, x->quants, x->weights, x->starts, x->norm,
         x->coef, x->samples, x->rgb, x->lines, x->out, x->failed);
    cpu->card->decode(cpu, x);
}

const mr_device_card mr_device_apart = {
    .name = "apart",
    .what = "the processors of this machine, as if they were a device: for tests",
    .types = 1U << MR_F32 | 1U << MR_BF16,
    .open = open_apart,
    .close = close_apart,
    .describe = describe,
    .products = products,
    .alloc = mr_apart_alloc,
    .free = mr_apart_free,
    .upload = upload,
    .download = download,
    .zero = zero,
    .wait = wait_done,
    .gemm = gemm,
    .sum_rows = sum_rows,
    .norm = norm,
    .norm_back = norm_back,
    .drop = drop,
    .activate = activate,
    .activate_back = activate_back,
    .plan_attention = plan_attention,
    .attention = attention,
    .attention_back = attention_back,
    .patches = patches,
    .tokens = tokens,
    .tokens_back = tokens_back,
    .rows = rows,
    .add = add,
    .cross_entropy = cross_entropy,
    .sigmoid_loss = sigmoid_loss,
    .lookup = lookup,
    .lookup_back = lookup_back,
    .unit = unit,
    .unit_back = unit_back,
    .scale = scale,
    .scale_back = scale_back,
    .sum_squares = sum_squares,
    .sgd = sgd,
    .adamw = adamw,
    .decode = decode,
};

/* profile.c - the card of a measured device: every operation passed on, with its time and size added up.
 * Invariant: the card's facts - name, types, host memory - are those of the measured device. */
#include "profile/profile.h"

#include <stdlib.h>

#include "base/scope.h"
#include "base/term.h"

struct mr_profile {
    mr_device device;
    mr_device_card card;
    mr_device *measured;
    bool counts;
    mr_family_sums sums[MR_FAMILY_COUNT];
};

const mr_family_facts mr_families[MR_FAMILY_COUNT] = {
#define X(word, what, computes) {#word, what, computes},
    MR_FAMILIES(X)
#undef X
};

static mr_profile *profile_of(const mr_device *device)
{
    return (mr_profile *)(uintptr_t)device;
}

/* What one operation of a family needs. */
typedef struct cost {
    mr_family family;
    double flops, bytes;
} cost;

/* A failure of the device stays for the caller's own wait, as devices report it until it is closed. */
static void add(mr_profile *p, double since, cost c)
{
    mr_family_sums *s = &p->sums[c.family];
    if (!p->counts)
        return;
    if (!p->measured->card->host_memory)
        p->measured->card->wait(p->measured, NULL);
    s->calls++;
    s->seconds += mr_seconds() - since;
    s->flops += c.flops;
    s->bytes += c.bytes;
}

/* Passes an operation on: its name, its arguments after the device, what it needs. */
#define PASS(operation, needs, ...)                                                                                    \
    mr_profile *p = profile_of(device);                                                                                \
    double since = mr_seconds();                                                                                       \
    p->measured->card->operation(p->measured, __VA_ARGS__);                                                            \
    add(p, since, needs)

static double size_of(mr_type type, size_t rows, size_t width)
{
    return (double)rows * (double)width * (double)mr_type_size(type);
}

/* ---- life and memory --------------------------------------------------------------------------------------------- */

static void close_profile(mr_device *device)
{
    mr_profile *p = profile_of(device);
    mr_device_close(p->measured);
    free(p);
}

static const char *describe(const mr_device *device)
{
    const mr_device *measured = profile_of(device)->measured;
    return measured->card->describe(measured);
}

static const char *products(const mr_device *device, mr_type type)
{
    const mr_device *measured = profile_of(device)->measured;
    return measured->card->products(measured, type);
}

static mr_status alloc(mr_device *device, size_t bytes, const char *purpose, void **out, mr_error *err)
{
    mr_device *measured = profile_of(device)->measured;
    return measured->card->alloc(measured, bytes, purpose, out, err);
}

static void free_memory(mr_device *device, void *memory)
{
    mr_device *measured = profile_of(device)->measured;
    measured->card->free(measured, memory);
}

static mr_status wait_done(mr_device *device, mr_error *err)
{
    mr_device *measured = profile_of(device)->measured;
    return measured->card->wait(measured, err);
}

static cost copied(size_t bytes)
{
    return (cost){MR_FAMILY_copies, 0, (double)bytes};
}

static void upload(mr_device *device, void *to, const void *from, size_t bytes)
{
    PASS(upload, copied(2 * bytes), to, from, bytes);
}

static void download(mr_device *device, void *to, const void *from, size_t bytes)
{
    PASS(download, copied(2 * bytes), to, from, bytes);
}

static void zero(mr_device *device, void *memory, size_t bytes)
{
    PASS(zero, copied(bytes), memory, bytes);
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

static cost of_gemm(const mr_gemm *g)
{
    double c = size_of(g->c_type, g->m, g->n);
    return (cost){MR_FAMILY_matrix, 2.0 * (double)g->m * (double)g->n * (double)g->k,
                  size_of(g->a_type, g->m, g->k) + size_of(g->b_type, g->k, g->n) + (g->accumulate ? 2 * c : c)};
}

static void gemm(mr_device *device, const mr_gemm *g)
{
    PASS(gemm, of_gemm(g), g);
}

static mr_status plan_attention(mr_device *device, const mr_attention *a, size_t *saved_bytes, mr_error *err)
{
    mr_device *measured = profile_of(device)->measured;
    return measured->card->plan_attention(measured, a, saved_bytes, err);
}

/* `products`: of queries with keys or values; 2 forward, 5 backward, where the scores are computed again. */
static cost of_attention(const mr_attention *a, double count)
{
    double width = (double)a->heads * (double)a->head_dim, sample = (double)a->batch;
    double moved = size_of(a->type, 2 * (a->queries + a->keys), a->heads * a->head_dim);
    return (cost){MR_FAMILY_attention, 2 * count * sample * (double)a->queries * (double)a->keys * width,
                  sample * moved * count / 2};
}

static void attention(mr_device *device, const mr_attention *a)
{
    PASS(attention, of_attention(a, 2), a);
}

static void attention_back(mr_device *device, const mr_attention_back *a)
{
    PASS(attention_back, of_attention(a->forward, 5), a);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void sum_rows(mr_device *device, mr_type type, size_t rows, size_t width, const void *x, float *sums)
{
    cost c = {MR_FAMILY_bias, 0, size_of(type, rows, width)};
    PASS(sum_rows, c, type, rows, width, x, sums);
}

static void norm(mr_device *device, const mr_norm *n)
{
    double arrays = 1 + (n->residual != NULL) + (n->total != NULL) + (n->y != NULL);
    cost c = {MR_FAMILY_norm, 0, arrays * size_of(n->type, n->rows, n->width)};
    PASS(norm, c, n);
}

static void norm_back(mr_device *device, const mr_norm_back *n)
{
    double arrays = 3 + (n->d_residual != NULL);
    cost c = {MR_FAMILY_norm, 0, arrays * size_of(n->type, n->rows, n->width)};
    PASS(norm_back, c, n);
}

static void drop(mr_device *device, mr_type type, size_t rows, size_t width, size_t sample_rows,
                 const mr_dropout *dropout, const void *d_y, void *d_x)
{
    cost c = {MR_FAMILY_elements, 0, 2 * size_of(type, rows, width)};
    PASS(drop, c, type, rows, width, sample_rows, dropout, d_y, d_x);
}

static void activate(mr_device *device, const mr_activate *a)
{
    cost c = {MR_FAMILY_elements, 0, 2 * size_of(a->type, a->rows, a->width)};
    PASS(activate, c, a);
}

static void activate_back(mr_device *device, const mr_activate *a)
{
    cost c = {MR_FAMILY_elements, 0, 3 * size_of(a->type, a->rows, a->width)};
    PASS(activate_back, c, a);
}

static void add_arrays(mr_device *device, mr_type type, size_t count, const void *a, const void *b, void *sum)
{
    cost c = {MR_FAMILY_elements, 0, 3 * size_of(type, count, 1)};
    PASS(add, c, type, count, a, b, sum);
}

static void patches(mr_device *device, const mr_patches *x)
{
    size_t pixels = 3 * x->batch * x->side * x->side;
    cost c = {MR_FAMILY_rows, 0, size_of(MR_F32, pixels, 1) + size_of(x->type, pixels, 1)};
    PASS(patches, c, x);
}

static cost of_tokens(const mr_tokens *t)
{
    return (cost){MR_FAMILY_rows, 0, 2 * size_of(t->type, t->batch * t->rows, t->width)};
}

static void tokens(mr_device *device, const mr_tokens *t)
{
    PASS(tokens, of_tokens(t), t);
}

static void tokens_back(mr_device *device, const mr_tokens *t)
{
    PASS(tokens_back, of_tokens(t), t);
}

static void rows(mr_device *device, const mr_rows *r)
{
    cost c = {MR_FAMILY_rows, 0, (r->accumulate ? 3 : 2) * size_of(r->type, r->rows, r->width)};
    PASS(rows, c, r);
}

static cost of_lookup(const mr_lookup *l)
{
    return (cost){MR_FAMILY_rows, 0, size_of(l->type, l->rows, l->width) + size_of(MR_F32, l->rows, l->width)};
}

static void lookup(mr_device *device, const mr_lookup *l)
{
    PASS(lookup, of_lookup(l), l);
}

static void lookup_back(mr_device *device, const mr_lookup *l)
{
    PASS(lookup_back, of_lookup(l), l);
}

/* ---- losses and updates ------------------------------------------------------------------------------------------ */

static void cross_entropy(mr_device *device, const mr_cross_entropy *x)
{
    cost c = {MR_FAMILY_loss, 0, 2 * size_of(MR_F32, x->rows, x->classes)};
    PASS(cross_entropy, c, x);
}

static void sigmoid_loss(mr_device *device, const mr_sigmoid_loss *x)
{
    cost c = {MR_FAMILY_loss, 0, 3 * size_of(MR_F32, x->rows, x->classes)};
    PASS(sigmoid_loss, c, x);
}

static void unit(mr_device *device, const mr_unit *u)
{
    cost c = {MR_FAMILY_loss, 0, 2 * size_of(MR_F32, u->rows, u->width)};
    PASS(unit, c, u);
}

static void unit_back(mr_device *device, const mr_unit *u)
{
    cost c = {MR_FAMILY_loss, 0, 3 * size_of(MR_F32, u->rows, u->width)};
    PASS(unit_back, c, u);
}

static void scale(mr_device *device, const mr_scale *s)
{
    cost c = {MR_FAMILY_loss, 0, 2 * size_of(MR_F32, s->count, 1)};
    PASS(scale, c, s);
}

static void scale_back(mr_device *device, const mr_scale *s)
{
    cost c = {MR_FAMILY_loss, 0, 3 * size_of(MR_F32, s->count, 1)};
    PASS(scale_back, c, s);
}

static double sum_squares(mr_device *device, size_t count, const float *x)
{
    mr_profile *p = profile_of(device);
    double since = mr_seconds(), sum = p->measured->card->sum_squares(p->measured, count, x);
    add(p, since, (cost){MR_FAMILY_update, 0, size_of(MR_F32, count, 1)});
    return sum;
}

/* Weights and momentum are read and written, gradients read. */
static void sgd(mr_device *device, const mr_update *u)
{
    cost c = {MR_FAMILY_update, 0, 5 * size_of(MR_F32, u->count, 1)};
    PASS(sgd, c, u);
}

static void adamw(mr_device *device, const mr_update *u)
{
    cost c = {MR_FAMILY_update, 0, 7 * size_of(MR_F32, u->count, 1)};
    PASS(adamw, c, u);
}

static void decode(mr_device *device, const mr_decode *x)
{
    cost c = {MR_FAMILY_decode, 0, 0};
    PASS(decode, c, x);
}

static const mr_allocator *slabs(mr_device *device)
{
    mr_device *measured = profile_of(device)->measured;
    return measured->card->slabs(measured);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static mr_device_card card_of(const mr_device_card *measured)
{
    return (mr_device_card){
        .name = measured->name,
        .what = measured->what,
        .types = measured->types,
        .host_memory = measured->host_memory,
        .close = close_profile,
        .describe = describe,
        .products = products,
        .alloc = alloc,
        .free = free_memory,
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
        .add = add_arrays,
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
        .slabs = measured->slabs ? slabs : NULL,
    };
}

mr_status mr_profile_open(mr_device *measured, mr_profile **out, mr_error *err)
{
    mr_profile *p = mr_alloc(1, sizeof *p);
    if (!p) {
        mr_device_close(measured);
        return mr_fail_memory(err, "measuring a device");
    }
    p->card = card_of(measured->card);
    p->device.card = &p->card;
    p->measured = measured;
    *out = p;
    return MR_OK;
}

mr_device *mr_profile_device(mr_profile *p)
{
    return &p->device;
}

void mr_profile_count(mr_profile *p, bool on)
{
    p->counts = on;
}

const mr_family_sums *mr_profile_sums(const mr_profile *p, mr_family family)
{
    return &p->sums[family];
}

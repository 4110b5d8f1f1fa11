/* contrast.c - the contrastive head: three products of unit vectors, their losses, and the gradients.
 * Invariant: all ranks do the same work on the same joined columns, each for its own rows; a column is a
 * (rank, row) of the largest batch, and one without a sample has weight 0, which is ignored.
 *
 *      pair 0: text x image            a slot:  | images [samples, embed] | both [samples, embed] |
 *      pair 1: text x both                      | weights | groups' low halves | high halves |       [samples] each
 *      pair 2: image x both            backward: its first two parts hold gradients, the others zeros
 *
 * Text is not a column of any pair, so it stays with its rank. */
#include "train/model/contrast.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "train/model/memory_plan.h"

enum { TEXT, IMAGE, BOTH, KINDS, SIDES = 2 }; /* the sides, IMAGE and BOTH, are the columns */

enum { NUMBER = 4 }; /* bytes of a float, of an int32_t */

static const float eps = 1e-12F; /* as in torch's normalize() */

typedef struct pair {
    int row, side;
    bool row_again, side_again; /* an earlier pair has set its gradient */
} pair;

static const pair pairs[] = {{TEXT, 0, false, false}, {TEXT, 1, true, false}, {IMAGE, 1, false, true}};

struct mr_contrast {
    mr_device *device;
    size_t batch, embed, columns; /* columns: world * batch */
    unsigned world;
    bool training, overflow;
    size_t bytes;
    void *memory; /* what follows, on the device */
    float *y[KINDS], *lengths[KINDS], *losses;
    float *products, *logits; /* [batch, columns]; the products are overwritten by gradients */
    float *d_y[SIDES];        /* gradients of TEXT and IMAGE as rows; BOTH is not a row */
    float *d_side[SIDES];     /* [columns, embed] */
    float *joined[SIDES];     /* [columns, embed], of all ranks */
    float *weights;           /* [columns] */
    int32_t *groups, *labels; /* labels: 0, 1, 2, ... */
    float *host_weights;      /* [columns] */
    int32_t *host_groups;
};

typedef struct columns { /* what the rows of this rank are compared with */
    size_t count;
    const float *side[SIDES], *weights;
    const int32_t *groups, *labels;
} columns;

/* ---- memory --------------------------------------------------------------------------------------------------- */

/* The same walk counts the bytes and hands out the pointers. */
static void plan(mr_contrast *c)
{
    mr_memory_plan p = {.base = c->memory};
    c->overflow = __builtin_mul_overflow(c->batch, (size_t)c->world, &c->columns);
    for (int i = 0; i < KINDS; i++) {
        c->y[i] = mr_memory_take(&p, c->batch, c->embed, NUMBER);
        c->lengths[i] = mr_memory_take(&p, c->batch, 1, NUMBER);
    }
    c->losses = mr_memory_take(&p, c->batch, 1, NUMBER);
    c->products = mr_memory_take(&p, c->batch, c->columns, NUMBER);
    c->logits = mr_memory_take(&p, c->batch, c->columns, NUMBER);
    c->labels = mr_memory_take(&p, c->columns, 1, NUMBER);
    for (int i = 0; c->training && i < SIDES; i++) {
        c->d_y[i] = mr_memory_take(&p, c->batch, c->embed, NUMBER);
        c->d_side[i] = mr_memory_take(&p, c->columns, c->embed, NUMBER);
    }
    for (int i = 0; c->world > 1 && i < SIDES; i++)
        c->joined[i] = mr_memory_take(&p, c->columns, c->embed, NUMBER);
    c->weights = c->world > 1 ? mr_memory_take(&p, c->columns, 1, NUMBER) : NULL;
    c->groups = c->world > 1 ? mr_memory_take(&p, c->columns, 1, NUMBER) : NULL;
    c->overflow = c->overflow || p.overflow;
    c->bytes = p.used;
}

size_t mr_contrast_row(size_t embed)
{
    return embed > (SIZE_MAX - 3) / SIDES ? SIZE_MAX : SIDES * embed + 3;
}

uint64_t mr_contrast_bytes(size_t batch, size_t embed, unsigned world, bool training)
{
    mr_contrast c = {.batch = batch, .embed = embed, .world = world, .training = training};
    plan(&c);
    return c.overflow ? UINT64_MAX : c.bytes;
}

/* host_groups serves as the labels' source before it holds a group. */
static mr_status fill_labels(mr_contrast *c, mr_error *err)
{
    for (size_t i = 0; i < c->columns; i++)
        c->host_groups[i] = (int32_t)i;
    c->device->iface->upload(c->device, c->labels, c->host_groups, c->columns * sizeof *c->host_groups);
    return c->device->iface->wait(c->device, err);
}

void mr_contrast_close(mr_contrast *c)
{
    if (!c)
        return;
    c->device->iface->free(c->device, c->memory);
    free(c->host_weights);
    free(c->host_groups);
    free(c);
}

static void discard(mr_contrast **c)
{
    mr_contrast_close(*c);
}

mr_status mr_contrast_open(mr_device *d, size_t batch, size_t embed, unsigned world, bool training, mr_contrast **out,
                           mr_error *err)
{
    MR_AUTO(discard) mr_contrast *c = mr_alloc(1, sizeof *c);
    if (!c)
        return mr_fail_memory(err, "planning the contrastive head");
    *c = (mr_contrast){.device = d, .batch = batch, .embed = embed, .world = world, .training = training};
    plan(c);
    if (c->overflow || c->columns > INT32_MAX)
        return mr_fail(
            err, MR_MISUSE,
            "the contrastive head for %zu samples of %u ranks, %zu numbers each, cannot fit in memory; use a "
            "smaller batch",
            batch, world, embed);
    MR_TRY(d->iface->alloc(d, c->bytes, "the contrastive head", &c->memory, err));
    plan(c);
    c->host_weights = mr_alloc(c->columns ? c->columns : 1, sizeof *c->host_weights);
    c->host_groups = mr_alloc(c->columns ? c->columns : 1, sizeof *c->host_groups);
    if (!c->host_weights || !c->host_groups)
        return mr_fail_memory(err, "planning the contrastive head");
    MR_TRY(fill_labels(c, err));
    *out = c;
    c = NULL;
    return MR_OK;
}

/* ---- other ranks ---------------------------------------------------------------------------------------------- */

static float *slot_of(const mr_peers *p, unsigned rank)
{
    return p->all + (size_t)rank * p->capacity;
}

/* A float32 holds 24 bits of a whole number, so a group is sent in halves. */
static void put_group(float *low, float *high, int32_t group)
{
    *low = (float)((uint32_t)group & 0xFFFF);
    *high = (float)((uint32_t)group >> 16);
}

/* A sum that failed may give anything. */
static uint32_t half(float x)
{
    return x >= 0 && x <= 65535 ? (uint32_t)x : 0;
}

static int32_t group_of(float low, float high)
{
    return (int32_t)(half(high) << 16 | half(low));
}

/* The downloads come first: they wait for the last call, which may still read `all`. */
static void fill_slot(mr_contrast *c, const mr_contrast_input *in)
{
    const mr_device_iface *iface = c->device->iface;
    const mr_peers *p = in->peers;
    size_t bytes = in->count * sizeof(float), block = p->samples * c->embed, mine = in->count * c->embed;
    float *slot = slot_of(p, p->rank), *tail = slot + SIDES * block;
    for (int i = 0; i < SIDES; i++) {
        iface->download(c->device, slot + (size_t)i * block, c->y[IMAGE + i], mine * sizeof *slot);
        memset(slot + (size_t)i * block + mine, 0, (block - mine) * sizeof *slot);
    }
    memset(tail, 0, (p->capacity - SIDES * block) * sizeof *tail);
    for (unsigned rank = 0; rank < p->world; rank++)
        if (rank != p->rank)
            memset(slot_of(p, rank), 0, p->capacity * sizeof *slot);
    if (in->weights)
        iface->download(c->device, tail, in->weights, bytes);
    if (in->groups)
        iface->download(c->device, c->host_groups, in->groups, in->count * sizeof *c->host_groups);
    for (size_t i = 0; i < in->count; i++) {
        tail[i] = in->weights ? tail[i] : 1;
        put_group(&tail[p->samples + i], &tail[2 * p->samples + i], in->groups ? c->host_groups[i] : 0);
    }
}

static void read_slots(mr_contrast *c, const mr_peers *p)
{
    const mr_device_iface *iface = c->device->iface;
    size_t block = p->samples * c->embed, count = p->world * p->samples;
    for (unsigned rank = 0; rank < p->world; rank++) {
        const float *slot = slot_of(p, rank), *tail = slot + SIDES * block;
        size_t first = rank * p->samples;
        for (size_t i = 0; i < SIDES; i++)
            iface->upload(c->device, c->joined[i] + rank * block, slot + i * block, block * sizeof *slot);
        memcpy(c->host_weights + first, tail, p->samples * sizeof *tail);
        for (size_t i = 0; i < p->samples; i++)
            c->host_groups[first + i] = group_of(tail[p->samples + i], tail[2 * p->samples + i]);
    }
    iface->upload(c->device, c->weights, c->host_weights, count * sizeof *c->host_weights);
    iface->upload(c->device, c->groups, c->host_groups, count * sizeof *c->host_groups);
}

static columns columns_of(mr_contrast *c, const mr_contrast_input *in, bool joined)
{
    mr_peers *p = in->peers;
    if (!joined)
        return (columns){.count = in->count,
                         .side = {c->y[IMAGE], c->y[BOTH]},
                         .weights = in->weights,
                         .groups = in->groups,
                         .labels = c->labels};
    fill_slot(c, in);
    p->sum(p);
    read_slots(c, p);
    return (columns){.count = p->world * p->samples,
                     .side = {c->joined[0], c->joined[1]},
                     .weights = c->weights,
                     .groups = in->groups ? c->groups : NULL,
                     .labels = c->labels + p->rank * p->samples};
}

/* Every rank's gradients of all columns become, in d_side's first rows, the whole gradient of this rank's own.  The
 * downloads come first: uploads from `all` have finished then. */
static void return_gradients(mr_contrast *c, const mr_contrast_input *in)
{
    const mr_device_iface *iface = c->device->iface;
    mr_peers *p = in->peers;
    size_t block = p->samples * c->embed;
    for (unsigned rank = 0; rank < p->world; rank++) {
        float *slot = slot_of(p, rank);
        for (size_t i = 0; i < SIDES; i++)
            iface->download(c->device, slot + i * block, c->d_side[i] + rank * block, block * sizeof *slot);
        memset(slot + SIDES * block, 0, (p->capacity - SIDES * block) * sizeof *slot);
    }
    p->sum(p);
    for (size_t i = 0; i < SIDES; i++)
        iface->upload(c->device, c->d_side[i], slot_of(p, p->rank) + i * block, in->count * c->embed * sizeof(float));
}

/* ---- losses and gradients ---------------------------------------------------------------------------------------- */

static void pair_loss(mr_contrast *c, const mr_contrast_input *in, const columns *all, int k)
{
    const pair *p = &pairs[k];
    const mr_gemm g = {.m = in->count,
                       .n = all->count,
                       .k = c->embed,
                       .a = c->y[p->row],
                       .b = all->side[p->side],
                       .transpose_b = true,
                       .c = c->products};
    const mr_scale s = {.count = in->count * all->count, .log_scale = in->log_scale, .x = c->products, .y = c->logits};
    const mr_cross_entropy e = {.rows = in->count,
                                .classes = all->count,
                                .logits = c->logits,
                                .labels = all->labels,
                                .weights = in->weights,
                                .losses = c->losses,
                                .share = 1.0F / 3,
                                .add_losses = k > 0,
                                .d_logits = in->training ? c->products : NULL,
                                .columns = all->weights,
                                .groups = all->groups};
    mr_run_gemm(c->device, &g);
    mr_run_scale(c->device, &s);
    mr_run_cross_entropy(c->device, &e);
}

static void pair_backward(mr_contrast *c, const mr_contrast_input *in, const columns *all, int k)
{
    const pair *p = &pairs[k];
    const mr_scale s = {.count = in->count * all->count,
                        .log_scale = in->log_scale,
                        .y = c->logits,
                        .d_y = c->products,
                        .d_x = c->products,
                        .d_log_scale = in->d_log_scale};
    const mr_gemm row = {.m = in->count,
                         .n = c->embed,
                         .k = all->count,
                         .a = c->products,
                         .b = all->side[p->side],
                         .c = c->d_y[p->row],
                         .accumulate = p->row_again};
    const mr_gemm side = {.m = all->count,
                          .n = c->embed,
                          .k = in->count,
                          .a = c->products,
                          .transpose_a = true,
                          .b = c->y[p->row],
                          .c = c->d_side[p->side],
                          .accumulate = p->side_again};
    mr_run_scale_back(c->device, &s);
    mr_run_gemm(c->device, &row);
    mr_run_gemm(c->device, &side);
}

static mr_unit unit_of(const mr_contrast *c, const mr_contrast_input *in, int kind)
{
    return (mr_unit){.rows = in->count,
                     .width = c->embed,
                     .x = in->x[kind],
                     .y = c->y[kind],
                     .lengths = c->lengths[kind],
                     .eps = eps};
}

static void backward(mr_contrast *c, const mr_contrast_input *in, bool joined)
{
    if (joined)
        return_gradients(c, in);
    mr_run_add(c->device, &(mr_add){MR_F32, in->count * c->embed, c->d_y[IMAGE], c->d_side[0], c->d_y[IMAGE]});
    const float *d_y[KINDS] = {c->d_y[TEXT], c->d_y[IMAGE], c->d_side[1]};
    for (int i = 0; i < KINDS; i++) {
        mr_unit u = unit_of(c, in, i);
        u.type = in->type;
        u.d_y = d_y[i];
        u.d_x = in->d_x[i];
        mr_run_unit_back(c->device, &u);
    }
}

void mr_contrast_run(mr_contrast *c, const mr_contrast_input *in, mr_contrast_output *out)
{
    bool joined = in->peers && in->peers->world > 1;
    assert(in->count <= c->batch && (!in->training || c->training));
    assert(!joined || (in->count <= in->peers->samples && in->peers->samples <= c->batch));
    assert(!joined ||
           (in->peers->world <= c->world && in->peers->capacity >= in->peers->samples * mr_contrast_row(c->embed)));
    *out = (mr_contrast_output){.losses = c->losses, .embeddings = {c->y[TEXT], c->y[IMAGE], c->y[BOTH]}};
    if (in->count == 0 && joined)
        mr_peers_idle(in->peers, in->training);
    if (in->count == 0)
        return;
    for (int i = 0; i < KINDS; i++) {
        const mr_unit u = unit_of(c, in, i);
        mr_run_unit(c->device, &u);
    }
    const columns all = columns_of(c, in, joined);
    for (int k = 0; k < (int)MR_COUNT(pairs); k++) {
        pair_loss(c, in, &all, k);
        if (in->training)
            pair_backward(c, in, &all, k);
    }
    if (in->training)
        backward(c, in, joined);
}

/* any_kernel.c - an operation on shapes and numbers that follow from bytes.
 * Invariant: the first bytes choose the operation and its shapes, and all of them, again and again, are its numbers,
 * labels, ids and masks, whatever these mean.  Which tensors it has is in the table of operations. */
#include "tests/support/device/any_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/random.h"

enum { ROWS = 12, WIDTH = 150, CHOICE_BYTES = 16 };
enum { SAVED = 4 }; /* of the operands of attention, as many bytes as its plan says */

static void must(bool held)
{
    if (held)
        return;
    fprintf(stderr, "any_kernel: the device refuses what is right, writes what it only reads, or is out of memory\n");
    abort();
}

typedef struct tensor {
    void *at;
    size_t bytes;
    size_t element; /* bytes */
    uint64_t given; /* a hash of what was put there, if the operation only reads it */
    bool read_only;
} tensor;

typedef union arguments { /* of one operation */
    mr_gemm gemm;
    mr_sum_rows sum_rows;
    mr_norm norm;
    mr_norm_back norm_back;
    mr_drop drop;
    mr_activate activate;
    struct {
        mr_attention_back back; /* first, as it is what the operation is given */
        mr_attention forward;
    } attention;
    mr_attention forward;
    mr_patches patches;
    mr_tokens tokens;
    mr_rows rows;
    mr_add add;
    mr_cross_entropy cross_entropy;
    mr_sigmoid_loss sigmoid_loss;
    mr_lookup lookup;
    mr_unit unit;
    mr_scale scale;
    mr_sum_squares sum_squares;
    mr_update update;
} arguments;

typedef struct input {
    const uint8_t *data;
    size_t size, at;
    mr_random draw;
    mr_device *d;
    mr_type type;
    size_t limit; /* of every size */
    size_t saved; /* bytes of attention */
    double squares;
    tensor tensors[MR_OPERANDS_MAX];
    size_t count;
} input;

static size_t pick(input *in, size_t most)
{
    return 1 + (size_t)mr_random_below(&in->draw, most < in->limit ? most : in->limit);
}

static bool yes(input *in)
{
    return mr_random_below(&in->draw, 2);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static mr_dropout dropout(input *in)
{
    return (mr_dropout){.rate = yes(in) ? 0.25F : 0, .site = 3};
}

static void draw_attention(input *in, mr_attention *a)
{
    mr_error err;
    *a = (mr_attention){.type = in->type,
                        .batch = pick(in, 2),
                        .heads = pick(in, 3),
                        .head_dim = pick(in, 40),
                        .queries = pick(in, 80),
                        .keys = pick(in, 80),
                        .scale = 0.125F,
                        .dropout = dropout(in)};
    must(in->d->iface->plan_attention(in->d, a, &in->saved, &err) == MR_OK);
}

/* The arguments of an operation that is not on rows, but for its pointers. */
static void draw_other(input *in, mr_op_kind kind, arguments *x)
{
    mr_type type = in->type;
    size_t count = pick(in, ROWS * WIDTH), few = pick(in, 20);
    switch (kind) {
    case MR_OP_gemm:
        x->gemm = (mr_gemm){.a_type = type, .c_type = type, .m = pick(in, 70), .n = pick(in, 70), .k = pick(in, 40)};
        x->gemm.transpose_a = yes(in), x->gemm.transpose_b = yes(in), x->gemm.accumulate = yes(in);
        break;
    case MR_OP_attention:
        draw_attention(in, &x->forward);
        break;
    case MR_OP_attention_back:
        draw_attention(in, &x->attention.forward);
        x->attention.back.forward = &x->attention.forward;
        break;
    case MR_OP_patches:
        x->patches = (mr_patches){.type = type, .batch = pick(in, 3), .side = few, .patch = pick(in, few)};
        x->patches.channel_first = yes(in);
        break;
    case MR_OP_tokens:
    case MR_OP_tokens_back:
        x->tokens = (mr_tokens){.type = type, .batch = pick(in, 3), .rows = few, .width = pick(in, WIDTH)};
        x->tokens.dropout = dropout(in);
        break;
    case MR_OP_add:
        x->add = (mr_add){.type = type, .count = count};
        break;
    case MR_OP_scale:
    case MR_OP_scale_back:
        x->scale.count = count;
        break;
    case MR_OP_sum_squares:
        x->sum_squares = (mr_sum_squares){.count = count, .sum = &in->squares};
        break;
    case MR_OP_sgd:
    case MR_OP_adamw:
        x->update = (mr_update){.count = count, .g_scale = 0.5, .lr = 0.01, .decay = 0.1, .momentum = 0.9};
        x->update.beta1 = 0.9, x->update.beta2 = 0.99, x->update.eps = 1e-8;
        x->update.correction1 = 0.1, x->update.correction2 = 0.01;
        break;
    default: /* not drawn: of no elements */
        break;
    }
}

/* All of the arguments but their pointers. */
static void draw_shape(input *in, mr_op_kind kind, arguments *x)
{
    mr_type type = in->type;
    size_t rows = pick(in, ROWS), width = pick(in, WIDTH), few = pick(in, 20);
    memset(x, 0, sizeof *x);
    switch (kind) {
    case MR_OP_sum_rows:
        x->sum_rows = (mr_sum_rows){.type = type, .rows = rows, .width = width};
        break;
    case MR_OP_norm:
        x->norm = (mr_norm){.type = type, .rows = rows, .width = width, .sample_rows = few, .eps = 1e-6F};
        x->norm.dropout = dropout(in);
        break;
    case MR_OP_norm_back:
        x->norm_back = (mr_norm_back){.type = type, .rows = rows, .width = width};
        break;
    case MR_OP_drop:
        x->drop = (mr_drop){.type = type, .rows = rows, .width = width, .sample_rows = few, .dropout = dropout(in)};
        break;
    case MR_OP_activate:
    case MR_OP_activate_back:
        x->activate = (mr_activate){.type = type, .rows = rows, .width = width, .sample_rows = few};
        x->activate.kind = (mr_activation)mr_random_below(&in->draw, 3);
        x->activate.dropout = dropout(in);
        break;
    case MR_OP_rows:
        x->rows = (mr_rows){.type = type, .rows = rows, .width = width, .accumulate = yes(in)};
        x->rows.from_stride = width + few, x->rows.to_stride = yes(in) ? width + few : 0;
        break;
    case MR_OP_cross_entropy:
        x->cross_entropy = (mr_cross_entropy){.type = type, .rows = rows, .classes = width, .add_losses = yes(in)};
        x->cross_entropy.smoothing = yes(in) ? 0.1F : 0;
        break;
    case MR_OP_sigmoid_loss:
        x->sigmoid_loss = (mr_sigmoid_loss){.type = type, .rows = rows, .classes = width};
        break;
    case MR_OP_lookup:
    case MR_OP_lookup_back:
        x->lookup = (mr_lookup){.type = type, .rows = rows, .width = width, .entries = few, .accumulate = yes(in)};
        x->lookup.skip = yes(in) ? -1 : (int32_t)pick(in, few);
        break;
    case MR_OP_unit:
    case MR_OP_unit_back:
        x->unit = (mr_unit){.type = type, .rows = rows, .width = width, .eps = 1e-6F};
        break;
    default:
        draw_other(in, kind, x);
    }
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* Half are of 0 .. entries - 1, the others just miss that, and a few are anything. */
static void make_ids(uint8_t *filled, size_t count, size_t entries)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, filled + i * sizeof word, sizeof word);
        int32_t end = (int32_t)entries, near = (int32_t)((word >> 4) % entries);
        near = word % 4 == 1 ? -1 : word % 4 == 2 ? end : near;
        if (word % 16)
            memcpy(filled + i * sizeof near, &near, sizeof near);
    }
}

/* A tensor of bytes of the input, again and again: any number, also none. */
static void *give(input *in, const mr_operand *o, size_t bytes)
{
    mr_error err;
    tensor *t = &in->tensors[in->count++];
    uint8_t *filled = malloc(bytes + 1);
    must(filled != NULL);
    for (size_t i = 0; i < bytes; i++)
        filled[i] = in->size ? in->data[in->at++ % in->size] : 0;
    if (o->entries)
        make_ids(filled, o->capacity, o->entries);
    *t = (tensor){
        .bytes = bytes, .element = o->size, .given = mr_hash64(filled, bytes), .read_only = !(o->use & MR_OUT)};
    must(in->d->iface->alloc(in->d, bytes, "fuzzing", &t->at, &err) == MR_OK);
    in->d->iface->upload(in->d, t->at, filled, bytes);
    free(filled);
    return t->at;
}

/* How much one needs may depend on whether those before it are there. */
static void give_all(input *in, const mr_op *op)
{
    mr_operand o[MR_OPERANDS_MAX];
    bool attends = op->kind == MR_OP_attention || op->kind == MR_OP_attention_back;
    for (size_t i = 0; i < mr_op_operands(op, o); i++)
        if (o[i].capacity && (!(o[i].use & MR_OPTIONAL) || yes(in)))
            *(void **)(uintptr_t)o[i].pointer =
                give(in, &o[i], attends && i == SAVED ? in->saved : o[i].capacity * o[i].size);
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* One NaN for all: which of two an operation hands on depends on the order of its operands, which nothing promises. */
static void settle_nans(const tensor *t, void *taken)
{
    uint16_t *halves = taken;
    uint32_t *words = taken;
    for (size_t i = 0; t->element == 2 && i < t->bytes / 2; i++)
        if ((halves[i] & 0x7fff) > 0x7f80)
            halves[i] = 0x7fc0;
    for (size_t i = 0; t->element == 4 && i < t->bytes / 4; i++)
        if ((words[i] & 0x7fffffff) > 0x7f800000)
            words[i] = 0x7fc00000;
}

/* What is in the tensors now; those that are only read are as they were. */
static uint64_t digest(const input *in)
{
    uint64_t sum = mr_hash64(&in->squares, sizeof in->squares);
    for (size_t i = 0; i < in->count; i++) {
        const tensor *t = &in->tensors[i];
        uint8_t *taken = malloc(t->bytes + 1);
        must(taken != NULL);
        in->d->iface->download(in->d, taken, t->at, t->bytes);
        must(!t->read_only || mr_hash64(taken, t->bytes) == t->given);
        settle_nans(t, taken);
        sum = mr_hash64_seeded(taken, t->bytes, sum);
        free(taken);
    }
    return sum;
}

mr_status any_kernel_run(mr_device *d, const uint8_t *data, size_t size, size_t limit, uint64_t *out, mr_error *err)
{
    input in = {.data = data, .size = size, .limit = limit, .d = d};
    arguments x;
    mr_random_seed(&in.draw, mr_hash64(data, size < CHOICE_BYTES ? size : CHOICE_BYTES));
    in.type = yes(&in) && d->iface->types & 1U << MR_BF16 ? MR_BF16 : MR_F32;
    const mr_op op = {(mr_op_kind)mr_random_below(&in.draw, MR_OP_decode), &x};
    draw_shape(&in, op.kind, &x);
    give_all(&in, &op);
    d->iface->run(d, &op);
    mr_status status = d->iface->wait(d, err);
    *out = digest(&in);
    for (size_t i = 0; i < in.count; i++)
        d->iface->free(d, in.tensors[i].at);
    return status;
}

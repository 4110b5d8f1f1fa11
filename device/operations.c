/* operations.c - the operands of each operation, and what it costs.
 * Invariant: every pointer to device memory that an operation may follow is an operand of it. */
#include "device/operations.h"

#include <string.h>

/* Elements from the first to the last of rows that are `stride` apart. */
static size_t span(size_t rows, size_t width, size_t stride)
{
    return rows && width ? (rows - 1) * (stride ? stride : width) + width : 0;
}

static size_t samples(size_t rows, size_t sample_rows)
{
    return sample_rows ? (rows + sample_rows - 1) / sample_rows : 1;
}

/* FLOPs of a product of queries with keys, or of probabilities with values. */
static double scores(const mr_attention *a)
{
    return 2 * (double)a->batch * (double)a->queries * (double)a->keys * (double)a->heads * (double)a->head_dim;
}

static size_t patches(size_t side, size_t patch)
{
    size_t grid = patch ? side / patch : 0;
    return grid * grid;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

#define T          mr_type_size(x->type)
#define F          sizeof(float)
#define IN         MR_IN
#define OUT        MR_OUT
#define ADD        (MR_IN | MR_OUT)
#define SET(adds)  ((adds) ? ADD : OUT)
#define MAYBE      MR_OPTIONAL
#define AT(member) .pointer = (void *const *)(const void *)&x->member
#define WITHIN(member, how, of, n, all)                                                                                \
    {                                                                                                                  \
        AT(member), .use = how, .size = of, .count = n, .capacity = all                                                \
    }
#define ALL(member, how, of, n) WITHIN(member, how, of, n, n)
#define IDS(member, how, n, end)                                                                                       \
    {                                                                                                                  \
        AT(member), .use = how, .size = F, .count = n, .capacity = n, .entries = end                                   \
    }
#define KEYS(of, n)                                                                                                    \
    {                                                                                                                  \
        .pointer = (void *const *)(const void *)&(of)->dropout.keys, .use = IN, .size = sizeof(uint64_t),              \
        .count = (of)->dropout.rate > 0 ? n : 0, .capacity = (of)->dropout.rate > 0 ? n : 0                            \
    }
#define LINES(transposed, m, n, stride) (transposed ? span(n, m, stride) : span(m, n, stride))
#define HEADS(of, member, how, rows, stride)                                                                           \
    WITHIN(member, how, mr_type_size((of)->type), (of)->batch *(of)->rows *(of)->heads *(of)->head_dim,                \
           span((of)->batch *(of)->rows, (of)->heads *(of)->head_dim, (of)->stride))

#define X(name, arguments, family, flops, ...)                                                                         \
    static size_t of_##name(const arguments *x, mr_operand *out)                                                       \
    {                                                                                                                  \
        const mr_operand all[] = {__VA_ARGS__};                                                                        \
        _Static_assert(MR_COUNT(all) <= MR_OPERANDS_MAX, "more operands than there is room for");                      \
        memcpy(out, all, sizeof all);                                                                                  \
        return MR_COUNT(all);                                                                                          \
    }                                                                                                                  \
    /* Some have no products, and ignore their arguments. */                                                           \
    static double flops_of_##name(const arguments *x)                                                                  \
    {                                                                                                                  \
        (void)x;                                                                                                       \
        return flops;                                                                                                  \
    }
MR_OPERATIONS(X)
#undef X

/* ---- the table --------------------------------------------------------------------------------------------------- */

const char *mr_op_word(mr_op_kind kind)
{
    static const char *const words[] = {
#define X(name, ...) #name,
        MR_OPERATIONS(X)
#undef X
    };
    return words[kind];
}

mr_family mr_op_family(mr_op_kind kind)
{
    static const mr_family families[] = {
#define X(name, arguments, family, ...) MR_FAMILY_##family,
        MR_OPERATIONS(X)
#undef X
    };
    return families[kind];
}

double mr_op_flops(const mr_op *op)
{
    switch (op->kind) {
#define X(name, ...)                                                                                                   \
    case MR_OP_##name:                                                                                                 \
        return flops_of_##name(op->arguments);
        MR_OPERATIONS(X)
#undef X
    default:
        return 0;
    }
}

size_t mr_op_operands(const mr_op *op, mr_operand out[MR_OPERANDS_MAX])
{
    switch (op->kind) {
#define X(name, ...)                                                                                                   \
    case MR_OP_##name:                                                                                                 \
        return of_##name(op->arguments, out);
        MR_OPERATIONS(X)
#undef X
    default:
        return 0;
    }
}

double mr_op_bytes(const mr_op *op)
{
    mr_operand o[MR_OPERANDS_MAX];
    double bytes = 0;
    for (size_t i = 0, n = mr_op_operands(op, o); i < n; i++)
        if (*o[i].pointer)
            bytes += (double)(o[i].count * o[i].size) * ((o[i].use & MR_IN ? 1 : 0) + (o[i].use & MR_OUT ? 1 : 0));
    return bytes;
}

const char *mr_type_word(mr_type type)
{
    return type == MR_BF16 ? "bf16" : "float32";
}

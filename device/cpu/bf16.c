/* bf16.c - the CPU's products of bf16: by oneDNN where it and the processor have them, otherwise widened.
 * Invariant: operands are converted whole before the product is divided, and results chunk by chunk while they are in
 * the cache; sums are float32 in both ways.
 *
 *      oneDNN    float32 operand (a weight) -> bf16      bf16 operand: as it is
 *      widened   bf16 operand -> float32                 float32 operand: as it is */
#include "device/cpu/bf16.h"

#include "base/scope.h"

void mr_cpu_bf16_close(mr_cpu_bf16 *b)
{
    for (size_t i = 0; i < MR_COUNT(b->operands); i++)
        mr_slab_free(&b->operands[i], NULL);
    mr_slab_free(&b->chunks, NULL);
    *b = (mr_cpu_bf16){0};
}

/* ---- operands --------------------------------------------------------------------------------------------------- */

typedef struct conversion { /* from a stored matrix to a dense one */
    const mr_cpu *d;
    mr_type type; /* the type of `from` */
    const void *from;
    void *to;
    size_t rows, width, stride, per_task;
} conversion;

static void convert_rows(void *ctx, size_t task, unsigned member)
{
    const conversion *c = ctx;
    size_t first = task * c->per_task, last = first + c->per_task < c->rows ? first + c->per_task : c->rows;
    (void)member;
    for (size_t r = first; r < last; r++) {
        if (c->type == MR_BF16)
            c->d->kernels->widen(c->width, (const uint16_t *)c->from + r * c->stride, (float *)c->to + r * c->width);
        else
            c->d->kernels->narrow(c->width, (const float *)c->from + r * c->stride, (uint16_t *)c->to + r * c->width);
    }
}

/* *matrix of `type` becomes one of `wanted`; *stride that of the result.  false: no memory. */
static bool convert(mr_cpu *d, unsigned which, mr_type wanted, mr_type type, size_t rows, size_t width,
                    const void **matrix, size_t *stride)
{
    enum { WORK = 1 << 15 };
    mr_slab *slab = &d->bf16.operands[which];
    if (type == wanted)
        return true;
    if (mr_slab_reserve(slab, rows * width * mr_type_size(wanted), 0, NULL, NULL) != MR_OK)
        return false;
    conversion c = {.d = d,
                    .type = type,
                    .from = *matrix,
                    .to = slab->data,
                    .rows = rows,
                    .width = width,
                    .stride = *stride,
                    .per_task = mr_cpu_rows_per_task(rows, width, WORK)};
    mr_team_run(d->team, (rows + c.per_task - 1) / c.per_task, convert_rows, &c);
    *matrix = slab->data;
    *stride = width;
    return true;
}

bool mr_cpu_bf16_prepare(mr_cpu *d, mr_gemm *g, size_t chunk)
{
    mr_type wanted = d->onednn.gemm_bf16 ? MR_BF16 : MR_F32;
    size_t a_rows = g->transpose_a ? g->k : g->m, a_width = g->transpose_a ? g->m : g->k;
    size_t b_rows = g->transpose_b ? g->n : g->k, b_width = g->transpose_b ? g->k : g->n;
    bool done = convert(d, 0, wanted, g->a_type, a_rows, a_width, &g->a, &g->lda) &&
                convert(d, 1, wanted, g->b_type, b_rows, b_width, &g->b, &g->ldb);
    g->a_type = g->b_type = wanted;
    if (done && g->c_type == MR_BF16)
        done =
            mr_slab_reserve(&d->bf16.chunks, mr_team_threads(d->team) * chunk * sizeof(float), 0, NULL, NULL) == MR_OK;
    if (!done)
        d->no_memory = true;
    return done;
}

/* ---- results ---------------------------------------------------------------------------------------------------- */

float *mr_cpu_bf16_chunk(const mr_cpu *d, unsigned member, size_t chunk)
{
    return (float *)(void *)d->bf16.chunks.data + member * chunk;
}

void mr_cpu_bf16_load(const mr_cpu *d, const uint16_t *c, size_t ldc, size_t rows, size_t columns, float *chunk)
{
    for (size_t r = 0; r < rows; r++)
        d->kernels->widen(columns, c + r * ldc, chunk + r * columns);
}

void mr_cpu_bf16_store(const mr_cpu *d, const float *chunk, size_t rows, size_t columns, uint16_t *c, size_t ldc)
{
    for (size_t r = 0; r < rows; r++)
        d->kernels->narrow(columns, chunk + r * columns, c + r * ldc);
}

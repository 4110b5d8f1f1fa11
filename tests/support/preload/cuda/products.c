/* products.c - libcublasLt of the fake device: products by plain loops over columns, as its documentation defines them.
 * Invariant: operands less aligned than the preference said, too little workspace, or a type that the library does not
 * take, fail. */
#include <stdlib.h>
#include <string.h>

#include "base/bf16.h"
#include "fake.h"

enum { OK = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { F32 = 0, BF16 = 14, NEEDS = 4096 /* bytes of workspace */ };

typedef struct product {
    int transposed[2], epilogue;
    const void *bias;
} product;

typedef struct layout {
    int type;
    uint64_t rows, columns;
    int64_t stride;
} layout;

typedef struct preference {
    size_t workspace;
    uint32_t reductions, aligned[4];
} preference;

typedef struct choice {
    uint64_t data[8]; /* what was promised about alignment */
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} choice;

size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void)
{
    return 130100;
}

static char handle;

int cublasLtCreate(void **out);
int cublasLtCreate(void **out)
{
    *out = &handle;
    return fake_has_context() && !getenv("MILLRACE_FAKE_NO_LT") ? OK : NOT_INITIALIZED;
}

int cublasLtDestroy(void *h);
int cublasLtDestroy(void *h)
{
    return h == &handle ? OK : INVALID_VALUE;
}

int cublasLtMatmulDescCreate(product **out, int compute, int scale);
int cublasLtMatmulDescCreate(product **out, int compute, int scale)
{
    *out = calloc(1, sizeof **out);
    return *out && compute == 68 && scale == F32 ? OK : NOT_SUPPORTED;
}

int cublasLtMatmulDescSetAttribute(product *p, int what, const void *value, size_t size);
int cublasLtMatmulDescSetAttribute(product *p, int what, const void *value, size_t size)
{
    void *to = what == 3   ? (void *)&p->transposed[0]
               : what == 4 ? (void *)&p->transposed[1]
               : what == 7 ? (void *)&p->epilogue
                           : (void *)&p->bias;
    if ((what != 3 && what != 4 && what != 7 && what != 8) || size != (what == 8 ? sizeof p->bias : sizeof(int)))
        return INVALID_VALUE;
    memcpy(to, value, size);
    return OK;
}

int cublasLtMatmulDescDestroy(product *p);
int cublasLtMatmulDescDestroy(product *p)
{
    free(p);
    return OK;
}

int cublasLtMatrixLayoutCreate(layout **out, int type, uint64_t rows, uint64_t columns, int64_t stride);
int cublasLtMatrixLayoutCreate(layout **out, int type, uint64_t rows, uint64_t columns, int64_t stride)
{
    if ((type != F32 && type != BF16) || !rows || !columns || stride < (int64_t)rows)
        return INVALID_VALUE;
    *out = malloc(sizeof **out);
    if (*out)
        **out = (layout){type, rows, columns, stride};
    return *out ? OK : INVALID_VALUE;
}

int cublasLtMatrixLayoutDestroy(layout *l);
int cublasLtMatrixLayoutDestroy(layout *l)
{
    free(l);
    return OK;
}

int cublasLtMatmulPreferenceCreate(preference **out);
int cublasLtMatmulPreferenceCreate(preference **out)
{
    *out = malloc(sizeof **out);
    if (*out)
        **out = (preference){.reductions = 7, .aligned = {256, 256, 256, 256}};
    return *out ? OK : INVALID_VALUE;
}

int cublasLtMatmulPreferenceSetAttribute(preference *p, int what, const void *value, size_t size);
int cublasLtMatmulPreferenceSetAttribute(preference *p, int what, const void *value, size_t size)
{
    if (what == 1 && size == sizeof p->workspace)
        memcpy(&p->workspace, value, size);
    else if (what == 3 && size == sizeof p->reductions)
        memcpy(&p->reductions, value, size);
    else if (what >= 5 && what <= 8 && size == sizeof p->aligned[0])
        memcpy(&p->aligned[what - 5], value, size);
    else
        return INVALID_VALUE;
    return OK;
}

int cublasLtMatmulPreferenceDestroy(preference *p);
int cublasLtMatmulPreferenceDestroy(preference *p)
{
    free(p);
    return OK;
}

int cublasLtMatmulAlgoGetHeuristic(void *h, product *p, const layout *a, const layout *b, const layout *c,
                                   const layout *d, const preference *wish, int wanted, choice *out, int *count);
int cublasLtMatmulAlgoGetHeuristic(void *h, product *p, const layout *a, const layout *b, const layout *c,
                                   const layout *d, const preference *wish, int wanted, choice *out, int *count)
{
    *count = 0;
    if (getenv("MILLRACE_FAKE_DECLINES"))
        return NOT_SUPPORTED;
    if (h != &handle || wanted < 1 || c->type != d->type)
        return INVALID_VALUE;
    if (a->type != b->type || (a->type == F32 && d->type == BF16) || wish->workspace < NEEDS || (wish->reductions & 4))
        return NOT_SUPPORTED;
    uint64_t rows = p->transposed[0] ? a->columns : a->rows, deep = p->transposed[0] ? a->rows : a->columns;
    uint64_t columns = p->transposed[1] ? b->rows : b->columns, deep_b = p->transposed[1] ? b->columns : b->rows;
    if (rows != d->rows || columns != d->columns || deep != deep_b)
        return INVALID_VALUE;
    *out = (choice){.workspace = NEEDS};
    for (size_t i = 0; i < 4; i++)
        out->data[i] = wish->aligned[i];
    *count = 1;
    return OK;
}

typedef struct job {
    product p;
    layout a, b, d;
    const void *a_at, *b_at;
    void *d_at;
    float alpha, beta;
} job;

static double number(const layout *l, const void *at, size_t i)
{
    return (double)(l->type == BF16 ? mr_bf16_float(((const uint16_t *)at)[i]) : ((const float *)at)[i]);
}

/* op(x) for the product's sums, as [deep][lines]; freed by the caller. */
static double *numbers_of(const layout *l, const void *at, size_t lines, size_t deep, bool along)
{
    double *out = malloc(lines * deep * sizeof *out);
    for (size_t i = 0; i < lines; i++)
        for (size_t k = 0; k < deep; k++)
            out[k * lines + i] = number(l, at, along ? i * (size_t)l->stride + k : i + k * (size_t)l->stride);
    return out;
}

/* d = alpha op(a) op(b) + beta c + bias, element (i, j) at i + j * stride. */
static bool run_product(fake_work *w)
{
    const job *j = w->data;
    size_t rows = j->d.rows, columns = j->d.columns, deep = j->p.transposed[0] ? j->a.rows : j->a.columns;
    double *a = numbers_of(&j->a, j->a_at, rows, deep, j->p.transposed[0]);
    double *b = numbers_of(&j->b, j->b_at, columns, deep, !j->p.transposed[1]);
    double *sums = malloc(rows * sizeof *sums);
    for (size_t column = 0; column < columns; column++) {
        memset(sums, 0, rows * sizeof *sums);
        for (size_t k = 0; k < deep; k++)
            for (size_t row = 0; row < rows; row++)
                sums[row] += a[k * rows + row] * b[k * columns + column];
        for (size_t row = 0; row < rows; row++) {
            size_t at = row + column * (size_t)j->d.stride;
            double all = (double)j->alpha * sums[row];
            all += j->beta != 0 ? (double)j->beta * number(&j->d, j->d_at, at) : 0;
            all += j->p.epilogue == 4 ? number(&j->d, j->p.bias, row) : 0;
            if (j->d.type == BF16)
                ((uint16_t *)j->d_at)[at] = mr_bf16_of((float)all);
            else
                ((float *)j->d_at)[at] = (float)all;
        }
    }
    free(sums);
    free(a);
    free(b);
    fake_check_memory("cublasLtMatmul");
    return true;
}

static bool fits(const layout *l, const void *at, uint64_t aligned)
{
    size_t bytes = ((size_t)(l->columns - 1) * (size_t)l->stride + l->rows) * (l->type == BF16 ? 2 : 4);
    return fake_has((uintptr_t)at, bytes) && (uintptr_t)at % aligned == 0;
}

int cublasLtMatmul(void *h, const product *p, const float *alpha, const void *a_at, const layout *a, const void *b_at,
                   const layout *b, const float *beta, const void *c_at, const layout *c, void *d_at, const layout *d,
                   const uint64_t *algorithm, void *workspace, size_t workspace_size, void *stream);
int cublasLtMatmul(void *h, const product *p, const float *alpha, const void *a_at, const layout *a, const void *b_at,
                   const layout *b, const float *beta, const void *c_at, const layout *c, void *d_at, const layout *d,
                   const uint64_t *algorithm, void *workspace, size_t workspace_size, void *stream)
{
    if (h != &handle || c != d || c_at != d_at || workspace_size < NEEDS ||
        !fake_has((uintptr_t)workspace, workspace_size) || !fits(a, a_at, algorithm[0]) ||
        !fits(b, b_at, algorithm[1]) || !fits(d, d_at, algorithm[3]) ||
        (p->epilogue == 4 && !fake_has((uintptr_t)p->bias, d->rows * (d->type == BF16 ? 2 : 4))))
        return INVALID_VALUE;
    const fake_work work = {.run = run_product, .data = malloc(sizeof(job)), .data_bytes = sizeof(job)};
    if (!work.data)
        return INVALID_VALUE;
    *(job *)work.data = (job){*p, *a, *b, *d, a_at, b_at, d_at, *alpha, *beta};
    return fake_queue(stream, work) ? 14 : OK;
}

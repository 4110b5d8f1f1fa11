/* gemm.c - the CPU's matrix products: by oneDNN where it is faster (onednn.c), otherwise by OpenBLAS, loaded when a
 * device opens.
 * Invariant: both run single-threaded, and the team divides the work: OpenBLAS's own threads spin, and divide the work
 * by the number of threads. */
#include <assert.h>
#include <cblas.h>
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/library.h"
#include "device/cpu/bf16.h"

typedef void sgemm_fn(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE a_way, enum CBLAS_TRANSPOSE b_way, blasint m,
                      blasint n, blasint k, float alpha, const float *a, blasint lda, const float *b, blasint ldb,
                      float beta, float *c, blasint ldc);

mr_status mr_cpu_blas_open(mr_cpu_blas *blas, mr_error *err)
{
    void (*set_threads)(int) = NULL;
    char *(*core_name)(void) = NULL;
    const char *why;
    /* Otherwise its threads would start and spin before they can be switched off. */
    setenv("OPENBLAS_NUM_THREADS", "1", 0);
    blas->library = mr_library_load("libopenblas.so.0", &why);
    if (!blas->library)
        return mr_fail(err, MR_SYSTEM, "cpu: OpenBLAS cannot be loaded (%s); install it: apt-get install libopenblas0",
                       why);
    mr_library_find(blas->library, "cblas_sgemm", &blas->sgemm);
    mr_library_find(blas->library, "openblas_set_num_threads", &set_threads);
    mr_library_find(blas->library, "openblas_get_corename", &core_name);
    if (!blas->sgemm || !set_threads) {
        mr_cpu_blas_close(blas);
        return mr_fail(err, MR_SYSTEM, "cpu: libopenblas.so.0 lacks cblas_sgemm; reinstall the package libopenblas0");
    }
    set_threads(1);
    blas->core = core_name ? core_name() : "this processor";
    return MR_OK;
}

mr_status mr_cpu_blas_reserve(const mr_cpu_blas *blas, unsigned threads, mr_error *err)
{
    enum { BUFFERS_MAX = 64 }; /* OpenBLAS allows more; each thread needs one at a time */
    const size_t buffer = ((size_t)128 << 20) + (1 << 16);
    void *(*take)(int) = NULL;
    void (*give_back)(void *) = NULL;
    void *buffers[BUFFERS_MAX];
    if (!mr_cpu_can_map(threads * buffer))
        return mr_fail(err, MR_SYSTEM,
                       "cpu: not enough memory or address space: OpenBLAS needs 128 MiB for each of %u threads; "
                       "use fewer --threads or raise `ulimit -v`",
                       threads);
    mr_library_find(blas->library, "blas_memory_alloc", &take);
    mr_library_find(blas->library, "blas_memory_free", &give_back);
    unsigned count = !take || !give_back ? 0 : threads < BUFFERS_MAX ? threads : BUFFERS_MAX;
    for (unsigned i = 0; i < count; i++)
        buffers[i] = take(0);
    for (unsigned i = 0; i < count; i++)
        give_back(buffers[i]);
    return MR_OK;
}

void mr_cpu_blas_close(mr_cpu_blas *blas)
{
    if (blas->library)
        dlclose(blas->library);
    *blas = (mr_cpu_blas){0};
}

static blasint small(size_t size)
{
    assert(size <= INT_MAX);
    return (blasint)size;
}

void mr_cpu_multiply(mr_cpu *d, const mr_cpu_product *p)
{
    sgemm_fn *sgemm;
    if (mr_cpu_onednn_multiply(&d->onednn, p))
        return;
    if (p->type == MR_BF16) { /* which OpenBLAS cannot multiply */
        d->no_memory = true;
        return;
    }
    memcpy(&sgemm, &d->blas.sgemm, sizeof sgemm);
    sgemm(CblasRowMajor, p->transpose_a ? CblasTrans : CblasNoTrans, p->transpose_b ? CblasTrans : CblasNoTrans,
          small(p->m), small(p->n), small(p->k), p->alpha, p->a, small(p->lda), p->b, small(p->ldb), p->beta, p->c,
          small(p->ldc));
}

/* ---- splitting ------------------------------------------------------------------------------------------------ */

enum { TILE = 64, STEP = 16 }; /* the smallest side of a chunk; sides are multiples that suit the kernels */

typedef struct job {
    mr_cpu *d;
    mr_gemm g;
    size_t rows, columns, across; /* rows and columns of a chunk; chunks from left to right */
} job;

/* The sums start from the bias, so adding it is free: OpenBLAS would write zeros instead. */
static void start_chunk(const mr_gemm *g, size_t rows, size_t columns, float *c, size_t ldc, const float *bias)
{
    for (size_t r = 0; r < rows; r++) {
        float *row = c + r * ldc;
        if (!g->accumulate && !bias)
            memset(row, 0, columns * sizeof *row);
        else if (!g->accumulate)
            memcpy(row, bias, columns * sizeof *row);
        for (size_t i = 0; g->accumulate && bias && i < columns; i++)
            row[i] += bias[i];
    }
}

/* c[rows, columns] of a chunk, in float32. */
static void multiply_chunk(const job *j, size_t row, size_t column, mr_cpu_product *p)
{
    const mr_gemm *g = &j->g;
    if (g->bias || (g->k == 0 && !g->accumulate))
        start_chunk(g, p->m, p->n, p->c, p->ldc, g->bias ? g->bias + column : NULL);
    if (g->k == 0)
        return;
    p->type = g->a_type;
    p->transpose_a = g->transpose_a;
    p->transpose_b = g->transpose_b;
    p->k = g->k;
    p->a = (const uint8_t *)g->a + mr_type_size(g->a_type) * (g->transpose_a ? row : row * g->lda);
    p->b = (const uint8_t *)g->b + mr_type_size(g->b_type) * (g->transpose_b ? column * g->ldb : column);
    p->lda = g->lda;
    p->ldb = g->ldb;
    p->alpha = 1;
    p->beta = g->accumulate || g->bias ? 1 : 0;
    mr_cpu_multiply(j->d, p);
}

static void chunk(void *ctx, size_t task, unsigned member)
{
    const job *j = ctx;
    const mr_gemm *g = &j->g;
    size_t row = task / j->across * j->rows, column = task % j->across * j->columns, at = row * g->ldc + column;
    mr_cpu_product p = {.m = g->m - row < j->rows ? g->m - row : j->rows,
                        .n = g->n - column < j->columns ? g->n - column : j->columns,
                        .ldc = g->ldc};
    if (g->c_type == MR_F32) {
        p.c = (float *)g->c + at;
        multiply_chunk(j, row, column, &p);
        return;
    }
    uint16_t *c = (uint16_t *)g->c + at;
    p.c = mr_cpu_bf16_chunk(j->d, member, j->rows * j->columns);
    p.ldc = p.n;
    if (g->accumulate)
        mr_cpu_bf16_load(j->d, c, g->ldc, p.m, p.n, p.c);
    multiply_chunk(j, row, column, &p);
    mr_cpu_bf16_store(j->d, p.c, p.m, p.n, c, g->ldc);
}

static size_t side(size_t whole, size_t parts)
{
    size_t part = (whole + parts - 1) / parts;
    return (part + STEP - 1) / STEP * STEP;
}

/* Every chunk packs its operands separately (2 x 4 chunks take 5 % longer than the whole, 4 x 4 take 10 %), but too few
 * leave threads idle.  So up to 8 of at least 40 us, more for large products; close to square. */
static void cut(job *j)
{
    const double piece = 8e6, large = 4e9; /* operations; about 200 per nanosecond and thread */
    double work = 2.0 * (double)j->g.m * (double)j->g.n * (double)j->g.k;
    double max = work > large ? 8 * sqrt(work / large) : 8;
    size_t down = 1, across = 1;
    while ((double)(2 * down * across) <= max && work / (double)(2 * down * across) >= piece) {
        size_t m = j->g.m / down, n = j->g.n / across;
        if (m < 2 * TILE && n < 2 * TILE)
            break;
        if (m >= n)
            down *= 2;
        else
            across *= 2;
    }
    j->rows = side(j->g.m, down);
    j->columns = side(j->g.n, across);
    j->across = (j->g.n + j->columns - 1) / j->columns;
}

void mr_cpu_gemm(mr_device *device, const mr_gemm *g)
{
    mr_cpu *d = mr_cpu_of(device);
    if (g->m == 0 || g->n == 0)
        return;
    job j = {.d = d, .g = *g};
    j.g.lda = g->lda ? g->lda : g->transpose_a ? g->m : g->k;
    j.g.ldb = g->ldb ? g->ldb : g->transpose_b ? g->k : g->n;
    j.g.ldc = g->ldc ? g->ldc : g->n;
    cut(&j);
    bool narrow = g->a_type == MR_BF16 || g->b_type == MR_BF16 || g->c_type == MR_BF16;
    if (narrow && !mr_cpu_bf16_prepare(d, &j.g, j.rows * j.columns))
        return;
    mr_team_run(d->team, (g->m + j.rows - 1) / j.rows * j.across, chunk, &j);
}

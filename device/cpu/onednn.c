/* onednn.c - oneDNN's matrix products, for processors on which they are faster than OpenBLAS's.
 * Invariant: whether it computes a product depends on the product's shape and the processor alone, so equal products
 * have equal bits; it uses one thread.
 *
 * Float32: with AVX-512 from 1.0 to 1.2 times as fast as OpenBLAS 0.3.21 in large products, slower in small ones; with
 * AVX2 no faster.  Bf16: where the processor multiplies it; OpenBLAS is not used for that. */
#include <dlfcn.h>
#include <string.h>

#include "base/system/library.h"
#include "base/system/processor.h"
#include "base/scope.h"
#include "device/cpu/cpu.h"

enum { SMALL = 1000000 }; /* multiplications of a float32 product that is left to OpenBLAS */

/* dnnl_sgemm and dnnl_gemm_bf16bf16f32, of row-major matrices; the result is dnnl_status_t, 0 for success.  Exported by
 * oneDNN 1 to 3 (https://oneapi-src.github.io/oneDNN/group_dnnl_api_blas.html). */
typedef int gemm_fn(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const void *a,
                    int64_t lda, const void *b, int64_t ldb, float beta, float *c, int64_t ldc);

void mr_cpu_onednn_open(mr_cpu_onednn *out)
{
    static const char *const names[] = {"libdnnl.so.3", "libdnnl.so.3.6", "libdnnl.so.2"}; /* 3.6: Debian 13's name */
    *out = (mr_cpu_onednn){0};
    if (!mr_processor_has(MR_AVX512))
        return;
    for (size_t i = 0; i < MR_COUNT(names) && !out->library; i++)
        out->library = mr_library_load(names[i], NULL);
    if (!out->library)
        return;
    mr_library_find(out->library, "dnnl_sgemm", &out->gemm_f32);
    if (mr_processor_has(MR_AVX512_BF16))
        mr_library_find(out->library, "dnnl_gemm_bf16bf16f32", &out->gemm_bf16);
    mr_library_find(out->library, "omp_get_max_threads", &out->threads);
    mr_library_find(out->library, "omp_set_num_threads", &out->set_threads);
}

mr_status mr_cpu_onednn_reserve(const mr_cpu_onednn *o, mr_error *err)
{
    enum { SIDE = 128, AREA = SIDE * SIDE }; /* a product above SMALL */
    if (!o->gemm_f32)
        return MR_OK;
    MR_AUTO(mr_scope_free)
    float *operands = mr_cpu_can_map((size_t)64 << 20) ? mr_alloc(3 * AREA, sizeof *operands) : NULL;
    if (!operands)
        return mr_fail(err, MR_SYSTEM,
                       "cpu: not enough memory or address space: oneDNN needs 64 MiB; raise `ulimit -v`");
    mr_cpu_product p = {.type = MR_F32,
                        .m = SIDE,
                        .n = SIDE,
                        .k = SIDE,
                        .a = operands,
                        .b = operands + AREA,
                        .c = operands + 2 * AREA,
                        .lda = SIDE,
                        .ldb = SIDE,
                        .ldc = SIDE,
                        .alpha = 1};
    mr_cpu_onednn_multiply(o, &p);
    p.type = MR_BF16;
    mr_cpu_onednn_multiply(o, &p);
    return MR_OK;
}

void mr_cpu_onednn_close(mr_cpu_onednn *o)
{
    if (o->library)
        dlclose(o->library);
    *o = (mr_cpu_onednn){0};
}

/* The team divides the work, so OpenMP must not; its number of threads is the calling thread's own, and is put back. */
static bool multiply_alone(const mr_cpu_onednn *o, gemm_fn *gemm, const mr_cpu_product *p)
{
    int threads = o->threads ? o->threads() : 1;
    if (threads != 1 && o->set_threads)
        o->set_threads(1);
    int failed =
        gemm(p->transpose_a ? 'T' : 'N', p->transpose_b ? 'T' : 'N', (int64_t)p->m, (int64_t)p->n, (int64_t)p->k,
             p->alpha, p->a, (int64_t)p->lda, p->b, (int64_t)p->ldb, p->beta, p->c, (int64_t)p->ldc);
    if (threads != 1 && o->set_threads)
        o->set_threads(threads);
    return !failed;
}

bool mr_cpu_onednn_multiply(const mr_cpu_onednn *o, const mr_cpu_product *p)
{
    gemm_fn *gemm = NULL;
    if (p->type == MR_BF16)
        memcpy(&gemm, &o->gemm_bf16, sizeof gemm);
    else if ((double)p->m * (double)p->n * (double)p->k > SMALL)
        memcpy(&gemm, &o->gemm_f32, sizeof gemm);
    return gemm && multiply_alone(o, gemm, p);
}

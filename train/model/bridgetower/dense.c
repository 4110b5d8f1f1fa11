/* dense.c - the operations that BridgeTower's parts are made of, with its kernels of [out, in].
 * Invariant: of each operation the way back stands beside the way there. */
#include "bridgetower/pass.h"

mr_dropout mr_bt_dropout(const mr_bt *m, double rate, uint32_t site)
{
    return (mr_dropout){.rate = m->in.training ? (float)rate : 0, .site = site, .keys = m->in.keys};
}

void mr_bt_dense_forward(const mr_bt *m, const mr_bt_dense *l, size_t rows, const void *x, void *y, mr_type y_type)
{
    const mr_gemm g = {.a_type = m->config.compute,
                       .b_type = MR_F32,
                       .c_type = y_type,
                       .m = rows,
                       .n = l->out,
                       .k = l->in,
                       .a = x,
                       .b = m->values + l->kernel,
                       .transpose_b = true,
                       .c = y,
                       .bias = m->values + l->bias};
    m->device->card->gemm(m->device, &g);
}

void mr_bt_kernel_back(const mr_bt *m, uint64_t kernel, size_t out, size_t in, size_t rows, const void *x,
                       const void *d_y)
{
    mr_type type = m->config.compute;
    const mr_gemm g = {.a_type = type,
                       .b_type = type,
                       .c_type = MR_F32,
                       .m = out,
                       .n = in,
                       .k = rows,
                       .a = d_y,
                       .transpose_a = true,
                       .b = x,
                       .c = m->gradients + kernel,
                       .accumulate = true};
    m->device->card->gemm(m->device, &g);
}

void mr_bt_dense_back(const mr_bt *m, const mr_bt_dense *l, size_t rows, const void *x, const void *d_y, void *d_x,
                      bool accumulate)
{
    mr_type type = m->config.compute;
    const mr_gemm input = {.a_type = type,
                           .b_type = MR_F32,
                           .c_type = type,
                           .m = rows,
                           .n = l->in,
                           .k = l->out,
                           .a = d_y,
                           .b = m->values + l->kernel,
                           .c = d_x,
                           .accumulate = accumulate};
    mr_bt_kernel_back(m, l->kernel, l->out, l->in, rows, x, d_y);
    m->device->card->sum_rows(m->device, type, rows, l->out, d_y, m->gradients + l->bias);
    if (d_x)
        m->device->card->gemm(m->device, &input);
}

void mr_bt_norm_forward(const mr_bt *m, const mr_bt_norm *at, const mr_bt_normed *k, size_t rows, const void *x,
                        const void *residual, size_t sample_rows, mr_dropout dropout)
{
    const mr_norm n = {.type = m->config.compute,
                       .rows = rows,
                       .width = m->config.hidden,
                       .sample_rows = sample_rows,
                       .x = x,
                       .residual = residual,
                       .total = x == k->total ? NULL : k->total,
                       .y = k->y,
                       .gain = m->values + at->weight,
                       .bias = m->values + at->bias,
                       .mean = k->mean,
                       .rstd = k->rstd,
                       .eps = (float)m->config.norm_eps,
                       .dropout = dropout};
    m->device->card->norm(m->device, &n);
}

void mr_bt_norm_back(const mr_bt *m, const mr_bt_norm *at, const mr_bt_normed *k, size_t rows, const void *d_y,
                     const void *d_residual, void *d_total)
{
    const mr_norm_back n = {.type = m->config.compute,
                            .rows = rows,
                            .width = m->config.hidden,
                            .d_y = d_y,
                            .total = k->total,
                            .gain = m->values + at->weight,
                            .mean = k->mean,
                            .rstd = k->rstd,
                            .d_residual = d_residual,
                            .d_total = d_total,
                            .d_gain = m->gradients + at->weight,
                            .d_bias = m->gradients + at->bias};
    m->device->card->norm_back(m->device, &n);
}

void mr_bt_first_rows(const mr_bt *m, const void *from, size_t from_rows, void *to, size_t to_rows, bool accumulate)
{
    const mr_rows r = {.type = m->config.compute,
                       .rows = m->in.count,
                       .width = m->config.hidden,
                       .from_stride = from_rows * m->config.hidden,
                       .to_stride = to_rows * m->config.hidden,
                       .from = from,
                       .to = to,
                       .accumulate = accumulate};
    m->device->card->rows(m->device, &r);
}

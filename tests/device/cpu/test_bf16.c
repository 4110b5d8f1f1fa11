/* test_bf16.c - operations on bf16 beside the same on float32.
 * Invariant: inputs are numbers of bf16, so both see the same; support/bf16.h has what a result may be off by.
 * Covers cpu/bf16.c, cpu/lines.h. */
#include <math.h>
#include <string.h>

#include "tests/support/training/bf16.h"

typedef struct matrix {
    double *x;
    size_t rows, width, stride;
    mr_type type;
} matrix;

static matrix draw_matrix(support_trial *t, mr_type type, size_t rows, size_t width, size_t margin)
{
    matrix m = {.rows = rows, .width = width, .stride = width + margin, .type = type};
    m.x = bf16_draw(t, rows * m.stride, -1, 1);
    return m;
}

/* Every combination of types, and some of the ways and additions. */
static void product(support_trial *t, mr_type type, bf16_results *all)
{
    static const char *const names[] = {"bb", "bbf", "bf", "bff", "fb", "fbf", "ff", "fff"};
    size_t m = support_size_of(t, 150), n = support_size_of(t, 150), k = support_size_of(t, 200);
    for (unsigned kind = 0; kind < 8; kind++) {
        unsigned way = (unsigned)mr_random_below(&t->r, 32);
        mr_type a_type = kind & 4 ? MR_F32 : type, b_type = kind & 2 ? MR_F32 : type, c_type = kind & 1 ? MR_F32 : type;
        size_t margin = way & 16 ? 3 : 0;
        matrix a = draw_matrix(t, a_type, way & 1 ? k : m, way & 1 ? m : k, margin);
        matrix b = draw_matrix(t, b_type, way & 2 ? n : k, way & 2 ? k : n, margin);
        matrix c = draw_matrix(t, c_type, m, n, margin);
        double *bias = bf16_draw(t, n, -3, 3);
        const mr_gemm g = {.a_type = a_type,
                           .b_type = b_type,
                           .c_type = c_type,
                           .m = m,
                           .n = n,
                           .k = k,
                           .a = bf16_give(t, a_type, a.x, a.rows * a.stride),
                           .b = bf16_give(t, b_type, b.x, b.rows * b.stride),
                           .c = bf16_give(t, c_type, c.x, m * c.stride),
                           .lda = margin ? a.stride : 0,
                           .ldb = margin ? b.stride : 0,
                           .ldc = margin ? c.stride : 0,
                           .transpose_a = way & 1,
                           .transpose_b = way & 2,
                           .accumulate = way & 4,
                           .bias = way & 8 ? support_give(t, bias, n) : NULL};
        mr_run_gemm(t->d, &g);
        bf16_keep(t, all, type, names[kind], c_type, g.c, m * c.stride);
    }
}

static void products(support_trial *t)
{
    bf16_both(t, product);
}

static void norm(support_trial *t, mr_type type, bf16_results *all)
{
    size_t rows = support_size_of(t, 30), width = support_size_of(t, 300), count = rows * width;
    double *x = bf16_draw(t, count, -2, 2), *residual = bf16_draw(t, count, -2, 2), *gain = bf16_draw(t, width, 0.5, 2);
    double *bias = bf16_draw(t, width, -1, 1), *d = bf16_draw(t, count, -1, 1), *d_more = bf16_draw(t, count, -1, 1);
    mr_norm n = {.type = type,
                 .rows = rows,
                 .width = width,
                 .sample_rows = 1,
                 .x = bf16_give(t, type, x, count),
                 .y = bf16_blank(t, type, count),
                 .gain = support_give(t, gain, width),
                 .bias = support_give(t, bias, width),
                 .mean = support_blank(t, rows),
                 .rstd = support_blank(t, rows),
                 .eps = 1e-6F};
    mr_run_norm(t->d, &n);
    bf16_keep(t, all, type, "y", type, n.y, count);
    const mr_norm_back back = {.type = type,
                               .rows = rows,
                               .width = width,
                               .d_y = bf16_give(t, type, d, count),
                               .total = n.x,
                               .gain = n.gain,
                               .mean = n.mean,
                               .rstd = n.rstd,
                               .d_residual = bf16_give(t, type, d_more, count),
                               .d_total = bf16_blank(t, type, count),
                               .d_gain = support_give(t, gain, width),
                               .d_bias = support_give(t, bias, width)};
    mr_run_norm_back(t->d, &back);
    bf16_keep(t, all, type, "d_total", type, back.d_total, count);
    bf16_keep(t, all, type, "d_gain", MR_F32, back.d_gain, width);
    bf16_keep(t, all, type, "d_bias", MR_F32, back.d_bias, width);
    float *sums = support_give(t, bias, width);
    mr_run_sum_rows(t->d, &(mr_sum_rows){type, rows, width, back.d_y, sums});
    bf16_keep(t, all, type, "sums", MR_F32, sums, width);
    n.residual = bf16_give(t, type, residual, count);
    n.total = bf16_blank(t, type, count);
    n.dropout = support_dropout(t, rows);
    n.y = NULL;
    mr_run_norm(t->d, &n);
    bf16_keep(t, all, type, "total", type, n.total, count);
}

static void norms(support_trial *t)
{
    bf16_both(t, norm);
}

/* The norm of a sum is that of the stored sum: a model that recomputes it gets the same bits. */
static void norm_of_sum(support_trial *t)
{
    size_t rows = support_size_of(t, 20), width = support_size_of(t, 300), count = rows * width;
    double *gain = bf16_draw(t, width, 0.5, 2), *bias = bf16_draw(t, width, -1, 1);
    if (!(t->iface->types & 1U << MR_BF16))
        return;
    mr_norm n = {.type = MR_BF16,
                 .rows = rows,
                 .width = width,
                 .sample_rows = 1,
                 .x = bf16_give(t, MR_BF16, bf16_draw(t, count, -2, 2), count),
                 .residual = bf16_give(t, MR_BF16, bf16_draw(t, count, -2, 2), count),
                 .total = bf16_blank(t, MR_BF16, count),
                 .y = bf16_blank(t, MR_BF16, count),
                 .gain = support_give(t, gain, width),
                 .bias = support_give(t, bias, width),
                 .mean = support_blank(t, rows),
                 .rstd = support_blank(t, rows),
                 .eps = 1e-6F};
    mr_run_norm(t->d, &n);
    double *once = bf16_take(t, MR_BF16, n.y, count);
    n.x = n.total;
    n.residual = n.total = NULL;
    mr_run_norm(t->d, &n);
    assert_memory_equal(bf16_take(t, MR_BF16, n.y, count), once, count * sizeof *once);
}

static void elementwise(support_trial *t, mr_type type, bf16_results *all)
{
    static const char *const names[][2] = {{"gelu", "gelu back"}, {"quick", "quick back"}, {"tanh", "tanh back"}};
    size_t rows = support_size_of(t, 30), width = support_size_of(t, 300), count = rows * width;
    double *x = bf16_draw(t, count, -4, 4), *d = bf16_draw(t, count, -1, 1);
    mr_activate a = {.type = type,
                     .rows = rows,
                     .width = width,
                     .sample_rows = 1,
                     .x = bf16_give(t, type, x, count),
                     .d_y = bf16_give(t, type, d, count),
                     .dropout = support_dropout(t, rows)};
    for (unsigned kind = MR_GELU; kind <= MR_TANH; kind++) {
        a.kind = (mr_activation)kind;
        a.y = bf16_blank(t, type, count);
        a.d_x = bf16_blank(t, type, count);
        mr_run_activate(t->d, &a);
        mr_run_activate_back(t->d, &a);
        bf16_keep(t, all, type, names[kind][0], type, a.y, count);
        bf16_keep(t, all, type, names[kind][1], type, a.d_x, count);
    }
    void *dropped = bf16_blank(t, type, count), *sum = bf16_give(t, type, x, count);
    mr_run_drop(t->d, &(mr_drop){type, rows, width, 1, a.dropout, a.d_y, dropped});
    bf16_keep(t, all, type, "drop", type, dropped, count);
    mr_run_add(t->d, &(mr_add){type, count, sum, a.d_y, sum});
    bf16_keep(t, all, type, "add", type, sum, count);
}

static void elements(support_trial *t)
{
    bf16_both(t, elementwise);
}

/* Tensor cores get probabilities as bf16. */
static void keep_weighted(support_trial *t, bf16_results *all, mr_type type, const char *name, const void *x,
                          size_t count)
{
    if (strcmp(t->iface->name, "cuda") == 0)
        bf16_keep_loose(t, all, type, name, x, count);
    else
        bf16_keep(t, all, type, name, type, x, count);
}

static void attend(support_trial *t, mr_type type, bf16_results *all)
{
    size_t batch = support_size_of(t, 3), heads = support_size_of(t, 3), dim = support_size_of(t, 40);
    size_t queries = support_size_of(t, 20), keys = support_size_of(t, 20), stride = heads * dim + 5;
    size_t asking = batch * queries * stride, answering = batch * keys * stride, bytes = 0;
    uint8_t *seen = support_zeroed(t, batch * keys);
    for (size_t i = 0; i < batch * keys; i++)
        seen[i] = mr_random_below(&t->r, 4) > 0;
    mr_attention a = {.type = type,
                      .batch = batch,
                      .heads = heads,
                      .head_dim = dim,
                      .queries = queries,
                      .keys = keys,
                      .q = bf16_give(t, type, bf16_draw(t, asking, -1, 1), asking),
                      .k = bf16_give(t, type, bf16_draw(t, answering, -1, 1), answering),
                      .v = bf16_give(t, type, bf16_draw(t, answering, -1, 1), answering),
                      .out = bf16_give(t, type, bf16_draw(t, asking, -1, 1), asking),
                      .q_stride = stride,
                      .k_stride = stride,
                      .v_stride = stride,
                      .out_stride = stride,
                      .key_mask = support_give_bytes(t, seen, batch * keys),
                      .scale = (float)(1 / sqrt((double)dim)),
                      .dropout = support_dropout(t, batch)};
    mr_error err;
    assert_int_equal(t->iface->plan_attention(t->d, &a, &bytes, &err), MR_OK);
    a.saved = support_give_bytes(t, support_zeroed(t, bytes), bytes);
    mr_run_attention(t->d, &a);
    keep_weighted(t, all, type, "out", a.out, asking); /* what is between the heads' rows is as it was */
    const mr_attention_back back = {.forward = &a,
                                    .d_out = bf16_give(t, type, bf16_draw(t, asking, -1, 1), asking),
                                    .d_q = bf16_give(t, type, bf16_draw(t, asking, -1, 1), asking),
                                    .d_k = bf16_give(t, type, bf16_draw(t, answering, -1, 1), answering),
                                    .d_v = bf16_give(t, type, bf16_draw(t, answering, -1, 1), answering)};
    mr_run_attention_back(t->d, &back);
    /* Kernels sum d_out * out, as it was rounded, where the CPU still has the probabilities. */
    bf16_keep_loose(t, all, type, "d_q", back.d_q, asking);
    bf16_keep_loose(t, all, type, "d_k", back.d_k, answering);
    keep_weighted(t, all, type, "d_v", back.d_v, answering);
}

static void attention(support_trial *t)
{
    bf16_both(t, attend);
}

static void image_rows(support_trial *t, mr_type type, bf16_results *all)
{
    size_t batch = support_size_of(t, 3), patch = support_size_of(t, 5), grid = support_size_of(t, 3);
    size_t side = patch * grid + (size_t)mr_random_below(&t->r, patch), pixels = batch * 3 * side * side;
    size_t count = batch * grid * grid * patch * patch * 3;
    const mr_patches p = {.type = type,
                          .batch = batch,
                          .side = side,
                          .patch = patch,
                          .channel_first = mr_random_below(&t->r, 2) == 1,
                          .images = support_give(t, bf16_draw(t, pixels, -1, 1), pixels),
                          .rows = bf16_blank(t, type, count)};
    mr_run_patches(t->d, &p);
    bf16_keep(t, all, type, "patches", type, p.rows, count);
    size_t rows = 1 + support_size_of(t, 8), width = support_size_of(t, 300);
    size_t all_rows = batch * rows * width, fewer = batch * (rows - 1) * width;
    const mr_tokens k = {.type = type,
                         .batch = batch,
                         .rows = rows,
                         .width = width,
                         .x = bf16_give(t, type, bf16_draw(t, fewer, -1, 1), fewer),
                         .first = support_give(t, bf16_draw(t, width, -1, 1), width),
                         .position = support_give(t, bf16_draw(t, rows * width, -1, 1), rows * width),
                         .y = bf16_blank(t, type, all_rows),
                         .d_y = bf16_give(t, type, bf16_draw(t, all_rows, -1, 1), all_rows),
                         .d_x = bf16_blank(t, type, fewer),
                         .d_first = support_give(t, bf16_draw(t, width, -1, 1), width),
                         .d_position = support_give(t, bf16_draw(t, rows * width, -1, 1), rows * width),
                         .dropout = support_dropout(t, batch)};
    mr_run_tokens(t->d, &k);
    mr_run_tokens_back(t->d, &k);
    bf16_keep(t, all, type, "tokens", type, k.y, all_rows);
    bf16_keep(t, all, type, "d_x", type, k.d_x, fewer);
    bf16_keep(t, all, type, "d_first", MR_F32, k.d_first, width);
    bf16_keep(t, all, type, "d_position", MR_F32, k.d_position, rows * width);
}

static void images(support_trial *t)
{
    bf16_both(t, image_rows);
}

static void table_rows(support_trial *t, mr_type type, bf16_results *all)
{
    size_t rows = support_size_of(t, 20), width = support_size_of(t, 300), entries = support_size_of(t, 9);
    size_t count = rows * width, stride = width + 3;
    int32_t *ids = support_zeroed(t, rows * sizeof *ids);
    for (size_t i = 0; i < rows; i++)
        ids[i] = (int32_t)mr_random_below(&t->r, entries);
    mr_lookup l = {.type = type,
                   .rows = rows,
                   .width = width,
                   .entries = entries,
                   .ids = support_give_bytes(t, ids, rows * sizeof *ids),
                   .table = support_give(t, bf16_draw(t, entries * width, -1, 1), entries * width),
                   .y = bf16_give(t, type, bf16_draw(t, count, -1, 1), count),
                   .accumulate = mr_random_below(&t->r, 2) == 1,
                   .d_y = bf16_give(t, type, bf16_draw(t, count, -1, 1), count),
                   .d_table = support_give(t, bf16_draw(t, entries * width, -1, 1), entries * width),
                   .skip = 0};
    mr_run_lookup(t->d, &l);
    mr_run_lookup_back(t->d, &l);
    bf16_keep(t, all, type, "lookup", type, l.y, count);
    bf16_keep(t, all, type, "d_table", MR_F32, l.d_table, entries * width);
    const mr_rows r = {.type = type,
                       .rows = rows,
                       .width = width,
                       .from_stride = width,
                       .to_stride = stride,
                       .from = l.d_y,
                       .to = bf16_give(t, type, bf16_draw(t, rows * stride, -1, 1), rows * stride),
                       .accumulate = mr_random_below(&t->r, 2) == 1};
    mr_run_rows(t->d, &r);
    bf16_keep(t, all, type, "rows", type, r.to, rows * stride);
    const mr_unit u = {.type = type,
                       .rows = rows,
                       .width = width,
                       .x = support_give(t, bf16_draw(t, count, -1, 1), count),
                       .y = support_blank(t, count),
                       .lengths = support_blank(t, rows),
                       .eps = 1e-12F,
                       .d_y = support_give(t, bf16_draw(t, count, -1, 1), count),
                       .d_x = bf16_blank(t, type, count)};
    mr_run_unit(t->d, &u);
    mr_run_unit_back(t->d, &u);
    bf16_keep(t, all, type, "unit", type, u.d_x, count);
}

static void tables(support_trial *t)
{
    bf16_both(t, table_rows);
}

static void loss(support_trial *t, mr_type type, bf16_results *all)
{
    size_t rows = support_size_of(t, 20), classes = support_size_of(t, 30), count = rows * classes;
    int32_t *labels = support_zeroed(t, rows * sizeof *labels);
    for (size_t i = 0; i < rows; i++)
        labels[i] = (int32_t)mr_random_below(&t->r, classes + 1) - 1;
    double *targets = bf16_draw(t, count, 0, 1);
    const mr_cross_entropy one = {.type = type,
                                  .rows = rows,
                                  .classes = classes,
                                  .logits = support_give(t, bf16_draw(t, count, -3, 3), count),
                                  .labels = support_give_bytes(t, labels, rows * sizeof *labels),
                                  .losses = support_blank(t, rows),
                                  .d_logits = bf16_blank(t, type, count)};
    const mr_sigmoid_loss several = {.type = type,
                                     .rows = rows,
                                     .classes = classes,
                                     .logits = one.logits,
                                     .targets = support_give(t, targets, count),
                                     .losses = support_blank(t, rows),
                                     .d_logits = bf16_blank(t, type, count)};
    mr_run_cross_entropy(t->d, &one);
    mr_run_sigmoid_loss(t->d, &several);
    bf16_keep(t, all, type, "losses", MR_F32, one.losses, rows);
    bf16_keep(t, all, type, "d_logits", type, one.d_logits, count);
    bf16_keep(t, all, type, "losses of several", MR_F32, several.losses, rows);
    bf16_keep(t, all, type, "d_logits of several", type, several.d_logits, count);
}

static void losses(support_trial *t)
{
    bf16_both(t, loss);
}

static void operations_are_those_of_float32_rounded(void **state)
{
    void (*const ops[])(support_trial *) = {products, norms, norm_of_sum, elements, attention, images, tables, losses};
    (void)state;
    for (size_t i = 0; i < MR_COUNT(ops); i++)
        support_on_devices(ops[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_are_those_of_float32_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_vit_forward.c - the Vision Transformer's forward pass against its formulas in double.
 * Invariant tested: the reference shares nothing with the product but the names of parameters. Its activations are
 * small, so that a wrong epsilon is seen, and the two forms of GELU differ by more than the tolerance. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/training/model.h"
#include "train/model/vit/vit.h"

enum {
    SIDE = 11,
    PATCH = 3,
    GRID = 3,
    TOKENS = 1 + GRID * GRID,
    WIDTH = 12,
    HEADS = 2,
    DIM = 6,
    MLP = 20,
    CLASSES = 4
};

typedef double rows[TOKENS][WIDTH];

static const float *find(const support_model *s, const char *prefix, const char *name)
{
    char full[MR_PARAM_NAME];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const mr_param *p = mr_params_find(&s->params, full);
    if (!p)
        fail_msg("there is no %s", full);
    return s->host + p->offset;
}

/* out[j] = bias[j] + sum of x[i] kernel[i, j] */
static void dense(const float *kernel, const float *bias, size_t in, size_t out, const double *x, double *y)
{
    for (size_t j = 0; j < out; j++) {
        y[j] = bias[j];
        for (size_t i = 0; i < in; i++)
            y[j] += x[i] * kernel[i * out + j];
    }
}

static void norm(const float *scale, const float *bias, const double *x, double *y)
{
    double mean = 0, variance = 0;
    for (size_t i = 0; i < WIDTH; i++)
        mean += x[i] / WIDTH;
    for (size_t i = 0; i < WIDTH; i++)
        variance += (x[i] - mean) * (x[i] - mean) / WIDTH;
    for (size_t i = 0; i < WIDTH; i++)
        y[i] = (x[i] - mean) / sqrt(variance + 1e-6) * scale[i] + bias[i];
}

static void embed(const support_model *s, const float *image, rows x)
{
    const float *position = find(s, "Transformer/posembed_input/", "pos_embedding"), *cls = find(s, "", "cls");
    for (size_t i = 0; i < WIDTH; i++)
        x[0][i] = cls[i] + position[i];
    for (size_t t = 0; t < GRID * GRID; t++) {
        double pixels[PATCH * PATCH * 3];
        for (size_t k = 0; k < PATCH * PATCH * 3; k++) { /* row, column, channel */
            size_t row = t / GRID * PATCH + k / 3 / PATCH, column = t % GRID * PATCH + k / 3 % PATCH;
            pixels[k] = image[(k % 3 * SIDE + row) * SIDE + column];
        }
        dense(find(s, "embedding/", "kernel"), find(s, "embedding/", "bias"), PATCH * PATCH * 3, WIDTH, pixels,
              x[1 + t]);
        for (size_t i = 0; i < WIDTH; i++)
            x[1 + t][i] += position[(1 + t) * WIDTH + i];
    }
}

/* One head's part of each row of `out`. */
static void attend(rows q, rows k, rows v, size_t head, rows out)
{
    for (size_t t = 0; t < TOKENS; t++) {
        double weights[TOKENS], sum = 0;
        for (size_t u = 0; u < TOKENS; u++) {
            double score = 0;
            for (size_t i = head * DIM; i < (head + 1) * DIM; i++)
                score += q[t][i] * k[u][i];
            sum += weights[u] = exp(score / sqrt(DIM));
        }
        for (size_t i = head * DIM; i < (head + 1) * DIM; i++) {
            out[t][i] = 0;
            for (size_t u = 0; u < TOKENS; u++)
                out[t][i] += weights[u] / sum * v[u][i];
        }
    }
}

static void attention(const support_model *s, const char *prefix, rows x)
{
    static const char *const names[] = {"query", "key", "value"};
    rows y, qkv[3], a;
    char full[MR_PARAM_NAME];
    for (size_t t = 0; t < TOKENS; t++) {
        norm(find(s, prefix, "LayerNorm_0/scale"), find(s, prefix, "LayerNorm_0/bias"), x[t], y[t]);
        for (int i = 0; i < 3; i++) {
            snprintf(full, sizeof full, "%sMultiHeadDotProductAttention_1/%s/", prefix, names[i]);
            dense(find(s, full, "kernel"), find(s, full, "bias"), WIDTH, WIDTH, y[t], qkv[i][t]);
        }
    }
    for (size_t head = 0; head < HEADS; head++)
        attend(qkv[0], qkv[1], qkv[2], head, a);
    snprintf(full, sizeof full, "%sMultiHeadDotProductAttention_1/out/", prefix);
    for (size_t t = 0; t < TOKENS; t++) {
        dense(find(s, full, "kernel"), find(s, full, "bias"), WIDTH, WIDTH, a[t], y[t]);
        for (size_t i = 0; i < WIDTH; i++)
            x[t][i] += y[t][i];
    }
}

static void mlp(const support_model *s, const char *prefix, double *x)
{
    double y[WIDTH], h[MLP];
    norm(find(s, prefix, "LayerNorm_2/scale"), find(s, prefix, "LayerNorm_2/bias"), x, y);
    dense(find(s, prefix, "MlpBlock_3/Dense_0/kernel"), find(s, prefix, "MlpBlock_3/Dense_0/bias"), WIDTH, MLP, y, h);
    for (size_t i = 0; i < MLP; i++)
        h[i] *= 0.5 * (1 + erf(h[i] / sqrt(2)));
    dense(find(s, prefix, "MlpBlock_3/Dense_1/kernel"), find(s, prefix, "MlpBlock_3/Dense_1/bias"), MLP, WIDTH, h, y);
    for (size_t i = 0; i < WIDTH; i++)
        x[i] += y[i];
}

static void reference(const support_model *s, const float *image, double *logits)
{
    rows x;
    double y[WIDTH];
    embed(s, image, x);
    for (uint32_t i = 0; i < s->config.layers; i++) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "Transformer/encoderblock_%u/", i);
        attention(s, prefix, x);
        for (size_t t = 0; t < TOKENS; t++)
            mlp(s, prefix, x[t]);
    }
    norm(find(s, "Transformer/encoder_norm/", "scale"), find(s, "Transformer/encoder_norm/", "bias"), x[0], y);
    dense(find(s, "head/", "kernel"), find(s, "head/", "bias"), WIDTH, CLASSES, y, logits);
}

static void equals_its_formulas(void **state)
{
    const mr_model_config c = {.iface = &mr_model_vit,
                               .name = "vit",
                               .image = SIDE,
                               .patch = PATCH,
                               .hidden = WIDTH,
                               .layers = 2,
                               .heads = HEADS,
                               .mlp = MLP,
                               .classes = CLASSES};
    const int32_t labels[2] = {1, 3};
    float images[2 * 3 * SIDE * SIDE];
    support_model *s = support_model_open(&c, 2, false, 2);
    mr_random r = support_random();
    (void)state;
    for (size_t i = 0; i < MR_COUNT(images); i++)
        images[i] = (float)mr_random_real(&r, -1, 1);
    for (size_t i = 0; i < s->params.count; i++) {
        const mr_param *p = &s->params.items[i];
        bool token = !strncmp(p->name, "embedding/", 10) || !strcmp(p->name, "cls") || strstr(p->name, "pos_embedding");
        double middle = strstr(p->name, "/scale") ? 1 : 0, reach = token ? 0.004 : 0.5;
        for (uint64_t k = 0; k < p->count; k++)
            s->host[p->offset + k] = (float)(middle + mr_random_real(&r, -reach, reach));
    }
    support_model_put(s);
    const support_input in = {.count = 2, .images = images, .labels = labels};
    support_model_forward(s, &in);
    float *logits = support_model_logits(s);
    for (size_t b = 0; b < 2; b++) {
        double want[CLASSES];
        reference(s, images + b * 3 * SIDE * SIDE, want);
        for (size_t k = 0; k < CLASSES; k++)
            if (!(fabs(logits[b * CLASSES + k] - want[k]) <= 2e-5))
                fail_msg("image %zu, class %zu: %.7g, the formulas say %.7g", b, k, (double)logits[b * CLASSES + k],
                         want[k]);
    }
    free(logits);
    support_model_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_its_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

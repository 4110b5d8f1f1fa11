/* pairs.c - a small model of pictures and words on a device. */
#include "tests/support/sources/pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/model/bridgetower/parts.h"

enum { PAD = 1 }; /* the row of positions that padding has */

static void *on_device(support_pairs *s, size_t count, size_t size)
{
    void *memory = NULL;
    mr_error err;
    if (s->model->device->iface->alloc(s->model->device, count * size, "tests", &memory, &err))
        fail_msg("%s", err.text);
    return memory;
}

support_pairs *support_pairs_open(const mr_model_config *config, size_t batch, bool training, unsigned threads)
{
    support_pairs *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->model = support_model_open(config, batch, training, threads);
    s->tokens = on_device(s, batch * config->text, sizeof *s->tokens);
    s->places = on_device(s, batch * config->text, sizeof *s->places);
    s->seen = on_device(s, batch * config->text, sizeof *s->seen);
    s->groups = on_device(s, batch, sizeof *s->groups);
    return s;
}

void support_pairs_close(support_pairs *s)
{
    if (!s)
        return;
    void *const memory[] = {s->tokens, s->places, s->seen, s->groups};
    for (size_t i = 0; i < MR_COUNT(memory); i++)
        s->model->device->iface->free(s->model->device, memory[i]);
    support_model_close(s->model);
    free(s);
}

static void put(const support_pairs *s, void *to, const void *from, size_t bytes)
{
    if (from)
        s->model->device->iface->upload(s->model->device, to, from, bytes);
}

/* Rows of `length` out of rows of `stride`; padding is PAD and has PAD's place. */
static void put_texts(const support_pairs *s, const support_pairs_input *in)
{
    size_t count = in->count * in->length;
    int32_t *tokens = mr_alloc(count, sizeof *tokens), *places = mr_alloc(count, sizeof *places);
    uint8_t *seen = mr_alloc(count, 1);
    assert_true(tokens && places && seen && in->length <= s->model->config.text && in->length <= in->stride);
    for (size_t i = 0; i < in->count; i++) {
        int32_t place = PAD;
        for (size_t k = 0; k < in->length; k++) {
            size_t to = i * in->length + k, from = i * in->stride + k;
            seen[to] = in->seen[from];
            tokens[to] = in->tokens[from];
            places[to] = seen[to] ? ++place : PAD;
        }
    }
    put(s, s->tokens, tokens, count * sizeof *tokens);
    put(s, s->places, places, count * sizeof *places);
    put(s, s->seen, seen, count);
    free(tokens);
    free(places);
    free(seen);
}

static double sum_losses(support_model *m)
{
    float *losses = mr_alloc(m->count, sizeof *losses);
    double sum = 0;
    mr_error err;
    assert_non_null(losses);
    m->device->iface->download(m->device, losses, m->out.losses, m->count * sizeof *losses);
    if (m->device->iface->wait(m->device, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < m->count; i++)
        sum += (double)losses[i];
    free(losses);
    return sum;
}

double support_pairs_forward(support_pairs *s, const support_pairs_input *in)
{
    support_model *m = s->model;
    uint64_t *keys = mr_alloc(in->count, sizeof *keys);
    assert_true(keys && in->count && in->count <= m->batch);
    for (size_t i = 0; i < in->count; i++)
        keys[i] = in->keys ? in->keys[i] : i;
    put(s, m->images, in->images, in->count * 3 * m->config.image * m->config.image * sizeof *m->images);
    put(s, m->weights, in->weights, in->count * sizeof *m->weights);
    put(s, m->keys, keys, in->count * sizeof *keys);
    put(s, s->groups, in->groups, in->count * sizeof *s->groups);
    put_texts(s, in);
    const mr_model_input input = {.count = in->count,
                                  .training = in->training,
                                  .images = m->images,
                                  .weights = in->weights ? m->weights : NULL,
                                  .keys = m->keys,
                                  .tokens = s->tokens,
                                  .places = s->places,
                                  .seen = s->seen,
                                  .length = in->length,
                                  .groups = in->groups ? s->groups : NULL,
                                  .peers = in->peers};
    m->count = in->count;
    m->config.iface->forward(m->model, m->values, &input, &m->out);
    free(keys);
    return sum_losses(m);
}

float *support_pairs_gradients(support_pairs *s, const support_pairs_input *in)
{
    support_model_zero(s->model);
    support_pairs_forward(s, in);
    support_model_back(s->model, NULL, NULL);
    return support_model_gradients(s->model);
}

mr_model_config support_pairs_small(void)
{
    return (mr_model_config){.iface = &mr_model_bridgetower,
                             .name = "bridgetower",
                             .image = 12,
                             .patch = 4,
                             .hidden = 64,
                             .layers = 3,
                             .heads = 4,
                             .mlp = 24,
                             .dropout = 0.1,
                             .cross_layers = 2,
                             .vocab = 19,
                             .positions = 12,
                             .embed = 10,
                             .text = 7,
                             .attention_dropout = 0.1,
                             .norm_eps = 1e-5,
                             .logit_scale = 1};
}

float *support_pairs_embeddings(const support_pairs *s, int which)
{
    const support_model *m = s->model;
    size_t count = m->count * m->config.embed;
    float *to = mr_alloc(count, sizeof *to);
    assert_non_null(to);
    m->device->iface->download(m->device, to, m->out.embeddings[which], count * sizeof *to);
    return to;
}

/* ---- drawn ----------------------------------------------------------------------------------------------------- */

static float normal(mr_random *r) /* near enough */
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += mr_random_unit(r);
    return (float)sum;
}

/* Kernels are [out, in]. */
static void draw_values(const mr_param *p, mr_random *r, float *values)
{
    bool table = strstr(p->name, "embedding") != NULL, gain = p->dims == 1 && strstr(p->name, ".weight") != NULL;
    double deviation = p->dims > 1 ? 0.8 / sqrt((double)p->count / (double)p->shape[0]) : 0.1;
    if (table && !strstr(p->name, "patch_embedding"))
        deviation = 0.5;
    for (uint64_t k = 0; k < p->count; k++)
        values[k] = (gain || p->dims == 0 ? 1 : 0) + (float)deviation * normal(r);
}

support_pairs *support_pairs_model(const mr_model_config *config, size_t batch, bool training, unsigned threads)
{
    support_pairs *s = support_pairs_open(config, batch, training, threads);
    mr_random r = support_random();
    for (size_t i = 0; i < s->model->params.count; i++)
        draw_values(&s->model->params.items[i], &r, s->model->host + s->model->params.items[i].offset);
    support_model_put(s->model);
    return s;
}

support_pairs_batch support_pairs_draw(const mr_model_config *c, size_t spare)
{
    support_pairs_batch b = {.pixels = (size_t)3 * c->image * c->image, .text = c->text};
    mr_random r = support_random();
    b.images = mr_alloc(SUPPORT_PAIRS * b.pixels, sizeof *b.images);
    b.tokens = mr_alloc(SUPPORT_PAIRS * b.text, sizeof *b.tokens);
    b.seen = mr_alloc(SUPPORT_PAIRS * b.text, 1);
    assert_true(b.images && b.tokens && b.seen && c->text >= spare + 2);
    for (size_t i = 0; i < SUPPORT_PAIRS * b.pixels; i++)
        b.images[i] = (float)mr_random_real(&r, -1, 1);
    for (size_t i = 0; i < SUPPORT_PAIRS; i++) {
        size_t length = 2 + (size_t)mr_random_below(&r, c->text - spare - 1);
        b.length = length > b.length ? length : b.length;
        for (size_t k = 0; k < b.text; k++) {
            b.seen[i * b.text + k] = k < length;
            b.tokens[i * b.text + k] = k < length ? (int32_t)(2 + mr_random_below(&r, c->vocab - 2)) : PAD;
        }
        b.weights[i] = (float)mr_random_real(&r, 0.5, 1.5);
        b.keys[i] = mr_random_u64(&r);
        b.groups[i] = i + 1 < SUPPORT_PAIRS ? (int32_t)i : SUPPORT_PAIRS - 2;
    }
    return b;
}

void support_pairs_batch_free(support_pairs_batch *b)
{
    free(b->images);
    free(b->tokens);
    free(b->seen);
}

support_pairs_input support_pairs_of(const support_pairs_batch *b, size_t first, size_t count)
{
    return (support_pairs_input){.count = count,
                                 .length = b->length,
                                 .stride = b->text,
                                 .training = true,
                                 .images = b->images + first * b->pixels,
                                 .tokens = b->tokens + first * b->text,
                                 .seen = b->seen + first * b->text,
                                 .weights = b->weights + first,
                                 .keys = b->keys + first,
                                 .groups = b->groups + first};
}

mr_model_config support_pairs_shape(void)
{
    return (mr_model_config){.name = "bridgetower",
                             .image = 16,
                             .patch = 8,
                             .hidden = 64,
                             .layers = 3,
                             .heads = 4,
                             .mlp = 48,
                             .dropout = 0.1,
                             .cross_layers = 2,
                             .vocab = 97,
                             .positions = 24,
                             .embed = 20,
                             .text = 22,
                             .attention_dropout = 0.1,
                             .norm_eps = 1e-5,
                             .logit_scale = 2.6592};
}

mr_params support_pairs_params(const mr_model_config *c)
{
    mr_params p = {0};
    mr_error err;
    if (mr_bt_params(c, &p, &err))
        fail_msg("%s", err.text);
    return p;
}

/* test_bridgetower.c - BridgeTower's passes on small models and drawn pairs: gradients, and what must not change
 * them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/pairs.h"

enum { BATCH = SUPPORT_PAIRS };

static mr_model_config small(double dropout, double attention_dropout, bool every_token)
{
    mr_model_config c = support_pairs_small();
    c.dropout = dropout;
    c.attention_dropout = attention_dropout;
    c.every_token = every_token;
    return c;
}

static void forward_back(support_pairs *s, const support_pairs_input *in)
{
    support_model_zero(s->model);
    support_pairs_forward(s, in);
    support_model_back(s->model, NULL, NULL);
}

static double largest(const float *a, uint64_t count)
{
    double most = 0;
    for (uint64_t i = 0; i < count; i++)
        most = fmax(most, fabs((double)a[i]));
    return most;
}

static bool is_key_bias(const mr_param *p) /* shifts all scores alike: its gradient is rounding alone */
{
    return strstr(p->name, ".self.key.bias") != NULL;
}

static bool cancels_out(const mr_param *p) /* and so does the scale's, which is one sum of all scores */
{
    return is_key_bias(p) || p->dims == 0;
}

/* Parameter by parameter, relative to its largest. */
static void assert_near(const support_pairs *s, const float *a, const float *b, double accepted)
{
    const mr_params *params = &s->model->params;
    double all = largest(b, params->total);
    for (size_t i = 0; i < params->count; i++) {
        const mr_param *p = &params->items[i];
        double most = fmax(largest(b + p->offset, p->count), (cancels_out(p) ? 0.1 : 1e-3) * all);
        for (uint64_t k = p->offset; k < p->offset + p->count; k++)
            if (!(fabs((double)a[k] - (double)b[k]) <= accepted * most))
                fail_msg("%s: %g and %g of %g", p->name, (double)a[k], (double)b[k], most);
    }
}

static void assert_embeddings_near(const support_pairs *a, const support_pairs *b, size_t count, double accepted)
{
    for (int which = 0; which < 3; which++) {
        float *x = support_pairs_embeddings(a, which), *y = support_pairs_embeddings(b, which);
        for (size_t i = 0; i < count * a->model->config.embed; i++)
            if (!(fabs((double)x[i] - (double)y[i]) <= accepted))
                fail_msg("embedding %d, element %zu: %g and %g", which, i, (double)x[i], (double)y[i]);
        free(x);
        free(y);
    }
}

/* ---- gradients ------------------------------------------------------------------------------------------------- */

/* The other parameters are at their base. */
static double loss_at(support_pairs *s, const support_pairs_input *in, const float *base, const mr_param *p,
                      const float *way, double step)
{
    for (uint64_t i = p->offset; i < p->offset + p->count; i++)
        s->model->host[i] = (float)((double)base[i] + step * (double)way[i]);
    support_model_put(s->model);
    return support_pairs_forward(s, in);
}

static void random_way(const mr_param *p, const float *g, mr_random *r, float *way, double *length)
{
    double squares = 0, chance = 0;
    for (uint64_t k = p->offset; k < p->offset + p->count; k++) {
        way[k] = (float)mr_random_real(r, -1, 1);
        chance += (double)way[k] * (double)way[k];
        squares += (double)g[k] * (double)g[k];
    }
    *length = sqrt(squares);
    if (*length == 0)
        fail_msg("%s has no gradient", p->name);
    for (uint64_t k = p->offset; k < p->offset + p->count; k++)
        way[k] = (float)((double)way[k] / sqrt(chance) + (double)g[k] / *length);
}

/* Along the gradient of one parameter and a random way of the same length: five points, so that the steps can be long
 * enough for float32 losses. */
static void check_direction(support_pairs *s, const support_pairs_input *in, const float *base, const float *g,
                            const mr_param *p, mr_random *r)
{
    float *way = mr_alloc(s->model->params.total, sizeof *way);
    double length, want = 0, h = 4e-3;
    assert_non_null(way);
    random_way(p, g, r, way, &length);
    for (uint64_t k = p->offset; k < p->offset + p->count; k++)
        want += (double)way[k] * (double)g[k];
    double near = loss_at(s, in, base, p, way, h) - loss_at(s, in, base, p, way, -h);
    double far = loss_at(s, in, base, p, way, 2 * h) - loss_at(s, in, base, p, way, -2 * h);
    double got = (8 * near - far) / (12 * h);
    if (!(fabs(got - want) <= 3e-3 * length + 6e-4))
        fail_msg("%s: the loss rises by %g, its gradient says %g", p->name, got, want);
    memcpy(s->model->host + p->offset, base + p->offset, p->count * sizeof *base);
    free(way);
}

static void check_gradients(const mr_model_config *c)
{
    support_pairs *s = support_pairs_model(c, BATCH, true, 1);
    support_pairs_batch b = support_pairs_draw(c, 1);
    const support_pairs_input in = support_pairs_of(&b, 0, BATCH);
    mr_random r = support_random();
    float *base = support_model_values(s->model);
    forward_back(s, &in);
    float *g = support_model_gradients(s->model);
    for (size_t i = 0; i < s->model->params.count; i++)
        if (!is_key_bias(&s->model->params.items[i]))
            check_direction(s, &in, base, g, &s->model->params.items[i], &r);
    free(base);
    free(g);
    support_pairs_batch_free(&b);
    support_pairs_close(s);
}

/* With padding, weights, groups and dropout; as few layers as there can be, and as many cross layers. */
static void gradients_are_differences(void **state)
{
    mr_model_config c = small(0.2, 0.2, false), one = c, all = small(0.2, 0, true);
    (void)state;
    one.layers = one.cross_layers = 1;
    all.cross_layers = 3;
    check_gradients(&c);
    check_gradients(&one);
    check_gradients(&all);
}

/* ---- what must not matter -------------------------------------------------------------------------------------- */

/* Padding's tokens have tables' rows of their own, which get no gradient. */
static void padding_changes_nothing(void **state)
{
    mr_model_config c = small(0.3, 0, false);
    support_pairs *a = support_pairs_model(&c, BATCH, true, 2), *b = support_pairs_model(&c, BATCH, true, 2);
    support_pairs_batch batch = support_pairs_draw(&c, 3);
    support_pairs_input in = support_pairs_of(&batch, 0, BATCH);
    (void)state;
    assert_true(in.length < c.text);
    forward_back(a, &in);
    in.length = c.text;
    forward_back(b, &in);
    assert_embeddings_near(a, b, BATCH, 1e-6);
    float *x = support_model_gradients(a->model), *y = support_model_gradients(b->model);
    assert_near(a, x, y, 1e-5);
    for (size_t i = 0; i < b->model->params.count; i++) {
        const mr_param *p = &b->model->params.items[i];
        if (strstr(p->name, "word_embeddings") || strstr(p->name, "position_embeddings"))
            assert_true(largest(y + p->offset + c.hidden, c.hidden) == 0);
    }
    free(x);
    free(y);
    support_pairs_batch_free(&batch);
    support_pairs_close(a);
    support_pairs_close(b);
}

/* What the last cross layers leave out is looked at by nothing. */
static void first_tokens_are_enough(void **state)
{
    (void)state;
    for (uint32_t layers = 1; layers <= 3; layers += 2) {
        support_pairs *s[2];
        support_pairs_batch batch;
        float *g[2];
        for (int every = 0; every < 2; every++) {
            mr_model_config c = small(0.3, 0, every);
            c.layers = layers;
            c.cross_layers = layers < 2 ? 1 : 2;
            batch = support_pairs_draw(&c, 1);
            const support_pairs_input in = support_pairs_of(&batch, 0, BATCH);
            s[every] = support_pairs_model(&c, BATCH, true, 2);
            forward_back(s[every], &in);
            g[every] = support_model_gradients(s[every]->model);
            support_pairs_batch_free(&batch);
        }
        assert_embeddings_near(s[0], s[1], BATCH, 1e-6);
        assert_near(s[0], g[0], g[1], 2e-5);
        for (int every = 0; every < 2; every++) {
            free(g[every]);
            support_pairs_close(s[every]);
        }
    }
}

/* Dropout belongs to samples: neither their place in a batch nor its size matters, another key does. */
static void batches_may_be_short(void **state)
{
    mr_model_config c = small(0.3, 0.2, false);
    support_pairs *whole = support_pairs_model(&c, BATCH, true, 2), *part = support_pairs_model(&c, BATCH, true, 2);
    support_pairs *exact = support_pairs_model(&c, 2, true, 2);
    support_pairs_batch batch = support_pairs_draw(&c, 1);
    support_pairs_input in = support_pairs_of(&batch, 0, BATCH);
    (void)state;
    forward_back(whole, &in);
    forward_back(part, &in); /* leaves its numbers after the rows of what follows */
    in.count = 2;
    forward_back(part, &in);
    forward_back(exact, &in);
    assert_embeddings_near(part, exact, 2, 0);
    assert_embeddings_near(whole, part, 2, 1e-6);
    float *x = support_model_gradients(part->model), *y = support_model_gradients(exact->model);
    assert_memory_equal(x, y, part->model->params.total * sizeof *x);
    float *before = support_pairs_embeddings(part, 2);
    batch.keys[1]++;
    forward_back(part, &in);
    float *after = support_pairs_embeddings(part, 2);
    assert_true(fabs((double)after[c.embed] - (double)before[c.embed]) > 1e-4);
    assert_true(fabs((double)after[0] - (double)before[0]) < 1e-6);
    free(before);
    free(after);
    free(x);
    free(y);
    support_pairs_batch_free(&batch);
    support_pairs_close(whole);
    support_pairs_close(part);
    support_pairs_close(exact);
}

/* Without training nothing is dropped, and layers share their memory: the same bits all the same. */
static void evaluation_drops_nothing(void **state)
{
    mr_model_config with = small(0.3, 0.3, false), without = small(0, 0, false), frozen = with;
    frozen.frozen = MR_FROZEN_IMAGES | MR_FROZEN_TEXT;
    support_pairs *s[] = {support_pairs_model(&with, BATCH, true, 2), support_pairs_model(&with, BATCH, false, 2),
                          support_pairs_model(&without, BATCH, true, 2), support_pairs_model(&frozen, BATCH, true, 2)};
    support_pairs_batch batch = support_pairs_draw(&with, 1);
    support_pairs_input in = support_pairs_of(&batch, 0, BATCH), training = in;
    (void)state;
    in.training = false;
    support_pairs_forward(s[0], &in);
    support_pairs_forward(s[1], &training); /* not planned for it: an evaluation all the same */
    support_pairs_forward(s[2], &training);
    support_pairs_forward(s[3], &in);
    for (size_t i = 1; i < MR_COUNT(s); i++)
        assert_embeddings_near(s[0], s[i], BATCH, 0);
    support_model_back(s[0]->model, NULL, NULL); /* nothing to go back on */
    float *g = support_model_gradients(s[0]->model);
    assert_true(largest(g, s[0]->model->params.total) == 0);
    float *kept = support_pairs_embeddings(s[0], 2);
    support_pairs_forward(s[0], &training);
    float *dropped = support_pairs_embeddings(s[0], 2);
    assert_true(fabs((double)dropped[0] - (double)kept[0]) > 1e-4);
    free(g);
    free(kept);
    free(dropped);
    support_pairs_batch_free(&batch);
    for (size_t i = 0; i < MR_COUNT(s); i++)
        support_pairs_close(s[i]);
}

static void same_bits_for_any_threads(void **state)
{
    mr_model_config c = small(0.1, 0.1, false);
    support_pairs_batch batch = support_pairs_draw(&c, 1);
    const support_pairs_input in = support_pairs_of(&batch, 0, BATCH);
    float *g[3];
    size_t total = 0;
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        support_pairs *s = support_pairs_model(&c, BATCH, true, i ? 3 : 1);
        forward_back(s, &in);
        if (i == 2) /* the second pass of a model is like its first */
            forward_back(s, &in);
        g[i] = support_model_gradients(s->model);
        total = s->model->params.total;
        support_pairs_close(s);
    }
    assert_memory_equal(g[0], g[1], total * sizeof *g[0]);
    assert_memory_equal(g[0], g[2], total * sizeof *g[0]);
    for (unsigned i = 0; i < 3; i++)
        free(g[i]);
    support_pairs_batch_free(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_differences), cmocka_unit_test(padding_changes_nothing),
        cmocka_unit_test(first_tokens_are_enough),   cmocka_unit_test(batches_may_be_short),
        cmocka_unit_test(evaluation_drops_nothing),  cmocka_unit_test(same_bits_for_any_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

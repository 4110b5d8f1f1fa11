/* test_vit_recompute.c - the Vision Transformer with and without recomputation: the same bits, less memory. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/training/model.h"
#include "train/model/vit/vit.h"

enum { BATCH = 4, STEPS = 3, IMAGE = 14 };

static mr_model_config small(uint32_t layers, bool every_token)
{
    return (mr_model_config){.iface = &mr_model_vit,
                             .name = "vit",
                             .image = IMAGE,
                             .patch = 4,
                             .hidden = 24,
                             .layers = layers,
                             .heads = 3,
                             .mlp = 40,
                             .classes = 5,
                             .dropout = 0.2,
                             .every_token = every_token};
}

/* One forward and backward pass over `count` drawn samples, and a step down the gradient. */
static void step(support_model *s, mr_random *r, size_t count)
{
    float images[BATCH * 3 * IMAGE * IMAGE];
    int32_t labels[BATCH];
    uint64_t keys[BATCH];
    for (size_t i = 0; i < MR_COUNT(images); i++)
        images[i] = (float)mr_random_real(r, -1, 1);
    for (size_t i = 0; i < BATCH; i++) {
        labels[i] = (int32_t)mr_random_below(r, s->config.classes);
        keys[i] = mr_random_u64(r);
    }
    const support_input in = {.count = count, .training = true, .images = images, .labels = labels, .keys = keys};
    const support_input look = {.count = BATCH, .images = images, .labels = labels};
    support_model_forward(s, &look); /* an evaluation in between leaves nothing behind */
    support_model_zero(s);
    support_model_forward(s, &in);
    support_model_back(s, NULL, NULL);
    float *g = support_model_gradients(s);
    for (uint64_t i = 0; i < s->params.total; i++)
        s->host[i] -= 0.05F * g[i];
    free(g);
    support_model_put(s);
}

/* The weights after a few steps. */
static float *train(const mr_model_config *c, uint64_t *total)
{
    support_model *s = support_model_open(c, BATCH, true, 2);
    mr_random r;
    mr_random_stream(&r, 5, 0);
    c->iface->start(c, &s->params, 7, s->host);
    for (uint64_t i = mr_params_find(&s->params, "head/kernel")->offset; i < s->params.total; i++)
        s->host[i] = (float)mr_random_real(&r, -0.3, 0.3);
    support_model_put(s);
    for (size_t i = 0; i < STEPS; i++)
        step(s, &r, i == 1 ? BATCH - 1 : BATCH);
    float *values = support_model_values(s);
    *total = s->params.total;
    support_model_close(s);
    return values;
}

static void the_weights_are_the_same_to_the_bit(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 16; kind++) {
        mr_model_config c = small(1 + kind % 8 / 2, kind & 1);
        c.compute = kind < 8 || !support_device_computes(MR_BF16) ? MR_F32 : MR_BF16;
        uint64_t total;
        float *kept = train(&c, &total);
        c.recompute = true;
        float *again = train(&c, &total);
        if (memcmp(kept, again, total * sizeof *kept) != 0)
            fail_msg("%u layers, every token %u: other weights", c.layers, kind & 1);
        free(kept);
        free(again);
    }
}

static uint64_t bytes_of(const mr_model_config *c, bool training)
{
    mr_model_costs costs;
    c->iface->costs(c, 32, training, &costs);
    return costs.activation_bytes;
}

static void large_models_need_a_quarter_of_the_memory(void **state)
{
    static const char *const words[] = {"ViT-B_16", "ViT-L_16", "ViT-H_14"};
    (void)state;
    for (size_t i = 0; i < MR_COUNT(words); i++) {
        mr_model_config c = {.classes = 1000};
        assert_int_equal(mr_model_find(words[i], &c, NULL), MR_OK);
        uint64_t kept = bytes_of(&c, true), lean = bytes_of(&c, false);
        c.recompute = true;
        assert_true(4 * bytes_of(&c, true) <= kept);
        assert_true(bytes_of(&c, false) == lean); /* nothing goes back there */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_weights_are_the_same_to_the_bit),
        cmocka_unit_test(large_models_need_a_quarter_of_the_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

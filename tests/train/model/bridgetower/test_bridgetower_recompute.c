/* test_bridgetower_recompute.c - BridgeTower with and without recomputation: the same bits, less memory. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/pairs.h"

enum { BATCH = SUPPORT_PAIRS, STEPS = 3 };

/* The weights after a few steps down the gradient; one of a shorter batch, and of shorter texts. */
static float *train(const mr_model_config *c, uint64_t *total)
{
    support_pairs *s = support_pairs_model(c, BATCH, true, 2);
    for (size_t i = 0; i < STEPS; i++) {
        support_pairs_batch b = support_pairs_draw(c, i);
        const support_pairs_input in = support_pairs_of(&b, i == 1, i == 1 ? BATCH - 1 : BATCH);
        support_pairs_input look = in; /* an evaluation in between leaves nothing behind */
        look.training = false;
        support_pairs_forward(s, &look);
        support_model_zero(s->model);
        float *g = support_pairs_gradients(s, &in);
        for (uint64_t k = 0; k < s->model->params.total; k++)
            s->model->host[k] -= 0.02F * g[k];
        free(g);
        support_model_put(s->model);
        support_pairs_batch_free(&b);
    }
    float *values = support_model_values(s->model);
    *total = s->model->params.total;
    support_pairs_close(s);
    return values;
}

static void the_weights_are_the_same_to_the_bit(void **state)
{
    const unsigned frozen[] = {0, MR_FROZEN_IMAGES, MR_FROZEN_TEXT, MR_FROZEN_IMAGES | MR_FROZEN_TEXT};
    (void)state;
    for (size_t kind = 0; kind < 2 * MR_COUNT(frozen); kind++) {
        mr_model_config c = support_pairs_small();
        uint64_t total;
        c.frozen = frozen[kind / 2];
        c.layers += kind & 1;
        float *kept = train(&c, &total);
        c.recompute = true;
        float *again = train(&c, &total);
        if (memcmp(kept, again, total * sizeof *kept) != 0)
            fail_msg("%u layers, frozen %u: other weights", c.layers, c.frozen);
        free(kept);
        free(again);
    }
}

static uint64_t bytes_of(const mr_model_config *c, bool training)
{
    mr_model_costs costs;
    c->iface->costs(c, 8, training, &costs);
    return costs.activation_bytes;
}

static void memory_is_a_quarter(void **state)
{
    mr_model_config c = {0};
    (void)state;
    assert_int_equal(mr_model_find("bridgetower-large", &c, NULL), MR_OK);
    for (unsigned frozen = 0; frozen < 4; frozen++) {
        c.frozen = frozen;
        c.recompute = false;
        uint64_t kept = bytes_of(&c, true), lean = bytes_of(&c, false);
        c.recompute = true;
        uint64_t less = bytes_of(&c, true);
        assert_true(less < kept && (frozen || 4 * less <= kept));
        assert_true(bytes_of(&c, false) == lean); /* nothing goes back there */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_weights_are_the_same_to_the_bit),
        cmocka_unit_test(memory_is_a_quarter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

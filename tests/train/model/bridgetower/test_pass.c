/* test_pass.c - BridgeTower's passes: losses as defined, frozen towers, gradients that are ready, memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/pairs.h"

enum { BATCH = SUPPORT_PAIRS };

static bool all_zero(const float *a, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (a[i] != 0)
            return false;
    return true;
}

/* ---- losses ---------------------------------------------------------------------------------------------------- */

/* The loss of the rows and columns of one pair of embeddings at the model's scale of exp(1 + 0.1 n). */
static double cross_entropy(const float *a, const float *b, size_t width, const support_pairs_batch *batch, size_t row,
                            double scale)
{
    double sum = 0, own = 0;
    for (size_t column = 0; column < BATCH; column++) {
        double dot = 0;
        for (size_t i = 0; i < width; i++)
            dot += (double)a[row * width + i] * (double)b[column * width + i];
        bool other = column != row && (batch->weights[column] == 0 || batch->groups[column] == batch->groups[row]);
        sum += other ? 0 : exp(scale * dot);
        own = column == row ? scale * dot : own;
    }
    return log(sum) - own;
}

static void losses_are_as_defined(void **state)
{
    mr_model_config c = support_pairs_small();
    support_pairs *s = support_pairs_model(&c, BATCH, true, 2);
    support_pairs_batch b = support_pairs_draw(&c, 1);
    float losses[BATCH], *e[3];
    (void)state;
    b.weights[1] = 0;
    const support_pairs_input in = support_pairs_of(&b, 0, BATCH);
    double sum = support_pairs_forward(s, &in), want = 0;
    double scale = exp((double)s->model->host[mr_params_find(&s->model->params, "logit_scale")->offset]);
    for (int i = 0; i < 3; i++) {
        double square = 0;
        e[i] = support_pairs_embeddings(s, i);
        for (size_t k = 0; k < c.embed; k++)
            square += (double)e[i][k] * (double)e[i][k];
        assert_true(fabs(square - 1) < 1e-5);
    }
    s->model->device->iface->download(s->model->device, losses, s->model->out.losses, sizeof losses);
    for (size_t r = 0; r < BATCH; r++) {
        double loss = cross_entropy(e[0], e[1], c.embed, &b, r, scale) +
                      cross_entropy(e[0], e[2], c.embed, &b, r, scale) +
                      cross_entropy(e[1], e[2], c.embed, &b, r, scale);
        loss *= (double)b.weights[r] / 3;
        assert_true(fabs(loss - (double)losses[r]) < 1e-5);
        want += loss;
    }
    assert_true(losses[1] == 0 && fabs(sum - want) < 1e-5);
    assert_null(s->model->out.logits);
    assert_null(s->model->out.best);
    for (int i = 0; i < 3; i++)
        free(e[i]);
    support_pairs_batch_free(&b);
    support_pairs_close(s);
}

/* ---- frozen towers --------------------------------------------------------------------------------------------- */

static bool is_frozen(const mr_param *p, unsigned frozen)
{
    return (frozen & MR_FROZEN_IMAGES && strstr(p->name, ".vision_model.")) ||
           (frozen & MR_FROZEN_TEXT && strstr(p->name, ".text_model."));
}

/* What is not frozen learns as if nothing were, to the bit. */
static void frozen_towers_do_not_learn(void **state)
{
    const unsigned kinds[] = {0, MR_FROZEN_IMAGES, MR_FROZEN_TEXT, MR_FROZEN_IMAGES | MR_FROZEN_TEXT};
    mr_model_config c = support_pairs_small();
    support_pairs_batch b = support_pairs_draw(&c, 1);
    const support_pairs_input in = support_pairs_of(&b, 0, BATCH);
    float *all = NULL;
    (void)state;
    for (size_t kind = 0; kind < 2 * MR_COUNT(kinds); kind++) {
        c.frozen = kinds[kind / 2];
        c.every_token = kind & 1;
        c.attention_dropout = 0; /* its chance is another where only first tokens ask */
        support_pairs *s = support_pairs_model(&c, BATCH, true, 2);
        float *g = support_pairs_gradients(s, &in);
        for (size_t i = 0; i < s->model->params.count; i++) {
            const mr_param *p = &s->model->params.items[i];
            if (is_frozen(p, c.frozen) != all_zero(g + p->offset, p->count))
                fail_msg("%s, frozen %u: its gradient", p->name, c.frozen);
            if (kind >= 2 && !(kind & 1) && !is_frozen(p, c.frozen))
                assert_memory_equal(g + p->offset, all + p->offset, p->count * sizeof *g);
        }
        if (kind == 0)
            all = g;
        else
            free(g);
        support_pairs_close(s);
    }
    free(all);
    support_pairs_batch_free(&b);
}

static uint64_t bytes_of(const mr_model_config *c, size_t batch, bool training)
{
    mr_model_costs costs;
    c->iface->costs(c, batch, training, &costs);
    return costs.activation_bytes;
}

static void memory_is_what_is_kept(void **state)
{
    mr_model_config c = support_pairs_small(), images = c, both = c;
    (void)state;
    images.frozen = MR_FROZEN_IMAGES;
    both.frozen = MR_FROZEN_IMAGES | MR_FROZEN_TEXT;
    assert_true(bytes_of(&c, 8, false) < bytes_of(&both, 8, true));
    assert_true(bytes_of(&both, 8, true) < bytes_of(&images, 8, true));
    assert_true(bytes_of(&images, 8, true) < bytes_of(&c, 8, true));
    assert_true(bytes_of(&c, 8, true) < bytes_of(&c, 9, true));
    assert_true(bytes_of(&c, SIZE_MAX / 64, true) == UINT64_MAX);
    /* More layers need more memory only where it is kept. */
    uint64_t lean = bytes_of(&c, 8, false), rich = bytes_of(&c, 8, true);
    c.layers++;
    assert_true(bytes_of(&c, 8, false) == lean);
    assert_true(bytes_of(&c, 8, true) > rich);
}

/* ---- gradients are ready from the end -------------------------------------------------------------------------- */

typedef struct watch {
    support_pairs *pairs;
    uint64_t last;
    size_t calls;
    float *seen; /* the gradients as each call found them, from `from` on */
} watch;

static void on_ready(void *ctx, uint64_t from)
{
    watch *w = ctx;
    assert_true(from < w->last);
    float *g = support_model_gradients(w->pairs->model);
    memcpy(w->seen + from, g + from, (w->last - from) * sizeof *g);
    free(g);
    w->last = from;
    w->calls++;
}

static void ready_reports_complete_gradients_only(void **state)
{
    (void)state;
    for (unsigned frozen = 0; frozen < 4; frozen++) {
        mr_model_config c = support_pairs_small();
        c.layers = 4;
        c.cross_layers = 3;
        c.frozen = frozen;
        support_pairs *s = support_pairs_model(&c, BATCH, true, 2);
        support_pairs_batch b = support_pairs_draw(&c, 1);
        const support_pairs_input in = support_pairs_of(&b, 0, BATCH);
        uint64_t total = s->model->params.total;
        watch w = {.pairs = s, .last = total, .seen = mr_alloc(total, sizeof(float))};
        assert_non_null(w.seen);
        support_pairs_forward(s, &in);
        support_model_back(s->model, on_ready, &w);
        float *g = support_model_gradients(s->model);
        assert_int_equal(w.calls, 1 + c.cross_layers + 2 * (c.layers - c.cross_layers + 1) + 2);
        assert_int_equal(w.last, 0);
        assert_memory_equal(w.seen, g, total * sizeof *g);
        free(w.seen);
        free(g);
        support_pairs_batch_free(&b);
        support_pairs_close(s);
    }
}

/* ---- what is kept, what is refused ----------------------------------------------------------------------------- */

static void expect_look(const support_pairs *s, const char *name, size_t want)
{
    size_t count = 0;
    float *x = support_model_look(s->model, name, &count);
    if (!x != !want || (x && count != want))
        fail_msg("%s: %zu elements instead of %zu", name, x ? count : 0, want);
    free(x);
}

static void looks_at_what_is_kept(void **state)
{
    static const char *const none[] = {"text_4",      "image_4", "cross_text_2",
                                       "text_",       "text_0x", "text_-1",
                                       "cross_",      "",        "cross_image_99999999999999999999",
                                       "other_embeds"};
    mr_model_config c = support_pairs_small(), every = c;
    every.every_token = true;
    support_pairs *s = support_pairs_model(&c, BATCH, true, 2), *lean = support_pairs_model(&c, BATCH, false, 2);
    support_pairs *all = support_pairs_model(&every, BATCH, false, 2);
    support_pairs_batch b = support_pairs_draw(&c, 1);
    const support_pairs_input in = support_pairs_of(&b, 0, 3);
    size_t text = 3 * b.length * c.hidden, image = 3 * (size_t)(1 + 3 * 3) * c.hidden;
    (void)state;
    support_pairs_forward(s, &in);
    support_pairs_forward(lean, &in);
    support_pairs_forward(all, &in);
    expect_look(s, "text_0", text);
    expect_look(s, "text_3", text);
    expect_look(s, "image_0", image);
    expect_look(s, "image_3", image);
    expect_look(s, "cross_text_0", text);
    expect_look(s, "cross_image_0", image);
    expect_look(s, "cross_text_1", 0);
    expect_look(s, "cross_embeds", 3 * (size_t)c.embed);
    expect_look(all, "cross_image_1", image);
    expect_look(lean, "text_1", 0);
    expect_look(lean, "cross_text_0", 0);
    expect_look(lean, "text_embeds", 3 * (size_t)c.embed);
    for (size_t i = 0; i < MR_COUNT(none); i++)
        expect_look(s, none[i], 0);
    support_pairs_batch_free(&b);
    support_pairs_close(s);
    support_pairs_close(lean);
    support_pairs_close(all);
}

static void open_refuses(void **state)
{
    mr_model_config c = support_pairs_small(), other = c;
    (void)state;
    other.hidden = 128;
    support_model_refusals(&c, &other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_as_defined),  cmocka_unit_test(frozen_towers_do_not_learn),
        cmocka_unit_test(memory_is_what_is_kept), cmocka_unit_test(ready_reports_complete_gradients_only),
        cmocka_unit_test(looks_at_what_is_kept),  cmocka_unit_test(open_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

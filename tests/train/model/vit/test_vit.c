/* test_vit.c - the Vision Transformer's passes on small models and drawn images. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/training/model.h"
#include "train/model/vit/vit.h"

enum { BATCH = 4 };

typedef struct drawn { /* a batch */
    float *images;
    int32_t labels[BATCH];
    float weights[BATCH];
    uint64_t keys[BATCH];
    size_t pixels; /* of one image, with channels */
} drawn;

static mr_model_config small(double dropout, bool every_token)
{
    return (mr_model_config){.iface = &mr_model_vit,
                             .name = "vit",
                             .image = 14,
                             .patch = 4,
                             .hidden = 24,
                             .layers = 2,
                             .heads = 3,
                             .mlp = 40,
                             .classes = 5,
                             .dropout = dropout,
                             .every_token = every_token};
}

static float normal(mr_random *r) /* near enough */
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += mr_random_unit(r);
    return (float)sum;
}

static drawn draw(const mr_model_config *c)
{
    drawn d = {.pixels = (size_t)3 * c->image * c->image};
    mr_random r = support_random();
    d.images = mr_alloc(BATCH * d.pixels, sizeof *d.images);
    assert_non_null(d.images);
    for (size_t i = 0; i < BATCH * d.pixels; i++)
        d.images[i] = (float)mr_random_real(&r, -1, 1);
    for (size_t i = 0; i < BATCH; i++) {
        d.labels[i] = (int32_t)mr_random_below(&r, c->classes);
        d.weights[i] = (float)mr_random_real(&r, 0.5, 1.5);
        d.keys[i] = mr_random_u64(&r);
    }
    return d;
}

/* Weights as large as trained ones, nothing zero. */
static support_model *model(const mr_model_config *c, bool training)
{
    support_model *s = support_model_open(c, BATCH, training, 2);
    mr_random r = support_random();
    for (size_t i = 0; i < s->params.count; i++) {
        const mr_param *p = &s->params.items[i];
        bool scale = strstr(p->name, "/scale") != NULL, kernel = strstr(p->name, "/kernel") != NULL;
        double fan = p->count / (double)p->shape[p->dims - 1];
        float deviation = kernel ? (float)(0.8 / sqrt(fan)) : 0.1F;
        for (uint64_t k = 0; k < p->count; k++)
            s->host[p->offset + k] = (scale ? 1 : 0) + deviation * normal(&r);
    }
    support_model_put(s);
    return s;
}

static support_input input(const drawn *d, size_t first, size_t count)
{
    return (support_input){.count = count,
                           .training = true,
                           .images = d->images + first * d->pixels,
                           .labels = d->labels + first,
                           .weights = d->weights + first,
                           .keys = d->keys + first};
}

static void forward_back(support_model *s, const drawn *d, size_t first, size_t count)
{
    const support_input in = input(d, first, count);
    support_model_forward(s, &in);
    support_model_back(s, NULL, NULL);
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
    return strstr(p->name, "/key/bias") != NULL;
}

/* Parameter by parameter, relative to its largest. */
static void assert_near(const support_model *s, const float *a, const float *b, double accepted)
{
    double all = largest(b, s->params.total);
    for (size_t i = 0; i < s->params.count; i++) {
        const mr_param *p = &s->params.items[i];
        double most = is_key_bias(p) ? 0.1 * all : largest(b + p->offset, p->count);
        for (uint64_t k = p->offset; k < p->offset + p->count; k++)
            if (!(fabs((double)a[k] - b[k]) <= accepted * most))
                fail_msg("%s: %g and %g", p->name, (double)a[k], (double)b[k]);
    }
}

/* ---- gradients -------------------------------------------------------------------------------------------------- */

static double loss_at(support_model *s, const drawn *d, const float *base, const float *way, double step)
{
    const support_input in = input(d, 0, BATCH);
    for (uint64_t i = 0; i < s->params.total; i++)
        s->host[i] = (float)(base[i] + step * way[i]);
    support_model_put(s);
    return support_model_forward(s, &in);
}

/* Along the gradient of one parameter and a random way of the same length: five points, so that the steps can be long
 * enough for float32 losses. */
static void check_direction(support_model *s, const drawn *d, const float *base, const float *g, const mr_param *p,
                            mr_random *r)
{
    float *way = mr_alloc(s->params.total, sizeof *way);
    double length = 0, chance = 0, want = 0, h = 4e-3;
    assert_non_null(way);
    for (uint64_t k = p->offset; k < p->offset + p->count; k++) {
        way[k] = normal(r);
        chance += (double)way[k] * way[k];
        length += (double)g[k] * g[k];
    }
    if (length == 0)
        fail_msg("%s has no gradient", p->name);
    for (uint64_t k = p->offset; k < p->offset + p->count; k++) {
        way[k] = (float)(way[k] / sqrt(chance) + g[k] / sqrt(length));
        want += (double)way[k] * g[k];
    }
    double near = loss_at(s, d, base, way, h) - loss_at(s, d, base, way, -h);
    double far = loss_at(s, d, base, way, 2 * h) - loss_at(s, d, base, way, -2 * h);
    double got = (8 * near - far) / (12 * h);
    if (!(fabs(got - want) <= 2e-3 * sqrt(length) + 4e-4))
        fail_msg("%s: the loss rises by %g, its gradient says %g", p->name, got, want);
    free(way);
}

static void gradients_are_differences(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        mr_model_config c = small(kind & 1 ? 0.2 : 0, kind & 2);
        support_model *s = model(&c, true);
        drawn d = draw(&c);
        mr_random r = support_random();
        float *base = support_model_values(s);
        forward_back(s, &d, 0, BATCH);
        float *g = support_model_gradients(s);
        for (size_t i = 0; i < s->params.count; i++) {
            const mr_param *p = &s->params.items[i];
            if (!is_key_bias(p))
                check_direction(s, &d, base, g, p, &r);
        }
        free(base);
        free(g);
        free(d.images);
        support_model_close(s);
    }
}

/* What the last block leaves out is looked at by nothing. */
static void first_tokens_are_enough(void **state)
{
    (void)state;
    for (uint32_t layers = 1; layers <= 2; layers++) {
        float *logits[2], *g[2];
        support_model *s[2];
        drawn d;
        for (int every = 0; every < 2; every++) {
            mr_model_config c = small(0.3, every);
            c.layers = layers;
            d = draw(&c);
            s[every] = model(&c, true);
            forward_back(s[every], &d, 0, BATCH);
            logits[every] = support_model_logits(s[every]);
            g[every] = support_model_gradients(s[every]);
            free(d.images);
        }
        for (size_t i = 0; i < BATCH * 5; i++)
            assert_true(fabs((double)logits[0][i] - logits[1][i]) < 1e-5);
        assert_near(s[0], g[0], g[1], 2e-5);
        for (int every = 0; every < 2; every++) {
            free(logits[every]);
            free(g[every]);
            support_model_close(s[every]);
        }
    }
}

/* Dropout belongs to samples: neither their place in a batch nor its size matters, another key does. */
static void batches_add_up(void **state)
{
    mr_model_config c = small(0.3, false);
    support_model *s = model(&c, true);
    drawn d = draw(&c);
    (void)state;
    forward_back(s, &d, 0, BATCH);
    float *whole = support_model_gradients(s), *logits = support_model_logits(s);
    support_model_zero(s);
    forward_back(s, &d, 0, BATCH);
    float *again = support_model_gradients(s);
    assert_memory_equal(whole, again, s->params.total * sizeof *whole);
    support_model_zero(s);
    forward_back(s, &d, 3, 1);
    forward_back(s, &d, 0, 3);
    float *parts = support_model_gradients(s), *first = support_model_logits(s);
    assert_near(s, parts, whole, 1e-5);
    for (size_t i = 0; i < 3 * c.classes; i++)
        assert_true(fabs((double)logits[i] - first[i]) < 1e-5);
    d.keys[0]++;
    support_model_zero(s);
    forward_back(s, &d, 0, BATCH);
    float *other = support_model_logits(s);
    assert_true(fabs((double)other[0] - logits[0]) > 1e-4);
    assert_true(fabs((double)other[c.classes] - logits[c.classes]) < 1e-6);
    free(whole);
    free(again);
    free(parts);
    free(logits);
    free(first);
    free(other);
    free(d.images);
    support_model_close(s);
}

/* Without training, or with rate 0, nothing is dropped; then keys are not looked at. */
static void evaluation_drops_nothing(void **state)
{
    mr_model_config with = small(0.3, false), without = small(0, false);
    support_model *a = model(&with, true), *b = model(&without, false), *c = model(&with, false);
    drawn d = draw(&with);
    support_input in = input(&d, 0, BATCH), training = in;
    (void)state;
    in.training = false;
    support_model_forward(a, &in);
    support_model_forward(b, &in);
    support_model_forward(c, &training); /* not planned for it: an evaluation all the same */
    float *x = support_model_logits(a), *y = support_model_logits(b), *z = support_model_logits(c);
    assert_memory_equal(x, y, BATCH * with.classes * sizeof *x);
    assert_memory_equal(x, z, BATCH * with.classes * sizeof *x);
    support_model_back(a, NULL, NULL); /* nothing to go back on */
    float *g = support_model_gradients(a);
    assert_true(largest(g, a->params.total) == 0);
    support_model_forward(a, &training);
    float *dropped = support_model_logits(a);
    assert_true(fabs((double)dropped[0] - x[0]) > 1e-4);
    free(x);
    free(y);
    free(z);
    free(g);
    free(dropped);
    free(d.images);
    support_model_close(a);
    support_model_close(b);
    support_model_close(c);
}

/* The loss of mixed images is that of both labels, and so is its gradient; one without another label has its own. */
static void mixed_labels_add_up(void **state)
{
    mr_model_config c = small(0.2, false);
    support_model *s = model(&c, true);
    drawn d = draw(&c);
    const int32_t others[BATCH] = {(d.labels[0] + 1) % 5, (d.labels[1] + 2) % 5, -1, d.labels[3]};
    const float shares[BATCH] = {0.75F, 0.25F, 1, 0.5F};
    float own[BATCH], rest[BATCH];
    (void)state;
    for (size_t i = 0; i < BATCH; i++) {
        own[i] = d.weights[i] * shares[i];
        rest[i] = d.weights[i] * (1 - shares[i]);
    }
    support_input in = input(&d, 0, BATCH);
    in.weights = own;
    in.other_labels = others;
    in.other_weights = rest;
    double mixed = support_model_forward(s, &in);
    support_model_back(s, NULL, NULL);
    float *g = support_model_gradients(s);
    support_model_zero(s);
    in.other_labels = NULL;
    double apart = support_model_forward(s, &in);
    support_model_back(s, NULL, NULL);
    in.labels = others;
    in.weights = rest;
    apart += support_model_forward(s, &in);
    support_model_back(s, NULL, NULL);
    float *sum = support_model_gradients(s);
    assert_true(fabs(mixed - apart) < 1e-5);
    assert_near(s, g, sum, 2e-5);
    free(g);
    free(sum);
    free(d.images);
    support_model_close(s);
}

static void weights_weigh(void **state)
{
    mr_model_config c = small(0, false);
    support_model *s = model(&c, true);
    drawn d = draw(&c);
    int32_t best[BATCH];
    float losses[BATCH];
    (void)state;
    d.weights[1] = 0;
    d.weights[2] = 2;
    forward_back(s, &d, 0, BATCH);
    s->device->iface->download(s->device, losses, s->out.losses, sizeof losses);
    s->device->iface->download(s->device, best, s->out.best, sizeof best);
    float *logits = support_model_logits(s), *g = support_model_gradients(s);
    assert_true(losses[1] == 0);
    for (size_t i = 0; i < BATCH; i++) {
        const float *row = logits + i * c.classes;
        double sum = 0;
        int32_t most = 0;
        for (int32_t k = 0; k < (int32_t)c.classes; k++) {
            sum += exp((double)row[k]);
            most = row[k] > row[most] ? k : most;
        }
        assert_int_equal(best[i], most);
        assert_true(fabs(losses[i] - d.weights[i] * (log(sum) - row[d.labels[i]])) < 1e-5);
    }
    /* A sample without weight may as well be missing, and one of weight 2 occurs twice. */
    support_model_zero(s);
    forward_back(s, &d, 0, 1);
    forward_back(s, &d, 3, 1);
    d.weights[2] = 1;
    forward_back(s, &d, 2, 1);
    forward_back(s, &d, 2, 1);
    float *parts = support_model_gradients(s);
    assert_near(s, parts, g, 1e-5);
    free(logits);
    free(g);
    free(parts);
    free(d.images);
    support_model_close(s);
}

static void same_bits_for_any_threads(void **state)
{
    mr_model_config c = small(0.1, false);
    drawn d = draw(&c);
    float *g[2];
    size_t total = 0;
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        support_model *s = support_model_open(&c, BATCH, true, i ? 3 : 1);
        c.iface->start(&c, &s->params, 7, s->host);
        mr_random r = support_random();
        for (uint64_t k = mr_params_find(&s->params, "head/kernel")->offset; k < s->params.total; k++)
            s->host[k] = 0.1F * normal(&r);
        support_model_put(s);
        forward_back(s, &d, 0, BATCH);
        g[i] = support_model_gradients(s);
        total = s->params.total;
        support_model_close(s);
    }
    assert_memory_equal(g[0], g[1], total * sizeof *g[0]);
    free(g[0]);
    free(g[1]);
    free(d.images);
}

/* ---- gradients are ready from the end ---------------------------------------------------------------------------- */

typedef struct watch {
    support_model *model;
    uint64_t last;
    size_t calls;
    float *seen; /* the gradients as each call found them, from `from` on */
} watch;

static void on_ready(void *ctx, uint64_t from)
{
    watch *w = ctx;
    assert_true(from < w->last);
    float *g = support_model_gradients(w->model);
    memcpy(w->seen + from, g + from, (w->last - from) * sizeof *g);
    free(g);
    w->last = from;
    w->calls++;
}

static void ready_reports_complete_gradients_only(void **state)
{
    mr_model_config c = small(0.1, false);
    c.layers = 3;
    support_model *s = model(&c, true);
    drawn d = draw(&c);
    const support_input in = input(&d, 0, BATCH);
    watch w = {.model = s, .last = s->params.total, .seen = mr_alloc(s->params.total, sizeof(float))};
    (void)state;
    assert_non_null(w.seen);
    support_model_forward(s, &in);
    support_model_back(s, on_ready, &w);
    float *g = support_model_gradients(s);
    assert_int_equal(w.calls, 8); /* the head, halves of blocks, the embedding */
    assert_int_equal(w.last, 0);
    assert_memory_equal(w.seen, g, s->params.total * sizeof *g);
    free(w.seen);
    free(g);
    free(d.images);
    support_model_close(s);
}

static void looks_at_what_is_kept(void **state)
{
    static const char *const none[] = {"block_2", "block_1", "block", "block_0x", "block_-1", "nothing", ""};
    mr_model_config c = small(0, false);
    support_model *s = model(&c, true), *lean = model(&c, false);
    drawn d = draw(&c);
    size_t count, tokens = 1 + 3 * 3; /* 14 pixels are 3 patches of 4: what is left is not seen */
    (void)state;
    forward_back(s, &d, 0, 3);
    forward_back(lean, &d, 0, 3);
    float *embed = support_model_look(s, "embed", &count);
    assert_true(embed && count == 3 * tokens * c.hidden);
    float *block = support_model_look(s, "block_0", &count);
    assert_true(block && count == 3 * tokens * c.hidden);
    float *encoded = support_model_look(s, "encoded_cls", &count);
    assert_true(encoded && count == 3 * c.hidden);
    for (size_t i = 0; i < MR_COUNT(none); i++)
        assert_null(support_model_look(s, none[i], &count));
    assert_null(support_model_look(lean, "block_0", &count));
    free(embed);
    free(block);
    free(encoded);
    free(d.images);
    support_model_close(s);
    support_model_close(lean);
}

static void open_refuses(void **state)
{
    mr_model_config c = small(0, false), other = c;
    (void)state;
    other.hidden = 48;
    support_model_refusals(&c, &other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(first_tokens_are_enough),
        cmocka_unit_test(batches_add_up),
        cmocka_unit_test(evaluation_drops_nothing),
        cmocka_unit_test(weights_weigh),
        cmocka_unit_test(mixed_labels_add_up),
        cmocka_unit_test(same_bits_for_any_threads),
        cmocka_unit_test(ready_reports_complete_gradients_only),
        cmocka_unit_test(looks_at_what_is_kept),
        cmocka_unit_test(open_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

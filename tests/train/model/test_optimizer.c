/* test_optimizer.c - clipping, SGD and AdamW against a restatement in double.
 * Invariant tested: updates are those of the reference trainers for the same gradients, and gradients that are not
 * finite change nothing. */
#include "train/model/optimizer.h"
#include "tests/support/support.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

static void assert_rel(double got, double expected, double tolerance, const char *what, uint64_t update)
{
    if (!(fabs(got - expected) <= tolerance * fabs(expected)))
        fail_msg("%s, update %llu: %.17g, expected %.17g", what, (ull)update, got, expected);
}

/* ---- updates, restated in double -------------------------------------------------------------------------------- */

enum { UPDATES = 12 };

typedef struct bench { /* one optimizer at work, and its restatement beside it */
    mr_params params;
    mr_device *device;
    mr_optimizer optimizer;
    float *values, *gradients; /* on the device */
    float *host;
    double *w, *m, *v;
    mr_random random;
} bench;

static void add_param(bench *b, const char *name, uint64_t count, bool decays)
{
    mr_error err;
    uint64_t offset;
    if (mr_params_add(&b->params, name, 1, &count, decays, &offset, &err) != MR_OK)
        fail_msg("%s", err.text);
}

static void *device_floats(bench *b)
{
    void *out = NULL;
    mr_error err;
    assert_int_equal(b->device->iface->alloc(b->device, b->params.total * sizeof(float), "tests", &out, &err), MR_OK);
    return out;
}

static void bench_open(bench *b, const mr_optimizer_options *options)
{
    mr_error err;
    *b = (bench){.random = support_random()};
    add_param(b, "cls", 17, true);
    add_param(b, "embedding/kernel", 4099, true);
    add_param(b, "embedding/bias", 5, false);
    add_param(b, "norm/scale", 33, false);
    add_param(b, "head/kernel", 1000, true);
    mr_device_options one = {.threads = 2};
    if (mr_device_open("cpu", &one, &b->device, &err) != MR_OK)
        fail_msg("%s", err.text);
    b->values = device_floats(b);
    b->gradients = device_floats(b);
    size_t total = b->params.total;
    b->host = calloc(total, sizeof *b->host);
    b->w = calloc(total, sizeof *b->w);
    b->m = calloc(total, sizeof *b->m);
    b->v = calloc(total, sizeof *b->v);
    assert_true(b->host && b->w && b->m && b->v);
    for (size_t i = 0; i < b->params.count; i++)
        for (size_t k = 0; k < b->params.items[i].count; k++)
            b->w[b->params.items[i].offset + k] = b->host[b->params.items[i].offset + k] =
                (float)mr_random_real(&b->random, -1, 1);
    b->device->iface->upload(b->device, b->values, b->host, total * sizeof(float));
    if (mr_optimizer_open(options, &b->params, b->device, &b->optimizer, &err) != MR_OK)
        fail_msg("%s", err.text);
}

static void bench_close(bench *b)
{
    mr_optimizer_close(&b->optimizer);
    b->device->iface->free(b->device, b->values);
    b->device->iface->free(b->device, b->gradients);
    mr_device_close(b->device);
    mr_params_release(&b->params);
    free(b->host);
    free(b->w);
    free(b->m);
    free(b->v);
}

/* New gradients, `divisor` times those of a mean, on the device and in b->host. */
static void draw_gradients(bench *b, double size, double divisor)
{
    memset(b->host, 0, b->params.total * sizeof *b->host);
    for (size_t i = 0; i < b->params.count; i++)
        for (size_t k = 0; k < b->params.items[i].count; k++)
            b->host[b->params.items[i].offset + k] = (float)(divisor * mr_random_real(&b->random, -size, size));
    b->device->iface->upload(b->device, b->gradients, b->host, b->params.total * sizeof(float));
}

static double restated_norm(const bench *b, double divisor)
{
    double sum = 0;
    for (size_t i = 0; i < b->params.total; i++)
        sum += ((double)b->host[i] / divisor) * ((double)b->host[i] / divisor);
    return sqrt(sum);
}

/* torch.optim.SGD (momentum, L2 in the gradient) and AdamW (decay apart from the gradient). */
static void restate(bench *b, const mr_optimizer_options *o, unsigned update, double divisor, double clipping)
{
    double lr = mr_lr_at(&o->lr, update), c1 = 1, c2 = 1;
    for (unsigned i = 0; i < update; i++) {
        c1 *= o->beta1;
        c2 *= o->beta2;
    }
    for (size_t i = 0; i < b->params.count; i++) {
        const mr_param *p = &b->params.items[i];
        double decay = p->decays ? o->weight_decay : 0;
        for (size_t k = p->offset; k < p->offset + p->count; k++) {
            double g = (double)b->host[k] / divisor * clipping;
            if (o->kind == MR_SGD) {
                g += decay * b->w[k];
                b->m[k] = update == 1 ? g : o->momentum * b->m[k] + g;
                b->w[k] -= lr * b->m[k];
            } else {
                b->w[k] *= 1 - lr * decay;
                b->m[k] = o->beta1 * b->m[k] + (1 - o->beta1) * g;
                b->v[k] = o->beta2 * b->v[k] + (1 - o->beta2) * g * g;
                b->w[k] -= lr * (b->m[k] / (1 - c1)) / (sqrt(b->v[k] / (1 - c2)) + o->eps);
            }
        }
    }
}

static void compare(bench *b, const mr_optimizer_options *o, unsigned update)
{
    double steps = 0;
    for (unsigned k = 1; k <= update; k++)
        steps += mr_lr_at(&o->lr, k);
    b->device->iface->download(b->device, b->host, b->values, b->params.total * sizeof(float));
    size_t next = 0;
    for (size_t i = 0; i < b->params.count; i++) {
        const mr_param *p = &b->params.items[i];
        for (; next < p->offset; next++)
            if (b->host[next] != 0)
                fail_msg("update %u: the gap at %zu became %g", update, next, (double)b->host[next]);
        for (; next < p->offset + p->count; next++) {
            double capacity = 4e-7 * (1 + fabs(b->w[next])) + 1e-5 * steps;
            if (!(fabs(b->host[next] - b->w[next]) <= capacity))
                fail_msg("update %u, %s[%zu]: %.9g, expected %.9g", update, p->name, (size_t)(next - p->offset),
                         (double)b->host[next], b->w[next]);
        }
    }
}

/* Gradients of mean-norm about 40: `clip` 1 acts, 1e6 does not, 0 is off. */
static void run(mr_optimizer_options o)
{
    o.lr = (mr_schedule_lr){.base = o.kind == MR_SGD ? 0.03 : 1e-3, .warmup = 2, .steps = UPDATES};
    bench b;
    bench_open(&b, &o);
    mr_error err;
    assert_int_equal(b.optimizer.slots, o.kind == MR_SGD ? 1 : 2);
    for (unsigned update = 1; update <= UPDATES; update++) {
        double divisor = update % 2 ? 1 : 24, norm, clipping;
        draw_gradients(&b, 1, divisor);
        norm = restated_norm(&b, divisor);
        clipping = o.clip > 0 && norm + 1e-6 > o.clip ? o.clip / (norm + 1e-6) : 1;
        restate(&b, &o, update, divisor, clipping);
        mr_update_facts facts;
        if (mr_optimizer_update(&b.optimizer, update, divisor, b.gradients, b.values, &facts, &err) != MR_OK ||
            b.device->iface->wait(b.device, &err) != MR_OK)
            fail_msg("update %u: %s", update, err.text);
        assert_rel(facts.grad_norm, norm, 1e-6, "norm", update);
        assert_true(facts.lr == mr_lr_at(&o.lr, update));
        compare(&b, &o, update);
    }
    bench_close(&b);
}

static const mr_optimizer_options sgd = {.kind = MR_SGD, .momentum = 0.9};
static const mr_optimizer_options adamw = {.kind = MR_ADAMW, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};

static void test_updates(void **state)
{
    (void)state;
    const mr_optimizer_options *kinds[] = {&sgd, &adamw};
    for (size_t i = 0; i < MR_COUNT(kinds); i++) {
        for (int variant = 0; variant < 6; variant++) {
            mr_optimizer_options o = *kinds[i];
            o.weight_decay = variant % 2 ? 0.1 : 0;
            o.clip = (double[]){0, 1, 1e6}[variant / 2];
            run(o);
        }
    }
    mr_optimizer_options o = adamw;
    o.eps = 1e-3;
    o.beta2 = 0.98;
    run(o);
    o = sgd;
    o.momentum = 0;
    run(o);
}

/* A norm at the limit is clipped by the 1e-6 alone; the coefficients are torch's. */
static void test_clip_coefficient(void **state)
{
    (void)state;
    static const struct {
        double norm, coefficient;
    } known[] = {{0, 1},
                 {0.5, 1},
                 {0.999998, 1},
                 {1, 0.9999990000010001},
                 {1.5, 0.6666662222225186},
                 {30, 0.033333332222222255},
                 {1e6, 9.99999999999e-07}};
    for (size_t i = 0; i < MR_COUNT(known); i++) {
        mr_optimizer_options o = sgd;
        o.clip = 1;
        o.lr = (mr_schedule_lr){.base = 1, .decay = MR_DECAY_NONE};
        bench b;
        bench_open(&b, &o);
        mr_error err;
        memset(b.host, 0, b.params.total * sizeof *b.host);
        b.device->iface->zero(b.device, b.values, b.params.total * sizeof(float));
        b.host[3] = (float)known[i].norm;
        b.device->iface->upload(b.device, b.gradients, b.host, b.params.total * sizeof(float));
        assert_int_equal(mr_optimizer_update(&b.optimizer, 1, 1, b.gradients, b.values, NULL, &err), MR_OK);
        b.device->iface->download(b.device, b.host, b.values, b.params.total * sizeof(float));
        assert_rel(-b.host[3], known[i].norm * known[i].coefficient, 1.2e-7, "clipped", 1);
        bench_close(&b);
    }
}

static void test_not_finite(void **state)
{
    (void)state;
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 2 * MR_COUNT(odd); i++) {
        mr_optimizer_options o = i % 2 ? sgd : adamw;
        o.lr = (mr_schedule_lr){.base = 0.1, .decay = MR_DECAY_NONE};
        o.clip = 1;
        o.weight_decay = 0.1;
        bench b;
        bench_open(&b, &o);
        size_t bytes = b.params.total * sizeof(float);
        float *before = malloc(bytes);
        mr_error err;
        assert_non_null(before);
        memcpy(before, b.host, bytes);
        draw_gradients(&b, 1, 1);
        b.host[4000] = odd[i / 2];
        b.device->iface->upload(b.device, b.gradients, b.host, bytes);
        assert_int_equal(mr_optimizer_update(&b.optimizer, 7, 1, b.gradients, b.values, NULL, &err), MR_BAD_DATA);
        assert_non_null(strstr(err.text, "update 7: the gradients are not finite (norm "));
        b.device->iface->download(b.device, b.host, b.values, bytes);
        assert_memory_equal(b.host, before, bytes);
        for (unsigned slot = 0; slot < b.optimizer.slots; slot++) {
            b.device->iface->download(b.device, b.host, b.optimizer.state[slot], bytes);
            for (size_t k = 0; k < b.params.total; k++)
                assert_true(b.host[k] == 0);
        }
        free(before);
        bench_close(&b);
    }
}

/* The largest finite gradients have a norm: no reason to stop. */
static void test_huge_is_finite(void **state)
{
    (void)state;
    mr_optimizer_options o = sgd;
    o.lr = (mr_schedule_lr){.base = 0.1, .decay = MR_DECAY_NONE};
    o.clip = 1;
    bench b;
    bench_open(&b, &o);
    mr_error err;
    mr_update_facts facts;
    draw_gradients(&b, 1, 1);
    b.host[0] = FLT_MAX;
    b.host[1] = -FLT_MAX;
    b.device->iface->upload(b.device, b.gradients, b.host, b.params.total * sizeof(float));
    assert_int_equal(mr_optimizer_update(&b.optimizer, 1, 1, b.gradients, b.values, &facts, &err), MR_OK);
    assert_rel(facts.grad_norm, sqrt(2) * (double)FLT_MAX, 1e-6, "norm", 1);
    bench_close(&b);
}

static void test_misuse(void **state)
{
    (void)state;
    static const struct {
        mr_optimizer_options o;
        const char *option;
    } wrong[] = {
        {{.lr = {.base = -1, .steps = 1}}, "--lr"},
        {{.lr = {.base = NAN, .steps = 1}}, "--lr"},
        {{.lr = {.base = INFINITY, .steps = 1}}, "--lr"},
        {{.lr = {.base = 1, .steps = 0}}, "--steps"},
        {{.lr = {.base = 1, .steps = 5, .warmup = 6}}, "--warmup"},
        {{.lr = {.base = 1, .steps = 5}, .weight_decay = -0.1}, "--weight-decay"},
        {{.lr = {.base = 1, .steps = 5}, .clip = -1}, "--clip"},
        {{.lr = {.base = 1, .steps = 5}, .clip = NAN}, "--clip"},
        {{.lr = {.base = 1, .steps = 5}, .momentum = 1}, "--momentum"},
        {{.lr = {.base = 1, .steps = 5}, .momentum = -0.1}, "--momentum"},
        {{.kind = MR_ADAMW, .lr = {.base = 1, .steps = 5}, .beta1 = 1, .eps = 1e-8}, "--beta1"},
        {{.kind = MR_ADAMW, .lr = {.base = 1, .steps = 5}, .beta2 = NAN, .eps = 1e-8}, "--beta2"},
        {{.kind = MR_ADAMW, .lr = {.base = 1, .steps = 5}, .eps = 0}, "--eps"},
    };
    mr_optimizer_options ok = sgd;
    ok.lr = (mr_schedule_lr){.base = 1, .steps = 5, .warmup = 5};
    bench b;
    bench_open(&b, &ok);
    mr_error err;
    for (size_t i = 0; i < MR_COUNT(wrong); i++) {
        mr_optimizer o = {0};
        assert_int_equal(mr_optimizer_open(&wrong[i].o, &b.params, b.device, &o, &err), MR_MISUSE);
        if (strncmp(err.text, wrong[i].option, strlen(wrong[i].option)) != 0)
            fail_msg("expected %s: %s", wrong[i].option, err.text);
        mr_optimizer_close(&o);
    }
    assert_int_equal(mr_optimizer_update(&b.optimizer, 0, 1, b.gradients, b.values, NULL, &err), MR_MISUSE);
    static const double divisors[] = {0, -1, NAN, INFINITY};
    for (size_t i = 0; i < MR_COUNT(divisors); i++)
        assert_int_equal(mr_optimizer_update(&b.optimizer, 1, divisors[i], b.gradients, b.values, NULL, &err),
                         MR_MISUSE);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_updates),    cmocka_unit_test(test_clip_coefficient),
        cmocka_unit_test(test_not_finite), cmocka_unit_test(test_huge_is_finite),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_passes.c - micro-steps through mr_passes and by the model itself; on a device that records (NAME@cuda) most of
 * the first are replayed.
 * Invariant tested: the bits are the same, and the one who has to know of gradients is told the same, in the same
 * order. */
#include <stdlib.h>
#include <string.h>

#include "train/run/passes.h"
#include "tests/support/training/model.h"

enum { BATCH = 3, CLASSES = 5, SIDE = 16, TOLD_MAX = 64 };

typedef struct told {
    uint64_t from[TOLD_MAX];
    size_t count;
} told;

static void tell(void *ctx, uint64_t from)
{
    told *t = ctx;
    assert_true(t->count < TOLD_MAX);
    t->from[t->count++] = from;
}

static support_model *open_model(void)
{
    const mr_model_config c = {.iface = &mr_model_vit,
                               .name = "vit",
                               .image = SIDE,
                               .patch = 8,
                               .hidden = 16,
                               .layers = 2,
                               .heads = 2,
                               .mlp = 24,
                               .classes = CLASSES,
                               .dropout = 0.1,
                               .compute = support_device_computes(MR_BF16) ? MR_BF16 : MR_F32};
    support_model *s = support_model_open(&c, BATCH, true, 1);
    s->config.iface->start(&s->config, &s->params, 7, s->host);
    support_model_put(s);
    return s;
}

static void send(support_model *s, unsigned step, size_t count)
{
    const mr_device_iface *c = s->device->iface;
    enum { PIXELS = BATCH * 3 * SIDE * SIDE };
    static float images[PIXELS];
    int32_t labels[BATCH];
    float weights[BATCH];
    uint64_t keys[BATCH];
    for (size_t i = 0; i < PIXELS; i++)
        images[i] = (float)((i * 37 + step * 11) % 101) / 50 - 1;
    for (size_t i = 0; i < BATCH; i++) {
        labels[i] = (int32_t)((i + step) % CLASSES);
        weights[i] = (float)(i + 1);
        keys[i] = i + 100 * step;
    }
    c->upload(s->device, s->images, images, count * 3 * SIDE * SIDE * sizeof *images);
    c->upload(s->device, s->labels, labels, count * sizeof *labels);
    c->upload(s->device, s->weights, weights, count * sizeof *weights);
    c->upload(s->device, s->keys, keys, count * sizeof *keys);
}

static mr_model_input input_of(const support_model *s, size_t count)
{
    return (mr_model_input){.count = count,
                            .training = true,
                            .images = s->images,
                            .labels = s->labels,
                            .weights = s->weights,
                            .keys = s->keys};
}

/* A pass of something else, as an evaluation between two updates. */
static void disturb(support_model *s, unsigned step)
{
    mr_model_input in = input_of(s, 1);
    mr_model_output out;
    void *memory = NULL;
    mr_error err;
    in.training = false;
    s->config.iface->forward(s->model, s->values, &in, &out);
    if (step % 6 == 5) { /* recordings end with it */
        assert_int_equal(s->device->iface->alloc(s->device, 100, "a test", &memory, &err), MR_OK);
        s->device->iface->free(s->device, memory);
    }
}

/* Micro-steps, two per update, of two sizes; NULL: by the model itself. */
static float *run(support_model *s, mr_passes *p, told *t, float *losses)
{
    for (unsigned step = 0; step < 16; step++) {
        size_t count = step % 5 == 4 ? BATCH - 1 : BATCH;
        bool last = step % 2;
        const mr_model_input in = input_of(s, count);
        mr_model_output out;
        send(s, step, count);
        if (p)
            mr_passes_forward(p, &in, last, &out);
        else
            s->config.iface->forward(s->model, s->values, &in, &out);
        s->device->iface->download(s->device, losses + (size_t)step * BATCH, out.losses, count * sizeof *losses);
        if (p)
            mr_passes_backward(p);
        else
            s->config.iface->backward(s->model, s->values, s->gradients, last ? tell : NULL, t);
        if (step % 3 == 2)
            disturb(s, step);
    }
    return support_model_gradients(s);
}

static void passes_are_those_of_the_model(void **state)
{
    static float losses[2][16 * BATCH];
    told own = {.count = 0}, told_by_passes = {.count = 0};
    mr_error err;
    (void)state;
    support_model *s = open_model(), *other = open_model();
    mr_passes p = {.device = other->device,
                   .model = other->model,
                   .values = other->values,
                   .gradients = other->gradients,
                   .ready = tell,
                   .ctx = &told_by_passes};
    float *want = run(s, NULL, &own, losses[0]), *got = run(other, &p, &told_by_passes, losses[1]);
    assert_int_equal(s->device->iface->wait(s->device, &err), MR_OK);
    if (other->device->iface->wait(other->device, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_memory_equal(want, got, s->params.total * sizeof *want);
    assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
    assert_int_equal(own.count, told_by_passes.count);
    assert_memory_equal(own.from, told_by_passes.from, own.count * sizeof *own.from);
    assert_true(other->device->iface->recorder ? p.replays : !p.count);
    mr_passes_close(&p);
    free(want);
    free(got);
    support_model_close(s);
    support_model_close(other);
}

/* More inputs than are kept: the rest is queued. */
static void many_inputs_are_fine(void **state)
{
    enum { MANY = MR_PASSES_KEPT + 3 };
    (void)state;
    support_model *s = open_model();
    mr_error err;
    mr_passes p = {.device = s->device, .model = s->model, .values = s->values, .gradients = s->gradients};
    send(s, 1, BATCH);
    for (unsigned times = 0; times < 3; times++)
        for (unsigned i = 0; i < MANY; i++) {
            mr_model_input in = input_of(s, 1);
            mr_model_output out;
            in.smoothing = (float)i / (2 * MANY);
            mr_passes_forward(&p, &in, true, &out);
            mr_passes_backward(&p);
        }
    if (s->device->iface->wait(s->device, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_int_equal(p.count, s->device->iface->recorder ? MR_PASSES_KEPT : 0);
    mr_passes_close(&p);
    support_model_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_are_those_of_the_model),
        cmocka_unit_test(many_inputs_are_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

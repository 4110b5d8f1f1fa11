/* model.c - a small model on a device with its buffers. */
#include "tests/support/training/model.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/device/plain.h"

mr_device *support_device(unsigned threads)
{
    const char *word = getenv("MILLRACE_TEST_DEVICE");
    const mr_device_options options = {.threads = threads};
    mr_device *d = NULL;
    mr_error err;
    mr_status status = support_open(word && *word ? word : "cpu", &options, &d, &err);
    if (status == MR_SYSTEM && word && (strcmp(word, "opencl") == 0 || strcmp(word, "cuda") == 0)) {
        support_cannot(word, err.text);
        exit(77); /* ctest: skipped */
    }
    if (status != MR_OK)
        fail_msg("%s", err.text);
    return d;
}

static void *on_device(support_model *s, size_t count, size_t size)
{
    void *memory = NULL;
    mr_error err;
    if (s->device->iface->alloc(s->device, count * size, "tests", &memory, &err))
        fail_msg("%s", err.text);
    return memory;
}

bool support_device_computes(mr_type type)
{
    mr_device *d = support_device(1);
    bool computes = d->iface->types & 1U << type;
    mr_device_close(d);
    return computes;
}

support_model *support_model_open(const mr_model_config *config, size_t batch, bool training, unsigned threads)
{
    support_model *s = calloc(1, sizeof *s);
    mr_error err;
    assert_non_null(s);
    s->config = *config;
    s->batch = batch;
    s->device = support_device(threads);
    if (config->iface->params(config, &s->params, &err) ||
        config->iface->open(config, &s->params, s->device, batch, training, &s->model, &err))
        fail_msg("%s", err.text);
    s->host = mr_alloc(s->params.total, sizeof *s->host);
    assert_non_null(s->host);
    s->values = on_device(s, s->params.total, sizeof *s->values);
    s->gradients = on_device(s, s->params.total, sizeof *s->gradients);
    s->images = on_device(s, batch * 3 * config->image * config->image, sizeof *s->images);
    s->weights = on_device(s, batch, sizeof *s->weights);
    s->labels = on_device(s, batch, sizeof *s->labels);
    s->other_weights = on_device(s, batch, sizeof *s->weights);
    s->other_labels = on_device(s, batch, sizeof *s->labels);
    s->keys = on_device(s, batch, sizeof *s->keys);
    return s;
}

void support_model_close(support_model *s)
{
    if (!s)
        return;
    const mr_device_iface *iface = s->device->iface;
    s->config.iface->close(s->model);
    void *const memory[] = {s->values, s->gradients, s->images,       s->weights,
                            s->labels, s->keys,      s->other_labels, s->other_weights};
    for (size_t i = 0; i < MR_COUNT(memory); i++)
        iface->free(s->device, memory[i]);
    mr_device_close(s->device);
    mr_params_release(&s->params);
    free(s->host);
    free(s);
}

void support_model_put(support_model *s)
{
    s->device->iface->upload(s->device, s->values, s->host, s->params.total * sizeof *s->host);
}

double support_model_forward(support_model *s, const support_input *in)
{
    const mr_device_iface *iface = s->device->iface;
    mr_device *d = s->device;
    float *losses = mr_alloc(in->count, sizeof *losses);
    uint64_t *keys = mr_alloc(in->count, sizeof *keys);
    double sum = 0;
    mr_error err;
    assert_true(losses && keys && in->count && in->count <= s->batch);
    for (size_t i = 0; i < in->count; i++)
        keys[i] = in->keys ? in->keys[i] : i;
    iface->upload(d, s->images, in->images, in->count * 3 * s->config.image * s->config.image * sizeof *s->images);
    iface->upload(d, s->labels, in->labels, in->count * sizeof *s->labels);
    iface->upload(d, s->keys, keys, in->count * sizeof *s->keys);
    if (in->weights)
        iface->upload(d, s->weights, in->weights, in->count * sizeof *s->weights);
    if (in->other_labels) {
        iface->upload(d, s->other_labels, in->other_labels, in->count * sizeof *s->labels);
        iface->upload(d, s->other_weights, in->other_weights, in->count * sizeof *s->weights);
    }
    const mr_model_input input = {.count = in->count,
                                  .training = in->training,
                                  .images = s->images,
                                  .labels = s->labels,
                                  .weights = in->weights ? s->weights : NULL,
                                  .other_labels = in->other_labels ? s->other_labels : NULL,
                                  .other_weights = in->other_labels ? s->other_weights : NULL,
                                  .keys = s->keys};
    s->count = in->count;
    s->config.iface->forward(s->model, s->values, &input, &s->out);
    iface->download(d, losses, s->out.losses, in->count * sizeof *losses);
    if (iface->wait(d, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < in->count; i++)
        sum += losses[i];
    free(losses);
    free(keys);
    return sum;
}

void support_model_back(support_model *s, mr_gradients_ready ready, void *ctx)
{
    mr_error err;
    s->config.iface->backward(s->model, s->values, s->gradients, ready, ctx);
    if (s->device->iface->wait(s->device, &err))
        fail_msg("%s", err.text);
}

void support_model_zero(support_model *s)
{
    s->device->iface->zero(s->device, s->gradients, s->params.total * sizeof *s->gradients);
}

static float *fetch(const support_model *s, const void *from, size_t count)
{
    float *to = mr_alloc(count, sizeof *to);
    assert_non_null(to);
    s->device->iface->download(s->device, to, from, count * sizeof *to);
    return to;
}

float *support_model_gradients(const support_model *s)
{
    return fetch(s, s->gradients, s->params.total);
}

float *support_model_values(const support_model *s)
{
    return fetch(s, s->values, s->params.total);
}

float *support_model_logits(const support_model *s)
{
    return fetch(s, s->out.logits, s->count * s->config.classes);
}

float *support_model_look(const support_model *s, const char *name, size_t *count)
{
    const void *at = s->config.iface->look(s->model, name, count);
    return at ? fetch(s, at, *count) : NULL;
}

void support_model_refusals(const mr_model_config *config, const mr_model_config *other)
{
    enum { BATCH = 4 };
    mr_model_config bf16 = *config;
    mr_device *d = support_device(1);
    mr_params p = {0};
    mr_model *m = NULL;
    mr_error err;
    assert_int_equal(config->iface->params(config, &p, &err), MR_OK);
    assert_int_equal(config->iface->open(other, &p, d, BATCH, true, &m, &err), MR_MISUSE);
    assert_int_equal(config->iface->open(config, &p, d, 0, true, &m, &err), MR_MISUSE);
    assert_int_equal(config->iface->open(config, &p, d, SIZE_MAX / 64, true, &m, &err), MR_MISUSE);
    if (!(d->iface->types & 1U << MR_BF16)) {
        bf16.compute = MR_BF16;
        assert_int_equal(config->iface->open(&bf16, &p, d, BATCH, true, &m, &err), MR_MISUSE);
        assert_non_null(strstr(err.text, "bf16"));
    }
    assert_null(m);
    config->iface->close(NULL);
    mr_params_release(&p);
    mr_device_close(d);
}

/* test_vit_parity.c - the Vision Transformer against the reference implementation: activations, losses, every
 * gradient and three updates. Fixtures: every vit_*.json of the parity folder, with its shapes and the tolerances of
 * its README. MILLRACE_VERBOSE=1 prints the largest error of each kind over its tolerance. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/model/optimizer.h"
#include "tests/support/training/model.h"
#include "tests/support/training/parity.h"

/* ---- fixtures --------------------------------------------------------------------------------------------------- */

typedef struct fixture {
    char name[64]; /* "vit_a" */
    json_t *facts;
    support_npz *weights, *io, *grad, *sgd, *adamw;
    mr_model_config config;
    size_t batch;
    const float *images; /* [3, batch, 3, image, image] */
    int32_t *labels;     /* [3, batch] */
    parity_table *table;
} fixture;

static support_npz *part(const char *name, const char *what)
{
    char sub[64];
    snprintf(sub, sizeof sub, "%s.npz", what);
    char *path = parity_part(name, sub);
    support_npz *z = support_npz_open(path);
    free(path);
    return z;
}

static void read_config(fixture *f)
{
    const json_t *c = json_object_get(f->facts, "config");
    mr_error err;
    if (mr_model_find("vit", &f->config, &err))
        fail_msg("%s", err.text);
    f->config.image = (uint32_t)parity_number(c, "image", -1);
    f->config.patch = (uint32_t)parity_number(c, "patch", -1);
    f->config.hidden = (uint32_t)parity_number(c, "hidden", -1);
    f->config.layers = (uint32_t)parity_number(c, "layers", -1);
    f->config.heads = (uint32_t)parity_number(c, "heads", -1);
    f->config.mlp = (uint32_t)parity_number(c, "mlp", -1);
    f->config.classes = (uint32_t)parity_number(c, "classes", -1);
    f->batch = (size_t)parity_number(c, "batch", -1);
}

static void fixture_open(fixture *f, const char *name, parity_table *t)
{
    uint64_t shape[MR_NPZ_DIMS];
    *f = (fixture){.table = t};
    if ((size_t)snprintf(f->name, sizeof f->name, "%s", name) >= sizeof f->name)
        fail_msg("%s: the name is too long", name);
    f->facts = parity_facts(name);
    read_config(f);
    f->weights = part(name, "weights");
    f->io = part(name, "io");
    f->grad = part(name, "grad");
    f->sgd = part(name, "after_sgd3");
    f->adamw = part(name, "after_adamw3");
    f->images = support_npz_get(f->io, "x", MR_NPZ_F32, shape);
    assert_true(shape[0] == 3 && shape[1] == f->batch && shape[3] == f->config.image);
    const int64_t *labels = support_npz_get(f->io, "y", MR_NPZ_I64, shape);
    assert_true(shape[0] == 3 && shape[1] == f->batch);
    f->labels = mr_alloc(3 * f->batch, sizeof *f->labels);
    assert_non_null(f->labels);
    for (size_t i = 0; i < 3 * f->batch; i++)
        f->labels[i] = (int32_t)labels[i];
}

static void fixture_close(fixture *f)
{
    support_npz_close(f->weights);
    support_npz_close(f->io);
    support_npz_close(f->grad);
    support_npz_close(f->sgd);
    support_npz_close(f->adamw);
    json_decref(f->facts);
    free(f->labels);
}

/* An array of the parameter's name and shape. */
static const float *array_of(const support_npz *z, const mr_param *p)
{
    uint64_t shape[MR_NPZ_DIMS];
    const float *elements = support_npz_get(z, p->name, MR_NPZ_F32, shape);
    for (unsigned i = 0; i < p->dims; i++)
        assert_int_equal(shape[i], p->shape[i]);
    return elements;
}

/* A model with the fixture's weights; every array of the file is one of its parameters. */
static support_model *model_of(const fixture *f, bool every_token)
{
    mr_model_config c = f->config;
    c.every_token = every_token;
    support_model *s = support_model_open(&c, f->batch, true, 2);
    size_t arrays = 0;
    while (support_npz_at(f->weights, arrays))
        arrays++;
    assert_int_equal(arrays, s->params.count);
    for (size_t i = 0; i < s->params.count; i++) {
        const mr_param *p = &s->params.items[i];
        memcpy(s->host + p->offset, array_of(f->weights, p), p->count * sizeof *s->host);
    }
    support_model_put(s);
    return s;
}

/* The mean loss of the step's batch; its gradients' sum in s->gradients. */
static double step_of(const fixture *f, support_model *s, int step)
{
    size_t pixels = f->batch * 3 * f->config.image * f->config.image;
    const support_input in = {.count = f->batch,
                              .training = true,
                              .images = f->images + (size_t)step * pixels,
                              .labels = f->labels + (size_t)step * f->batch};
    support_model_zero(s);
    double sum = support_model_forward(s, &in);
    support_model_back(s, NULL, NULL);
    return sum / (double)f->batch;
}

static bool is_key_bias(const char *name)
{
    return strstr(name, "/key/bias") != NULL;
}

/* ---- one pass --------------------------------------------------------------------------------------------------- */

static void check_activations(const fixture *f, const support_model *s)
{
    uint64_t shape[MR_NPZ_DIMS];
    for (size_t i = 0; support_npz_at(f->io, i); i++) {
        const mr_npz_array *a = support_npz_at(f->io, i);
        size_t count;
        if (strncmp(a->name, "act/", 4) != 0)
            continue;
        float *got = support_model_look(s, a->name + 4, &count);
        if (!got && !s->config.every_token)
            continue;
        if (!got)
            fail_msg("%s: no activation %s", f->name, a->name);
        assert_int_equal(count, a->count);
        parity_note(f->table, "activations",
                    parity_difference(got, support_npz_get(f->io, a->name, MR_NPZ_F32, shape), count), 3e-5, f->name,
                    a->name);
        free(got);
    }
}

static void check_gradients(const fixture *f, const support_model *s)
{
    float *g = support_model_gradients(s);
    double query_bias = 0, squares = 0;
    for (uint64_t i = 0; i < s->params.total; i++) {
        g[i] /= (float)f->batch;
        squares += (double)g[i] * g[i];
    }
    for (size_t i = 0; i < s->params.count; i++) {
        const mr_param *p = &s->params.items[i];
        const float *want = array_of(f->grad, p);
        if (strstr(p->name, "/query/bias"))
            query_bias = parity_largest(want, p->count);
        if (is_key_bias(p->name))
            parity_note(f->table, "gradient of key biases", parity_largest(g + p->offset, p->count),
                        fmax(1e-5 * query_bias, 1e-6), f->name, p->name);
        else
            parity_note(f->table, "gradients, of the largest",
                        parity_difference(g + p->offset, want, p->count) / parity_largest(want, p->count), 3e-5,
                        f->name, p->name);
    }
    double norm = parity_number(f->facts, "grad_norm_sgd", 0);
    parity_note(f->table, "gradient norm, relative", fabs(sqrt(squares) - norm) / norm, 5e-6, f->name, "all");
    free(g);
}

static void check_pass(const fixture *f, bool every_token)
{
    support_model *s = model_of(f, every_token);
    uint64_t shape[MR_NPZ_DIMS];
    double loss = step_of(f, s, 0);
    float *logits = support_model_logits(s);
    const float *want = support_npz_get(f->io, "logits", MR_NPZ_F32, shape);
    assert_true(shape[0] == f->batch && shape[1] == f->config.classes);
    parity_note(f->table, "loss", fabs(loss - parity_number(f->facts, "loss_sgd", 0)), 5e-6, f->name, "step 1");
    parity_note(f->table, "logits", parity_difference(logits, want, f->batch * f->config.classes), 2e-5, f->name, "");
    check_activations(f, s);
    check_gradients(f, s);
    free(logits);
    support_model_close(s);
}

/* By the rules for bf16, which the gradients of key biases are exempt from, being rounding alone. */
static void check_bf16(const fixture *f)
{
    fixture half = *f;
    half.config.compute = MR_BF16;
    support_model *s = model_of(&half, false);
    uint64_t shape[MR_NPZ_DIMS];
    parity_angle all = {.product = 0};
    double loss = step_of(f, s, 0);
    float *logits = support_model_logits(s), *g = support_model_gradients(s);
    const float *want = support_npz_get(f->io, "logits", MR_NPZ_F32, shape);
    parity_note_bf16(f->table, "logits in bf16, of the largest", logits, want, f->batch * f->config.classes, f->name);
    for (uint64_t i = 0; i < s->params.total; i++)
        g[i] /= (float)f->batch;
    for (size_t i = 0; i < s->params.count; i++) {
        const mr_param *p = &s->params.items[i];
        parity_angle one = {.product = 0};
        parity_angle_add(&one, g + p->offset, array_of(f->grad, p), p->count);
        parity_angle_add(&all, g + p->offset, array_of(f->grad, p), p->count);
        if (!is_key_bias(p->name))
            parity_note(f->table, "gradients in bf16, 1 - cosine", parity_angle_off(&one), 5e-3, f->name, p->name);
    }
    parity_note_pass_bf16(f->table, loss, parity_number(f->facts, "loss_sgd", 0), &all, f->name);
    free(logits);
    free(g);
    support_model_close(s);
}

/* ---- three updates ---------------------------------------------------------------------------------------------- */

static void open_optimizer(const fixture *f, const char *which, const support_model *s, mr_optimizer *out)
{
    const json_t *facts = json_object_get(f->facts, which);
    mr_optimizer_options o = {.lr = {.base = 1, .decay = MR_DECAY_NONE}};
    mr_error err;
    o.weight_decay = parity_number(facts, "weight_decay", -1);
    o.clip = parity_number(facts, "max_grad_norm", -1);
    if (strcmp(which, "adamw") == 0) {
        o.kind = MR_ADAMW;
        o.beta1 = parity_number(facts, "betas", 0);
        o.beta2 = parity_number(facts, "betas", 1);
        o.eps = parity_number(facts, "eps", -1);
    } else {
        o.momentum = parity_number(facts, "momentum", -1);
    }
    if (mr_optimizer_open(&o, &s->params, s->device, out, &err))
        fail_msg("%s", err.text);
}

/* Three steps on three batches; `losses`: the fixture's key of what each of them must lose before its update. */
static void three_steps(const fixture *f, support_model *s, const char *which, const char *losses, const char *norms)
{
    const json_t *facts = json_object_get(f->facts, which);
    mr_optimizer optimizer;
    open_optimizer(f, which, s, &optimizer);
    for (int step = 0; step < 3; step++) {
        char where[64];
        mr_update_facts update;
        mr_error err;
        snprintf(where, sizeof where, "%s step %d", losses, step + 1);
        parity_note(f->table, "loss", fabs(step_of(f, s, step) - parity_number(f->facts, losses, step)), 5e-6, f->name,
                    where);
        optimizer.options.lr.base = parity_number(facts, "lr", step);
        if (mr_optimizer_update(&optimizer, (uint64_t)step + 1, (double)f->batch, s->gradients, s->values, &update,
                                &err))
            fail_msg("%s", err.text);
        double norm = parity_number(f->facts, norms, step);
        parity_note(f->table, "gradient norm, relative", fabs(update.grad_norm - norm) / norm, 5e-6, f->name, where);
    }
    mr_optimizer_close(&optimizer);
}

static void check_sgd(const fixture *f)
{
    support_model *s = model_of(f, false);
    three_steps(f, s, "sgd", "loss_sgd", "grad_norm_sgd");
    float *values = support_model_values(s);
    for (size_t i = 0; i < s->params.count; i++) {
        const mr_param *p = &s->params.items[i];
        parity_note(f->table, "after 3 SGD steps", parity_difference(values + p->offset, array_of(f->sgd, p), p->count),
                    2e-6, f->name, p->name);
    }
    free(values);
    support_model_close(s);
}

static void check_adamw(const fixture *f)
{
    support_model *s = model_of(f, false);
    const json_t *facts = json_object_get(f->facts, "adamw");
    double rates = parity_number(facts, "lr", 0) + parity_number(facts, "lr", 1) + parity_number(facts, "lr", 2);
    size_t elements = 0, off = 0;
    three_steps(f, s, "adamw", "loss_adamw", "grad_norm_adamw");
    float *values = support_model_values(s);
    for (size_t i = 0; i < s->params.count; i++) {
        const mr_param *p = &s->params.items[i];
        const float *want = array_of(f->adamw, p);
        if (is_key_bias(p->name))
            continue;
        parity_note(f->table, "after 3 AdamW steps, all", parity_difference(values + p->offset, want, p->count),
                    2 * rates, f->name, p->name);
        for (uint64_t k = 0; k < p->count; k++)
            off += !(fabs((double)values[p->offset + k] - want[k]) <= 1e-6);
        elements += p->count;
    }
    parity_note(f->table, "after 3 AdamW steps, share", (double)off / (double)elements, 1e-3, f->name, "beyond 1e-6");
    free(values);
    support_model_close(s);
}

/* As training begins from a foreign file: load() leaves its head out and says so.  The first loss is ln(classes), and
 * nothing below the head has a gradient. */
static void check_zero_head(const fixture *f)
{
    support_model *s = support_model_open(&f->config, f->batch, true, 2);
    char *sub = support_path("%s_weights.npz", f->name), *path = support_parity(sub);
    const char *const names[] = {"head/kernel", "head/bias"}, *const arrays[] = {"zerohead_after_head_kernel",
                                                                                 "zerohead_after_head_bias"};
    mr_buf said = {0};
    mr_error err;
    if (f->config.iface->load(&f->config, &s->params, path, s->host, &said, &err))
        fail_msg("%s", err.text);
    assert_non_null(strstr(mr_buf_text(&said), "head not loaded"));
    support_model_put(s);
    uint64_t head = mr_params_find(&s->params, "head/kernel")->offset;
    double loss = step_of(f, s, 0);
    float *g = support_model_gradients(s);
    assert_true(fabs(loss - log(f->config.classes)) < 1e-6);
    for (uint64_t i = 0; i < head; i++)
        assert_true(g[i] == 0);
    three_steps(f, s, "sgd", "zerohead_loss_sgd", "zerohead_grad_norm_sgd");
    float *values = support_model_values(s);
    for (int i = 0; i < 2; i++) {
        const mr_param *p = mr_params_find(&s->params, names[i]);
        uint64_t shape[MR_NPZ_DIMS];
        const float *want = support_npz_get(f->io, arrays[i], MR_NPZ_F32, shape);
        parity_note(f->table, "head after 3 steps from zero", parity_difference(values + p->offset, want, p->count),
                    2e-6, f->name, names[i]);
    }
    mr_buf_free(&said);
    free(values);
    free(g);
    free(path);
    free(sub);
    support_model_close(s);
}

static void check_model(const char *name, parity_table *t)
{
    fixture f;
    fixture_open(&f, name, t);
    check_pass(&f, true);
    check_pass(&f, false);
    check_sgd(&f);
    check_adamw(&f);
    check_zero_head(&f);
    if (support_device_computes(MR_BF16))
        check_bf16(&f);
    fixture_close(&f);
}

static void models_equal_the_reference(void **state)
{
    (void)state;
    parity_each("vit_", check_model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_equal_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

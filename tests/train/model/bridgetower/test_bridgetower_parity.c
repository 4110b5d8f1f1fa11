/* test_bridgetower_parity.c - BridgeTower against the reference implementation: hidden states, embeddings, losses,
 * every gradient and three updates. Fixtures: every bt_*.json of the parity folder, with its shapes and the
 * tolerances of its README. MILLRACE_VERBOSE=1 prints the largest error of each kind over its tolerance. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/files/safetensors.h"
#include "train/model/optimizer.h"
#include "tests/support/sources/pairs.h"
#include "tests/support/training/parity.h"

/* ---- fixtures -------------------------------------------------------------------------------------------------- */

typedef struct fixture {
    char name[64]; /* "bt_a" */
    json_t *facts;
    char *weights; /* path */
    mr_safetensors *grad, *after;
    support_npz *io;
    mr_model_config config;
    size_t batch;
    const float *images; /* [3, batch, 3, image, image] */
    int32_t *tokens;     /* [3, batch, text] */
    uint8_t *seen;
    parity_table *table;
} fixture;

static mr_safetensors *tensors(const char *name, const char *what)
{
    char *path = parity_part(name, what);
    mr_safetensors *s = NULL;
    mr_error err;
    if (mr_safetensors_open(path, &s, &err))
        fail_msg("%s", err.text);
    free(path);
    return s;
}

static void read_config(fixture *f)
{
    const json_t *c = json_object_get(f->facts, "config");
    const struct {
        const char *key;
        uint32_t *to;
    } sizes[] = {{"hidden", &f->config.hidden},
                 {"heads", &f->config.heads},
                 {"mlp", &f->config.mlp},
                 {"layers", &f->config.layers},
                 {"cross_layers", &f->config.cross_layers},
                 {"patch", &f->config.patch},
                 {"image", &f->config.image},
                 {"vocab", &f->config.vocab},
                 {"tokens", &f->config.text},
                 {"max_pos", &f->config.positions},
                 {"embed", &f->config.embed}};
    mr_error err;
    if (mr_model_find("bridgetower", &f->config, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < MR_COUNT(sizes); i++)
        *sizes[i].to = (uint32_t)parity_number(c, sizes[i].key, -1);
    f->config.norm_eps = parity_number(json_object_get(f->facts, "hf_config"), "layer_norm_eps", -1);
    f->batch = (size_t)parity_number(c, "batch", -1);
}

static void read_texts(fixture *f)
{
    uint64_t shape[MR_NPZ_DIMS];
    const int64_t *ids = support_npz_get(f->io, "input_ids", MR_NPZ_I64, shape);
    const int64_t *mask = support_npz_get(f->io, "attention_mask", MR_NPZ_I64, shape);
    size_t count = 3 * f->batch * f->config.text;
    assert_true(shape[0] == 3 && shape[1] == f->batch && shape[2] == f->config.text);
    f->tokens = mr_alloc(count, sizeof *f->tokens);
    f->seen = mr_alloc(count, 1);
    assert_true(f->tokens && f->seen);
    for (size_t i = 0; i < count; i++) {
        f->tokens[i] = (int32_t)ids[i];
        f->seen[i] = mask[i] != 0;
    }
}

static void fixture_open(fixture *f, const char *name, parity_table *t)
{
    uint64_t shape[MR_NPZ_DIMS];
    *f = (fixture){.table = t};
    if ((size_t)snprintf(f->name, sizeof f->name, "%s", name) >= sizeof f->name)
        fail_msg("%s: the name is too long", name);
    f->facts = parity_facts(name);
    read_config(f);
    f->weights = parity_part(name, "weights.safetensors");
    f->grad = tensors(name, "grad.safetensors");
    f->after = tensors(name, "after_adamw3.safetensors");
    char *path = parity_part(name, "io.npz");
    f->io = support_npz_open(path);
    free(path);
    f->images = support_npz_get(f->io, "pixel_values", MR_NPZ_F32, shape);
    assert_true(shape[0] == 3 && shape[1] == f->batch && shape[3] == f->config.image);
    read_texts(f);
}

static void fixture_close(fixture *f)
{
    mr_safetensors_free(f->grad);
    mr_safetensors_free(f->after);
    support_npz_close(f->io);
    json_decref(f->facts);
    free(f->weights);
    free(f->tokens);
    free(f->seen);
}

/* A tensor of the parameter's name and size, on the heap. */
static float *tensor_of(const mr_safetensors *s, const mr_param *p)
{
    const mr_tensor *t = mr_safetensors_find(s, p->name);
    float *to = mr_alloc(p->count, sizeof *to);
    mr_error err;
    assert_non_null(to);
    if (!t || t->count != p->count)
        fail_msg("%s: not in the fixture, or of another size", p->name);
    if (mr_safetensors_take(s, t, to, &err))
        fail_msg("%s", err.text);
    return to;
}

static support_pairs *model_of(const fixture *f, bool every_token)
{
    mr_model_config c = f->config;
    mr_buf said = {0};
    mr_error err;
    c.every_token = every_token;
    support_pairs *s = support_pairs_open(&c, f->batch, true, 2);
    if (c.iface->load(&c, &s->model->params, f->weights, s->model->host, &said, &err))
        fail_msg("%s", err.text);
    assert_int_equal(s->model->params.elements, (uint64_t)parity_number(f->facts, "n_params", -1));
    mr_buf_free(&said);
    support_model_put(s->model);
    return s;
}

/* The mean loss of the step's batch; its gradients' sum in s->gradients. */
static double step_of(const fixture *f, support_pairs *s, int step)
{
    size_t pixels = f->batch * 3 * f->config.image * f->config.image, words = f->batch * f->config.text;
    const support_pairs_input in = {.count = f->batch,
                                    .training = true,
                                    .length = f->config.text,
                                    .stride = f->config.text,
                                    .images = f->images + (size_t)step * pixels,
                                    .tokens = f->tokens + (size_t)step * words,
                                    .seen = f->seen + (size_t)step * words};
    support_model_zero(s->model);
    double sum = support_pairs_forward(s, &in);
    support_model_back(s->model, NULL, NULL);
    return sum / (double)f->batch;
}

/* ---- gradients that are rounding alone ------------------------------------------------------------------------- */

/* Elements [*first, *first + *count) of a parameter shift all scores of a softmax alike. */
static bool has_key_bias(const mr_param *p, uint64_t *first, uint64_t *count)
{
    bool stacked = strstr(p->name, "attn.in_proj_bias") != NULL;
    *first = stacked ? p->count / 3 : 0;
    *count = stacked ? p->count / 3 : p->count;
    return stacked || strstr(p->name, ".self.key.bias");
}

/* The largest difference outside of key biases, over the tensor's largest if `relative`. */
static double difference_but_keys(const mr_param *p, const float *a, const float *b, bool relative)
{
    uint64_t first, count;
    double most = parity_largest(b, p->count), off;
    if (has_key_bias(p, &first, &count))
        off = fmax(parity_difference(a, b, first),
                   parity_difference(a + first + count, b + first + count, p->count - first - count));
    else
        off = parity_difference(a, b, p->count);
    return relative ? off / most : off;
}

/* ---- one pass -------------------------------------------------------------------------------------------------- */

static void check_hidden(const fixture *f, const support_pairs *s)
{
    uint64_t shape[MR_NPZ_DIMS];
    size_t seen = 0;
    for (size_t i = 0; support_npz_at(f->io, i); i++) {
        const mr_npz_array *a = support_npz_at(f->io, i);
        size_t count;
        if (strncmp(a->name, "hid/", 4) != 0)
            continue;
        float *got = support_model_look(s->model, a->name + 4, &count);
        if (!got && !s->model->config.every_token)
            continue;
        if (!got)
            fail_msg("%s: no activation %s", f->name, a->name);
        assert_int_equal(count, a->count);
        parity_note(f->table, "hidden states",
                    parity_difference(got, support_npz_get(f->io, a->name, MR_NPZ_F32, shape), count), 3e-5, f->name,
                    a->name);
        free(got);
        seen++;
    }
    assert_true(seen >= 2 * f->config.layers + 2);
}

static void check_similarities(const fixture *f, float *const e[3])
{
    static const struct {
        const char *name;
        int row, column;
    } kinds[] = {{"sim_text_image", 0, 1}, {"sim_text_cross", 0, 2}, {"sim_image_cross", 1, 2}};
    const mr_tensor *scale;
    mr_safetensors *weights = tensors(f->name, "weights.safetensors");
    uint64_t shape[MR_NPZ_DIMS];
    float log_scale;
    mr_error err;
    scale = mr_safetensors_find(weights, "logit_scale");
    assert_true(scale && !mr_safetensors_take(weights, scale, &log_scale, &err));
    for (size_t k = 0; k < MR_COUNT(kinds); k++) {
        const float *want = support_npz_get(f->io, kinds[k].name, MR_NPZ_F32, shape);
        assert_true(shape[0] == f->batch && shape[1] == f->batch);
        for (size_t i = 0; i < f->batch * f->batch; i++) {
            const float *a = e[kinds[k].row] + i / f->batch * f->config.embed;
            const float *b = e[kinds[k].column] + i % f->batch * f->config.embed;
            double sum = 0;
            for (size_t c = 0; c < f->config.embed; c++)
                sum += (double)a[c] * (double)b[c];
            parity_note(f->table, "similarities", fabs(sum * exp((double)log_scale) - (double)want[i]), 5e-5, f->name,
                        kinds[k].name);
        }
    }
    mr_safetensors_free(weights);
}

static void check_embeddings(const fixture *f, const support_pairs *s)
{
    static const char *const names[] = {"text_embeds", "image_embeds", "cross_embeds"};
    uint64_t shape[MR_NPZ_DIMS];
    float *e[3];
    for (int i = 0; i < 3; i++) {
        size_t count, all = f->batch * f->config.embed;
        const float *want = support_npz_get(f->io, names[i], MR_NPZ_F32, shape);
        float *seen = support_model_look(s->model, names[i], &count);
        e[i] = support_pairs_embeddings(s, i);
        assert_true(seen && count == all && shape[0] * shape[1] == all);
        assert_memory_equal(seen, e[i], all * sizeof *seen);
        parity_note(f->table, "embeddings", parity_difference(e[i], want, all), 3e-6, f->name, names[i]);
        free(seen);
    }
    check_similarities(f, e);
    for (int i = 0; i < 3; i++)
        free(e[i]);
}

static void check_key_bias(const fixture *f, const mr_param *p, const float *g, const float *query, uint64_t queries)
{
    uint64_t first, count;
    if (has_key_bias(p, &first, &count))
        parity_note(f->table, "gradient of key biases", parity_largest(g + first, count),
                    fmax(1e-5 * parity_largest(query, queries), 1e-6), f->name, p->name);
}

static void check_gradients(const fixture *f, const support_pairs *s)
{
    const mr_params *params = &s->model->params;
    float *g = support_model_gradients(s->model);
    double squares = 0;
    for (uint64_t i = 0; i < params->total; i++) {
        g[i] /= (float)f->batch;
        squares += (double)g[i] * (double)g[i];
    }
    for (size_t i = 0; i < params->count; i++) {
        const mr_param *p = &params->items[i];
        float *want = tensor_of(f->grad, p);
        uint64_t first, count;
        if (!has_key_bias(p, &first, &count) || count < p->count)
            parity_note(f->table, "gradients, of the largest", difference_but_keys(p, g + p->offset, want, true), 3e-5,
                        f->name, p->name);
        if (count < p->count) /* queries' biases stand in front of it, else two parameters before */
            check_key_bias(f, p, g + p->offset, want, first);
        else if (i >= 2)
            check_key_bias(f, p, g + p->offset, g + p[-2].offset, p[-2].count);
        free(want);
    }
    double norm = parity_number(f->facts, "grad_norm", 0);
    parity_note(f->table, "gradient norm, relative", fabs(sqrt(squares) - norm) / norm, 5e-6, f->name, "all");
    free(g);
}

static void check_pass(const fixture *f, bool every_token)
{
    support_pairs *s = model_of(f, every_token);
    double loss = step_of(f, s, 0);
    parity_note(f->table, "loss", fabs(loss - parity_number(f->facts, "loss", 0)), 5e-6, f->name, "step 1");
    check_hidden(f, s);
    check_embeddings(f, s);
    check_gradients(f, s);
    support_pairs_close(s);
}

/* By the rules for bf16, which the gradients of key biases are exempt from, being rounding alone. */
static void check_bf16(const fixture *f)
{
    static const char *const names[] = {"text_embeds", "image_embeds", "cross_embeds"};
    fixture half = *f;
    half.config.compute = MR_BF16;
    support_pairs *s = model_of(&half, false);
    const mr_params *params = &s->model->params;
    parity_angle all = {.product = 0};
    uint64_t shape[MR_NPZ_DIMS];
    double loss = step_of(f, s, 0);
    for (int i = 0; i < 3; i++) {
        float *e = support_pairs_embeddings(s, i);
        parity_note_bf16(f->table, "embeddings in bf16, of the largest", e,
                         support_npz_get(f->io, names[i], MR_NPZ_F32, shape), f->batch * f->config.embed, f->name);
        free(e);
    }
    float *g = support_model_gradients(s->model);
    for (uint64_t i = 0; i < params->total; i++)
        g[i] /= (float)f->batch;
    for (size_t i = 0; i < params->count; i++) {
        const mr_param *p = &params->items[i];
        float *want = tensor_of(f->grad, p);
        parity_angle one = {.product = 0};
        uint64_t first, count;
        parity_angle_add(&one, g + p->offset, want, p->count);
        parity_angle_add(&all, g + p->offset, want, p->count);
        if (!has_key_bias(p, &first, &count))
            parity_note(f->table, "gradients in bf16, 1 - cosine", parity_angle_off(&one), 5e-3, f->name, p->name);
        free(want);
    }
    parity_note_pass_bf16(f->table, loss, parity_number(f->facts, "loss", 0), &all, f->name);
    free(g);
    support_pairs_close(s);
}

/* ---- three updates --------------------------------------------------------------------------------------------- */

static void open_optimizer(const fixture *f, const support_pairs *s, mr_optimizer *out)
{
    const json_t *facts = json_object_get(f->facts, "optimizer");
    const mr_optimizer_options o = {.kind = MR_ADAMW,
                                    .lr = {.base = 1, .decay = MR_DECAY_NONE},
                                    .beta1 = parity_number(facts, "betas", 0),
                                    .beta2 = parity_number(facts, "betas", 1),
                                    .eps = parity_number(facts, "eps", -1),
                                    .clip = parity_number(facts, "max_grad_norm", -1),
                                    .weight_decay = parity_number(facts, "weight_decay", -1)};
    mr_error err;
    if (mr_optimizer_open(&o, &s->model->params, s->model->device, out, &err))
        fail_msg("%s", err.text);
}

/* Three steps on three batches. */
static void three_steps(const fixture *f, support_pairs *s)
{
    const json_t *facts = json_object_get(f->facts, "optimizer");
    mr_optimizer optimizer;
    open_optimizer(f, s, &optimizer);
    for (int step = 0; step < 3; step++) {
        char where[64];
        mr_update_facts update;
        mr_error err;
        snprintf(where, sizeof where, "step %d", step + 1);
        parity_note(f->table, "loss", fabs(step_of(f, s, step) - parity_number(f->facts, "loss", step)), 5e-6, f->name,
                    where);
        optimizer.options.lr.base = parity_number(facts, "lr", step);
        if (mr_optimizer_update(&optimizer, (uint64_t)step + 1, (double)f->batch, s->model->gradients, s->model->values,
                                &update, &err))
            fail_msg("%s", err.text);
        double norm = parity_number(f->facts, "grad_norm", step);
        parity_note(f->table, "gradient norm, relative", fabs(update.grad_norm - norm) / norm, 5e-6, f->name, where);
    }
    mr_optimizer_close(&optimizer);
}

static void check_adamw(const fixture *f)
{
    support_pairs *s = model_of(f, false);
    const json_t *facts = json_object_get(f->facts, "optimizer");
    double rates = parity_number(facts, "lr", 0) + parity_number(facts, "lr", 1) + parity_number(facts, "lr", 2);
    size_t elements = 0, off = 0;
    three_steps(f, s);
    float *values = support_model_values(s->model);
    for (size_t i = 0; i < s->model->params.count; i++) {
        const mr_param *p = &s->model->params.items[i];
        float *want = tensor_of(f->after, p);
        uint64_t first, count;
        bool keys = has_key_bias(p, &first, &count);
        parity_note(f->table, "after 3 AdamW steps, all", difference_but_keys(p, values + p->offset, want, false),
                    2 * rates, f->name, p->name);
        for (uint64_t k = 0; k < p->count; k++) {
            if (keys && k >= first && k < first + count)
                continue;
            off += !(fabs((double)values[p->offset + k] - (double)want[k]) <= 1e-6);
            elements++;
        }
        free(want);
    }
    parity_note(f->table, "after 3 AdamW steps, share", (double)off / (double)elements, 1e-3, f->name, "beyond 1e-6");
    free(values);
    support_pairs_close(s);
}

static void check_model(const char *name, parity_table *t)
{
    fixture f;
    fixture_open(&f, name, t);
    check_pass(&f, true);
    check_pass(&f, false);
    check_adamw(&f);
    if (support_device_computes(MR_BF16))
        check_bf16(&f);
    fixture_close(&f);
}

static void models_equal_the_reference(void **state)
{
    (void)state;
    parity_each("bt_", check_model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_equal_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

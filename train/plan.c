/* plan.c - what a run would take, without starting it.
 * Invariant: bytes are those of one rank; attention's sums, which the device keeps, are not in them. */
#include "train/plan.h"

#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "base/json/json.h"

typedef unsigned long long ull;

typedef struct sums {
    mr_model_costs costs;
    double update_flops; /* FLOPs of all ranks */
    uint64_t weights, optimizer, activations, loader, all;
} sums;

void mr_plan_shape(const mr_model_config *m, char *text, size_t size)
{
    int n = snprintf(text, size, "%s: patch %u, hidden %u, layers %u, heads %u, mlp %u; %u x %u pixels, ", m->name,
                     m->patch, m->hidden, m->layers, m->heads, m->mlp, m->image, m->image);
    if (n < 0 || (size_t)n >= size)
        return;
    if (m->iface->text)
        snprintf(text + n, size - (size_t)n, "%u tokens of %u, %u cross layers, embeddings of %u", m->text, m->vocab,
                 m->cross_layers, m->embed);
    else
        snprintf(text + n, size - (size_t)n, "%u classes", m->classes);
}

static sums sums_of(const mr_trainer *t)
{
    const mr_settings *s = t->settings;
    sums m = {.update_flops = 0};
    unsigned world = mr_ranks_world(t->ranks), slots = mr_checkpoint_slots(t->update_rule.kind, s->ema > 0);
    uint64_t buffer = t->params.total * sizeof(float), image = (uint64_t)12 * t->config.image * t->config.image;
    t->config.iface->costs(&t->config, mr_trainer_rows(t), true, &m.costs);
    m.update_flops = m.costs.training_flops * (double)(s->batch * s->grad_accum * world);
    m.weights = 2 * buffer;
    m.optimizer = slots * buffer;
    m.activations = m.costs.activation_bytes;
    m.loader = (s->prefetch + 2) * s->batch * image;
    m.all = m.weights + m.optimizer + m.activations + m.loader;
    return m;
}

static mr_status print_json(const mr_trainer *t, const sums *m, const char *shape, mr_error *err)
{
    MR_AUTO(json_decrefp)
    json_t *doc =
        json_pack("{s:o, s:s, s:I, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "dataset",
                  mr_json_path(t->settings->dataset, strlen(t->settings->dataset)), "model", shape, "parameters",
                  (json_int_t)m->costs.parameters, "forward_flops_per_sample", m->costs.forward_flops,
                  "training_flops_per_sample", m->costs.training_flops, "flops_per_update", m->update_flops, "updates",
                  (json_int_t)t->updates, "updates_done", (json_int_t)t->first, "weights_and_gradients",
                  (json_int_t)m->weights, "optimizer", (json_int_t)m->optimizer, "activations",
                  (json_int_t)m->activations, "loader", (json_int_t)m->loader, "memory_per_rank", (json_int_t)m->all);
    return doc ? mr_json_print(doc, err) : mr_fail_memory(err, "planning a run");
}

static mr_status print_table(const mr_trainer *t, const sums *m, const char *shape, mr_error *err)
{
    char number[40], flops[60], update[60], bytes[32], steps[60];
    snprintf(flops, sizeof flops, "%.4g GFLOP forward, %.4g GFLOP in training", m->costs.forward_flops / 1e9,
             m->costs.training_flops / 1e9);
    snprintf(update, sizeof update, "%.4g GFLOP, all ranks together", m->update_flops / 1e9);
    snprintf(steps, sizeof steps, "%llu, the first %llu of them done", (ull)t->updates, (ull)t->first);
    mr_table *table = mr_table_new(2);
    mr_table_row(table, "plan", t->settings->dataset);
    mr_table_row(table, "model", shape);
    mr_table_row(table, "parameters", mr_text_count(m->costs.parameters, number));
    mr_table_row(table, "a sample", flops);
    mr_table_row(table, "an update", update);
    mr_table_row(table, "updates", steps);
    mr_table_row(table, "weights, gradients", mr_text_bytes(m->weights, bytes));
    mr_table_row(table, t->settings->ema > 0 ? "optimizer, mean" : "optimizer", mr_text_bytes(m->optimizer, bytes));
    mr_table_row(table, "activations", mr_text_bytes(m->activations, bytes));
    mr_table_row(table, "loader", mr_text_bytes(m->loader, bytes));
    mr_table_row(table, "memory per rank", mr_text_bytes(m->all, bytes));
    return mr_table_print(table, stdout, err);
}

mr_status mr_plan_print(const mr_trainer *t, mr_error *err)
{
    char shape[200];
    const sums m = sums_of(t);
    mr_plan_shape(&t->config, shape, sizeof shape);
    return t->settings->plan[0] == 'j' ? print_json(t, &m, shape, err) : print_table(t, &m, shape, err);
}

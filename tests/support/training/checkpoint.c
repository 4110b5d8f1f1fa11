/* checkpoint.c - small checkpoints for tests. */
#include "tests/support/training/checkpoint.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static float *draw_values(const mr_params *p, uint64_t seed, uint64_t stream)
{
    mr_random r;
    float *values = calloc(p->total, sizeof *values);
    assert_non_null(values);
    mr_random_stream(&r, seed, stream);
    for (size_t i = 0; i < p->count; i++)
        mr_random_bytes(&r, values + p->items[i].offset, p->items[i].count * sizeof *values);
    return values;
}

static mr_checkpoint begin(const char *model, uint64_t update, mr_optimizer_kind optimizer)
{
    mr_error err;
    mr_checkpoint c = {.optimizer = optimizer,
                       .slots = optimizer == MR_SGD ? 1 : 2,
                       .update = update,
                       .cursor = {update / 100, update % 100 * 8},
                       .seed = UINT64_MAX - update,
                       .accuracy = 1.0 / 3,
                       .best_accuracy = -1,
                       .evaluation_due = update % 2,
                       .ema = update % 3 == 1 ? 0.9 : 0};
    c.slots += c.ema > 0;
    if (mr_model_find(model, &c.model, &err) != MR_OK)
        fail_msg("%s", err.text);
    return c;
}

static void fill(mr_checkpoint *c)
{
    mr_error err;
    if (c->model.iface->params(&c->model, &c->params, &err) != MR_OK)
        fail_msg("%s", err.text);
    c->values = draw_values(&c->params, c->update, 0);
    for (unsigned i = 0; i < c->slots; i++)
        c->state[i] = draw_values(&c->params, c->update, 1 + i);
    c->facts = json_pack("{s:[s, s, s], s:{s:f}}", "classes", "a", "b", "c\xC3\xA9", "options", "lr", 0.1);
    assert_non_null(c->facts);
}

mr_checkpoint make_checkpoint(uint64_t update, mr_optimizer_kind optimizer)
{
    mr_checkpoint c = begin("vit", update, optimizer);
    c.model.image = 12;
    c.model.patch = 4;
    c.model.hidden = 8;
    c.model.layers = 2;
    c.model.heads = 2;
    c.model.mlp = 20;
    c.model.classes = 3;
    c.model.dropout = 0.1;
    fill(&c);
    return c;
}

mr_checkpoint make_pair_checkpoint(uint64_t update, mr_optimizer_kind optimizer)
{
    mr_checkpoint c = begin("bridgetower", update, optimizer);
    c.model.image = 8;
    c.model.patch = 4;
    c.model.hidden = 64;
    c.model.layers = c.model.cross_layers = 1;
    c.model.heads = 2;
    c.model.mlp = 12;
    c.model.vocab = 11;
    c.model.positions = 9;
    c.model.embed = 4;
    c.model.text = 6;
    c.model.dropout = 0.1;
    c.model.attention_dropout = 0.2;
    c.model.norm_eps = 1e-5;
    c.model.logit_scale = 2.6592;
    c.model.frozen = MR_FROZEN_TEXT;
    fill(&c);
    mr_buf_printf(&c.tokenizer, "{\"of update\": %d}\n", (int)update);
    mr_buf_add(&c.tokenizer, "\0\xFF", 2); /* only bytes, to a checkpoint */
    assert_false(c.tokenizer.failed);
    return c;
}

void assert_same_checkpoint(const mr_checkpoint *a, const mr_checkpoint *b, bool with_state)
{
    assert_ptr_equal(a->model.iface, b->model.iface);
    assert_string_equal(a->model.name, b->model.name);
    assert_int_equal(a->model.hidden, b->model.hidden);
    assert_int_equal(a->model.mlp, b->model.mlp);
    assert_int_equal(a->model.compute, b->model.compute);
    assert_int_equal(a->model.every_token, b->model.every_token);
    assert_true(a->model.dropout == b->model.dropout);
    assert_int_equal(a->model.cross_layers, b->model.cross_layers);
    assert_int_equal(a->model.vocab, b->model.vocab);
    assert_int_equal(a->model.positions, b->model.positions);
    assert_int_equal(a->model.embed, b->model.embed);
    assert_int_equal(a->model.text, b->model.text);
    assert_int_equal(a->model.frozen, b->model.frozen);
    assert_int_equal(a->model.frozen_layers, b->model.frozen_layers);
    assert_true(a->ema == b->ema && a->threshold == b->threshold);
    assert_true(a->model.attention_dropout == b->model.attention_dropout);
    assert_true(a->model.norm_eps == b->model.norm_eps && a->model.logit_scale == b->model.logit_scale);
    assert_int_equal(a->tokenizer.len, b->tokenizer.len);
    if (a->tokenizer.len)
        assert_memory_equal(a->tokenizer.data, b->tokenizer.data, a->tokenizer.len);
    assert_int_equal(a->params.total, b->params.total);
    assert_int_equal(a->params.count, b->params.count);
    assert_memory_equal(a->values, b->values, a->params.total * sizeof(float));
    assert_int_equal(a->optimizer, b->optimizer);
    assert_int_equal(a->slots, b->slots);
    for (unsigned i = 0; i < MR_CHECKPOINT_STATES; i++) {
        if (with_state && i < a->slots)
            assert_memory_equal(a->state[i], b->state[i], a->params.total * sizeof(float));
        else
            assert_null(b->state[i]);
    }
    assert_int_equal(a->update, b->update);
    assert_int_equal(a->cursor.epoch, b->cursor.epoch);
    assert_int_equal(a->cursor.position, b->cursor.position);
    assert_true(a->seed == b->seed);
    assert_true(a->accuracy == b->accuracy && a->best_accuracy == b->best_accuracy);
    assert_int_equal(a->best_update, b->best_update);
    assert_int_equal(a->evaluation_due, b->evaluation_due);
    assert_true(json_equal(a->facts, b->facts));
}

void write_checkpoint(const mr_checkpoint *c, const char *output, unsigned keep)
{
    mr_error err;
    if (mr_checkpoint_write(c, output, keep, NULL, &err) != MR_OK)
        fail_msg("%s", err.text);
}

mr_checkpoint read_checkpoint(const char *path)
{
    mr_checkpoint c;
    mr_error err;
    if (mr_checkpoint_read(path, false, true, &c, NULL, &err) != MR_OK)
        fail_msg("%s", err.text);
    return c;
}

void put_step(const char *output, uint64_t update, unsigned keep, double best_accuracy, uint64_t best_update)
{
    mr_checkpoint c = make_checkpoint(update, MR_SGD);
    c.best_accuracy = best_accuracy;
    c.best_update = best_update;
    write_checkpoint(&c, output, keep);
    mr_checkpoint_release(&c);
}

char *names_in(const char *dir)
{
    struct dirent **list;
    int n = scandir(dir, &list, NULL, alphasort);
    char *text = support_path("%s", "");
    if (n < 0)
        fail_msg("cannot list %s", dir);
    for (int i = 0; i < n; i++) {
        if (strcmp(list[i]->d_name, ".") != 0 && strcmp(list[i]->d_name, "..") != 0) {
            char *more = support_path("%s%s ", text, list[i]->d_name);
            free(text);
            text = more;
        }
        free(list[i]);
    }
    free(list);
    return text;
}

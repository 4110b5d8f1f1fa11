/* trainer_prepare.c - from options and a dataset to a run that is known in every number, before memory is taken.
 * Invariant: whatever can be found wrong with a run is found here, in a moment, and not after an hour. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/pool.h"
#include "base/text.h"
#include "dataset/dataset.h"
#include "order/order.h"
#include "order/schedule.h"
#include "run/labels.h"
#include "run/trainer.h"

typedef unsigned long long ull;

enum { DEFAULT_WARMUP = 500 };

mr_transform mr_eval_transform(const mr_model_config *c, bool apply_orientation)
{
    if (c->card->text)
        return mr_pairs_transform(c->image, apply_orientation);
    return (mr_transform){.kind = MR_TRANSFORM_SQUARE, .size = c->image, .apply_orientation = apply_orientation};
}

const char *mr_transform_word(const mr_transform *t)
{
    return t->kind == MR_TRANSFORM_CENTER ? "center" : "square";
}

unsigned mr_rank_threads(uint64_t asked, const mr_ranks *ranks)
{
    unsigned mine = mr_pool_processors(), world = mr_ranks_world(ranks);
    if (asked)
        return asked < MR_MAX_BATCH ? (unsigned)asked : MR_MAX_BATCH;
    /* A launcher that binds ranks has shared the processors out already. */
    if (mine < (unsigned)sysconf(_SC_NPROCESSORS_ONLN) || world == 1)
        return mine;
    unsigned sharers = mr_ranks_beside(ranks);
    return mine / sharers ? mine / sharers : 1;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static mr_status find_splits(mr_trainer *t, const mr_split **train, mr_error *err)
{
    const mr_settings *s = t->settings;
    static const char *const usual[] = {"val", "test"};
    mr_status status = mr_manifest_find_split(t->manifest, s->dataset, s->split, train, err);
    if (status != MR_OK)
        return status;
    if ((*train)->samples == 0)
        return mr_fail(err, MR_MISUSE, "%s: has no samples in a split \"%s\" to learn from", s->dataset, s->split);
    if (t->manifest->class_count == 0 && !t->config.card->text)
        return mr_fail(err, MR_MISUSE, "%s: has no classes (layout %s), and a classifier learns from labels alone",
                       s->dataset, t->manifest->layout);
    if (!t->config.card->text)
        status =
            mr_labels_check(t->ds, *train, s->dataset, "learns from",
                            "learn from its words by --model bridgetower (--text-column captions, for example)", err);
    if (status == MR_OK && *s->eval_split) {
        t->eval_split = s->eval_split;
        status = mr_split_to_judge(t->manifest, s->dataset, s->eval_split, err);
    }
    for (size_t i = 0; i < MR_COUNT(usual) && !t->eval_split; i++) {
        const mr_split *split = mr_manifest_split(t->manifest, usual[i]);
        if (split && split->samples && strcmp(usual[i], s->split) != 0)
            t->eval_split = usual[i];
    }
    if (status != MR_OK || !t->eval_split || t->config.card->text)
        return status;
    return mr_labels_check(t->ds, mr_manifest_split(t->manifest, t->eval_split), s->dataset, "is judged by",
                           "judge by another --eval-split", err);
}

static mr_status words(mr_trainer *t, mr_error *err)
{
    const mr_settings *s = t->settings;
    char number[40];
    if (!t->config.card->text)
        return MR_OK;
    mr_status status = mr_pairs_open(&t->pairs, t->ds, s->split, s->text_column, t->config.text, err);
    if (status == MR_OK)
        status = mr_pairs_learn(&t->pairs, t->ds, s->split, s->expand_captions, s->unique_images, err);
    if (status == MR_OK) {
        mr_buf_add_text(&t->said, "Words from ");
        mr_text_show(&t->said, t->pairs.column, strlen(t->pairs.column));
        mr_buf_printf(&t->said, ", up to %u tokens of each\n", t->config.text);
    }
    if (status == MR_OK && t->pairs.without)
        mr_buf_printf(&t->said, "%s sample%s without a caption %s left out\n", mr_text_count(t->pairs.without, number),
                      t->pairs.without == 1 ? "" : "s", t->pairs.without == 1 ? "is" : "are");
    if (status == MR_OK && t->eval_split)
        status = mr_pairs_judge(&t->pairs, t->ds, t->eval_split, err);
    if (status == MR_OK && t->pairs.judged)
        mr_buf_printf(&t->said, "%s is judged by %s of its samples, the others have no caption\n", t->eval_split,
                      mr_text_count(t->pairs.judged_count, number));
    return status;
}

/* How many updates, and where the first one starts. */
static mr_status course(mr_trainer *t, const mr_split *train, uint64_t global, mr_error *err)
{
    const mr_settings *s = t->settings;
    mr_order order;
    mr_schedule schedule;
    uint64_t samples = t->pairs.items ? t->pairs.item_count : train->samples;
    mr_status status = mr_order_make(MR_SHUFFLE_FULL, samples, s->seed, 0, mr_split_mean_bytes(train), &order, err);
    if (status == MR_OK)
        status = mr_schedule_make(&order, s->batch * mr_ranks_world(t->ranks), mr_ranks_world(t->ranks),
                                  MR_TAIL_PARTIAL, &schedule, err);
    if (status != MR_OK)
        return status;
    t->steps = schedule.steps;
    uint64_t an_epoch = (t->steps + s->grad_accum - 1) / s->grad_accum;
    if (!s->steps && s->epochs > INT64_MAX / an_epoch)
        return mr_fail(err, MR_MISUSE, "--epochs %llu: is beyond reason", (ull)s->epochs);
    t->updates = s->steps ? s->steps : s->epochs * an_epoch;
    if (t->updates == 0)
        return mr_fail(err, MR_MISUSE, "--steps and --epochs are both 0: nothing would be learned");
    if (t->restored) {
        t->first = t->done = t->restored->update;
        t->cursor = t->restored->cursor;
        t->accuracy = t->restored->accuracy;
        t->best_accuracy = t->restored->best_accuracy;
        t->best_update = t->restored->best_update;
        t->evaluation_due = t->restored->evaluation_due && t->eval_split;
    }
    char number[4][40];
    mr_buf_printf(&t->said, "%s samples, %s per update, %s updates per epoch, %s in all\n",
                  mr_text_count(samples, number[0]), mr_text_count(global, number[1]),
                  mr_text_count(an_epoch, number[2]), mr_text_count(t->updates, number[3]));
    return MR_OK;
}

static mr_status rule(mr_trainer *t, mr_error *err)
{
    const mr_settings *s = t->settings;
    bool adamw = strcmp(s->optimizer, "adamw") == 0;
    uint64_t warmup = t->updates / 10 < DEFAULT_WARMUP ? t->updates / 10 : DEFAULT_WARMUP;
    if (*s->warmup && (!mr_text_parse_u64(s->warmup, &warmup) || warmup > t->updates))
        return mr_fail(err, MR_MISUSE, "--warmup %s: expected a number of updates up to the run's %llu", s->warmup,
                       (ull)t->updates);
    t->update_rule = (mr_optimizer_options){
        .kind = adamw ? MR_ADAMW : MR_SGD,
        .lr = {.base = s->lr > 0              ? s->lr
                       : t->config.card->text ? 1e-5
                       : adamw                ? 0.001
                                              : 0.03,
               .warmup = warmup,
               .steps = t->updates,
               .decay = s->decay[0] == 'c'   ? MR_DECAY_COSINE
                        : s->decay[0] == 'l' ? MR_DECAY_LINEAR
                                             : MR_DECAY_NONE},
        .momentum = s->momentum,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .eps = s->adam_eps,
        .weight_decay = s->weight_decay,
        .clip = s->clip,
    };
    return MR_OK;
}

/* What a later reader of the weights has to know: classes, and how pictures were shown. */
static mr_status describe(mr_trainer *t, uint64_t global, const char *digest, mr_error *err)
{
    const mr_settings *s = t->settings;
    json_t *classes = json_array();
    for (size_t i = 0; i < t->manifest->class_count; i++)
        json_array_append_new(classes, json_string(t->manifest->classes[i].name));
    mr_transform e = mr_eval_transform(&t->config, s->orientation[0] == 'a');
    bool normal = e.std[0] > 0; /* zeros stand for 0.5 */
    double m[3], d[3];
    for (int i = 0; i < 3; i++) {
        m[i] = normal ? (double)e.mean[i] : 0.5;
        d[i] = normal ? (double)e.std[i] : 0.5;
    }
    json_t *transform = json_pack("{s:s, s:I, s:[f,f,f], s:[f,f,f], s:s, s:s}", "eval", mr_transform_word(&e), "size",
                                  (json_int_t)t->config.image, "mean", m[0], m[1], m[2], "std", d[0], d[1], d[2],
                                  "filter", e.bicubic ? "bicubic" : "bilinear", "orientation", s->orientation);
    t->facts = json_pack("{s:o, s:o, s:o, s:s, s:I, s:I}", "classes", classes, "transform", transform, "options",
                         mr_settings_json(s), "dataset", digest, "global_batch", (json_int_t)global, "world",
                         (json_int_t)mr_ranks_world(t->ranks));
    bool ok = t->facts && json_array_size(classes) == t->manifest->class_count;
    if (ok && t->config.card->text)
        ok = json_object_set_new(t->facts, "text_column", json_string(t->pairs.column)) == 0 &&
             json_object_set_new(t->facts, "negatives", json_integer((json_int_t)mr_trainer_negatives(t))) == 0;
    return ok ? MR_OK : mr_fail_memory(err, "describing the run");
}

static mr_status check(const mr_settings *s, mr_error *err)
{
    if (s->batch == 0 || s->batch > MR_MAX_BATCH)
        return mr_fail(err, MR_MISUSE, "--batch %llu: expected 1 to %d", (ull)s->batch, MR_MAX_BATCH);
    if (s->grad_accum == 0 || s->grad_accum > MR_MAX_BATCH)
        return mr_fail(err, MR_MISUSE, "--grad-accum %llu: expected 1 to %d", (ull)s->grad_accum, MR_MAX_BATCH);
    if (!(s->scale_min > 0 && s->scale_min <= 1))
        return mr_fail(err, MR_MISUSE, "--scale-min %g: is a share of the picture, above 0 and up to 1", s->scale_min);
    if (s->prefetch == 0 || s->prefetch > MR_MAX_BATCH)
        return mr_fail(err, MR_MISUSE, "--prefetch %llu: expected 1 to %d", (ull)s->prefetch, MR_MAX_BATCH);
    if (s->given.checkpoint_every && !*s->output)
        return mr_fail(err, MR_MISUSE, "--checkpoint-every: give --output DIR, the folder to write checkpoints to");
    mr_status status = mr_path_keep_out(s->output, s->dataset, err);
    return status == MR_OK ? mr_log_place(s, err) : status;
}

mr_status mr_trainer_prepare(mr_trainer *t, mr_settings *settings, mr_ranks *ranks, mr_error *err)
{
    *t = (mr_trainer){.settings = settings, .ranks = ranks, .accuracy = -1, .best_accuracy = -1};
    const mr_split *train = NULL;
    char digest[65];
    mr_status status = mr_ranks_agree(ranks, mr_trainer_claim(t, false, err), err);
    if (status == MR_OK)
        status = mr_trainer_resume(t, err);
    if (status == MR_OK)
        status = check(settings, err);
    if (status == MR_OK)
        status = mr_dataset_open(settings->dataset, &t->ds, err);
    if (status != MR_OK)
        return status;
    mr_hex(mr_dataset_digest(t->ds), 32, digest);
    t->manifest = mr_dataset_manifest(t->ds);
    t->threads = mr_rank_threads(settings->threads, ranks);
    uint64_t global = settings->batch * settings->grad_accum * mr_ranks_world(ranks);
    status = t->restored ? mr_trainer_same_run(t, global, digest, err) : MR_OK;
    if (status == MR_OK)
        status = mr_trainer_shape(t, err);
    if (status == MR_OK)
        status = find_splits(t, &train, err);
    if (status == MR_OK)
        status = words(t, err);
    if (status == MR_OK)
        status = course(t, train, global, err);
    if (status == MR_OK)
        status = rule(t, err);
    if (status == MR_OK)
        status = describe(t, global, digest, err);
    return status;
}

/* trainer_prepare.c - from options and a dataset to a run with all sizes known, before memory is allocated.
 * Invariant: whatever can be found wrong with a run is found here, within seconds. */
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/system/pool.h"
#include "base/scope.h"
#include "base/text.h"
#include "shards/dataset/dataset.h"
#include "shards/dataset/dataset_ranks.h"
#include "loader/order/order.h"
#include "loader/order/schedule.h"
#include "train/run/trainer.h"
#include "train/setup/augment_list.h"

typedef unsigned long long ull;

enum { DEFAULT_WARMUP = 500 };

mr_transform mr_eval_transform(const mr_model_config *c, bool apply_orientation)
{
    if (c->iface->text)
        return mr_pairs_transform(c->image, apply_orientation);
    return (mr_transform){.kind = MR_TRANSFORM_SQUARE, .size = c->image, .apply_orientation = apply_orientation};
}

const char *mr_transform_word(const mr_transform *t)
{
    return t->kind == MR_TRANSFORM_CENTER ? "center" : "square";
}

size_t mr_trainer_eval_batch(const mr_trainer *t)
{
    return t->settings->eval_batch ? t->settings->eval_batch : t->settings->batch;
}

size_t mr_trainer_rows(const mr_trainer *t)
{
    size_t eval = mr_trainer_eval_batch(t);
    return t->eval_split && eval > t->settings->batch ? eval : t->settings->batch;
}

unsigned mr_rank_threads(uint64_t asked, const mr_ranks *ranks)
{
    unsigned mine = mr_pool_processors(), world = mr_ranks_world(ranks);
    if (asked)
        return asked < MR_MAX_BATCH ? (unsigned)asked : MR_MAX_BATCH;
    /* A launcher that binds ranks has divided the processors already. */
    if (mine < (unsigned)sysconf(_SC_NPROCESSORS_ONLN) || world == 1)
        return mine;
    unsigned sharers = mr_ranks_local_size(ranks);
    return mine / sharers ? mine / sharers : 1;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static mr_status find_splits(mr_trainer *t, const mr_split **train, mr_error *err)
{
    const mr_settings *s = t->settings;
    static const char *const usual[] = {"val", "test"};
    MR_TRY(mr_manifest_find_split(t->manifest, s->dataset, s->split, train, err));
    if ((*train)->samples == 0)
        return mr_fail(err, MR_MISUSE, "%s: has no samples in split \"%s\" to train on", s->dataset, s->split);
    if (*s->eval_split) {
        t->eval_split = s->eval_split;
        MR_TRY(mr_split_check_eval(t->manifest, s->dataset, s->eval_split, err));
    }
    for (size_t i = 0; i < MR_COUNT(usual) && !t->eval_split; i++) {
        const mr_split *split = mr_manifest_split(t->manifest, usual[i]);
        if (split && split->samples && strcmp(usual[i], s->split) != 0)
            t->eval_split = usual[i];
    }
    return MR_OK;
}

static mr_status find_labels(mr_trainer *t, const mr_split *train, mr_error *err)
{
    const mr_learning_splits splits = {.ds = t->ds,
                                       .train = train,
                                       .eval = t->eval_split ? mr_manifest_split(t->manifest, t->eval_split) : NULL,
                                       .dataset = t->settings->dataset};
    return mr_learning_open(t->settings, &splits, t->threads, t->ranks, &t->learning, &t->remarks, err);
}

static mr_status find_pairs(mr_trainer *t, mr_error *err)
{
    const mr_settings *s = t->settings;
    const mr_pairs_options options = {.column = s->text_column,
                                      .train_split = s->split,
                                      .eval_split = t->eval_split,
                                      .tokens = t->config.text,
                                      .expand = s->expand_captions,
                                      .groups = s->unique_images};
    const mr_pairs *p = &t->pairs;
    char number[40];
    MR_TRY(mr_pairs_open(&t->pairs, t->ds, &options, t->ranks, err));
    mr_buf_add_text(&t->remarks, "Words from ");
    mr_text_show(&t->remarks, p->column, strlen(p->column));
    mr_buf_printf(&t->remarks, ", up to %u tokens of each\n", t->config.text);
    if (p->without)
        mr_buf_printf(&t->remarks, "%s sample%s without a caption %s left out\n", mr_text_count(p->without, number),
                      p->without == 1 ? "" : "s", p->without == 1 ? "is" : "are");
    if (p->eval_items)
        mr_buf_printf(&t->remarks, "%s is evaluated on %s of its samples, the others have no caption\n", t->eval_split,
                      mr_text_count(p->eval_count, number));
    return MR_OK;
}

/* Samples per update. */
static uint64_t global_batch(const mr_trainer *t)
{
    return t->settings->batch * t->settings->grad_accum * mr_ranks_world(t->ranks);
}

/* How many updates, and where the first one starts. */
static mr_status set_schedule(mr_trainer *t, const mr_split *train, mr_error *err)
{
    const mr_settings *s = t->settings;
    mr_order order;
    mr_schedule schedule;
    uint64_t samples = t->pairs.items ? t->pairs.item_count : mr_draw_items(train, MR_SHUFFLE_FULL);
    unsigned world = mr_ranks_world(t->ranks);
    MR_TRY(mr_order_make(MR_SHUFFLE_FULL, samples, s->seed, 0, mr_split_mean_bytes(train), &order, err));
    MR_TRY(mr_schedule_make(&order, s->batch * world, world, mr_trainer_tail(t), &schedule, err));
    t->steps = schedule.steps;
    if (t->steps == 0)
        return mr_fail(err, MR_MISUSE, "--tail drop: the %llu samples of %s do not fill one batch of %llu on %u ranks",
                       (ull)samples, train->name, (ull)s->batch, world);
    uint64_t per_epoch = (t->steps + s->grad_accum - 1) / s->grad_accum;
    if (!s->steps && s->epochs > INT64_MAX / per_epoch)
        return mr_fail(err, MR_MISUSE, "--epochs %llu: is too large", (ull)s->epochs);
    t->updates = s->steps ? s->steps : s->epochs * per_epoch;
    if (t->updates == 0)
        return mr_fail(err, MR_MISUSE, "--steps and --epochs are both 0: nothing to train");
    if (t->resumed) {
        t->first = t->done = t->restored.update;
        t->cursor = t->restored.cursor;
        t->accuracy = t->restored.accuracy;
        t->best_accuracy = t->restored.best_accuracy;
        t->threshold = t->restored.threshold;
        t->best_update = t->restored.best_update;
        t->evaluation_due = t->restored.evaluation_due && t->eval_split;
    }
    char number[4][40];
    mr_buf_printf(&t->remarks, "%s samples, %s per update, %s updates per epoch, %s in total\n",
                  mr_text_count(samples, number[0]), mr_text_count(global_batch(t), number[1]),
                  mr_text_count(per_epoch, number[2]), mr_text_count(t->updates, number[3]));
    return MR_OK;
}

static mr_status set_rule(mr_trainer *t, mr_error *err)
{
    const mr_settings *s = t->settings;
    bool adamw = strcmp(s->optimizer, "adamw") == 0;
    uint64_t warmup = t->updates / 10 < DEFAULT_WARMUP ? t->updates / 10 : DEFAULT_WARMUP;
    if (*s->warmup && (!mr_text_parse_u64(s->warmup, &warmup) || warmup > t->updates))
        return mr_fail(err, MR_MISUSE, "--warmup %s: expected a number of updates up to the run's %llu", s->warmup,
                       (ull)t->updates);
    t->update_rule = (mr_optimizer_options){
        .kind = adamw ? MR_ADAMW : MR_SGD,
        .lr = {.base = s->lr > 0               ? s->lr
                       : t->config.iface->text ? 1e-5
                       : adamw                 ? 0.001
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

/* What a later reader of the weights has to know: classes, how images were prepared, options. */
static mr_status describe(mr_trainer *t, const char *digest, mr_error *err)
{
    const mr_settings *s = t->settings;
    json_t *classes = json_array();
    for (size_t i = 0; i < t->manifest->class_count; i++)
        json_array_append_new(classes, json_string(t->manifest->classes[i].name));
    mr_transform e = mr_eval_transform(&t->config, s->orientation[0] == 'a');
    bool normal = e.std[0] > 0; /* all zeros means 0.5 */
    double m[3], d[3];
    for (int i = 0; i < 3; i++) {
        m[i] = normal ? (double)e.mean[i] : 0.5;
        d[i] = normal ? (double)e.std[i] : 0.5;
    }
    json_t *transform = json_pack("{s:s, s:I, s:[f,f,f], s:[f,f,f], s:s, s:s}", "eval", mr_transform_word(&e), "size",
                                  (json_int_t)t->config.image, "mean", m[0], m[1], m[2], "std", d[0], d[1], d[2],
                                  "filter", e.bicubic ? "bicubic" : "bilinear", "orientation", s->orientation);
    t->facts = json_pack("{s:o, s:o, s:o, s:s, s:I, s:I}", "classes", classes, "transform", transform, "options",
                         mr_settings_json(s), "dataset", digest, "global_batch", (json_int_t)global_batch(t), "world",
                         (json_int_t)mr_ranks_world(t->ranks));
    bool ok = t->facts && json_array_size(classes) == t->manifest->class_count;
    ok = ok && json_object_set_new(t->facts, "dataset_path", mr_json_path(s->dataset, strlen(s->dataset))) == 0 &&
         json_object_set_new(t->facts, "order", json_string("full")) == 0;
    if (ok && !t->config.iface->text)
        ok = json_object_set_new(t->facts, "loss", json_string(t->learning.several ? "bce" : "ce")) == 0;
    if (ok && t->config.iface->text)
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
    if (s->eval_batch > MR_MAX_BATCH)
        return mr_fail(err, MR_MISUSE, "--eval-batch %llu: expected 0 to %d", (ull)s->eval_batch, MR_MAX_BATCH);
    if (s->resume && s->overwrite_output)
        return mr_fail(err, MR_MISUSE,
                       "--overwrite-output starts a new run, and --resume continues one; give one of "
                       "them");
    if (s->overwrite_output && !*s->output)
        return mr_fail(err, MR_MISUSE, "--overwrite-output: give --output DIR, the folder of the run");
    if (*s->pretrained_classes && (!*s->pretrained || mr_dir_is(s->pretrained)))
        return mr_fail(
            err, MR_MISUSE,
            "--pretrained-classes: names the classes of an .npz that --pretrained gives; a run's folder knows "
            "its own");
    if (!(s->ema >= 0 && s->ema < 1))
        return mr_fail(err, MR_MISUSE, "--ema %g: must be at least 0 and below 1", s->ema);
    if (!(s->label_smoothing >= 0 && s->label_smoothing < 1))
        return mr_fail(err, MR_MISUSE, "--label-smoothing %g: must be at least 0 and below 1", s->label_smoothing);
    mr_augment augment;
    MR_TRY(mr_augment_list(s->augment, &augment, err));
    if (!(s->scale_min > 0 && s->scale_min <= 1))
        return mr_fail(err, MR_MISUSE, "--scale-min %g: must be a fraction of the image, above 0 and at most 1",
                       s->scale_min);
    if (s->prefetch == 0 || s->prefetch > MR_MAX_BATCH)
        return mr_fail(err, MR_MISUSE, "--prefetch %llu: expected 1 to %d", (ull)s->prefetch, MR_MAX_BATCH);
    if (s->given.checkpoint_every && !*s->output)
        return mr_fail(err, MR_MISUSE, "--checkpoint-every: give --output DIR, the folder to write checkpoints to");
    MR_TRY(mr_device_computes(s->device, mr_type_of(s->precision), err));
    MR_TRY(mr_path_keep_out(s->output, s->dataset, err));
    return mr_log_place(s, err);
}

static mr_status use_dataset(mr_trainer *t, char digest[65], mr_error *err)
{
    mr_hex(mr_dataset_digest(t->ds), 32, digest);
    t->manifest = mr_dataset_manifest(t->ds);
    t->threads = mr_rank_threads(t->settings->threads, t->ranks);
    t->loader_threads =
        t->settings->loader_threads ? mr_rank_threads(t->settings->loader_threads, t->ranks) : t->threads;
    if (*t->settings->local || t->settings->given.local_size)
        MR_TRY(mr_dataset_stage_here(t->ds, *t->settings->local ? t->settings->local : NULL, t->settings->local_size,
                                     t->ranks, err));
    return t->resumed ? mr_trainer_same_run(t, global_batch(t), digest, err) : MR_OK;
}

static mr_status plan_run(mr_trainer *t, const mr_split *train, const char *digest, mr_error *err)
{
    MR_TRY(set_schedule(t, train, err));
    MR_TRY(set_rule(t, err));
    return describe(t, digest, err);
}

mr_status mr_trainer_prepare(mr_trainer *t, mr_settings *settings, mr_ranks *ranks, mr_error *err)
{
    const mr_split *train = NULL;
    char digest[65];
    *t = (mr_trainer){.settings = settings, .ranks = ranks, .accuracy = -1, .best_accuracy = -1};
    MR_TRY(mr_trainer_resume(t, err));
    MR_TRY(mr_ranks_agree(ranks, check(settings, err), err));
    MR_TRY(mr_dataset_open_all(settings->dataset, ranks, &t->ds, err));
    MR_TRY(mr_ranks_agree(ranks, use_dataset(t, digest, err), err));
    MR_TRY(mr_dataset_agree(ranks, mr_dataset_digest(t->ds), err));
    MR_TRY(mr_trainer_shape(t, err));
    MR_TRY(mr_ranks_agree(ranks, find_splits(t, &train, err), err));
    MR_TRY(t->config.iface->text ? find_pairs(t, err) : find_labels(t, train, err));
    return mr_ranks_agree(ranks, plan_run(t, train, digest, err), err);
}

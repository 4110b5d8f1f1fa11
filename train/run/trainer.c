/* trainer.c - the loop: updates, evaluations, checkpoints.
 * Invariant: a failure of one rank reaches all of them at the next exchange or agreement, so that all end together,
 * with the message of the rank that failed. */
#include "train/run/trainer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "loader/batch/loader.h"
#include "shards/dataset/dataset.h"
#include "train/run/trainer_update.h"

/* What is evaluated and kept as the model. */
static const float *model_of(const mr_trainer *t)
{
    return t->mean ? t->mean : t->values;
}

/* ---- between updates --------------------------------------------------------------------------------------------- */

/* In the claimed folder, even if it was moved. */
static mr_status keep_outcomes(mr_trainer *t, const mr_outcomes *outcomes, mr_error *err)
{
    const char *output = t->settings->output;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_error why;
    if (!outcomes || mr_ranks_rank(t->ranks) != 0)
        return MR_OK;
    MR_TRY(mr_outcomes_json(outcomes, t->manifest, &text, err));
    MR_TRY(mr_checkpoint_held(t->claim, output, err));
    mr_status status = mr_file_publish(dirfd(t->claim), MR_RUN_OUTCOMES, text.data, text.len, &why);
    if (status == MR_OK)
        return MR_OK;
    MR_TRY(mr_checkpoint_held(t->claim, output, err)); /* a folder that has just gone is the reason */
    return mr_fail(err, status, "%s/%s", output, why.text);
}

static mr_status evaluate(mr_trainer *t, mr_error *err)
{
    const mr_settings *s = t->settings;
    mr_feed_text text = t->pairs.text;
    text.expanded = text.groups = false; /* as in `eval` */
    mr_evaluator e = {
        .ds = t->ds,
        .ranks = t->ranks,
        .device = t->device,
        .config = &t->config,
        .model = t->model,
        .batch = mr_trainer_eval_batch(t),
        .damage = &t->eval_damage,
        .loader = {.split = t->eval_split,
                   .items = t->pairs.eval_items,
                   .item_count = t->pairs.eval_count,
                   .threads = t->loader_threads,
                   .prefetch = (unsigned)s->prefetch,
                   .deliver = mr_trainer_delivery(t),
                   .transform = mr_eval_transform(&t->config, s->orientation[0] == 'a'),
                   .on_bad = s->max_bad ? MR_ON_BAD_MASK : MR_ON_BAD_FAIL,
                   .max_bad = s->max_bad,
                   .max_pixels = s->max_pixels},
        .text = &text,
        .targets = t->learning.several ? &t->learning.eval : NULL,
    };
    mr_evaluation result;
    char doing[128];
    snprintf(doing, sizeof doing, "Evaluating %s after update %llu of %llu", t->eval_split, (unsigned long long)t->done,
             (unsigned long long)t->updates);
    mr_journal_doing(t->journal, doing);
    MR_AUTO(mr_outcomes_release) mr_outcomes outcomes = {.step = t->done};
    e.outcomes = *s->output ? &outcomes : NULL;
    e.loader.transform.libjpeg = s->decoder[0] == 'l';
    MR_TRY(mr_evaluate(&e, model_of(t), &result, err));
    MR_TRY(keep_outcomes(t, e.outcomes, err));
    t->evaluation_due = false;
    t->accuracy = result.accuracy;
    t->threshold = result.threshold;
    if (result.accuracy > t->best_accuracy) {
        t->best_accuracy = result.accuracy;
        t->best_update = t->done;
    }
    mr_journal_evaluation report = {.update = t->done,
                                    .loss = result.loss,
                                    .accuracy = result.accuracy,
                                    .samples = result.samples,
                                    .seconds = result.seconds,
                                    .pairs = t->config.iface->text,
                                    .several = t->learning.several,
                                    .f1 = result.f1,
                                    .threshold = result.threshold,
                                    .recall = result.recall};
    return mr_journal_evaluated(t->journal, &report, err);
}

/* After its checkpoint is on disk, so that a failing evaluation costs no updates. */
static mr_status evaluate_saved(mr_trainer *t, mr_error *err)
{
    const mr_settings *s = t->settings;
    bool mine = *s->output && mr_ranks_rank(t->ranks) == 0;
    mr_status status = mr_ranks_agree(t->ranks, evaluate(t, err), err);
    const mr_checkpoint c = {.update = t->done,
                             .accuracy = t->accuracy,
                             .best_accuracy = t->best_accuracy,
                             .threshold = t->threshold,
                             .best_update = t->best_update,
                             .claim = t->claim};
    if (status == MR_OK)
        return mr_ranks_agree(t->ranks, mine ? mr_checkpoint_evaluated(&c, s->output, (unsigned)s->keep, err) : MR_OK,
                              err);
    if (*s->output && err)
        mr_fail(err, status, "%s; the %llu updates done are saved in %s for --resume", err->text,
                (unsigned long long)t->done, s->output);
    return status;
}

/* After an update: a checkpoint and an evaluation, where they are due. */
static mr_status pause_after(mr_trainer *t, mr_trainer_update *u, bool ends, mr_error *err)
{
    uint64_t every = t->settings->eval_every;
    bool over = t->done == t->updates, due = over || (every && t->done % every == 0);
    if (!due && !ends && !mr_pause_saves(&u->pause, u->sums + MR_UPDATE_PAUSE, t->done))
        return MR_OK;
    if (u->carried != MR_OK && err)
        *err = u->why;
    t->evaluation_due = due && t->eval_split;
    mr_status status = mr_ranks_agree(t->ranks, u->carried, err);
    if (status == MR_OK)
        status = mr_trainer_save(t, err);
    mr_pause_saved(&u->pause);
    return status == MR_OK && t->evaluation_due ? evaluate_saved(t, err) : status;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static mr_status loop(mr_trainer *t, mr_trainer_update *u, uint64_t end, int *stopped, mr_error *err)
{
    double since = mr_seconds(), waited = 0, exchanged = 0;
    mr_status status = MR_OK;
    mr_journal_doing(t->journal, "Computing the first update");
    while (status == MR_OK && t->done < end && !*stopped) {
        mr_trainer_profile_count(t, true);
        status = mr_trainer_update_make(t, u, err);
        mr_trainer_profile_count(t, false);
        if (status != MR_OK)
            break;
        double now = mr_seconds(), weight = u->sums[MR_UPDATE_WEIGHT];
        mr_journal_update report = {
            .update = t->done,
            .loss = weight > 0 ? u->sums[MR_UPDATE_LOSS] / weight : 0,
            .lr = u->facts.lr,
            .grad_norm = u->facts.grad_norm,
            .samples = (uint64_t)u->sums[MR_UPDATE_SAMPLES],
            .seconds = now - since,
            .wait = t->feed.waited - waited,
            .exchange = mr_exchange_seconds(t->exchange) - exchanged,
            .uses = mr_trainer_update_uses(t, u),
        };
        const mr_loader_spent work = mr_loader_time(t->feed.loader);
        mr_rank_use_add(&u->use, report.seconds, report.wait, report.exchange, &work);
        /* A signal during the last update stops nothing. */
        *stopped = t->done < t->updates ? mr_pause_stops(u->sums + MR_UPDATE_PAUSE) : 0;
        u->carried = mr_journal_update_done(t->journal, &report, &u->why);
        status = pause_after(t, u, *stopped || t->done == end, err);
        since = mr_seconds();
        waited = t->feed.waited;
        exchanged = mr_exchange_seconds(t->exchange);
    }
    return status;
}

/* A run that was finished, then killed before it had removed older checkpoints. */
static mr_status nothing_to_do(mr_trainer *t, mr_error *err)
{
    const mr_settings *s = t->settings;
    const mr_checkpoint c = {
        .update = t->done, .best_accuracy = t->best_accuracy, .best_update = t->best_update, .claim = t->claim};
    bool mine = *s->output && mr_ranks_rank(t->ranks) == 0;
    return mr_ranks_agree(t->ranks, mine ? mr_checkpoint_sweep(&c, s->output, (unsigned)s->keep, err) : MR_OK, err);
}

/* The results and the last lines. */
static mr_status finish(mr_trainer *t, const mr_rank_uses *uses, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf profile = {0};
    mr_loader_spent spent = mr_loader_time(t->feed.loader);
    double work = spent.reading + spent.decoding;
    mr_journal_end last = {
        .dataset = t->settings->dataset,
        .facts = t->facts,
        .pairs = t->config.iface->text,
        .several = t->learning.several,
        .best_accuracy = t->best_accuracy,
        .best_update = t->best_update,
        .damaged = t->feed.damage.count,
        .eval_damaged = t->eval_damage.count,
        .read_share = work > 0 ? spent.reading / work : 0,
        .decode_share = work > 0 ? spent.decoding / work : 0,
        .uses = uses,
        .profile = t->profile ? &profile : NULL,
        .declined = t->device->iface->declined ? t->device->iface->declined(t->device) : NULL,
    };
    if (t->profile && t->journal) {
        mr_trainer_profile_limits(t);
        MR_TRY(mr_trainer_profile_json(t, uses, &profile, err));
    }
    MR_TRY(mr_checkpoint_held(t->claim, t->settings->output, err));
    MR_TRY(mr_journal_finish(t->journal, &last, err));
    return t->profile && t->journal && !t->settings->quiet ? mr_trainer_profile_print(t, uses, err) : MR_OK;
}

mr_status mr_trainer_run(mr_trainer *t, int *stopped, mr_error *err)
{
    mr_trainer_update u = {.carried = MR_OK};
    uint64_t end = t->updates;
    MR_AUTO(mr_rank_uses_release) mr_rank_uses uses = {0};
    mr_status status = mr_ranks_agree(t->ranks, mr_trainer_update_open(t, &u, err), err);
    if (status != MR_OK) {
        mr_trainer_update_close(&u);
        return status;
    }
    if (t->settings->stop_after && t->settings->stop_after < end - t->done)
        end = t->done + t->settings->stop_after;
    *stopped = 0;
    /* Without an output there is nothing to save, and signals have their default effect. */
    mr_pause_begin(&u.pause, &t->settings->checkpoint_every, mr_ranks_rank(t->ranks) == 0, *t->settings->output);
    if (t->evaluation_due)
        status = evaluate_saved(t, err);
    if (status == MR_OK)
        status = t->done < end ? loop(t, &u, end, stopped, err) : nothing_to_do(t, err);
    if (status == MR_OK)
        status = mr_damage_join(&t->feed.damage, t->ranks, err);
    if (t->feed.decoder)
        u.use.decoded = mr_images_count(t->feed.decoder);
    if (status == MR_OK)
        status = mr_rank_uses_gather(t->ranks, &u.use, &uses, err);
    if (status == MR_OK)
        status = mr_ranks_agree(t->ranks, finish(t, &uses, err), err);
    mr_pause_end(&u.pause);
    mr_trainer_update_close(&u);
    return status;
}

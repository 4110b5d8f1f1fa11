/* trainer_open.c - the memory and the machinery of a run that has been prepared.
 * Invariant: every rank holds the same values, to the bit: from one seed, one file or one checkpoint. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "model/contrast.h"
#include "run/trainer.h"

/* ---- start values ------------------------------------------------------------------------------------------------ */

/* Some gigabytes are read for it, which a rank alone need not. */
static void remember(mr_trainer *t, const float *values)
{
    if (mr_ranks_world(t->ranks) > 1)
        t->begun_with = t->begun_with * 31 + mr_hash64(values, t->params.total * sizeof *values);
}

static mr_status restore(mr_trainer *t, mr_error *err)
{
    mr_checkpoint *c = t->restored;
    const mr_device_card *card = t->device->card;
    size_t bytes = t->params.total * sizeof(float);
    if (c->params.total != t->params.total || c->slots != t->optimizer.slots)
        return mr_fail(err, MR_BAD_DATA, "%s: the checkpoint's buffers are not of this model's size",
                       t->settings->output);
    card->upload(t->device, t->values, c->values, bytes);
    remember(t, c->values);
    for (unsigned i = 0; i < c->slots; i++) {
        card->upload(t->device, t->optimizer.state[i], c->state[i], bytes);
        remember(t, c->state[i]);
    }
    mr_status status = card->wait(t->device, err);
    mr_checkpoint_release(c);
    free(c);
    t->restored = NULL;
    return status;
}

/* Said before a second's work on start values.  Weights as the hub keeps them may be a folder. */
static mr_status look_at_pretrained(const mr_trainer *t, mr_error *err)
{
    const char *path = t->settings->pretrained;
    int fd = -1;
    if (t->config.card->describe && mr_dir_is(path))
        return MR_OK;
    mr_status status = mr_file_open(AT_FDCWD, path, true, &fd, NULL, err);
    if (fd >= 0)
        close(fd);
    return status;
}

static mr_status begin_values(mr_trainer *t, mr_error *err)
{
    const mr_settings *s = t->settings;
    const mr_device_card *card = t->device->card;
    size_t bytes = t->params.total * sizeof(float);
    mr_status status = *s->pretrained && !t->restored ? look_at_pretrained(t, err) : MR_OK;
    if (status == MR_OK)
        status = card->alloc(t->device, bytes, (void **)&t->values, err);
    if (status != MR_OK || t->restored)
        return status;
    float *start = card->host_memory ? t->values : mr_alloc(t->params.total, sizeof *start);
    if (!start)
        return mr_fail_memory(err, "making start values");
    t->config.card->start(&t->config, &t->params, s->seed, start);
    if (*s->pretrained)
        status = t->config.card->load(&t->config, &t->params, s->pretrained, start, &t->said, err);
    remember(t, start);
    if (start != t->values) {
        card->upload(t->device, t->values, start, bytes);
        mr_error ignored;
        status = card->wait(t->device, status == MR_OK ? err : &ignored) == MR_OK ? status : MR_SYSTEM;
        free(start);
    }
    return status;
}

/* ---- machinery --------------------------------------------------------------------------------------------------- */

static mr_status open_feed(mr_trainer *t, mr_error *err)
{
    const mr_settings *s = t->settings;
    mr_transform random = {.kind = MR_TRANSFORM_TRAIN,
                           .size = t->config.image,
                           .scale_min = (float)s->scale_min,
                           .scale_max = 1,
                           .flip = s->flip ? 0.5f : 0,
                           .apply_orientation = s->orientation[0] == 'a'};
    mr_loader_options o = {
        .split = s->split,
        .global_batch = s->batch * mr_ranks_world(t->ranks),
        .rank = mr_ranks_rank(t->ranks),
        .world = mr_ranks_world(t->ranks),
        .threads = t->threads,
        .prefetch = (unsigned)s->prefetch,
        .seed = s->seed,
        .tail = MR_TAIL_PARTIAL,
        .transform = t->config.card->text ? mr_eval_transform(&t->config, s->orientation[0] == 'a') : random,
        .items = t->pairs.items,
        .item_count = t->pairs.item_count,
        .on_bad = !s->max_bad           ? MR_ON_BAD_FAIL
                  : s->on_bad[0] == 'm' ? MR_ON_BAD_MASK
                                        : MR_ON_BAD_REPLACE,
        .max_bad = s->max_bad,
        .max_pixels = s->max_pixels,
        .start = t->cursor,
        .epochs = UINT32_MAX,
    };
    o.transform.libjpeg = s->decoder[0] == 'l';
    return mr_feed_open(t->ds, &o, t->config.card->text ? &t->pairs.text : NULL, s->batch, t->device, &t->feed, err);
}

static mr_status open_journal(mr_trainer *t, mr_error *err)
{
    const mr_settings *s = t->settings;
    char events[4096] = "", results[4096] = "";
    bool begun = t->first > 0;
    if (mr_ranks_rank(t->ranks) != 0)
        return MR_OK;
    if (*s->output) {
        if (snprintf(events, sizeof events, "%s/" MR_RUN_EVENTS, s->output) >= (int)sizeof events ||
            snprintf(results, sizeof results, "%s/" MR_RUN_RESULTS, s->output) >= (int)sizeof results)
            return mr_fail(err, MR_MISUSE, "--output: the path is too long");
        /* A run that was killed before its first checkpoint left these. */
        begun = begun || access(events, F_OK) == 0;
        mr_status status = t->claim ? mr_checkpoint_held(t->claim, s->output, err) : mr_dir_make(s->output, err);
        if (status == MR_OK && !t->claim)
            status = mr_trainer_claim(t, true, err);
        if (status == MR_OK && !t->claim)
            status = mr_fail(err, MR_SYSTEM, "%s: somebody removes it as soon as it is made", s->output);
        if (status != MR_OK)
            return status;
    }
    mr_journal_options o = {
        .stream = s->quiet ? NULL : stdout,
        .log = *s->log ? s->log : NULL,
        .events = *events ? events : NULL,
        .results = *results ? results : NULL,
        .steps = t->updates,
        .first = t->first,
        .resume = s->resume && begun,
        .logging_steps = s->logging_steps,
        .warmup_steps = s->throughput_warmup_steps,
    };
    return mr_journal_open(&o, &t->journal, err);
}

static mr_status open_parts(mr_trainer *t, mr_error *err)
{
    const mr_settings *s = t->settings;
    mr_device_options device = {.threads = t->threads};
    mr_status status = mr_device_open(s->device, &device, &t->device, err);
    if (status == MR_OK)
        status = t->config.card->open(&t->config, &t->params, t->device, s->batch, true, &t->model, err);
    if (status == MR_OK)
        status = begin_values(t, err);
    if (status == MR_OK)
        status = mr_optimizer_open(&t->update_rule, &t->params, t->device, &t->optimizer, err);
    if (status == MR_OK && t->restored)
        status = restore(t, err);
    return status == MR_OK ? open_feed(t, err) : status;
}

mr_status mr_trainer_agree(const mr_trainer *t, mr_error *err)
{
    uint64_t options;
    unsigned other;
    mr_status status = mr_ranks_agree(t->ranks, mr_settings_hash(t->settings, &options, err), err);
    const uint64_t run[] = {
        t->restored != NULL, t->first,        t->updates,        t->cursor.epoch,
        t->cursor.position,  t->params.total, t->evaluation_due, options,
    };
    if (status == MR_OK)
        status = mr_ranks_compare(t->ranks, run, sizeof run, &other, NULL, err);
    if (status == MR_OK && other)
        status = mr_fail(err, MR_BAD_DATA,
                         "mpirun: rank %u finds another checkpoint in --output, or has other options, "
                         "than rank 0; give all of them the same folder and the same options",
                         other);
    return status;
}

static mr_status agree_on_values(mr_trainer *t, mr_error *err)
{
    unsigned other;
    mr_status status = mr_ranks_compare(t->ranks, &t->begun_with, sizeof t->begun_with, &other, NULL, err);
    if (status == MR_OK && other)
        status = mr_fail(err, MR_BAD_DATA,
                         "mpirun: rank %u begins with other weights than rank 0; give all of them the "
                         "same %s",
                         other, t->first ? "--output" : "--pretrained");
    return status;
}

mr_status mr_trainer_open(mr_trainer *t, mr_error *err)
{
    mr_exchange_options x = {
        .kind = t->settings->exchange[0] == 'b' ? MR_EXCHANGE_BUCKETS : MR_EXCHANGE_FLAT,
        .count = t->params.total,
    };
    mr_status status = mr_ranks_agree(t->ranks, open_parts(t, err), err);
    if (status == MR_OK)
        status = agree_on_values(t, err);
    if (status == MR_OK)
        status = mr_ranks_agree(t->ranks, open_journal(t, err), err);
    if (status == MR_OK && t->config.card->text && t->settings->gather_negatives)
        status = mr_ranks_agree(
            t->ranks, mr_peers_open(t->ranks, t->settings->batch, mr_contrast_row(t->config.embed), &t->peers, err),
            err);
    return status == MR_OK ? mr_exchange_open(t->ranks, &x, &t->exchange, err) : status;
}

void mr_trainer_close(mr_trainer *t)
{
    mr_journal_free(t->journal);
    mr_feed_close(&t->feed);
    mr_damage_release(&t->judged_damage);
    mr_pairs_close(&t->pairs);
    mr_peers_close(&t->peers);
    mr_exchange_free(t->exchange);
    mr_optimizer_close(&t->optimizer);
    if (t->model)
        t->config.card->close(t->model);
    if (t->device && t->values)
        t->device->card->free(t->device, t->values);
    mr_device_close(t->device);
    mr_params_release(&t->params);
    if (t->restored)
        mr_checkpoint_release(t->restored);
    free(t->restored);
    json_decref(t->facts);
    mr_buf_free(&t->said);
    mr_dataset_free(t->ds);
    if (t->claim)
        closedir(t->claim);
    memset(t, 0, sizeof *t);
}

/* trainer_open.c - allocates and opens what a prepared run needs.
 * Invariant: every rank holds the same values, to the bit: those that rank 0 read or made. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "train/model/contrast.h"
#include "train/setup/augment_list.h"
#include "train/setup/head.h"
#include "train/setup/head_file.h"
#include "train/setup/head_hub.h"
#include "train/run/trainer.h"

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Checked before a second's work on start values.  Weights as the hub keeps them may be a folder. */
static mr_status check_pretrained(const mr_trainer *t, mr_error *err)
{
    MR_AUTO(mr_scope_close) int fd = -1;
    if (mr_dir_is(t->settings->pretrained))
        return MR_OK;
    return mr_file_open(AT_FDCWD, t->settings->pretrained, true, &fd, NULL, err);
}

/* The weights of a file, and then the head, which the remarks of the first would call left out. */
static mr_status load_with_head(mr_trainer *t, const char *weights, const mr_checkpoint *head, const char *from,
                                float *start, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf said = {0};
    MR_TRY(t->config.iface->load(&t->config, &t->params, weights, start, &said, err));
    return mr_head_take(head, from, t->manifest, &t->params, start, &t->remarks, err);
}

/* From a run of ours, with its head. */
static mr_status load_run(mr_trainer *t, float *start, mr_error *err)
{
    const char *run = t->settings->pretrained;
    MR_AUTO(mr_checkpoint_release) mr_checkpoint older = {0};
    MR_AUTO(mr_scope_free) char *found = NULL;
    MR_AUTO(mr_buf_free) mr_buf weights = {0};
    MR_TRY(mr_checkpoint_read(run, false, false, &older, &found, err));
    if (older.model.iface != t->config.iface)
        return mr_fail(err, MR_MISUSE, "--pretrained %s: is a run of %s, and --model is %s", run,
                       older.model.iface->name, t->settings->model);
    mr_buf_printf(&weights, "%s/weights.npz", found);
    MR_TRY(mr_buf_status(&weights, err, "loading weights"));
    return load_with_head(t, mr_buf_text(&weights), &older, found, start, err);
}

/* From a file, with the classes of its head in another. */
static mr_status load_named(mr_trainer *t, float *start, mr_error *err)
{
    const mr_settings *s = t->settings;
    MR_AUTO(mr_checkpoint_release) mr_checkpoint head = {0};
    MR_TRY(mr_head_file_read(s->pretrained, s->pretrained_classes, &head, err));
    return load_with_head(t, s->pretrained, &head, s->pretrained, start, err);
}

/* From a file or folder of the hub, with the columns of its head whose classes have names of the dataset's. */
static mr_status load_hub(mr_trainer *t, float *start, mr_error *err)
{
    const char *path = t->settings->pretrained;
    const mr_model_iface *iface = t->config.iface;
    MR_AUTO(mr_checkpoint_release) mr_checkpoint head = {0};
    mr_error why;
    MR_TRY(iface->load(&t->config, &t->params, path, start, &t->remarks, err));
    MR_TRY(mr_hub_check_colours(path, &t->remarks, err));
    mr_status status = mr_head_hub_read(iface->hub, path, t->config.hidden, &head, err);
    if (status == MR_OK)
        status = mr_head_take(&head, path, t->manifest, &t->params, start, &t->remarks, &why);
    if (status == MR_MISUSE || status == MR_END) { /* no class of the dataset's */
        mr_buf_printf(&t->remarks,
                      "head not loaded: it does not name classes of the dataset; a new head of %u classes "
                      "starts from zeros\n",
                      t->config.classes);
        return mr_buf_status(&t->remarks, err, "loading weights");
    }
    if (status != MR_OK && head.values && err)
        *err = why;
    return status;
}

/* On rank 0. */
static mr_status make_start(mr_trainer *t, float *start, mr_error *err)
{
    const mr_settings *s = t->settings;
    if (*s->pretrained)
        MR_TRY(check_pretrained(t, err));
    t->config.iface->start(&t->config, &t->params, s->seed, start);
    if (*s->pretrained && t->config.iface->hub && t->config.iface->hub->is(s->pretrained))
        return load_hub(t, start, err);
    if (*s->pretrained && !t->config.iface->describe && mr_dir_is(s->pretrained))
        return load_run(t, start, err);
    if (*s->pretrained_classes)
        return load_named(t, start, err);
    return *s->pretrained ? t->config.iface->load(&t->config, &t->params, s->pretrained, start, &t->remarks, err)
                          : MR_OK;
}

static mr_status upload(mr_trainer *t, float *to, const float *from, mr_error *err)
{
    t->device->iface->upload(t->device, to, from, t->params.total * sizeof *to);
    return t->device->iface->wait(t->device, err);
}

/* Made by rank 0, in place if it can.  Collective. */
static mr_status begin_values(mr_trainer *t, mr_error *err)
{
    size_t bytes = t->params.total * sizeof *t->values;
    bool first = mr_ranks_rank(t->ranks) == 0, in_place = first && t->device->iface->host_memory;
    MR_AUTO(mr_scope_free) float *start = first && !in_place ? mr_alloc(t->params.total, sizeof *start) : NULL;
    mr_buf values = {.data = (uint8_t *)(in_place ? t->values : start), .len = first ? bytes : 0};
    mr_status status = MR_OK;
    if (first)
        status = values.data ? make_start(t, (float *)(void *)values.data, err)
                             : mr_fail_memory(err, "initializing the parameters");
    MR_TRY(mr_ranks_agree(t->ranks, status, err));
    status = mr_ranks_share(t->ranks, &values, err);
    if (!first)
        start = (float *)(void *)values.data;
    MR_TRY(status);
    MR_TRY(mr_ranks_agree(t->ranks, start ? upload(t, t->values, start, err) : MR_OK, err));
    const float *begun = start ? start : t->values; /* in place */
    return mr_ranks_agree(t->ranks, t->mean ? upload(t, t->mean, begun, err) : MR_OK, err);
}

static mr_status restore(mr_trainer *t, mr_error *err)
{
    mr_checkpoint *c = &t->restored;
    if (c->params.total != t->params.total || c->slots != t->optimizer.slots + (t->mean != NULL))
        return mr_fail(err, MR_BAD_DATA, "%s: the checkpoint's buffers do not have this model's size",
                       t->settings->output);
    MR_TRY(upload(t, t->mean ? t->mean : t->values, c->values, err));
    for (unsigned i = 0; i < c->slots; i++)
        MR_TRY(upload(t, i < t->optimizer.slots ? t->optimizer.state[i] : t->values, c->state[i], err));
    mr_checkpoint_release(c);
    return MR_OK;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

mr_delivery mr_trainer_delivery(const mr_trainer *t)
{
    const char *where = t->settings->decode_on;
    if (where[0] == 'a')
        return mr_feed_delivery(t->device, t->loader_threads);
    return where[0] == 'd' ? MR_DELIVER_CODED : MR_DELIVER_F32_NCHW;
}

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
        .struct_size = sizeof o,
        .mixup = (float)s->mixup,
        .cutmix = (float)s->cutmix,
        .split = s->split,
        .global_batch = s->batch * mr_ranks_world(t->ranks),
        .rank = mr_ranks_rank(t->ranks),
        .world = mr_ranks_world(t->ranks),
        .threads = t->loader_threads,
        .prefetch = (unsigned)s->prefetch,
        .seed = s->seed,
        .tail = mr_trainer_tail(t),
        .deliver = *s->augment || s->mixup > 0 || s->cutmix > 0 ? MR_DELIVER_F32_NCHW : mr_trainer_delivery(t),
        .transform = t->config.iface->text ? mr_eval_transform(&t->config, s->orientation[0] == 'a') : random,
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
    const mr_feed_labels labels = {.targets = t->learning.several ? &t->learning.train : NULL,
                                   .classes = t->config.classes,
                                   .smoothing = (float)s->label_smoothing,
                                   .weights = t->learning.weights};
    const mr_feed_text *text = t->config.iface->text ? &t->pairs.text : NULL;
    MR_TRY(mr_augment_list(s->augment, &o.augment, err));
    if (s->decode_on[0] == 'd' && o.deliver != MR_DELIVER_CODED)
        return mr_fail(
            err, MR_MISUSE,
            "--decode-on device: --augment, --mixup and --cutmix change pixels on the host; leave one of them out");
    if (s->decode_on[0] == 'd' && o.transform.unrounded)
        return mr_fail(err, MR_MISUSE,
                       "--decode-on device: this model's images are resized without rounding, which only the host "
                       "supports; leave the option out");
    MR_TRY(mr_feed_open(t->ds, &o, text, s->batch, t->device, &t->feed, err));
    return text ? MR_OK : mr_feed_learn(&t->feed, &labels, err);
}

/* What prepare() claimed, or a folder made now. */
static mr_status claim_output(mr_trainer *t, mr_error *err)
{
    const char *output = t->settings->output;
    if (t->claim)
        return mr_checkpoint_held(t->claim, output, err);
    MR_TRY(mr_dir_make(output, err));
    MR_TRY(mr_trainer_claim(t, true, err));
    return t->claim ? MR_OK : mr_fail(err, MR_SYSTEM, "%s: was removed right after it was created", output);
}

/* With --overwrite-output: the last step before the run begins, so that one that cannot begin removes nothing. */
static mr_status clear_output(mr_trainer *t, mr_error *err)
{
    static const char *const files[] = {MR_RUN_RESULTS, MR_RUN_OUTCOMES};
    if (!t->settings->overwrite_output || mr_ranks_rank(t->ranks) != 0 || !t->claim)
        return MR_OK;
    MR_TRY(mr_checkpoint_clear(t->claim, t->settings->output, err));
    for (size_t i = 0; i < MR_COUNT(files); i++)
        if (unlinkat(dirfd(t->claim), files[i], 0) != 0 && errno != ENOENT)
            return mr_fail_errno(err, errno, "%s/%s: cannot be removed", t->settings->output, files[i]);
    return mr_events_remove(dirfd(t->claim), MR_RUN_EVENTS, t->settings->output, err);
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
        MR_TRY(claim_output(t, err));
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

static mr_status open_parts(mr_trainer *t, unsigned on_host, mr_error *err)
{
    const mr_settings *s = t->settings;
    mr_device_options device = {.threads = t->threads, .local_rank = on_host};
    MR_TRY(mr_device_open(s->device, &device, &t->device, err));
    if (s->profile)
        MR_TRY(mr_profile_open(t->device, &t->profile, err));
    MR_TRY(t->config.iface->open(&t->config, &t->params, t->device, mr_trainer_rows(t), true, &t->model, err));
    MR_TRY(t->device->iface->alloc(t->device, t->params.total * sizeof *t->values, "parameters", (void **)&t->values,
                                   err));
    if (s->ema > 0)
        MR_TRY(t->device->iface->alloc(t->device, t->params.total * sizeof *t->mean, "the mean of parameters",
                                       (void **)&t->mean, err));
    return mr_optimizer_open(&t->update_rule, &t->params, t->device, &t->optimizer, err);
}

/* Warns if hosts do not share --output: --resume then needs rank 0 on the same host.  Collective. */
static mr_status look_shared(mr_trainer *t, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_error why;
    if (!*t->settings->output)
        return MR_OK;
    mr_buf_printf(&text, "%s/" MR_OWNER_IN_FOLDER, t->settings->output);
    MR_TRY(mr_ranks_agree(t->ranks, mr_buf_status(&text, err, "opening the output"), err));
    mr_status status = mr_owner_seen(t->owner, mr_buf_text(&text), t->ranks, &why);
    if (status != MR_MISUSE)
        return status == MR_OK ? MR_OK : mr_fail(err, status, "%s", why.text);
    mr_buf_clear(&text);
    mr_buf_printf(
        &text,
        "%s: --output is on a disk that the hosts do not share, so --resume finds this run only if rank 0 is on "
        "the same host again",
        why.text);
    if (mr_ranks_rank(t->ranks) == 0)
        mr_term_warn(mr_buf_text(&text));
    return MR_OK;
}

/* Collective. */
static mr_status open_gradients(mr_trainer *t, mr_error *err)
{
    const mr_settings *s = t->settings;
    mr_exchange_options x = {
        .kind = s->exchange[0] == 'b' ? MR_EXCHANGE_BUCKETS : MR_EXCHANGE_FLAT,
        .count = t->params.total,
        .halves = mr_type_of(s->exchange_type) == MR_BF16, /* which devices do not sum */
    };
    mr_gradients_options g = {.count = x.count, .kind = x.kind, .alone = mr_ranks_world(t->ranks) == 1};
    if (!x.halves)
        MR_TRY(mr_gradients_meet(t->device, t->ranks, &g.direct, &t->remarks, err));
    if (g.direct)
        x.count = 0;
    MR_TRY(mr_exchange_open(t->ranks, &x, &t->exchange, err));
    MR_TRY(mr_ranks_agree(t->ranks, mr_gradients_open(t->device, t->exchange, &g, &t->gradients, err), err));
    t->passes = (mr_passes){.device = t->device,
                            .model = t->model,
                            .values = t->values,
                            .gradients = t->gradients.values,
                            .ready = mr_gradients_listener(&t->gradients),
                            .ctx = &t->gradients};
    return MR_OK;
}

mr_status mr_trainer_open(mr_trainer *t, mr_error *err)
{
    const mr_settings *s = t->settings;
    MR_TRY(mr_ranks_agree(t->ranks, open_parts(t, mr_ranks_local_rank(t->ranks), err), err));
    MR_TRY(t->resumed ? mr_ranks_agree(t->ranks, restore(t, err), err) : begin_values(t, err));
    MR_TRY(mr_ranks_agree(t->ranks, open_feed(t, err), err));
    MR_TRY(mr_ranks_agree(t->ranks, clear_output(t, err), err));
    MR_TRY(mr_ranks_agree(t->ranks, open_journal(t, err), err));
    MR_TRY(look_shared(t, err));
    if (t->config.iface->text && s->gather_negatives)
        MR_TRY(mr_ranks_agree(
            t->ranks, mr_peers_open(t->ranks, s->batch, mr_contrast_row(t->config.embed), &t->peers, err), err));
    return open_gradients(t, err);
}

void mr_trainer_close(mr_trainer *t)
{
    mr_journal_free(t->journal);
    mr_feed_close(&t->feed);
    mr_damage_release(&t->eval_damage);
    mr_pairs_close(&t->pairs);
    mr_learning_release(&t->learning);
    mr_peers_close(&t->peers);
    mr_passes_close(&t->passes);
    mr_gradients_close(&t->gradients);
    mr_exchange_free(t->exchange);
    mr_optimizer_close(&t->optimizer);
    if (t->model)
        t->config.iface->close(t->model);
    if (t->device && t->values)
        t->device->iface->free(t->device, t->values);
    if (t->device && t->mean)
        t->device->iface->free(t->device, t->mean);
    mr_device_close(t->device);
    mr_params_release(&t->params);
    mr_checkpoint_release(&t->restored);
    json_decref(t->facts);
    mr_buf_free(&t->remarks);
    mr_dataset_free(t->ds);
    mr_owner_release(t->owner);
    if (t->claim)
        closedir(t->claim);
    memset(t, 0, sizeof *t);
}

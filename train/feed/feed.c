/* feed.c - from the loader's batch to a model's input.
 * Invariant: a sample's input does not depend on its batch, except for the padding of its text. */
#include "train/feed/feed.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/cli/term.h"
#include "shards/dataset/dataset.h"
#include "train/feed/describe.h"

enum { TEXT_MAX = 1 << 20 }; /* tokens; so that sizes of texts cannot overflow */

static bool reserve_text(mr_feed *f)
{
    size_t most = f->text.most;
    if (!f->text.tokenizer)
        return true;
    f->host.tokens = mr_alloc(f->capacity, most * sizeof *f->host.tokens);
    f->host.places = mr_alloc(f->capacity, most * sizeof *f->host.places);
    f->host.seen = mr_alloc(f->capacity, most);
    f->host.groups = mr_alloc(f->capacity, sizeof *f->host.groups);
    f->lengths = mr_alloc(f->capacity, sizeof *f->lengths);
    f->scratch = mr_tokenizer_scratch_new();
    return f->host.tokens && f->host.places && f->host.seen && f->host.groups && f->lengths && f->scratch;
}

/* These sizes did not overflow in mr_alloc(). */
static mr_status reserve_text_on_device(mr_feed *f, mr_error *err)
{
    const mr_device_iface *c = f->device->iface;
    size_t tokens = f->capacity * f->text.most;
    MR_TRY(c->alloc(f->device, tokens * sizeof *f->on_device.tokens, "batches", (void **)&f->on_device.tokens, err));
    MR_TRY(c->alloc(f->device, tokens * sizeof *f->on_device.places, "batches", (void **)&f->on_device.places, err));
    MR_TRY(c->alloc(f->device, tokens, "batches", (void **)&f->on_device.seen, err));
    return c->alloc(f->device, f->capacity * sizeof *f->on_device.groups, "batches", (void **)&f->on_device.groups,
                    err);
}

/* For images mixed of two. */
static mr_status reserve_others(mr_feed *f, mr_error *err)
{
    const mr_device_iface *c = f->device->iface;
    size_t labels = f->capacity * sizeof(int32_t), weights = f->capacity * sizeof(float);
    f->host.other_labels = mr_alloc(f->capacity, sizeof *f->host.other_labels);
    f->host.other_weights = mr_alloc(f->capacity, sizeof *f->host.other_weights);
    if (!f->host.other_labels || !f->host.other_weights)
        return mr_fail_memory(err, "preparing batches");
    if (c->host_memory)
        return MR_OK;
    MR_TRY(c->alloc(f->device, labels, "batches", (void **)&f->on_device.other_labels, err));
    return c->alloc(f->device, weights, "batches", (void **)&f->on_device.other_weights, err);
}

static mr_status reserve(mr_feed *f, bool mixed, mr_error *err)
{
    const mr_device_iface *c = f->device->iface;
    size_t image_bytes = f->image_floats * sizeof *f->on_device.images;
    if (mixed)
        MR_TRY(reserve_others(f, err));
    f->host.labels = mr_alloc(f->capacity, sizeof *f->host.labels);
    f->host.weights = mr_alloc(f->capacity, sizeof *f->host.weights);
    f->host.keys = mr_alloc(f->capacity, sizeof *f->host.keys);
    if (!f->host.labels || !f->host.weights || !f->host.keys || !reserve_text(f))
        return mr_fail_memory(err, "preparing batches");
    if (c->host_memory)
        f->on_device = f->host;
    if (!c->host_memory || f->decoder)
        MR_TRY(c->alloc(f->device, f->capacity * image_bytes, "batches", (void **)&f->on_device.images, err));
    if (f->decoder && c->second)
        MR_TRY(c->alloc(f->device, f->capacity * image_bytes, "batches", (void **)&f->ahead.images, err));
    if (c->host_memory)
        return MR_OK;
    MR_TRY(
        c->alloc(f->device, f->capacity * sizeof *f->on_device.labels, "batches", (void **)&f->on_device.labels, err));
    MR_TRY(c->alloc(f->device, f->capacity * sizeof *f->on_device.weights, "batches", (void **)&f->on_device.weights,
                    err));
    MR_TRY(c->alloc(f->device, f->capacity * sizeof *f->on_device.keys, "batches", (void **)&f->on_device.keys, err));
    return f->text.tokenizer ? reserve_text_on_device(f, err) : MR_OK;
}

mr_delivery mr_feed_delivery(const mr_device *d, unsigned threads)
{
    return d->iface->host_memory || threads >= MR_FEED_SPARE ? MR_DELIVER_F32_NCHW : MR_DELIVER_CODED;
}

mr_status mr_feed_open(const mr_dataset *ds, const mr_loader_options *options, const mr_feed_text *text,
                       size_t capacity, mr_device *device, mr_feed *out, mr_error *err)
{
    mr_loader_options o = *options;
    bool coded = o.deliver == MR_DELIVER_CODED && !o.transform.unrounded;
    o.deliver = coded ? MR_DELIVER_CODED : MR_DELIVER_F32_NCHW;
    o.allocator = device->iface->slabs ? device->iface->slabs(device) : NULL;
    MR_AUTO(mr_feed_close)
    mr_feed f = {.device = device,
                 .split = options->split,
                 .capacity = capacity,
                 .image_floats = (size_t)3 * o.transform.size * o.transform.size,
                 .seed = options->seed,
                 .items = o.items,
                 .fails = o.on_bad == MR_ON_BAD_FAIL,
                 .class_count = mr_dataset_manifest(ds)->class_count};
    if (text) {
        if (text->most < 2 || text->most > TEXT_MAX)
            return mr_fail(err, MR_MISUSE, "texts of up to %u tokens: give a number from 2 to %d", text->most,
                           TEXT_MAX);
        f.text = *text;
        o.with_meta = 1;
    }
    if (coded)
        MR_TRY(mr_images_new(device, &f.decoder, err));
    MR_TRY(reserve(&f, o.mixup > 0 || o.cutmix > 0, err));
    MR_TRY(mr_loader_open(ds, &o, &f.loader, err));
    *out = f;
    f = (mr_feed){0};
    return MR_OK;
}

mr_status mr_feed_learn(mr_feed *f, const mr_feed_labels *labels, mr_error *err)
{
    const mr_device_iface *c = f->device->iface;
    size_t row = labels->classes * sizeof(float);
    f->learn = *labels;
    if (!labels->targets)
        return MR_OK;
    f->host.targets = mr_alloc(f->capacity, row);
    if (!f->host.targets)
        return mr_fail_memory(err, "preparing batches");
    f->on_device.targets = f->host.targets;
    if (!c->host_memory)
        MR_TRY(c->alloc(f->device, f->capacity * row, "batches", (void **)&f->on_device.targets, err));
    if (!labels->weights)
        return MR_OK;
    MR_TRY(c->alloc(f->device, row, "batches", (void **)&f->on_device.positive, err));
    c->upload(f->device, f->on_device.positive, labels->weights, row);
    return MR_OK;
}

void mr_feed_close(mr_feed *f)
{
    if (f->device)
        f->device->iface->free(f->device, f->on_device.positive);
    if (f->loader) {
        mr_batch_release(f->loader, f->batch);
        mr_batch_release(f->loader, f->ahead.batch);
    }
    mr_loader_free(f->loader);
    mr_images_free(f->decoder);
    if (f->device) {
        f->device->iface->free(f->device, f->on_device.images);
        f->device->iface->free(f->device, f->ahead.images);
    }
    if (f->device && !f->device->iface->host_memory) {
        void (*release)(mr_device *, void *) = f->device->iface->free;
        release(f->device, f->on_device.labels);
        release(f->device, f->on_device.weights);
        release(f->device, f->on_device.other_labels);
        release(f->device, f->on_device.other_weights);
        release(f->device, f->on_device.keys);
        release(f->device, f->on_device.targets);
        release(f->device, f->on_device.tokens);
        release(f->device, f->on_device.places);
        release(f->device, f->on_device.groups);
        release(f->device, f->on_device.seen);
    }
    free(f->host.tokens);
    free(f->host.places);
    free(f->host.groups);
    free(f->host.seen);
    free(f->lengths);
    mr_tokenizer_scratch_free(f->scratch);
    mr_buf_free(&f->caption);
    mr_damage_release(&f->damage);
    free(f->host.labels);
    free(f->host.targets);
    free(f->host.weights);
    free(f->host.other_labels);
    free(f->host.other_weights);
    free(f->host.keys);
    memset(f, 0, sizeof *f);
}

static void send(mr_feed *f)
{
    const mr_batch *b = f->batch;
    void (*upload)(mr_device *, void *, const void *, size_t) = f->device->iface->upload;
    if (!f->decoder)
        upload(f->device, f->on_device.images, b->data, b->data_bytes);
    upload(f->device, f->on_device.labels, f->host.labels, b->count * sizeof *f->host.labels);
    upload(f->device, f->on_device.weights, f->host.weights, b->count * sizeof *f->host.weights);
    if (f->host.other_labels) {
        upload(f->device, f->on_device.other_labels, f->host.other_labels, b->count * sizeof *f->host.other_labels);
        upload(f->device, f->on_device.other_weights, f->host.other_weights, b->count * sizeof *f->host.other_weights);
    }
    upload(f->device, f->on_device.keys, f->host.keys, b->count * sizeof *f->host.keys);
    if (f->host.targets)
        upload(f->device, f->on_device.targets, f->host.targets, b->count * f->learn.classes * sizeof *f->host.targets);
    if (!f->text.tokenizer)
        return;
    upload(f->device, f->on_device.tokens, f->host.tokens, b->count * f->length * sizeof *f->host.tokens);
    upload(f->device, f->on_device.places, f->host.places, b->count * f->length * sizeof *f->host.places);
    upload(f->device, f->on_device.seen, f->host.seen, b->count * f->length);
    upload(f->device, f->on_device.groups, f->host.groups, b->count * sizeof *f->host.groups);
}

/* ---- the next batch ---------------------------------------------------------------------------------------------- */

void mr_feed_look_ahead(mr_feed *f)
{
    if (!f->ahead.images || f->ahead.taken)
        return;
    f->ahead.cursor = mr_loader_cursor(f->loader);
    f->ahead.status = mr_loader_next_for(f->loader, 0, &f->ahead.batch, &f->ahead.why);
    if (f->ahead.status == MR_AGAIN)
        return;
    f->ahead.taken = true;
    if (f->ahead.status == MR_OK)
        f->ahead.status = mr_images_begin(f->decoder, f->ahead.batch, f->ahead.images, &f->ahead.why);
}

mr_cursor mr_feed_cursor(const mr_feed *f)
{
    return f->ahead.taken ? f->ahead.cursor : mr_loader_cursor(f->loader);
}

/* What was begun ahead. */
static mr_status take_ahead(mr_feed *f, mr_error *why)
{
    f->batch = f->ahead.batch;
    f->ahead.batch = NULL;
    f->ahead.taken = false;
    *why = f->ahead.why;
    MR_TRY(f->ahead.status);
    MR_TRY(mr_images_end(f->decoder, f->loader, mr_batch_decode, why));
    if (!f->batch->count)
        return MR_OK;
    /* Where the model always finds them: what was recorded names addresses. */
    mr_run_rows(f->device, &(mr_rows){.type = MR_F32,
                                      .rows = f->batch->count,
                                      .width = f->image_floats,
                                      .from_stride = f->image_floats,
                                      .to_stride = f->image_floats,
                                      .from = f->ahead.images,
                                      .to = f->on_device.images});
    f->device->iface->second->meet(f->device);
    return MR_OK;
}

static mr_status take_now(mr_feed *f, mr_error *why)
{
    double start = mr_seconds();
    mr_status status = mr_loader_next(f->loader, &f->batch, why);
    f->waited += mr_seconds() - start;
    if (status == MR_OK && f->decoder)
        status = mr_images_make(f->decoder, f->loader, f->batch, mr_batch_decode, f->on_device.images, why);
    return status;
}

/* The error of a damaged sample also says how to skip it. */
static mr_status take(mr_feed *f, mr_error *err)
{
    mr_error why;
    mr_status status = f->ahead.taken ? take_ahead(f, &why) : take_now(f, &why);
    if (status == MR_OK)
        return mr_damage_note(&f->damage, f->batch, err);
    if (f->fails && mr_status_is_bad(status))
        return mr_fail(err, status, "%s; --max-bad N skips up to N damaged samples", why.text);
    if (status != MR_END && err)
        *err = why;
    return status;
}

mr_status mr_feed_next(mr_feed *f, mr_model_input *in, double *weight, mr_error *err)
{
    mr_batch_release(f->loader, f->batch);
    f->batch = NULL;
    MR_TRY(take(f, err));
    MR_TRY(mr_feed_describe(f, weight, err));
    if (!f->device->iface->host_memory && f->batch->count)
        send(f);
    *in = (mr_model_input){
        .count = f->batch->count,
        .images = f->on_device.images ? f->on_device.images : f->batch->data,
        .labels = f->on_device.labels,
        .weights = f->on_device.weights,
        .targets = f->on_device.targets,
        .positive = f->on_device.positive,
        .smoothing = f->learn.smoothing,
        .other_labels = f->on_device.other_labels,
        .other_weights = f->on_device.other_weights,
        .keys = f->on_device.keys,
        .tokens = f->on_device.tokens,
        .places = f->on_device.places,
        .seen = f->on_device.seen,
        .length = f->length,
        .groups = f->text.groups ? f->on_device.groups : NULL,
    };
    return MR_OK;
}

/* feed.c - from the loader's batch to a model's input.
 * Invariant: a sample's input does not depend on its batch, except for the padding of its text. */
#include "train/feed/feed.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/cli/term.h"
#include "shards/dataset/dataset.h"
#include "loader/order/mix.h"

enum { TEXT_MAX = 1 << 20 }; /* tokens; so that sizes of texts cannot overflow */

static bool reserve_text(mr_feed *f)
{
    size_t most = f->text.most;
    if (!f->text.tokenizer)
        return true;
    f->host.tokens = mr_alloc(f->room, most * sizeof *f->host.tokens);
    f->host.places = mr_alloc(f->room, most * sizeof *f->host.places);
    f->host.seen = mr_alloc(f->room, most);
    f->host.groups = mr_alloc(f->room, sizeof *f->host.groups);
    f->lengths = mr_alloc(f->room, sizeof *f->lengths);
    f->scratch = mr_tokenizer_scratch_new();
    return f->host.tokens && f->host.places && f->host.seen && f->host.groups && f->lengths && f->scratch;
}

/* These sizes did not overflow in mr_alloc(). */
static mr_status reserve_text_on_device(mr_feed *f, mr_error *err)
{
    const mr_device_card *c = f->device->card;
    size_t tokens = f->room * f->text.most;
    MR_TRY(c->alloc(f->device, tokens * sizeof *f->on_device.tokens, "batches", (void **)&f->on_device.tokens, err));
    MR_TRY(c->alloc(f->device, tokens * sizeof *f->on_device.places, "batches", (void **)&f->on_device.places, err));
    MR_TRY(c->alloc(f->device, tokens, "batches", (void **)&f->on_device.seen, err));
    return c->alloc(f->device, f->room * sizeof *f->on_device.groups, "batches", (void **)&f->on_device.groups, err);
}

/* For images mixed of two. */
static mr_status reserve_others(mr_feed *f, mr_error *err)
{
    const mr_device_card *c = f->device->card;
    size_t labels = f->room * sizeof(int32_t), weights = f->room * sizeof(float);
    f->host.other_labels = mr_alloc(f->room, sizeof *f->host.other_labels);
    f->host.other_weights = mr_alloc(f->room, sizeof *f->host.other_weights);
    if (!f->host.other_labels || !f->host.other_weights)
        return mr_fail_memory(err, "preparing batches");
    if (c->host_memory)
        return MR_OK;
    MR_TRY(c->alloc(f->device, labels, "batches", (void **)&f->on_device.other_labels, err));
    return c->alloc(f->device, weights, "batches", (void **)&f->on_device.other_weights, err);
}

static mr_status reserve(mr_feed *f, bool mixed, size_t image_bytes, mr_error *err)
{
    const mr_device_card *c = f->device->card;
    if (mixed)
        MR_TRY(reserve_others(f, err));
    f->host.labels = mr_alloc(f->room, sizeof *f->host.labels);
    f->host.weights = mr_alloc(f->room, sizeof *f->host.weights);
    f->host.keys = mr_alloc(f->room, sizeof *f->host.keys);
    if (!f->host.labels || !f->host.weights || !f->host.keys || !reserve_text(f))
        return mr_fail_memory(err, "preparing batches");
    if (c->host_memory)
        f->on_device = f->host;
    if (!c->host_memory || f->decoder)
        MR_TRY(c->alloc(f->device, f->room * image_bytes, "batches", (void **)&f->on_device.images, err));
    if (c->host_memory)
        return MR_OK;
    MR_TRY(c->alloc(f->device, f->room * sizeof *f->on_device.labels, "batches", (void **)&f->on_device.labels, err));
    MR_TRY(c->alloc(f->device, f->room * sizeof *f->on_device.weights, "batches", (void **)&f->on_device.weights, err));
    MR_TRY(c->alloc(f->device, f->room * sizeof *f->on_device.keys, "batches", (void **)&f->on_device.keys, err));
    return f->text.tokenizer ? reserve_text_on_device(f, err) : MR_OK;
}

mr_delivery mr_feed_delivery(const mr_device *d, unsigned threads)
{
    return d->card->host_memory || threads >= MR_FEED_SPARE ? MR_DELIVER_F32_NCHW : MR_DELIVER_CODED;
}

mr_status mr_feed_open(const mr_dataset *ds, const mr_loader_options *options, const mr_feed_text *text, size_t room,
                       mr_device *device, mr_feed *out, mr_error *err)
{
    mr_loader_options o = *options;
    bool coded = o.deliver == MR_DELIVER_CODED && !o.transform.unrounded;
    o.deliver = coded ? MR_DELIVER_CODED : MR_DELIVER_F32_NCHW;
    o.allocator = device->card->slabs ? device->card->slabs(device) : NULL;
    MR_AUTO(mr_feed_close)
    mr_feed f = {.device = device,
                 .split = options->split,
                 .room = room,
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
    MR_TRY(
        reserve(&f, o.mixup > 0 || o.cutmix > 0, (size_t)3 * o.transform.size * o.transform.size * sizeof(float), err));
    MR_TRY(mr_loader_open(ds, &o, &f.loader, err));
    *out = f;
    f = (mr_feed){0};
    return MR_OK;
}

mr_status mr_feed_learn(mr_feed *f, const mr_feed_labels *labels, mr_error *err)
{
    const mr_device_card *c = f->device->card;
    size_t row = labels->classes * sizeof(float);
    f->learn = *labels;
    if (!labels->targets)
        return MR_OK;
    f->host.targets = mr_alloc(f->room, row);
    if (!f->host.targets)
        return mr_fail_memory(err, "preparing batches");
    f->on_device.targets = f->host.targets;
    if (!c->host_memory)
        MR_TRY(c->alloc(f->device, f->room * row, "batches", (void **)&f->on_device.targets, err));
    if (!labels->weights)
        return MR_OK;
    MR_TRY(c->alloc(f->device, row, "batches", (void **)&f->on_device.positive, err));
    c->upload(f->device, f->on_device.positive, labels->weights, row);
    return MR_OK;
}

void mr_feed_close(mr_feed *f)
{
    if (f->device)
        f->device->card->free(f->device, f->on_device.positive);
    if (f->loader)
        mr_batch_release(f->loader, f->batch);
    mr_loader_free(f->loader);
    mr_images_free(f->decoder);
    if (f->device)
        f->device->card->free(f->device, f->on_device.images);
    if (f->device && !f->device->card->host_memory) {
        void (*release)(mr_device *, void *) = f->device->card->free;
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

uint64_t mr_feed_key(uint64_t seed, uint64_t epoch, uint64_t item)
{
    return mr_mix(mr_mix(mr_mix(seed) ^ epoch) ^ item);
}

static uint64_t key_of(const mr_feed *f, const mr_sample_facts *s)
{
    return mr_feed_key(f->seed, f->batch->epoch, s->item);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static size_t caption_number(const mr_feed *f, const mr_sample_facts *s, size_t count)
{
    if (!f->text.expanded)
        return count ? key_of(f, s) % count : 0;
    uint64_t first = s->item;
    while (f->items && first > 0 && f->items[first - 1] == s->sample)
        first--;
    return s->item - first;
}

static mr_status find_caption(mr_feed *f, const mr_sample_facts *s, mr_error *err)
{
    mr_captions found;
    mr_error why;
    mr_buf_clear(&f->caption);
    if (!s->meta) /* masked */
        return MR_OK;
    mr_status status = mr_captions_find(f->text.column, s->meta, s->meta_len, &found, &why);
    size_t n = status == MR_OK ? caption_number(f, s, found.count) : 0;
    if (status == MR_OK && n < found.count)
        status = mr_captions_read(&found, n, &f->caption, &why);
    else if (status == MR_OK) /* its error lists them */
        status = mr_captions_get(f->text.column, s->meta, s->meta_len, n, &f->caption, &why);
    if (status == MR_OK)
        return status;
    return mr_fail(err, status == MR_BAD_SAMPLE ? MR_BAD_DATA : status, "%s sample %llu: %s", f->split,
                   (unsigned long long)s->sample, why.text);
}

mr_status mr_feed_words(const char *column, uint64_t item, const char *meta, size_t len, mr_buf *out, mr_error *err)
{
    mr_captions found;
    MR_TRY(mr_captions_find(column, meta, len, &found, err));
    if (!found.count)
        return MR_OK;
    return mr_captions_read(&found, (size_t)(mr_feed_key(0, 0, item) % found.count), out, err);
}

/* Texts are `most` apart while the longest is not known, then move to be `length` apart. */
static void pad(mr_feed *f, size_t row)
{
    int32_t none = mr_tokenizer_pad(f->text.tokenizer), place = none;
    int32_t *tokens = f->host.tokens + row * f->length, *places = f->host.places + row * f->length;
    uint8_t *seen = f->host.seen + row * f->length;
    memmove(tokens, f->host.tokens + row * f->text.most, f->lengths[row] * sizeof *tokens);
    for (size_t i = 0; i < f->length; i++) {
        seen[i] = i < f->lengths[row];
        if (!seen[i])
            tokens[i] = none;
        places[i] = tokens[i] == none ? none : ++place; /* a text that contains the pad token has no position there */
    }
}

static mr_status read_texts(mr_feed *f, mr_error *err)
{
    const mr_batch *b = f->batch;
    f->length = 1;
    for (size_t i = 0; i < b->count; i++) {
        const mr_sample_facts *s = &b->samples[i];
        MR_TRY(find_caption(f, s, err));
        MR_TRY(mr_tokenizer_encode(f->text.tokenizer, f->scratch, mr_buf_text(&f->caption), f->caption.len,
                                   f->text.most, f->host.tokens + i * f->text.most, &f->lengths[i], err));
        f->length = f->lengths[i] > f->length ? f->lengths[i] : f->length;
        /* Hashes of the images, so that all ranks have the same.  A collision (1 in 2^31) costs one negative. */
        f->host.groups[i] = (int32_t)(s->hash & INT32_MAX);
    }
    for (size_t i = 0; i < b->count; i++)
        pad(f, i);
    return MR_OK;
}

static mr_status describe_texts(mr_feed *f, double *weight, mr_error *err)
{
    const mr_batch *b = f->batch;
    double start = mr_seconds();
    mr_status status = read_texts(f, err);
    f->reading += mr_seconds() - start;
    *weight = 0;
    for (size_t i = 0; i < b->count; i++) {
        f->host.labels[i] = -1;
        f->host.weights[i] = b->samples[i].weight;
        f->host.keys[i] = key_of(f, &b->samples[i]);
        *weight += (double)f->host.weights[i];
    }
    return status;
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

/* Each label of a sample once; of a mixed image `share` is the sample's part of it. */
static void add_targets(const mr_feed *f, uint64_t sample, float share, float *row)
{
    const mr_targets *t = f->learn.targets;
    for (uint64_t k = t->at[sample]; k < t->at[sample + 1]; k++) {
        int32_t class = f->classes ? f->classes[t->classes[k]] : t->classes[k];
        if (class >= 0)
            row[class] += share * (1 - f->learn.smoothing);
    }
}

static void set_targets(mr_feed *f, size_t i)
{
    const mr_sample_facts *s = &f->batch->samples[i];
    float *row = f->host.targets + i * f->learn.classes;
    for (size_t c = 0; c < f->learn.classes; c++)
        row[c] = f->learn.smoothing / 2;
    add_targets(f, s->sample, s->share, row);
    if (s->share < 1)
        add_targets(f, s->other, 1 - s->share, row);
}

static void describe_several(mr_feed *f, double *weight)
{
    const mr_batch *b = f->batch;
    *weight = 0;
    for (size_t i = 0; i < b->count; i++) {
        set_targets(f, i);
        f->host.labels[i] = -1;
        f->host.weights[i] = b->samples[i].weight;
        f->host.keys[i] = key_of(f, &b->samples[i]);
        *weight += (double)f->host.weights[i];
    }
}

/* Of a dataset's label: the model's, and its weight. */
static void set_label(const mr_feed *f, int32_t label, float weight, int32_t *to, float *to_weight)
{
    *to = label >= 0 && f->classes ? f->classes[label] : label;
    *to_weight = *to < 0 ? 0 : weight;
    if (f->learn.weights && *to >= 0)
        *to_weight *= f->learn.weights[*to];
}

static mr_status describe(mr_feed *f, double *weight, mr_error *err)
{
    const mr_batch *b = f->batch;
    *weight = 0;
    if (f->learn.targets) {
        describe_several(f, weight);
        return MR_OK;
    }
    for (size_t i = 0; i < b->count; i++) {
        const mr_sample_facts *s = &b->samples[i];
        if (s->label < 0 && s->weight > 0 && !f->unlabelled)
            return mr_fail(err, MR_BAD_DATA, "%s sample %llu: has no label, and training a classifier requires labels",
                           f->split, (unsigned long long)s->sample);
        if (s->label >= 0 && (size_t)s->label >= f->class_count)
            return mr_fail(err, MR_BAD_DATA, "%s sample %llu: has class %d of %zu; run 'millrace verify'", f->split,
                           (unsigned long long)s->sample, (int)s->label, f->class_count);
        set_label(f, s->label, s->weight * s->share, &f->host.labels[i], &f->host.weights[i]);
        f->host.keys[i] = key_of(f, s);
        *weight += (double)f->host.weights[i];
        if (!f->host.other_labels)
            continue;
        set_label(f, s->other_label, s->weight * (1 - s->share), &f->host.other_labels[i], &f->host.other_weights[i]);
        *weight += (double)f->host.other_weights[i];
    }
    return MR_OK;
}

static void send(mr_feed *f)
{
    const mr_batch *b = f->batch;
    void (*upload)(mr_device *, void *, const void *, size_t) = f->device->card->upload;
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

/* The loader's next batch; the error of a damaged sample also says how to skip it. */
static mr_status take(mr_feed *f, mr_error *err)
{
    double start = mr_seconds();
    mr_error why;
    mr_status status = mr_loader_next(f->loader, &f->batch, &why);
    f->waited += mr_seconds() - start;
    if (status == MR_OK && f->decoder)
        status = mr_images_make(f->decoder, f->loader, f->batch, mr_batch_decode, f->on_device.images, &why);
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
    MR_TRY(f->text.tokenizer ? describe_texts(f, weight, err) : describe(f, weight, err));
    if (!f->device->card->host_memory && f->batch->count)
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

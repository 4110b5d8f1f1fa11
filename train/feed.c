/* feed.c - from the loader's batch to what a model takes. */
#include "feed.h"

#include <stdlib.h>
#include <string.h>

#include "dataset.h"
#include "mix.h"
#include "term.h"

static mr_status reserve(mr_feed *f, size_t image_bytes, mr_error *err)
{
    const mr_device_card *c = f->device->card;
    f->host.labels = mr_alloc(f->room, sizeof *f->host.labels);
    f->host.weights = mr_alloc(f->room, sizeof *f->host.weights);
    f->host.keys = mr_alloc(f->room, sizeof *f->host.keys);
    if (!f->host.labels || !f->host.weights || !f->host.keys)
        return mr_fail_memory(err, "preparing batches");
    if (c->host_memory) {
        f->there = f->host;
        return MR_OK;
    }
    mr_status status = c->alloc(f->device, f->room * image_bytes, (void **)&f->there.images, err);
    if (status == MR_OK)
        status = c->alloc(f->device, f->room * sizeof *f->there.labels, (void **)&f->there.labels, err);
    if (status == MR_OK)
        status = c->alloc(f->device, f->room * sizeof *f->there.weights, (void **)&f->there.weights, err);
    if (status == MR_OK)
        status = c->alloc(f->device, f->room * sizeof *f->there.keys, (void **)&f->there.keys, err);
    return status;
}

mr_status mr_feed_open(const mr_dataset *ds, const mr_loader_options *options, size_t room, mr_device *device,
                       mr_feed *out, mr_error *err)
{
    mr_loader_options o = *options;
    o.deliver = MR_DELIVER_F32_NCHW;
    mr_feed f = {.device = device, .split = options->split, .room = room, .seed = options->seed,
                 .class_count = mr_dataset_manifest(ds)->class_count};
    mr_status status = reserve(&f, (size_t)3 * o.transform.size * o.transform.size * sizeof(float), err);
    if (status == MR_OK)
        status = mr_loader_open(ds, &o, &f.loader, err);
    if (status != MR_OK)
        mr_feed_close(&f);
    else
        *out = f;
    return status;
}

void mr_feed_close(mr_feed *f)
{
    if (f->loader)
        mr_batch_release(f->loader, f->batch);
    mr_loader_free(f->loader);
    if (f->device && !f->device->card->host_memory) {
        void (*release)(mr_device *, void *) = f->device->card->free;
        release(f->device, f->there.images);
        release(f->device, f->there.labels);
        release(f->device, f->there.weights);
        release(f->device, f->there.keys);
    }
    free(f->host.labels);
    free(f->host.weights);
    free(f->host.keys);
    memset(f, 0, sizeof *f);
}

static mr_status describe(mr_feed *f, double *weight, mr_error *err)
{
    const mr_batch *b = f->batch;
    *weight = 0;
    for (size_t i = 0; i < b->count; i++) {
        const mr_sample_facts *s = &b->samples[i];
        if (s->label < 0 && s->weight > 0 && !f->unlabelled)
            return mr_fail(err, MR_BAD_DATA, "%s sample %llu: has no label, and a classifier learns from labels alone",
                           f->split, (unsigned long long)s->sample);
        if (s->label >= 0 && (size_t)s->label >= f->class_count)
            return mr_fail(err, MR_BAD_DATA, "%s sample %llu: has class %d of %zu; run 'millrace verify'", f->split,
                           (unsigned long long)s->sample, (int)s->label, f->class_count);
        f->host.labels[i] = s->label >= 0 && f->classes ? f->classes[s->label] : s->label;
        f->host.weights[i] = f->host.labels[i] < 0 ? 0 : s->weight;
        f->host.keys[i] = mr_mix(mr_mix(mr_mix(f->seed) ^ b->epoch) ^ s->sample);
        *weight += (double)f->host.weights[i];
    }
    return MR_OK;
}

static void send(mr_feed *f)
{
    const mr_batch *b = f->batch;
    void (*upload)(mr_device *, void *, const void *, size_t) = f->device->card->upload;
    upload(f->device, f->there.images, b->data, b->data_bytes);
    upload(f->device, f->there.labels, f->host.labels, b->count * sizeof *f->host.labels);
    upload(f->device, f->there.weights, f->host.weights, b->count * sizeof *f->host.weights);
    upload(f->device, f->there.keys, f->host.keys, b->count * sizeof *f->host.keys);
}

mr_status mr_feed_next(mr_feed *f, mr_model_input *in, double *weight, mr_error *err)
{
    mr_batch_release(f->loader, f->batch);
    f->batch = NULL;
    double start = mr_seconds();
    mr_status status = mr_loader_next(f->loader, &f->batch, err);
    f->waited += mr_seconds() - start;
    if (status == MR_OK)
        status = describe(f, weight, err);
    if (status != MR_OK)
        return status;
    if (!f->device->card->host_memory && f->batch->count)
        send(f);
    *in = (mr_model_input){
        .count = f->batch->count,
        .images = f->device->card->host_memory ? f->batch->data : f->there.images,
        .labels = f->there.labels, .weights = f->there.weights, .keys = f->there.keys,
    };
    return MR_OK;
}

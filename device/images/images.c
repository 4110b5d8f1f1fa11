/* images.c - coded batches become images on a device; see images.h. */
#include "device/images/images.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

typedef struct room { /* of the device */
    void *at;
    uint64_t bytes;
} room;

struct mr_images {
    mr_device *device;
    room records, sections, coef, samples, rgb, lines, failed;
    mr_buf flags, tensor; /* on the host */
    mr_images_counts counts;
};

typedef struct making {
    mr_images *m;
    mr_loader *loader;
    const mr_batch *batch;
    mr_decode_on_host *decode_on_host;
    const uint8_t *slab;
    const mr_coded *h;
    const mr_coded_slot *slots;
    float *out;
    size_t tensor; /* bytes */
} making;

mr_status mr_images_new(mr_device *device, mr_images **out, mr_error *err)
{
    mr_images *m = mr_alloc(1, sizeof *m);
    if (!m)
        return mr_fail_memory(err, "decoding on a device");
    m->device = device;
    *out = m;
    return MR_OK;
}

void mr_images_free(mr_images *m)
{
    if (!m)
        return;
    const room *all[] = {&m->records, &m->sections, &m->coef, &m->samples, &m->rgb, &m->lines, &m->failed};
    for (size_t i = 0; i < MR_COUNT(all); i++)
        m->device->card->free(m->device, all[i]->at);
    mr_buf_free(&m->flags);
    mr_buf_free(&m->tensor);
    free(m);
}

mr_images_counts mr_images_count(const mr_images *m)
{
    return m->counts;
}

/* Batches differ a little: an eighth of slack avoids growing for each larger one. */
static mr_status reserve(mr_images *m, room *r, uint64_t bytes, mr_error *err)
{
    if (bytes <= r->bytes)
        return MR_OK;
    uint64_t more = bytes + bytes / 8;
    m->device->card->free(m->device, r->at);
    *r = (room){NULL, 0};
    MR_TRY(m->device->card->alloc(m->device, more, "decoding", &r->at, err));
    r->bytes = more;
    return MR_OK;
}

static const void *section(const making *k, uint64_t at)
{
    return (const uint8_t *)k->m->sections.at + (at - k->h->sections_at);
}

static mr_status send(making *k, mr_error *err)
{
    mr_images *m = k->m;
    const mr_coded *h = k->h;
    const mr_device_card *c = m->device->card;
    MR_TRY(reserve(m, &m->records, h->records_bytes, err));
    MR_TRY(reserve(m, &m->sections, h->sections_bytes, err));
    MR_TRY(reserve(m, &m->failed, h->images * sizeof(uint32_t), err));
    c->upload(m->device, m->records.at, k->slab + h->records_at, h->records_bytes);
    c->upload(m->device, m->sections.at, k->slab + h->sections_at, h->sections_bytes);
    c->zero(m->device, m->failed.at, h->images * sizeof(uint32_t));
    return MR_OK;
}

static mr_status run_piece(making *k, const mr_coded_piece *piece, mr_error *err)
{
    mr_images *m = k->m;
    const mr_coded *h = k->h;
    MR_TRY(reserve(m, &m->coef, piece->coef, err));
    MR_TRY(reserve(m, &m->samples, piece->samples, err));
    MR_TRY(reserve(m, &m->rgb, piece->rgb, err));
    MR_TRY(reserve(m, &m->lines, piece->lines, err));
    const mr_decode x = {
        .piece = *piece,
        .size = h->size,
        .records = m->records.at,
        .images = section(k, h->images_at),
        .parts = section(k, h->parts_at),
        .codes = section(k, h->codes_at),
        .quants = section(k, h->quants_at),
        .weights = section(k, h->weights_at),
        .starts = section(k, h->starts_at),
        .norm = section(k, h->norm_at),
        .coef = m->coef.at,
        .samples = m->samples.at,
        .rgb = m->rgb.at,
        .lines = m->lines.at,
        .out = k->out,
        .failed = m->failed.at,
    };
    m->device->card->zero(m->device, m->coef.at, piece->coef);
    mr_run_decode(m->device, &x);
    return MR_OK;
}

static float *image(const making *k, uint64_t slot)
{
    return k->out + slot * (k->tensor / sizeof *k->out);
}

static void send_tensors(making *k)
{
    mr_device *d = k->m->device;
    for (uint64_t i = 0; i < k->batch->count; i++) {
        if (k->slots[i].kind == MR_CODED_TENSOR)
            d->card->upload(d, image(k, i), k->slab + k->slots[i].at, k->tensor);
        else if (k->slots[i].kind == MR_CODED_ZEROS)
            d->card->zero(d, image(k, i), k->tensor);
    }
}

/* Images that the device has flagged. */
static mr_status make_flagged(making *k, mr_error *err)
{
    mr_images *m = k->m;
    mr_device *d = m->device;
    size_t bytes = k->h->images * sizeof(uint32_t);
    mr_buf_clear(&m->flags);
    mr_buf_clear(&m->tensor);
    if (!mr_buf_reserve(&m->flags, bytes) || !mr_buf_reserve(&m->tensor, k->tensor))
        return mr_fail_memory(err, "decoding on a device");
    d->card->download(d, m->flags.data, m->failed.at, bytes);
    MR_TRY(d->card->wait(d, err));
    const uint32_t *flags = (const uint32_t *)(const void *)m->flags.data;
    for (uint64_t i = 0; i < k->batch->count; i++) {
        if (k->slots[i].kind != MR_CODED_IMAGE || !flags[k->slots[i].image])
            continue;
        MR_TRY(k->decode_on_host(k->loader, k->batch, i, (float *)(void *)m->tensor.data, err));
        d->card->upload(d, image(k, i), m->tensor.data, k->tensor);
        m->counts.flagged++;
    }
    return MR_OK;
}

mr_status mr_images_make(mr_images *m, mr_loader *l, const mr_batch *batch, mr_decode_on_host *decode_on_host,
                         float *out, mr_error *err)
{
    making k = {.m = m,
                .loader = l,
                .batch = batch,
                .decode_on_host = decode_on_host,
                .slab = batch->data,
                .h = batch->data,
                .out = out};
    if (!batch->count)
        return MR_OK;
    const mr_coded_piece *pieces = (const mr_coded_piece *)(const void *)(k.slab + k.h->pieces_at);
    uint64_t flagged = m->counts.flagged;
    k.slots = (const mr_coded_slot *)(const void *)(k.slab + k.h->slots_at);
    k.tensor = (size_t)3 * k.h->size * k.h->size * sizeof *out;
    if (k.h->images)
        MR_TRY(send(&k, err));
    for (uint32_t i = 0; i < k.h->pieces; i++)
        MR_TRY(run_piece(&k, &pieces[i], err));
    send_tensors(&k);
    if (k.h->images)
        MR_TRY(make_flagged(&k, err));
    flagged = m->counts.flagged - flagged;
    m->counts.device += k.h->images - flagged;
    m->counts.host += k.h->tensors + flagged;
    return MR_OK;
}

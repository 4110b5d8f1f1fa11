/* images.c - coded batches become images on a device; see images.h. */
#include "device/images/images.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

typedef struct allocation { /* memory of the device */
    void *at;
    uint64_t bytes;
} allocation;

struct mr_images {
    mr_device *device;
    allocation records, sections, coef, samples, rgb, lines, failed;
    mr_buf flags, tensor; /* on the host */
    mr_images_counts counts;
    /* What was begun: */
    const mr_batch *batch;
    const uint8_t *slab;
    const mr_coded *h;
    const mr_coded_slot *slots;
    float *out;
    size_t bytes; /* bytes of an image in `out` */
};

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
    const allocation *all[] = {&m->records, &m->sections, &m->coef, &m->samples, &m->rgb, &m->lines, &m->failed};
    for (size_t i = 0; i < MR_COUNT(all); i++)
        m->device->iface->free(m->device, all[i]->at);
    mr_buf_free(&m->flags);
    mr_buf_free(&m->tensor);
    free(m);
}

mr_images_counts mr_images_count(const mr_images *m)
{
    return m->counts;
}

/* Batches differ a little: an eighth of slack avoids growing for each larger one. */
static mr_status reserve(mr_images *m, allocation *r, uint64_t bytes, mr_error *err)
{
    if (bytes <= r->bytes)
        return MR_OK;
    uint64_t more = bytes + bytes / 8;
    m->device->iface->free(m->device, r->at);
    *r = (allocation){NULL, 0};
    MR_TRY(m->device->iface->alloc(m->device, more, "decoding", &r->at, err));
    r->bytes = more;
    return MR_OK;
}

static const void *section(const mr_images *m, uint64_t at)
{
    return (const uint8_t *)m->sections.at + (at - m->h->sections_at);
}

static mr_status send(mr_images *m, mr_error *err)
{
    const mr_coded *h = m->h;
    const mr_device_iface *c = m->device->iface;
    MR_TRY(reserve(m, &m->records, h->records_bytes, err));
    MR_TRY(reserve(m, &m->sections, h->sections_bytes, err));
    MR_TRY(reserve(m, &m->failed, h->images * sizeof(uint32_t), err));
    c->upload(m->device, m->records.at, m->slab + h->records_at, h->records_bytes);
    c->upload(m->device, m->sections.at, m->slab + h->sections_at, h->sections_bytes);
    c->zero(m->device, m->failed.at, h->images * sizeof(uint32_t));
    return MR_OK;
}

static mr_status run_piece(mr_images *m, const mr_coded_piece *piece, mr_error *err)
{
    const mr_coded *h = m->h;
    MR_TRY(reserve(m, &m->coef, piece->coef, err));
    MR_TRY(reserve(m, &m->samples, piece->samples, err));
    MR_TRY(reserve(m, &m->rgb, piece->rgb, err));
    MR_TRY(reserve(m, &m->lines, piece->lines, err));
    const mr_decode x = {
        .piece = *piece,
        .size = h->size,
        .records = m->records.at,
        .images = section(m, h->images_at),
        .parts = section(m, h->parts_at),
        .codes = section(m, h->codes_at),
        .quants = section(m, h->quants_at),
        .weights = section(m, h->weights_at),
        .starts = section(m, h->starts_at),
        .norm = section(m, h->norm_at),
        .coef = m->coef.at,
        .samples = m->samples.at,
        .rgb = m->rgb.at,
        .lines = m->lines.at,
        .out = m->out,
        .failed = m->failed.at,
    };
    m->device->iface->zero(m->device, m->coef.at, piece->coef);
    mr_run_decode(m->device, &x);
    return MR_OK;
}

static float *image(const mr_images *m, uint64_t slot)
{
    return m->out + slot * (m->bytes / sizeof *m->out);
}

static void send_tensors(mr_images *m)
{
    mr_device *d = m->device;
    for (uint64_t i = 0; i < m->batch->count; i++) {
        if (m->slots[i].kind == MR_CODED_TENSOR)
            d->iface->upload(d, image(m, i), m->slab + m->slots[i].at, m->bytes);
        else if (m->slots[i].kind == MR_CODED_ZEROS)
            d->iface->zero(d, image(m, i), m->bytes);
    }
}

static mr_status decode(mr_images *m, mr_error *err)
{
    const mr_coded_piece *pieces = (const mr_coded_piece *)(const void *)(m->slab + m->h->pieces_at);
    if (m->h->images)
        MR_TRY(send(m, err));
    for (uint32_t i = 0; i < m->h->pieces; i++)
        MR_TRY(run_piece(m, &pieces[i], err));
    send_tensors(m);
    return MR_OK;
}

/* Images that the device has flagged. */
static mr_status make_flagged(mr_images *m, mr_loader *l, mr_decode_on_host *decode_on_host, uint64_t *flagged,
                              mr_error *err)
{
    mr_device *d = m->device;
    size_t bytes = m->h->images * sizeof(uint32_t);
    mr_buf_clear(&m->flags);
    mr_buf_clear(&m->tensor);
    if (!mr_buf_reserve(&m->flags, bytes) || !mr_buf_reserve(&m->tensor, m->bytes))
        return mr_fail_memory(err, "decoding on a device");
    d->iface->download(d, m->flags.data, m->failed.at, bytes);
    MR_TRY(d->iface->wait(d, err));
    const uint32_t *flags = (const uint32_t *)(const void *)m->flags.data;
    for (uint64_t i = 0; i < m->batch->count; i++) {
        if (m->slots[i].kind != MR_CODED_IMAGE || !flags[m->slots[i].image])
            continue;
        MR_TRY(decode_on_host(l, m->batch, i, (float *)(void *)m->tensor.data, err));
        d->iface->upload(d, image(m, i), m->tensor.data, m->bytes);
        ++*flagged;
    }
    return MR_OK;
}

mr_status mr_images_begin(mr_images *m, const mr_batch *batch, float *out, mr_error *err)
{
    const mr_second_queue *second = m->device->iface->second;
    m->batch = batch;
    if (!batch->count)
        return MR_OK;
    m->slab = batch->data;
    m->h = batch->data;
    m->slots = (const mr_coded_slot *)(const void *)(m->slab + m->h->slots_at);
    m->out = out;
    m->bytes = (size_t)3 * m->h->size * m->h->size * sizeof *out;
    if (second)
        second->enter(m->device);
    mr_status status = decode(m, err);
    if (second)
        second->leave(m->device);
    return status;
}

mr_status mr_images_end(mr_images *m, mr_loader *l, mr_decode_on_host *decode_on_host, mr_error *err)
{
    const mr_second_queue *second = m->device->iface->second;
    uint64_t flagged = 0;
    mr_status status = MR_OK;
    if (!m->batch->count)
        return MR_OK;
    if (second)
        second->enter(m->device);
    if (m->h->images)
        status = make_flagged(m, l, decode_on_host, &flagged, err);
    if (second) {
        second->leave(m->device);
        second->meet(m->device);
    }
    m->counts.flagged += flagged;
    m->counts.device += m->h->images - flagged;
    m->counts.host += m->h->tensors + flagged;
    return status;
}

mr_status mr_images_make(mr_images *m, mr_loader *l, const mr_batch *batch, mr_decode_on_host *decode_on_host,
                         float *out, mr_error *err)
{
    if (m->device->iface->second)
        m->device->iface->second->meet(m->device);
    MR_TRY(mr_images_begin(m, batch, out, err));
    return mr_images_end(m, l, decode_on_host, err);
}

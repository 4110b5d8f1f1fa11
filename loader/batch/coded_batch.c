/* coded_batch.c - slots of coded delivery; see coded_batch.h. */
#include "loader/batch/coded_batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/cli/term.h"

mr_status mr_coded_loading_init(mr_coded_loading *c, const mr_work *w, uint64_t max, mr_error *err)
{
    *c = (mr_coded_loading){.capacity = max};
    if (!mr_work_is_coded(w))
        return MR_OK;
    if (max > UINT32_MAX)
        return mr_fail(err, MR_MISUSE, "coded batches of %llu samples per rank; the maximum is %u",
                       (unsigned long long)max, UINT32_MAX);
    c->slots = mr_alloc(max ? max : 1, sizeof *c->slots);
    c->descriptions = mr_alloc(max ? max : 1, sizeof *c->descriptions);
    c->late = mr_alloc(max ? max : 1, sizeof *c->late);
    return c->slots && c->descriptions && c->late ? MR_OK : mr_fail_memory(err, "opening a loader");
}

static void drop_late(mr_coded_loading *c)
{
    for (uint64_t i = 0; c->late && i < c->capacity; i++) {
        free(c->late[i]);
        c->late[i] = NULL;
    }
}

void mr_coded_loading_free(mr_coded_loading *c)
{
    drop_late(c);
    for (uint64_t i = 0; c->descriptions && i < c->capacity; i++)
        mr_coded_description_free(&c->descriptions[i]);
    mr_buf_free(&c->tables);
    free(c->slots);
    free(c->descriptions);
    free(c->late);
    *c = (mr_coded_loading){.capacity = 0};
}

/* ---- plan -------------------------------------------------------------------------------------------------------- */

void mr_coded_loading_begin(mr_coded_loading *c, uint64_t count)
{
    drop_late(c);
    c->count = count;
    for (uint64_t i = 0; i < count; i++)
        c->slots[i] = (mr_coded_slot){.kind = MR_CODED_ZEROS};
}

uint64_t mr_coded_loading_plan(mr_coded_loading *c, mr_work *w, uint64_t slot, uint64_t sample, const mr_row *row)
{
    bool image = mr_work_has_entries(w, sample, row);
    c->slots[slot].kind = image ? MR_CODED_IMAGE : MR_CODED_TENSOR;
    return image ? mr_coded_record(row->image_len) : 0;
}

uint64_t mr_coded_loading_place(mr_coded_loading *c, const mr_work *w, uint64_t used)
{
    c->records = used;
    for (uint64_t i = 0; i < c->count; i++)
        if (c->slots[i].kind == MR_CODED_TENSOR) {
            c->slots[i].at = used;
            used += mr_coded_padded(mr_work_pixel_bytes(&w->o));
        }
    return used;
}

void mr_coded_loading_by_host(mr_coded_loading *c, uint64_t slot)
{
    if (c->slots)
        c->slots[slot].kind = MR_CODED_TENSOR;
}

void mr_coded_loading_zeros(mr_coded_loading *c, uint64_t slot)
{
    c->slots[slot] = (mr_coded_slot){.kind = MR_CODED_ZEROS};
}

/* ---- load -------------------------------------------------------------------------------------------------------- */

static mr_status tensor_of(mr_coded_loading *c, const mr_work *w, uint8_t *slab, uint64_t slot, float **out,
                           mr_error *err)
{
    *out = c->elsewhere;
    if (!*out && c->slots[slot].at)
        *out = (float *)(void *)(slab + c->slots[slot].at);
    if (!*out && !c->late[slot])
        c->late[slot] = mr_alloc(1, mr_work_pixel_bytes(&w->o));
    if (!*out)
        *out = c->late[slot];
    return *out ? MR_OK : mr_fail_memory(err, "making a batch");
}

/* For the file in worker->bytes. */
static mr_status make_tensor(mr_coded_loading *c, mr_work *w, mr_worker *worker, uint8_t *slab,
                             const mr_coded_sample *s, mr_error *err)
{
    const uint8_t *rgb;
    float *out;
    c->slots[s->slot].kind = MR_CODED_TENSOR;
    MR_TRY(tensor_of(c, w, slab, s->slot, &out, err));
    MR_TRY(mr_work_decode(w, worker, s->sample, s->row, &s->view, &rgb, err));
    return mr_work_resize(w, worker, &s->view, rgb, out, err);
}

/* Reads the record into its place.  A failure leaves the slot to on_bad. */
static mr_status read_record(mr_work *w, mr_worker *worker, uint8_t *slab, const mr_coded_sample *s, mr_error *err)
{
    uint8_t *at = slab + s->offset;
    size_t len = s->row->image_len;
    memset(at + len, 0, mr_coded_record(len) - len);
    MR_TRY(mr_work_image(w, s->sample, s->row, at, err));
    mr_work_fetch_seek(w, worker, s->sample, s->row);
    return MR_OK;
}

static mr_status describe(mr_coded_loading *c, mr_work *w, mr_worker *worker, uint8_t *slab, const mr_coded_sample *s,
                          mr_error *err)
{
    bool taken;
    const mr_work_file file = {slab + s->offset, s->offset - MR_CODED_RECORDS};
    MR_TRY(mr_work_describe(w, worker, s->row, &s->view, &file, &c->descriptions[s->slot], &taken, err));
    if (taken)
        return MR_OK;
    MR_TRY(mr_slab_reserve(&worker->bytes, s->row->image_len, 0, NULL, err));
    memcpy(worker->bytes.data, file.bytes, s->row->image_len);
    return make_tensor(c, w, worker, slab, s, err);
}

mr_status mr_coded_loading_load(mr_coded_loading *c, mr_work *w, mr_worker *worker, uint8_t *slab,
                                const mr_coded_sample *s, mr_error *err)
{
    bool image = c->slots[s->slot].kind == MR_CODED_IMAGE;
    double start = mr_seconds();
    mr_status status = image ? read_record(w, worker, slab, s, err) : mr_work_fetch(w, worker, s->sample, s->row, err);
    double read = mr_seconds();
    if (status == MR_OK)
        status = (image ? describe : make_tensor)(c, w, worker, slab, s, err);
    mr_work_spend(w, read - start, mr_seconds() - read);
    return status;
}

/* ---- finish ------------------------------------------------------------------------------------------------------ */

static mr_status move_late(mr_coded_loading *c, const mr_work *w, mr_slab *slab, size_t *used, mr_error *err)
{
    size_t bytes = mr_work_pixel_bytes(&w->o);
    for (uint64_t i = 0; i < c->count; i++) {
        if (!c->late[i])
            continue;
        uint64_t at = mr_coded_padded(*used);
        MR_TRY(mr_slab_reserve(slab, at + bytes, *used, w->o.allocator, err));
        memcpy(slab->data + at, c->late[i], bytes);
        c->slots[i].at = at;
        *used = at + bytes;
    }
    drop_late(c);
    return MR_OK;
}

mr_status mr_coded_loading_finish(mr_coded_loading *c, mr_work *w, mr_slab *slab, size_t *bytes, mr_error *err)
{
    uint64_t all;
    size_t planned = *bytes;
    MR_TRY(move_late(c, w, slab, bytes, err));
    const mr_coded_batch batch = {.slab = slab,
                                  .allocator = w->o.allocator,
                                  .records = c->records,
                                  .used = *bytes,
                                  .slots = c->slots,
                                  .descriptions = c->descriptions,
                                  .count = (uint32_t)c->count,
                                  .size = w->o.transform.size,
                                  .mean = w->o.transform.mean,
                                  .std = w->o.transform.std,
                                  .norm = &c->norm};
    double start = mr_seconds();
    MR_TRY(mr_coded_pack(&batch, &c->tables, &all, err));
    mr_work_spend(w, 0, mr_seconds() - start);
    if (all - planned > atomic_load_explicit(&w->sections, memory_order_relaxed))
        atomic_store_explicit(&w->sections, all - planned, memory_order_relaxed);
    *bytes = all;
    return MR_OK;
}

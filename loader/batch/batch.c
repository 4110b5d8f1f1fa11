/* batch.c - one batch, from its plan to the bytes or pixels of its slots; see batch.h. */
#include "loader/batch/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/cli/term.h"

typedef unsigned long long ull;

mr_status mr_loading_init(mr_loading *b, const mr_work *w, mr_error *err)
{
    /* No batch is larger than the first. */
    uint64_t max = mr_schedule_count(&w->schedule, 0, w->o.rank);
    size_t pixels = mr_work_pixel_bytes(&w->o), bytes;
    *b = (mr_loading){.state = 0};
    if (__builtin_mul_overflow((size_t)max, pixels, &bytes) || bytes > SIZE_MAX / 4)
        return mr_fail(err, MR_MISUSE, "batches of %llu samples of %zu bytes are more than memory can address",
                       (ull)max, pixels);
    b->facts = mr_alloc(max ? max : 1, sizeof *b->facts);
    b->parts = mr_alloc(max ? max : 1, sizeof *b->parts);
    if (w->o.with_objects)
        b->moved = mr_alloc(max ? max : 1, sizeof *b->moved);
    if (!b->facts || !b->parts || (w->o.with_objects && !b->moved))
        return mr_fail_memory(err, "opening a loader; a smaller global batch needs less");
    return mr_coded_loading_init(&b->coded, w, max, err);
}

void mr_loading_free(mr_loading *b, const mr_work *w)
{
    /* No batch is larger than the first. */
    for (uint64_t i = 0; b->moved && i < mr_schedule_count(&w->schedule, 0, w->o.rank); i++)
        mr_moved_free(&b->moved[i]);
    free(b->moved);
    mr_slab_free(&b->joined, NULL);
    mr_slab_free(&b->masks, NULL);
    mr_slab_free(&b->data, w->o.allocator);
    mr_slab_free(&b->meta, NULL);
    free(b->facts);
    free(b->parts);
    free(b->bad);
    mr_coded_loading_free(&b->coded);
    *b = (mr_loading){.state = 0};
}

/* ---- bad slots ------------------------------------------------------------------------------------------------ */

mr_status mr_loading_note(mr_loading *b, const mr_work *w, uint64_t slot, const mr_error *why, mr_error *err)
{
    size_t at = b->bad_count;
    const mr_sample_facts *f = &b->facts[slot];
    mr_bad_slot bad = {.slot = slot, .sample = f->sample, .padding = !(f->weight > 0), .error = *why};
    b->parts[slot].bad = true;
    /* If a bad sample fails the batch, only the first in order is reported. */
    if (w->o.on_bad == MR_ON_BAD_FAIL && at == 1) {
        if (slot < b->bad[0].slot)
            b->bad[0] = bad;
        return MR_OK;
    }
    if (!MR_GROW(b->bad, b->bad_count, b->bad_capacity))
        return mr_fail_memory(err, "noting a bad sample");
    for (; at > 0 && b->bad[at - 1].slot > slot; at--)
        b->bad[at] = b->bad[at - 1];
    b->bad[at] = bad;
    b->bad_count++;
    return MR_OK;
}

/* ---- plan ----------------------------------------------------------------------------------------------------- */

static mr_status plan_slot(mr_loading *b, mr_work *w, uint64_t i, size_t *used, mr_error *err)
{
    mr_part *part = &b->parts[i];
    mr_slot slot = mr_schedule_slot(&w->schedule, b->lent.epoch, b->lent.step, w->o.rank, i);
    uint64_t sample = mr_work_sample(w, b->lent.epoch, slot.item);
    *part = (mr_part){.meta_at = b->meta_used};
    b->facts[i] = mr_loading_blank(sample, slot.item, *used);
    b->facts[i].weight = slot.weight;
    mr_error why;
    mr_status status = mr_work_row(w, sample, &part->row, &why);
    if (mr_status_is_bad(status)) {
        part->row = (mr_row){.image_len = 0};
        return mr_loading_note(b, w, i, &why, err);
    }
    if (status != MR_OK) {
        if (err)
            *err = why;
        return status;
    }
    if (mr_work_is_coded(w))
        *used += mr_coded_loading_plan(&b->coded, w, i, sample, &part->row);
    else
        *used += mr_work_pixel_bytes(&w->o) ? 0 : mr_slab_padded(part->row.image_len);
    b->meta_used += w->o.with_meta ? (size_t)part->row.meta_len + 1 : 0;
    return MR_OK;
}

mr_status mr_loading_plan(mr_loading *b, mr_work *w, uint64_t epoch, uint64_t step, mr_error *err)
{
    uint64_t count = mr_schedule_count(&w->schedule, step, w->o.rank);
    size_t used = mr_work_is_coded(w) ? MR_CODED_RECORDS : 0;
    b->lent = (mr_batch){.epoch = epoch, .step = step, .count = count, .samples = b->facts};
    b->bad_count = 0;
    b->meta_used = 0;
    b->taken = b->done = 0;
    b->status = MR_OK;
    if (mr_work_is_coded(w))
        mr_coded_loading_begin(&b->coded, count);
    for (uint64_t i = 0; i < count; i++) {
        if (atomic_load_explicit(&w->stop, memory_order_relaxed))
            return MR_END;
        MR_TRY(plan_slot(b, w, i, &used, err));
    }
    if (mr_work_is_coded(w))
        used = mr_coded_loading_place(&b->coded, w, used);
    else if (w->o.deliver != MR_DELIVER_ENCODED)
        used = count * mr_work_pixel_bytes(&w->o);
    b->lent.data_bytes = used;
    MR_TRY(mr_slab_reserve(&b->masks, count * mr_work_mask_bytes(w), 0, NULL, err));
    return mr_slab_reserve(&b->meta, b->meta_used, 0, NULL, err);
}

mr_status mr_loading_bind(mr_loading *b, const mr_work *w, mr_slab memory, mr_error *err)
{
    size_t sections = atomic_load_explicit(&w->sections, memory_order_relaxed);
    b->data = memory;
    return mr_slab_reserve(&b->data, b->lent.data_bytes + sections, 0, w->o.allocator, err);
}

/* ---- load ----------------------------------------------------------------------------------------------------- */

static void fill_facts(mr_sample_facts *f, const mr_work *w, const mr_row *row, const mr_view *v)
{
    f->label = row->label;
    f->width = row->width;
    f->height = row->height;
    f->codec = row->codec;
    f->orientation = row->orientation;
    f->components = row->components;
    f->bits = row->bits;
    f->flags = row->flags;
    f->length = w->o.deliver == MR_DELIVER_ENCODED ? row->image_len : 0; /* coded delivery: set when loaded */
    f->left = v->left;
    f->top = v->top;
    f->crop_width = v->width;
    f->crop_height = v->height;
    f->flip = v->flip;
    f->hash = row->image_hash;
}

static mr_status decode_pixels(mr_loading *b, mr_work *w, mr_worker *worker, uint64_t slot, const mr_view *v,
                               mr_error *err)
{
    const uint8_t *rgb;
    MR_TRY(mr_work_decode(w, worker, b->facts[slot].sample, &b->parts[slot].row, v, &rgb, err));
    uint8_t *out = b->data.data + slot * mr_work_pixel_bytes(&w->o);
    if (!mr_augment_is_set(&w->o.augment) && !mr_view_is_framed(w->o.transform.kind))
        return mr_work_resize(w, worker, v, rgb, out, err);
    const mr_transform *t = &w->o.transform;
    const mr_changes c = mr_changes_draw(&w->o.augment, mr_work_view_seed(&w->o), b->lent.epoch, b->facts[slot].item,
                                         t->size, w->o.height, t->mean);
    return mr_work_change(w, worker, v, &c, rgb, out, err);
}

static mr_status load_pixels(mr_loading *b, mr_work *w, mr_worker *worker, uint64_t slot, const mr_view *v,
                             mr_error *err)
{
    double start = mr_seconds();
    mr_status status = mr_work_fetch(w, worker, b->facts[slot].sample, &b->parts[slot].row, err);
    double read = mr_seconds();
    if (status == MR_OK)
        status = decode_pixels(b, w, worker, slot, v, err);
    mr_work_spend(w, read - start, mr_seconds() - read);
    return status;
}

static mr_status load_coded(mr_loading *b, mr_work *w, mr_worker *worker, uint64_t slot, const mr_view *v,
                            mr_error *err)
{
    mr_sample_facts *f = &b->facts[slot];
    const mr_coded_sample s = {slot, f->sample, f->offset, &b->parts[slot].row, *v};
    if (b->coded.slots[slot].kind == MR_CODED_IMAGE)
        f->length = s.row->image_len;
    else
        f->offset = 0;
    return mr_coded_loading_load(&b->coded, w, worker, b->data.data, &s, err);
}

mr_status mr_loading_load(mr_loading *b, mr_work *w, mr_worker *worker, uint64_t slot, mr_error *err)
{
    mr_sample_facts *f = &b->facts[slot];
    mr_part *part = &b->parts[slot];
    if (part->bad) /* noted when its row was read */
        return MR_OK;
    mr_view v = mr_work_view(w, b->lent.epoch, f->item, &part->row);
    fill_facts(f, w, &part->row, &v);
    const uint8_t *meta = NULL;
    if (w->o.with_meta) {
        b->meta.data[part->meta_at + part->row.meta_len] = '\0';
        MR_TRY(mr_work_meta(w, f->sample, &part->row, b->meta.data + part->meta_at, err));
        meta = b->meta.data + part->meta_at;
    } else if (b->moved) {
        MR_TRY(mr_work_own_meta(w, worker, f->sample, &part->row, &meta, err));
    }
    if (b->moved)
        MR_TRY(mr_work_objects(w, worker, f->sample, &part->row, &v, meta, &b->moved[slot], err));
    if (w->o.with_masks)
        MR_TRY(mr_work_mask(w, worker, f->sample, &part->row, &v, meta, &b->moved[slot],
                            b->masks.data + slot * mr_work_mask_bytes(w), err));
    if (mr_work_is_coded(w))
        return load_coded(b, w, worker, slot, &v, err);
    if (w->o.deliver != MR_DELIVER_ENCODED)
        return load_pixels(b, w, worker, slot, &v, err);
    uint8_t *at = b->data.data + f->offset;
    size_t len = part->row.image_len;
    memset(at + len, 0, mr_slab_padded(len) - len);
    return mr_work_image(w, f->sample, &part->row, at, err);
}

/* batch_finish.c - a batch whose slots were loaded: bad ones masked or replaced, neighbours mixed, objects joined; see
 * batch.h. */
#include <string.h>

#include "base/scope.h"
#include "loader/augment/blend.h"
#include "loader/batch/batch.h"

typedef unsigned long long ull;

static void mask(mr_loading *b, const mr_work *w, uint64_t slot)
{
    mr_sample_facts *f = &b->facts[slot];
    size_t pixels = mr_work_pixel_bytes(&w->o), len = pixels ? pixels : mr_slab_padded(b->parts[slot].row.image_len);
    if (b->moved)
        mr_moved_clear(&b->moved[slot]);
    if (b->masks.data)
        memset(b->masks.data + slot * mr_work_mask_bytes(w), 0, mr_work_mask_bytes(w));
    if (mr_work_is_coded(w))
        mr_coded_loading_zeros(&b->coded, slot);
    else if (len)
        memset(b->data.data + (pixels ? slot * pixels : f->offset), 0, len);
    *f = mr_loading_blank(f->sample, f->item, f->offset);
}

/* The slot's position in the epoch; padding counts on past the end. */
static uint64_t position_of(const mr_loading *b, const mr_work *w, uint64_t slot)
{
    uint64_t position = mr_schedule_position(&w->schedule, b->lent.step);
    for (unsigned rank = 0; rank < w->o.rank; rank++)
        position += mr_schedule_count(&w->schedule, b->lent.step, rank);
    return position + slot;
}

/* Loads another item into a slot: at the end of the slab, as it may be longer than the one it replaces. */
static mr_status load_other(mr_loading *b, mr_work *w, mr_worker *worker, uint64_t slot, uint64_t item, mr_error *err)
{
    mr_part part = {.meta_at = b->meta_used};
    uint64_t sample = mr_work_sample(w, b->lent.epoch, item);
    size_t used = b->lent.data_bytes, more = 0;
    MR_TRY(mr_work_row(w, sample, &part.row, err));
    if (w->o.deliver == MR_DELIVER_ENCODED) {
        more = mr_slab_padded(part.row.image_len);
        MR_TRY(mr_slab_reserve(&b->data, used + more, used, w->o.allocator, err));
    }
    if (w->o.with_meta)
        MR_TRY(mr_slab_reserve(&b->meta, b->meta_used + part.row.meta_len + 1, b->meta_used, NULL, err));
    b->parts[slot] = part;
    b->facts[slot].sample = sample;
    b->facts[slot].item = item;
    b->facts[slot].other = sample;
    b->facts[slot].offset = w->o.deliver == MR_DELIVER_ENCODED ? used : 0;
    mr_coded_loading_by_host(&b->coded, slot);
    MR_TRY(mr_loading_load(b, w, worker, slot, err));
    b->lent.data_bytes += more;
    b->meta_used += w->o.with_meta ? (size_t)part.row.meta_len + 1 : 0;
    return MR_OK;
}

static mr_status replace(mr_loading *b, mr_work *w, mr_worker *worker, uint64_t slot, mr_error *err)
{
    uint64_t items = w->schedule.order.samples, position = position_of(b, w, slot) % items;
    for (uint64_t i = 1; i < items; i++) {
        uint64_t next = mr_order_at(&w->schedule.order, b->lent.epoch, (position + i) % items);
        mr_status status = load_other(b, w, worker, slot, next, err);
        if (!mr_status_is_bad(status))
            return status;
        if (atomic_load_explicit(&w->stop, memory_order_relaxed))
            return MR_END;
    }
    return mr_fail(err, MR_BAD_DATA, "%s: all %llu samples are damaged; `millrace verify --decode` shows the extent",
                   w->split->name, (ull)items);
}

/* Also updates `replaced`, the count of what is noted. */
static void point_at_metas(mr_loading *b, const mr_work *w)
{
    for (uint64_t i = 0; i < b->lent.count && w->o.with_meta; i++) {
        if (b->parts[i].bad)
            continue;
        b->facts[i].meta = (const char *)b->meta.data + b->parts[i].meta_at;
        b->facts[i].meta_len = b->parts[i].row.meta_len;
    }
    b->lent.replaced = b->bad_count;
}

static mr_status join_objects(mr_loading *b, mr_error *err)
{
    if (!b->moved)
        return MR_OK;
    MR_TRY(mr_objects_join(b->moved, b->lent.count, &b->joined, err));
    mr_batch_objects *objects = (mr_batch_objects *)(void *)b->joined.data;
    objects->masks = b->masks.data;
    b->lent.objects = objects;
    return MR_OK;
}

/* Mixes pairs of neighbours. A rank's first position is even, which options.c ensures. */
static void blend(mr_loading *b, const mr_work *w)
{
    const mr_loader_options *o = &w->o;
    size_t pixels = mr_work_pixel_bytes(o);
    uint64_t first = position_of(b, w, 0);
    for (uint64_t i = 0; i + 1 < b->lent.count && (o->mixup > 0 || o->cutmix > 0); i += 2) {
        mr_sample_facts *one = &b->facts[i], *other = &b->facts[i + 1];
        if (!(one->weight > 0 && other->weight > 0))
            continue;
        const mr_blend drawn =
            mr_blend_draw(o->mixup, o->cutmix, o->seed, b->lent.epoch, (first + i) / 2, o->transform.size, o->height);
        mr_blend_apply(&drawn, o->deliver, b->data.data + i * pixels, b->data.data + (i + 1) * pixels,
                       o->transform.size, o->height);
        one->share = other->share = drawn.share;
        one->other_label = other->label;
        other->other_label = one->label;
        one->other = other->sample;
        other->other = one->sample;
    }
}

mr_status mr_loading_finish(mr_loading *b, mr_work *w, mr_worker *worker, mr_error *err)
{
    if (b->bad_count && w->o.on_bad == MR_ON_BAD_FAIL) {
        if (err)
            *err = b->bad[0].error;
        return b->bad[0].error.status;
    }
    for (size_t i = 0; i < b->bad_count; i++) {
        if (w->o.on_bad == MR_ON_BAD_MASK)
            mask(b, w, b->bad[i].slot);
        else
            MR_TRY(replace(b, w, worker, b->bad[i].slot, err));
    }
    blend(b, w);
    point_at_metas(b, w);
    MR_TRY(join_objects(b, err));
    if (mr_work_is_coded(w))
        MR_TRY(mr_coded_loading_finish(&b->coded, w, &b->data, &b->lent.data_bytes, err));
    b->lent.data = b->data.data;
    return MR_OK;
}

static mr_status replace_or_mask(mr_loading *b, mr_work *w, mr_worker *worker, uint64_t slot, mr_error *err)
{
    if (w->o.on_bad == MR_ON_BAD_REPLACE)
        return replace(b, w, worker, slot, err);
    mask(b, w, slot);
    memset(b->coded.elsewhere, 0, mr_work_pixel_bytes(&w->o));
    return MR_OK;
}

mr_status mr_loading_decode(mr_loading *b, mr_work *w, mr_worker *worker, uint64_t slot, float *out, mr_error *err)
{
    mr_error why;
    if (b->parts[slot].bad) { /* masked before */
        memset(out, 0, mr_work_pixel_bytes(&w->o));
        return MR_OK;
    }
    b->coded.elsewhere = out;
    mr_coded_loading_by_host(&b->coded, slot);
    mr_status status = mr_loading_load(b, w, worker, slot, &why);
    if (mr_status_is_bad(status) && w->o.on_bad != MR_ON_BAD_FAIL) {
        status = mr_loading_note(b, w, slot, &why, &why);
        if (status == MR_OK)
            status = replace_or_mask(b, w, worker, slot, &why);
        point_at_metas(b, w);
        if (status == MR_OK)
            status = join_objects(b, &why);
    }
    b->coded.elsewhere = NULL;
    if (status != MR_OK && err)
        *err = why;
    return status;
}

const mr_bad_slot *mr_batch_bad_slots(const mr_batch *batch)
{
    return ((const mr_loading *)batch)->bad;
}

mr_status mr_batch_bad(const mr_batch *batch, uint64_t i, mr_bad_sample *out, mr_error *err)
{
    if (i >= batch->replaced)
        return mr_fail(err, MR_MISUSE, "no bad sample %llu in the batch; it has %llu", (unsigned long long)i,
                       (unsigned long long)batch->replaced);
    const mr_bad_slot *slot = &mr_batch_bad_slots(batch)[i];
    mr_bad_sample full = {out->struct_size, slot->slot, slot->sample, slot->padding, slot->error};
    memcpy(out, &full, out->struct_size < sizeof full ? out->struct_size : sizeof full);
    return MR_OK;
}

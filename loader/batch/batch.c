/* batch.c - one batch, from planning to delivery; see batch.h. */
#include "loader/batch/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/cli/term.h"
#include "loader/augment/blend.h"

typedef unsigned long long ull;

static size_t padded(size_t len)
{
    return (len + MR_SLAB_ALIGN - 1) / MR_SLAB_ALIGN * MR_SLAB_ALIGN;
}

static bool is_coded(const mr_work *w)
{
    return w->o.deliver == MR_DELIVER_CODED;
}

/* Of one sample. */
static size_t mask_bytes(const mr_work *w)
{
    return w->o.with_masks ? (size_t)w->o.transform.size * w->o.height : 0;
}

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
    if (!MR_GROW(b->bad, b->bad_count, b->bad_room))
        return mr_fail_memory(err, "noting a bad sample");
    for (; at > 0 && b->bad[at - 1].slot > slot; at--)
        b->bad[at] = b->bad[at - 1];
    b->bad[at] = bad;
    b->bad_count++;
    return MR_OK;
}

/* Weight 0, no label, not mixed. */
static mr_sample_facts blank_facts(uint64_t sample, uint64_t item, uint64_t offset)
{
    return (mr_sample_facts){
        .sample = sample, .item = item, .label = -1, .offset = offset, .share = 1, .other_label = -1, .other = sample};
}

static void mask(mr_loading *b, const mr_work *w, uint64_t slot)
{
    mr_sample_facts *f = &b->facts[slot];
    size_t pixels = mr_work_pixel_bytes(&w->o), len = pixels ? pixels : padded(b->parts[slot].row.image_len);
    if (b->moved)
        mr_moved_clear(&b->moved[slot]);
    if (b->masks.data)
        memset(b->masks.data + slot * mask_bytes(w), 0, mask_bytes(w));
    if (is_coded(w))
        mr_coded_loading_zeros(&b->coded, slot);
    else if (len)
        memset(b->data.data + (pixels ? slot * pixels : f->offset), 0, len);
    *f = blank_facts(f->sample, f->item, f->offset);
}

/* ---- plan ----------------------------------------------------------------------------------------------------- */

static mr_status plan_slot(mr_loading *b, mr_work *w, uint64_t i, size_t *used, mr_error *err)
{
    mr_part *part = &b->parts[i];
    mr_slot slot = mr_schedule_slot(&w->schedule, b->lent.epoch, b->lent.step, w->o.rank, i);
    uint64_t sample = mr_work_sample(w, b->lent.epoch, slot.item);
    *part = (mr_part){.meta_at = b->meta_used};
    b->facts[i] = blank_facts(sample, slot.item, *used);
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
    if (is_coded(w))
        *used += mr_coded_loading_plan(&b->coded, w, i, sample, &part->row);
    else
        *used += mr_work_pixel_bytes(&w->o) ? 0 : padded(part->row.image_len);
    b->meta_used += w->o.with_meta ? (size_t)part->row.meta_len + 1 : 0;
    return MR_OK;
}

mr_status mr_loading_plan(mr_loading *b, mr_work *w, uint64_t epoch, uint64_t step, mr_error *err)
{
    uint64_t count = mr_schedule_count(&w->schedule, step, w->o.rank);
    size_t used = is_coded(w) ? MR_CODED_RECORDS : 0;
    b->lent = (mr_batch){.epoch = epoch, .step = step, .count = count, .samples = b->facts};
    b->bad_count = 0;
    b->meta_used = 0;
    b->taken = b->done = 0;
    b->status = MR_OK;
    if (is_coded(w))
        mr_coded_loading_begin(&b->coded, count);
    for (uint64_t i = 0; i < count; i++) {
        if (atomic_load_explicit(&w->stop, memory_order_relaxed))
            return MR_END;
        MR_TRY(plan_slot(b, w, i, &used, err));
    }
    if (is_coded(w))
        used = mr_coded_loading_place(&b->coded, w, used);
    else if (w->o.deliver != MR_DELIVER_ENCODED)
        used = count * mr_work_pixel_bytes(&w->o);
    b->lent.data_bytes = used;
    MR_TRY(mr_slab_reserve(&b->masks, count * mask_bytes(w), 0, NULL, err));
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
    }
    if (b->moved)
        MR_TRY(mr_work_objects(w, worker, f->sample, &part->row, &v, meta, &b->moved[slot], err));
    if (w->o.with_masks)
        MR_TRY(mr_work_mask(w, worker, f->sample, &part->row, &v, meta, &b->moved[slot],
                            b->masks.data + slot * mask_bytes(w), err));
    if (is_coded(w))
        return load_coded(b, w, worker, slot, &v, err);
    if (w->o.deliver != MR_DELIVER_ENCODED)
        return load_pixels(b, w, worker, slot, &v, err);
    uint8_t *at = b->data.data + f->offset;
    size_t len = part->row.image_len;
    memset(at + len, 0, padded(len) - len);
    return mr_work_image(w, f->sample, &part->row, at, err);
}

/* ---- finish --------------------------------------------------------------------------------------------------- */

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
        more = padded(part.row.image_len);
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

/* Pairs of neighbours, mixed.  A rank's first position is even, as options.c sees to. */
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
    if (is_coded(w))
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

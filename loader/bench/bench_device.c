/* bench_device.c - a benchmark's batches decoded on a device; see bench_device.h. */
#include "loader/bench/bench_device.h"

#include "base/scope.h"
#include "base/cli/term.h"
#include "device/decode/decode.h"

mr_status mr_bench_device_open(mr_bench_device *d, mr_device *device, mr_error *err)
{
    d->device = device;
    return device ? mr_images_new(device, &d->images, err) : MR_OK;
}

void mr_bench_device_close(mr_bench_device *d)
{
    mr_images_free(d->images);
    if (d->device)
        d->device->iface->free(d->device, d->out);
    *d = (mr_bench_device){.device = NULL};
}

void mr_bench_device_count(mr_bench_device *d, const mr_batch *batch)
{
    const mr_coded *h = batch->data;
    mr_bench_work *w = &d->work;
    uint64_t longest = 0, of_warp = 0;
    if (!d->device || !batch->count)
        return;
    for (uint32_t i = 0; i < h->parts; i++) {
        uint64_t steps = mr_decode_symbols(h, i);
        uint32_t lane = i % MR_BENCH_WARP;
        of_warp = lane == 0 || steps > of_warp ? steps : of_warp;
        longest = steps > longest ? steps : longest;
        w->steps += steps;
        if (lane + 1 == MR_BENCH_WARP || i + 1 == h->parts)
            w->warp_steps += of_warp * (lane + 1);
    }
    w->longest += longest;
    w->step_batches++;
}

static void count(mr_bench_work *w, const mr_batch *batch)
{
    const mr_coded *h = batch->data;
    const uint8_t *slab = batch->data;
    const mr_coded_image *images = (const mr_coded_image *)(const void *)(slab + h->images_at);
    const mr_coded_part *parts = (const mr_coded_part *)(const void *)(slab + h->parts_at);
    const mr_coded_piece *pieces = (const mr_coded_piece *)(const void *)(slab + h->pieces_at);
    uint64_t tensor = (uint64_t)3 * h->size * h->size;
    if (!batch->count)
        return;
    for (uint32_t i = 0; i < h->parts; i++)
        w->coded_bytes += (parts[i].end - parts[i].at + 7) / 8;
    w->parts += h->parts;
    for (uint32_t i = 0; i < h->images; i++) {
        const mr_coded_image *m = &images[i];
        w->blocks += (uint64_t)(m->mcu_right - m->mcu_left) * (m->mcu_bottom - m->mcu_top) * m->blocks;
        w->pixels += (uint64_t)m->crop_width * m->crop_height;
        w->line_values += (uint64_t)h->size * m->seen_height;
    }
    for (uint32_t i = 0; i < h->pieces; i++)
        w->moved += 3 * pieces[i].coef + 2 * (pieces[i].samples + pieces[i].rgb + pieces[i].lines);
    w->values += h->images * tensor;
    w->moved += h->records_bytes + h->images * tensor * sizeof(float);
    w->uploaded += h->records_bytes + h->sections_bytes + h->tensors * tensor * sizeof(float);
    w->images += h->images;
    w->batches++;
}

mr_status mr_bench_device_run(mr_bench_device *d, mr_loader *l, const mr_batch *batch, uint32_t size, mr_error *err)
{
    size_t bytes = batch->count * 3 * size * size * sizeof(float);
    if (!d->device)
        return MR_OK;
    if (bytes > d->capacity) {
        d->device->iface->free(d->device, d->out);
        d->out = NULL;
        d->capacity = 0;
        MR_TRY(d->device->iface->alloc(d->device, bytes, "decoding", &d->out, err));
        d->capacity = bytes;
    }
    count(&d->work, batch);
    double start = mr_seconds();
    MR_TRY(mr_images_make(d->images, l, batch, mr_batch_decode, d->out, err));
    MR_TRY(d->device->iface->wait(d->device, err));
    d->seconds += mr_seconds() - start;
    return MR_OK;
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

void mr_bench_work_add(mr_bench_work *sum, const mr_bench_work *more)
{
    uint64_t *to = (uint64_t *)(void *)sum;
    const uint64_t *from = (const uint64_t *)(const void *)more;
    _Static_assert(sizeof *sum % sizeof *to == 0, "only numbers of 64 bits");
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}

static double each(uint64_t sum, uint64_t count)
{
    return count ? (double)sum / (double)count : 0;
}

void mr_bench_work_text(const mr_bench_work *w, mr_buf *out)
{
    if (!w->images)
        return;
    mr_buf_printf(
        out,
        "  per batch: %.0f parts, one per lane of a device, the longest of %.0f symbols; lanes in step by %d spend "
        "%.2f times their own\n",
        each(w->parts, w->batches), each(w->longest, w->step_batches), MR_BENCH_WARP, each(w->warp_steps, w->steps));
    mr_buf_printf(
        out,
        "  per image: %.0f parts of %.0f coded bytes, %.0f blocks, %.0f pixels, %.0f values of lines, %.0f of "
        "the result; %.0f KB uploaded, %.0f KB read and written\n",
        each(w->parts, w->images), each(w->coded_bytes, w->parts), each(w->blocks, w->images),
        each(w->pixels, w->images), each(w->line_values, w->images), each(w->values, w->images),
        each(w->uploaded, w->images) / 1e3, each(w->moved, w->images) / 1e3);
}

json_t *mr_bench_work_json(const mr_bench_work *w)
{
    return json_pack("{s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "batch_parts", each(w->parts, w->batches),
                     "batch_symbols", each(w->steps, w->step_batches), "batch_longest_symbols",
                     each(w->longest, w->step_batches), "warp_ratio", each(w->warp_steps, w->steps), "coded_bytes",
                     each(w->coded_bytes, w->images), "blocks", each(w->blocks, w->images), "pixels",
                     each(w->pixels, w->images), "line_values", each(w->line_values, w->images), "values",
                     each(w->values, w->images), "uploaded_bytes", each(w->uploaded, w->images), "moved_bytes",
                     each(w->moved, w->images));
}

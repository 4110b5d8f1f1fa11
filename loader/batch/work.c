/* work.c - one sample, from its number to the bytes or pixels that are delivered.
 *
 * Reading ahead: advice to the kernel costs a tenth of a read from the page cache, so it is given only while it helps.
 * A read that would have to wait makes the next COLD records be looked after when they are planned: a look at one byte
 * tells whether the record is in memory; if not, its pages are asked for, and the count starts anew. */
#include "batch/work.h"

#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

#include "base/file.h"
#include "batch/options.h"
#include "format/meta.h"

typedef unsigned long long ull;

enum {
    READ_STEP = 4 << 20,     /* between two looks at `stop` */
    ADVISE_STEP = 128 << 10, /* the kernel reads ahead no more than this (read_ahead_kb) a call */
    COLD = 256,
};

/* ---- opening -------------------------------------------------------------------------------------------------- */

mr_status mr_work_open(mr_work *w, const mr_dataset *ds, const mr_loader_options *options, mr_error *err)
{
    mr_order order;
    *w = (mr_work){.cold = COLD};
    mr_status status = mr_loader_options_fill(options, mr_dataset_manifest(ds), &w->o, err);
    if (status != MR_OK)
        return status;
    const mr_split *split = w->split = mr_manifest_split(mr_dataset_manifest(ds), w->o.split);
    w->o.split = split->name; /* the caller's text may go */
    status = mr_order_make(w->o.shuffle, w->o.items ? w->o.item_count : split->samples, w->o.seed, w->o.window_bytes,
                           mr_split_mean_bytes(split), &order, err);
    if (status == MR_OK)
        status = mr_schedule_make(&order, w->o.global_batch, w->o.world, w->o.tail, &w->schedule, err);
    if (status == MR_OK)
        status = mr_shard_files_new(ds, split, 0, &w->files, err);
    return status;
}

void mr_work_close(mr_work *w)
{
    mr_shard_files_free(w->files);
    w->files = NULL;
}

mr_status mr_worker_init(mr_worker *h, const mr_work *w, mr_error *err)
{
    *h = (mr_worker){.pixels = mr_pixels_scratch_new(), .resizer = mr_resizer_new()};
    if (!h->pixels || !h->resizer) {
        mr_worker_free(h);
        return mr_fail_memory(err, "opening a loader");
    }
    if (w->o.transform.libjpeg)
        mr_pixels_scratch_libjpeg(h->pixels);
    mr_pixels_scratch_stop(h->pixels, &w->stop);
    mr_resizer_stop(h->resizer, &w->stop);
    return MR_OK;
}

void mr_worker_free(mr_worker *h)
{
    mr_slab_free(&h->bytes, NULL);
    mr_slab_free(&h->seek, NULL);
    mr_pixels_scratch_free(h->pixels);
    mr_resizer_free(h->resizer);
    *h = (mr_worker){0};
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

/* Up to `len` bytes that are in memory; 0 if the first is not, or if the system cannot tell. */
static size_t read_present(int fd, uint8_t *out, size_t len, uint64_t offset)
{
    struct iovec part = {out, len};
    ssize_t n = preadv2(fd, &part, 1, (off_t)offset, RWF_NOWAIT);
    return n > 0 ? (size_t)n : 0;
}

static void advise(mr_work *w, int fd, uint64_t offset, uint64_t len)
{
    uint8_t byte;
    if (atomic_load_explicit(&w->cold, memory_order_relaxed) <= 0)
        return;
    if (read_present(fd, &byte, 1, offset + len / 2)) {
        atomic_fetch_sub_explicit(&w->cold, 1, memory_order_relaxed);
        return;
    }
    atomic_store_explicit(&w->cold, COLD, memory_order_relaxed);
    for (uint64_t at = 0; at < len; at += ADVISE_STEP)
        posix_fadvise(fd, (off_t)(offset + at), (off_t)(len - at < ADVISE_STEP ? len - at : ADVISE_STEP),
                      POSIX_FADV_WILLNEED);
}

static bool seeks(const mr_work *w, const mr_row *row)
{
    return w->o.deliver != MR_DELIVER_ENCODED && !w->o.transform.libjpeg && row->codec == MR_CODEC_JPEG;
}

static void advise_seek(mr_work *w, const mr_open_shard *open, const mr_row *row)
{
    uint64_t at;
    if (!seeks(w, row) || atomic_load_explicit(&w->cold, memory_order_relaxed) <= 0)
        return;
    size_t len = mr_shard_files_seek(w->files, open, row, NULL, &at);
    if (len)
        advise(w, open->seek, at, len);
}

mr_status mr_work_row(mr_work *w, uint64_t sample, mr_row *row, mr_error *err)
{
    const mr_open_shard *open;
    mr_status status = mr_shard_files_borrow(w->files, sample, &open, err);
    if (status != MR_OK)
        return status;
    status = mr_shard_files_row(w->files, open, sample, row, err);
    if (status == MR_OK) {
        advise(w, open->mdb, row->image_offset, row->image_len);
        if (w->o.with_meta)
            advise(w, open->mdb, row->meta_offset, row->meta_len);
        advise_seek(w, open, row);
    }
    mr_shard_files_return(w->files, open);
    return status;
}

/* In steps, so that a large record on a slow disk can be given up. */
static mr_status read_span(mr_work *w, int fd, uint8_t *out, size_t len, uint64_t offset, const char *name,
                           mr_error *err)
{
    while (len) {
        size_t step = len < READ_STEP ? len : READ_STEP;
        if (atomic_load_explicit(&w->stop, memory_order_relaxed))
            return MR_END;
        size_t present = read_present(fd, out, step, offset);
        if (present < step) {
            atomic_store_explicit(&w->cold, COLD, memory_order_relaxed);
            mr_status status = mr_file_pread(fd, out + present, step - present, offset + present, name, err);
            if (status != MR_OK)
                return status;
        }
        out += step;
        offset += step;
        len -= step;
    }
    return MR_OK;
}

typedef struct span {
    uint64_t offset, hash;
    size_t len;
    const char *name;
} span;

static span image_of(const mr_row *row)
{
    return (span){row->image_offset, row->image_hash, row->image_len, "image"};
}

static span meta_of(const mr_row *row)
{
    return (span){row->meta_offset, row->meta_hash, row->meta_len, "meta"};
}

/* A failure does not say of which sample. */
static mr_status read_checked(mr_work *w, const mr_open_shard *open, const span *s, uint8_t *out, mr_error *err)
{
    mr_error why;
    mr_status status = read_span(w, open->mdb, out, s->len, s->offset, s->name, &why);
    if (status != MR_OK)
        return status == MR_END ? status : mr_fail(err, status, "its %s", why.text);
    if (mr_hash64(out, s->len) == s->hash)
        return MR_OK;
    return mr_fail(err, MR_BAD_SAMPLE, "its %s differs from what was ingested; `millrace verify` shows the extent",
                   s->name);
}

/* " (train/n01/a.JPEG)", as the source called it; nothing where its meta cannot be read. */
static void add_source(mr_work *w, uint64_t sample, const mr_row *row, mr_buf *out)
{
    const span s = meta_of(row);
    const mr_open_shard *open;
    mr_buf meta = {0}, source = {0};
    mr_meta_facts facts;
    if (!mr_buf_reserve(&meta, s.len) || mr_shard_files_borrow(w->files, sample, &open, NULL) != MR_OK) {
        mr_buf_free(&meta);
        return;
    }
    mr_status status = read_checked(w, open, &s, meta.data, NULL);
    mr_shard_files_return(w->files, open);
    if (status == MR_OK && mr_meta_scan(meta.data, s.len, &facts, &source, NULL) == MR_OK && source.len)
        mr_buf_printf(out, " (%s)", mr_buf_text(&source));
    mr_buf_free(&meta);
    mr_buf_free(&source);
}

static mr_status name_sample(mr_work *w, uint64_t sample, const mr_row *row, mr_status status, const mr_error *why,
                             mr_error *err)
{
    mr_buf source = {0};
    add_source(w, sample, row, &source);
    status = mr_fail(err, status, "%s.mdb: sample %llu%s: %s", mr_dataset_shard(w->split, sample)->name, (ull)sample,
                     mr_buf_text(&source), why->text);
    mr_buf_free(&source);
    return status;
}

static mr_status read_record(mr_work *w, uint64_t sample, const mr_row *row, span s, uint8_t *out, mr_error *err)
{
    const mr_open_shard *open;
    mr_error why;
    mr_status status = mr_shard_files_borrow(w->files, sample, &open, err);
    if (status != MR_OK)
        return status;
    status = read_checked(w, open, &s, out, &why);
    mr_shard_files_return(w->files, open);
    return status == MR_OK || status == MR_END ? status : name_sample(w, sample, row, status, &why, err);
}

mr_status mr_work_image(mr_work *w, uint64_t sample, const mr_row *row, uint8_t *out, mr_error *err)
{
    return read_record(w, sample, row, image_of(row), out, err);
}

mr_status mr_work_meta(mr_work *w, uint64_t sample, const mr_row *row, uint8_t *out, mr_error *err)
{
    return read_record(w, sample, row, meta_of(row), out, err);
}

mr_status mr_work_fetch(mr_work *w, mr_worker *h, uint64_t sample, const mr_row *row, mr_error *err)
{
    mr_status status = mr_slab_reserve(&h->bytes, row->image_len, 0, NULL, err);
    if (status == MR_OK)
        status = mr_work_image(w, sample, row, h->bytes.data, err);
    if (status == MR_OK)
        mr_work_fetch_seek(w, h, sample, row);
    return status;
}

/* Only a help: whatever fails here, the picture is decoded without. */
void mr_work_fetch_seek(mr_work *w, mr_worker *h, uint64_t sample, const mr_row *row)
{
    const mr_open_shard *open;
    h->seek_len = 0;
    if (!seeks(w, row) || mr_shard_files_borrow(w->files, sample, &open, NULL) != MR_OK)
        return;
    if (open->seek >= 0 && mr_slab_reserve(&h->seek, row->image_len, 0, NULL, NULL) == MR_OK)
        h->seek_len = mr_shard_files_seek(w->files, open, row, h->seek.data, NULL);
    mr_shard_files_return(w->files, open);
}

/* ---- pixels --------------------------------------------------------------------------------------------------- */

static uint8_t orientation_of(const mr_work *w, const mr_row *row)
{
    return w->o.transform.apply_orientation ? row->orientation : 1;
}

mr_view mr_work_view(const mr_work *w, uint64_t epoch, uint64_t item, const mr_row *row)
{
    uint32_t width = row->width, height = row->height;
    mr_orient_size(orientation_of(w, row), &width, &height);
    if (w->o.transform.kind == MR_TRANSFORM_TRAIN)
        return mr_view_train(&w->o.transform, w->o.seed, epoch, item, width, height);
    return mr_view_eval(&w->o.transform, width, height);
}

size_t mr_work_pixel_bytes(const mr_loader_options *o)
{
    size_t values = (size_t)o->transform.size * o->transform.size * 3;
    switch (o->deliver) {
    case MR_DELIVER_U8_NHWC:
        return values;
    case MR_DELIVER_F32_NCHW:
        return values * sizeof(float);
    case MR_DELIVER_BF16_NCHW:
        return values * sizeof(uint16_t);
    case MR_DELIVER_ENCODED:
        break;
    }
    return 0;
}

/* Without its pixels. */
static mr_resize_job job_of(const mr_work *w, const mr_view *v)
{
    const mr_transform *t = &w->o.transform;
    mr_resize_job job = {
        .in_width = v->width,
        .in_height = v->height,
        .out_width = v->out_width,
        .out_height = v->out_height,
        .crop_left = v->crop_left,
        .crop_top = v->crop_top,
        .crop_width = t->size,
        .crop_height = t->size,
        .flip = v->flip,
        .bicubic = t->bicubic != 0,
        .unrounded = t->unrounded != 0,
    };
    mr_resize_needs(&job, &job.columns, &job.rows);
    return job;
}

mr_region mr_work_region(const mr_work *w, const mr_row *row, const mr_view *v)
{
    const mr_resize_job job = job_of(w, v);
    const mr_region seen = {v->left + job.columns.from, v->top + job.rows.from, job.columns.count, job.rows.count};
    return mr_orient_region(orientation_of(w, row), row->width, row->height, &seen);
}

mr_status mr_work_decode(mr_work *w, mr_worker *h, uint64_t sample, const mr_row *row, const mr_view *v,
                         const uint8_t **rgb, mr_error *err)
{
    const uint32_t image_flags =
        MR_FLAG_PROGRESSIVE | MR_FLAG_ANIMATED | MR_FLAG_ALPHA | MR_FLAG_PALETTE | MR_FLAG_ARITHMETIC;
    mr_image_facts facts = {
        row->width, row->height, row->codec, row->orientation, row->components, row->bits, row->flags & image_flags};
    const mr_region stored = mr_work_region(w, row, v);
    mr_error why;
    const uint8_t *pixels = NULL;
    const mr_image_limits limits = {.max_pixels = w->o.max_pixels};
    mr_pixels_scratch_seek(h->pixels, h->seek.data, h->seek_len);
    h->seek_len = 0;
    mr_status status = mr_image_check_size("a picture", row->width, row->height, &limits, &why);
    if (status == MR_OK)
        status = mr_view_check(v, &why);
    if (status == MR_OK)
        status = mr_pixels_decode(h->pixels, h->bytes.data, row->image_len, &facts, &stored, &pixels, &why);
    if (status == MR_OK)
        status = mr_orient_pixels(h->pixels, orientation_of(w, row), pixels, &stored, &pixels, &why);
    if (status == MR_END)
        return status;
    if (status != MR_OK)
        return name_sample(w, sample, row, status, &why, err);
    *rgb = pixels;
    return MR_OK;
}

mr_status mr_work_resize(mr_work *w, mr_worker *h, const mr_view *v, const uint8_t *rgb, void *out, mr_error *err)
{
    const mr_transform *t = &w->o.transform;
    mr_resize_job job = job_of(w, v);
    job.rgb = rgb;
    switch (w->o.deliver) {
    case MR_DELIVER_U8_NHWC:
        return mr_resize_u8(h->resizer, &job, out, err);
    case MR_DELIVER_F32_NCHW:
        return mr_resize_f32(h->resizer, &job, t->mean, t->std, out, err);
    case MR_DELIVER_BF16_NCHW:
        return mr_resize_bf16(h->resizer, &job, t->mean, t->std, out, err);
    case MR_DELIVER_ENCODED:
        break;
    }
    return MR_OK;
}

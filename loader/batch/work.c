/* work.c - one sample, from its number to the bytes or pixels that are delivered.
 *
 * Read-ahead: advice to the kernel costs a tenth of a read from the page cache, so it is given only while it helps.
 * After a read that would have blocked, the next COLD records are checked when they are planned: reading one byte shows
 * whether the record is in memory; if not, its pages are requested, and the count restarts. */
#include "loader/batch/work.h"

#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "loader/order/mix.h"
#include "loader/batch/options.h"
#include "shards/format/meta.h"

typedef unsigned long long ull;

enum {
    READ_STEP = 4 << 20,     /* bytes between two checks of `stop` */
    ADVISE_STEP = 128 << 10, /* the kernel reads ahead at most this much (read_ahead_kb) per call */
    COLD = 256,
};

/* ---- opening -------------------------------------------------------------------------------------------------- */

mr_status mr_work_open(mr_work *w, const mr_dataset *ds, const mr_loader_options *options, mr_error *err)
{
    mr_order order;
    *w = (mr_work){.cold = COLD};
    MR_TRY(mr_loader_options_fill(options, mr_dataset_manifest(ds), &w->o, err));
    const mr_split *split = w->split = mr_manifest_split(mr_dataset_manifest(ds), w->o.split);
    w->o.split = split->name; /* the caller's text may be freed */
    MR_TRY(mr_order_make(w->o.shuffle, w->o.items ? w->o.item_count : mr_draw_items(split, w->o.shuffle), w->o.seed,
                         w->o.window_bytes, mr_split_mean_bytes(split), &order, err));
    MR_TRY(mr_schedule_make(&order, w->o.global_batch, w->o.world, w->o.tail, &w->schedule, err));
    if (!w->o.items)
        w->schedule.draw = mr_draw_of(split, w->o.shuffle);
    mr_dataset_fetch_indexes(ds, split, NULL);
    return mr_shard_files_new(ds, split, 0, &w->files, err);
}

void mr_work_close(mr_work *w)
{
    mr_shard_files_free(w->files);
    w->files = NULL;
}

mr_status mr_worker_init(mr_worker *worker, const mr_work *w, mr_error *err)
{
    bool coded = w->o.deliver == MR_DELIVER_CODED;
    *worker = (mr_worker){.pixels = mr_pixels_scratch_new(), .resizer = mr_resizer_new()};
    if (coded)
        worker->planner = mr_coded_planner_new();
    if (!worker->pixels || !worker->resizer || (coded && !worker->planner)) {
        mr_worker_free(worker);
        return mr_fail_memory(err, "opening a loader");
    }
    if (w->o.transform.libjpeg)
        mr_pixels_scratch_libjpeg(worker->pixels);
    mr_pixels_scratch_stop(worker->pixels, &w->stop);
    mr_resizer_stop(worker->resizer, &w->stop);
    return MR_OK;
}

void mr_worker_free(mr_worker *worker)
{
    mr_slab_free(&worker->bytes, NULL);
    mr_slab_free(&worker->seek, NULL);
    mr_pixels_scratch_free(worker->pixels);
    mr_resizer_free(worker->resizer);
    mr_coded_planner_free(worker->planner);
    mr_mover_free(&worker->mover);
    mr_slab_free(&worker->changed, NULL);
    *worker = (mr_worker){0};
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

/* Reads up to `len` bytes that are in memory; 0 if the first is not, or if the system cannot tell. */
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

static bool reads_meta(const mr_work *w)
{
    return w->o.with_meta || w->o.with_objects;
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
    MR_TRY(mr_shard_files_borrow(w->files, sample, &open, err));
    mr_status status = mr_shard_files_row(w->files, open, sample, row, err);
    if (status == MR_OK && open->mdb < 0) {
        mr_shard_files_ahead(w->files, open->shard, row->image_offset, row->image_len);
        if (reads_meta(w))
            mr_shard_files_ahead(w->files, open->shard, row->meta_offset, row->meta_len);
    } else if (status == MR_OK) {
        advise(w, open->mdb, row->image_offset, row->image_len);
        if (reads_meta(w))
            advise(w, open->mdb, row->meta_offset, row->meta_len);
        advise_seek(w, open, row);
    }
    mr_shard_files_return(w->files, open);
    return status;
}

/* In steps, so that reading a large record from a slow disk can be stopped. */
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
            MR_TRY(mr_file_pread(fd, out + present, step - present, offset + present, name, err));
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

/* From where it is; once more if a bit flipped on the way. */
static mr_status read_remote(mr_work *w, const mr_shard *shard, const span *s, uint8_t *out, mr_error *err)
{
    for (unsigned i = 0; i < 2; i++) {
        mr_status status =
            mr_shard_files_read(w->files, shard, -1, (mr_shard_span){s->offset, s->len, s->name}, out, &w->stop, err);
        if (atomic_load_explicit(&w->stop, memory_order_relaxed))
            return MR_END;
        MR_TRY(status);
        if (mr_hash64(out, s->len) == s->hash)
            break;
    }
    return MR_OK;
}

/* `fd`: of the shard; -1: it is elsewhere.  The message of a failure does not name the sample. */
static mr_status read_checked(mr_work *w, const mr_shard *shard, int fd, const span *s, uint8_t *out, mr_error *err)
{
    mr_error why;
    mr_status status =
        fd < 0 ? read_remote(w, shard, s, out, &why) : read_span(w, fd, out, s->len, s->offset, s->name, &why);
    if (status != MR_OK) /* what is elsewhere is named with its URL */
        return status == MR_END ? status : mr_fail(err, status, "%s%s", fd < 0 ? "" : "its ", why.text);
    if (mr_hash64(out, s->len) == s->hash)
        return MR_OK;
    return mr_fail(err, MR_BAD_SAMPLE, "its %s differs from what was ingested; `millrace verify` shows the extent",
                   s->name);
}

/* Appends " (train/n01/a.JPEG)", the name in the source; nothing if the meta cannot be read. */
static void add_source(mr_work *w, uint64_t sample, const mr_row *row, mr_buf *out)
{
    const span s = meta_of(row);
    const mr_open_shard *open;
    MR_AUTO(mr_buf_free) mr_buf meta = {0}, source = {0};
    mr_meta_facts facts;
    if (!mr_buf_reserve(&meta, s.len) || mr_shard_files_borrow(w->files, sample, &open, NULL) != MR_OK)
        return;
    mr_status status = read_checked(w, open->shard, open->mdb, &s, meta.data, NULL);
    mr_shard_files_return(w->files, open);
    if (status == MR_OK && mr_meta_scan(meta.data, s.len, &facts, &source, NULL) == MR_OK && source.len)
        mr_buf_printf(out, " (%s)", mr_buf_text(&source));
}

mr_status mr_work_name_sample(mr_work *w, uint64_t sample, const mr_row *row, mr_status status, const mr_error *why,
                              mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf source = {0};
    add_source(w, sample, row, &source);
    return mr_fail(err, status, "%s.mdb: sample %llu%s: %s", mr_dataset_shard(w->split, sample)->name, (ull)sample,
                   mr_buf_text(&source), why->text);
}

/* From the dataset itself, as the copy on this host's disk cannot be read. */
static mr_status read_original(mr_work *w, const mr_shard *shard, const span *s, uint8_t *out, mr_error *err)
{
    MR_AUTO(mr_scope_close) int fd = -1;
    MR_TRY(mr_shard_files_original(w->files, shard, &fd, err));
    return read_checked(w, shard, fd, s, out, err);
}

static mr_status read_record(mr_work *w, uint64_t sample, const mr_row *row, span s, uint8_t *out, mr_error *err)
{
    const mr_open_shard *open;
    mr_error why;
    MR_TRY(mr_shard_files_borrow(w->files, sample, &open, err));
    mr_status status = read_checked(w, open->shard, open->mdb, &s, out, &why);
    if (status != MR_OK && status != MR_END && mr_shard_files_drop_copy(w->files, open))
        status = read_original(w, open->shard, &s, out, &why);
    mr_shard_files_return(w->files, open);
    return status == MR_OK || status == MR_END ? status : mr_work_name_sample(w, sample, row, status, &why, err);
}

mr_status mr_work_image(mr_work *w, uint64_t sample, const mr_row *row, uint8_t *out, mr_error *err)
{
    return read_record(w, sample, row, image_of(row), out, err);
}

mr_status mr_work_meta(mr_work *w, uint64_t sample, const mr_row *row, uint8_t *out, mr_error *err)
{
    return read_record(w, sample, row, meta_of(row), out, err);
}

mr_status mr_work_fetch(mr_work *w, mr_worker *worker, uint64_t sample, const mr_row *row, mr_error *err)
{
    MR_TRY(mr_slab_reserve(&worker->bytes, row->image_len, 0, NULL, err));
    MR_TRY(mr_work_image(w, sample, row, worker->bytes.data, err));
    mr_work_fetch_seek(w, worker, sample, row);
    return MR_OK;
}

/* Optional: if anything fails here, the image is decoded without a seek index. */
void mr_work_fetch_seek(mr_work *w, mr_worker *worker, uint64_t sample, const mr_row *row)
{
    const mr_open_shard *open;
    worker->seek_len = 0;
    if (!seeks(w, row) || mr_shard_files_borrow(w->files, sample, &open, NULL) != MR_OK)
        return;
    if (open->seek >= 0 && mr_slab_reserve(&worker->seek, row->image_len, 0, NULL, NULL) == MR_OK)
        worker->seek_len = mr_shard_files_seek(w->files, open, row, worker->seek.data, NULL);
    mr_shard_files_return(w->files, open);
}

/* ---- pixels --------------------------------------------------------------------------------------------------- */

uint64_t mr_work_view_seed(const mr_loader_options *o)
{
    return o->view ? mr_mix(o->seed + o->view * MR_MIX_STEP) : o->seed;
}

uint8_t mr_work_orientation(const mr_work *w, const mr_row *row)
{
    return w->o.transform.apply_orientation ? row->orientation : 1;
}

mr_view mr_work_view(const mr_work *w, uint64_t epoch, uint64_t item, const mr_row *row)
{
    uint32_t width = row->width, height = row->height;
    mr_orient_size(mr_work_orientation(w, row), &width, &height);
    if (w->o.transform.kind == MR_TRANSFORM_LETTERBOX)
        return mr_view_letterbox(&w->o.transform, w->o.height, width, height);
    if (w->o.transform.kind == MR_TRANSFORM_PATCH)
        return mr_view_patch(&w->o.transform, w->o.height, mr_work_view_seed(&w->o), epoch, item, width, height);
    mr_view v = w->o.transform.kind == MR_TRANSFORM_TRAIN
                    ? mr_view_train(&w->o.transform, mr_work_view_seed(&w->o), epoch, item, width, height)
                    : mr_view_eval(&w->o.transform, width, height);
    if (w->o.height != w->o.transform.size) /* all that is in the box is resized to it */
        v.out_height = w->o.height;
    return v;
}

size_t mr_work_pixel_bytes(const mr_loader_options *o)
{
    size_t values = (size_t)o->transform.size * o->height * 3;
    switch (o->deliver) {
    case MR_DELIVER_U8_NHWC:
        return values;
    case MR_DELIVER_F32_NCHW:
    case MR_DELIVER_CODED:
        return values * sizeof(float);
    case MR_DELIVER_BF16_NCHW:
    case MR_DELIVER_F16_NCHW:
        return values * sizeof(uint16_t);
    case MR_DELIVER_ENCODED:
        break;
    }
    return 0;
}

/* All members except the pixels. */
static mr_resize_job job_of(const mr_work *w, const mr_view *v)
{
    const mr_transform *t = &w->o.transform;
    bool whole = mr_view_is_framed(t->kind);
    mr_resize_job job = {
        .in_width = v->width,
        .in_height = v->height,
        .out_width = v->out_width,
        .out_height = v->out_height,
        .crop_left = v->crop_left,
        .crop_top = v->crop_top,
        .crop_width = whole ? v->out_width : t->size,
        .crop_height = whole ? v->out_height : w->o.height,
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
    return mr_orient_region(mr_work_orientation(w, row), row->width, row->height, &seen);
}

/* The message of a failure does not name the sample. */
static mr_status decode(mr_work *w, mr_worker *worker, const mr_row *row, const mr_view *v, const uint8_t **rgb,
                        mr_error *err)
{
    const uint32_t image_flags =
        MR_FLAG_PROGRESSIVE | MR_FLAG_ANIMATED | MR_FLAG_ALPHA | MR_FLAG_PALETTE | MR_FLAG_ARITHMETIC;
    mr_image_facts facts = {
        row->width, row->height, row->codec, row->orientation, row->components, row->bits, row->flags & image_flags};
    const mr_region stored = mr_work_region(w, row, v);
    const uint8_t *pixels = NULL;
    const mr_image_limits limits = {.max_pixels = w->o.max_pixels};
    mr_pixels_scratch_seek(worker->pixels, worker->seek.data, worker->seek_len);
    worker->seek_len = 0;
    MR_TRY(mr_image_check_size("an image", row->width, row->height, &limits, err));
    MR_TRY(mr_view_check(v, err));
    MR_TRY(mr_pixels_decode(worker->pixels, worker->bytes.data, row->image_len, &facts, &stored, &pixels, err));
    return mr_orient_pixels(worker->pixels, mr_work_orientation(w, row), pixels, &stored, rgb, err);
}

mr_status mr_work_decode(mr_work *w, mr_worker *worker, uint64_t sample, const mr_row *row, const mr_view *v,
                         const uint8_t **rgb, mr_error *err)
{
    mr_error why;
    mr_status status = decode(w, worker, row, v, rgb, &why);
    return status == MR_OK || status == MR_END ? status : mr_work_name_sample(w, sample, row, status, &why, err);
}

static mr_status resize(const mr_work *w, mr_resizer *r, const mr_resize_job *job, void *out, mr_error *err)
{
    const mr_transform *t = &w->o.transform;
    switch (w->o.deliver) {
    case MR_DELIVER_U8_NHWC:
        return mr_resize_u8(r, job, out, err);
    case MR_DELIVER_F32_NCHW:
    case MR_DELIVER_CODED:
        return mr_resize_f32(r, job, t->mean, t->std, out, err);
    case MR_DELIVER_BF16_NCHW:
        return mr_resize_bf16(r, job, t->mean, t->std, out, err);
    case MR_DELIVER_F16_NCHW:
        return mr_resize_f16(r, job, t->mean, t->std, out, err);
    case MR_DELIVER_ENCODED:
        break;
    }
    return MR_OK;
}

mr_status mr_work_resize(mr_work *w, mr_worker *worker, const mr_view *v, const uint8_t *rgb, void *out, mr_error *err)
{
    mr_resize_job job = job_of(w, v);
    job.rgb = rgb;
    return resize(w, worker->resizer, &job, out, err);
}

/* A picture in the middle of a larger one of one colour. */
static void frame(const mr_view *v, const uint8_t fill[3], const uint8_t *inner, uint32_t width, uint32_t height,
                  uint8_t *out)
{
    for (size_t i = 0; i < (size_t)width * height; i++)
        memcpy(out + 3 * i, fill, 3);
    uint32_t left = v->flip ? width - v->out_width - v->pad_left : v->pad_left;
    for (uint32_t y = 0; y < v->out_height; y++)
        memcpy(out + 3 * ((size_t)(v->pad_top + y) * width + left), inner + 3 * (size_t)y * v->out_width,
               3 * (size_t)v->out_width);
}

mr_status mr_work_change(mr_work *w, mr_worker *worker, const mr_view *v, const mr_changes *c, const uint8_t *rgb,
                         void *out, mr_error *err)
{
    uint32_t width = w->o.transform.size, height = w->o.height;
    bool bytes = w->o.deliver == MR_DELIVER_U8_NHWC, framed = mr_view_is_framed(w->o.transform.kind);
    mr_resize_job job = job_of(w, v);
    job.rgb = rgb;
    size_t scratch = (mr_changes_scratch(c, width, height) + 63) & ~(size_t)63;
    size_t whole = bytes ? 0 : (size_t)width * height * 3,
           inner = framed ? (size_t)v->out_width * v->out_height * 3 : 0;
    MR_TRY(mr_slab_reserve(&worker->changed, scratch + whole + inner, 0, NULL, err));
    uint8_t *picture = bytes ? out : worker->changed.data + scratch;
    uint8_t *resized = framed ? worker->changed.data + scratch + whole : picture;
    MR_TRY(mr_resize_u8(worker->resizer, &job, resized, err));
    if (framed)
        frame(v, c->fill, resized, width, height, picture);
    mr_changes_apply(c, picture, width, height, worker->changed.data);
    if (bytes)
        return MR_OK;
    const mr_resize_job same = {.rgb = picture,
                                .in_width = width,
                                .in_height = height,
                                .out_width = width,
                                .out_height = height,
                                .crop_width = width,
                                .crop_height = height};
    return resize(w, worker->resizer, &same, out, err);
}

void mr_work_spend(mr_work *w, double reading, double decoding)
{
    atomic_fetch_add_explicit(&w->reading, (uint64_t)(reading * 1e9), memory_order_relaxed);
    atomic_fetch_add_explicit(&w->decoding, (uint64_t)(decoding * 1e9), memory_order_relaxed);
}

/* ---- coded delivery ---------------------------------------------------------------------------------------------- */

bool mr_work_has_entries(mr_work *w, uint64_t sample, const mr_row *row)
{
    const mr_open_shard *open;
    if (!seeks(w, row) || row->flags & (MR_FLAG_PROGRESSIVE | MR_FLAG_ARITHMETIC) ||
        mr_shard_files_borrow(w->files, sample, &open, NULL) != MR_OK)
        return false;
    size_t len = mr_shard_files_seek(w->files, open, row, NULL, NULL);
    mr_shard_files_return(w->files, open);
    return len > 0;
}

mr_status mr_work_describe(mr_work *w, mr_worker *worker, const mr_row *row, const mr_view *v, const mr_work_file *file,
                           mr_coded_description *out, bool *taken, mr_error *err)
{
    const mr_image_limits limits = {.max_pixels = w->o.max_pixels};
    mr_coded_picture p = {
        .bytes = file->bytes,
        .seek = worker->seek_len ? worker->seek.data : NULL,
        .len = row->image_len,
        .seek_len = worker->seek_len,
        .at = file->at,
        .width = row->width,
        .height = row->height,
        .orientation = mr_work_orientation(w, row),
    };
    *taken = false;
    if (mr_image_check_size("an image", row->width, row->height, &limits, NULL) != MR_OK ||
        mr_view_check(v, NULL) != MR_OK)
        return MR_OK;
    p.region = mr_work_region(w, row, v);
    p.resize = job_of(w, v);
    return mr_coded_describe(worker->planner, &p, out, taken, err);
}

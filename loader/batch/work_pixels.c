/* work_pixels.c - one sample's view, and its pixels in it: decoded, oriented, resized, framed, changed; see work.h. */
#include <string.h>

#include "base/scope.h"
#include "loader/batch/work.h"
#include "loader/order/mix.h"

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

/* An image in the middle of a larger one of a single colour. */
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
    if (!mr_work_seeks(w, row) || row->flags & (MR_FLAG_PROGRESSIVE | MR_FLAG_ARITHMETIC) ||
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

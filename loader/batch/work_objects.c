/* work_objects.c - what a sample shows, from its meta to its place in the view.
 * Invariant: only what is asked for is parsed in a meta: most of the rest is what the source wrote about the same
 * objects, and a batch waits for all of its samples. */
#include <string.h>

#include "base/base64.h"
#include "base/scope.h"
#include "image/region/png_numbers.h"
#include "loader/batch/work.h"
#include "loader/objects/stored_mask.h"
#include "base/json/json_walk.h"

/* Into m->objects, as the view sees the image.  The message of a failure does not name the sample. */
static mr_status see_objects(mr_mover *m, const mr_stored *stored, const uint8_t *meta, size_t len, mr_error *err)
{
    const char *text = (const char *)meta, *objects;
    int found = mr_json_member(text, text + len, "objects", &objects);
    mr_objects_clear(&m->objects);
    if (found < 0)
        return mr_fail(err, MR_BAD_DATA, "meta: not valid JSON");
    if (found)
        MR_TRY(mr_objects_parse_value(objects, text + len, &m->objects, err));
    mr_objects_show(&m->objects, stored);
    return MR_OK;
}

mr_status mr_work_own_meta(mr_work *w, mr_worker *worker, uint64_t sample, const mr_row *row, const uint8_t **meta,
                           mr_error *err)
{
    mr_buf *own = &worker->mover.meta;
    mr_buf_clear(own);
    if (!mr_buf_reserve(own, row->meta_len))
        return mr_fail_memory(err, "reading objects");
    *meta = own->data;
    return mr_work_meta(w, sample, row, own->data, err);
}

mr_status mr_work_objects(mr_work *w, mr_worker *worker, uint64_t sample, const mr_row *row, const mr_view *v,
                          const uint8_t *meta, mr_moved *out, mr_error *err)
{
    mr_mover *m = &worker->mover;
    const mr_object_rules rules = {w->o.transform.size, w->o.height, (double)w->o.object_side,
                                   (double)w->o.object_visible};
    const mr_stored stored = {row->width, row->height, mr_work_orientation(w, row)};
    mr_error why;
    mr_status status = see_objects(m, &stored, meta, row->meta_len, &why);
    if (status != MR_OK)
        return mr_work_name_sample(w, sample, row, status, &why, err);
    return mr_objects_move(m, v, &rules, out) ? MR_OK : mr_fail_memory(err, "moving objects");
}

/* ---- masks ------------------------------------------------------------------------------------------------------ */

/* The PNG of the mask into m->png.  1: done; 0: the meta has no such mask; -1: it has, but not a PNG in base64, or it
 * cannot be walked. */
static int read_png(mr_mover *m, const char *name, const uint8_t *meta, size_t len)
{
    const char *end = (const char *)meta + len, *masks, *mask, *png;
    mr_buf_clear(&m->png);
    mr_buf_clear(&m->base64);
    int found = mr_json_member((const char *)meta, end, "masks", &masks);
    if (found == 1)
        found = mr_json_member(masks, end, name, &mask);
    if (found != 1)
        return found;
    if (mr_json_member(mask, end, "png", &png) != 1)
        return -1;
    const mr_json_span text = {png, mr_json_skip(png, end)};
    bool read = text.end && mr_json_is_text(text) && mr_json_decode(text, &m->base64) &&
                mr_base64_read((const char *)m->base64.data, m->base64.len, &m->png);
    return read ? 1 : -1;
}

static mr_status move_stored(const mr_work *w, mr_pixels_scratch *s, mr_mover *m, const mr_row *row, const mr_view *v,
                             uint8_t *out, mr_error *err)
{
    const mr_stored stored = {row->width, row->height, mr_work_orientation(w, row)};
    const uint32_t width = w->o.transform.size, height = w->o.height;
    const mr_image_limits limits = {.max_pixels = w->o.max_pixels};
    mr_error why;
    MR_TRY(mr_image_check_size("an image", row->width, row->height, &limits, err));
    mr_status status = mr_png_numbers(s, m->png.data, m->png.len, row->width, row->height, &m->numbers, &why);
    if (status != MR_OK)
        return mr_fail(err, status, "its mask %s: %s", w->o.mask, why.text);
    mr_buf_clear(&m->steps);
    if (!mr_buf_reserve(&m->steps, width * sizeof(ptrdiff_t)))
        return mr_fail_memory(err, "moving a mask");
    mr_stored_mask_move(m->numbers.data, &stored, v, width, height, (ptrdiff_t *)(void *)m->steps.data, out);
    return MR_OK;
}

mr_status mr_work_mask(mr_work *w, mr_worker *worker, uint64_t sample, const mr_row *row, const mr_view *v,
                       const uint8_t *meta, mr_moved *moved, uint8_t *out, mr_error *err)
{
    mr_mover *m = &worker->mover;
    mr_error why;
    if (!*w->o.mask)
        return mr_moved_draw(moved, &m->path, w->o.transform.size, w->o.height, out)
                   ? MR_OK
                   : mr_fail_memory(err, "drawing masks");
    mr_status status = MR_OK;
    int found = read_png(m, w->o.mask, meta, row->meta_len);
    if (found < 0)
        status = m->png.failed || m->base64.failed
                     ? mr_fail_memory(&why, "reading a mask")
                     : mr_fail(&why, MR_BAD_SAMPLE, "its mask %s is not a PNG in base64", w->o.mask);
    else if (!found)
        memset(out, MR_MASK_NONE, mr_work_mask_bytes(w));
    else
        status = move_stored(w, worker->pixels, m, row, v, out, &why);
    return status == MR_OK ? MR_OK : mr_work_name_sample(w, sample, row, status, &why, err);
}

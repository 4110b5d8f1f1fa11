/* work_objects.c - what a sample shows, from its meta to its place in the view.
 * Invariant: of a meta only the value of "objects" is parsed: most of the rest is what the source wrote about the same
 * objects, and a batch waits for all of its samples. */
#include "base/scope.h"
#include "loader/batch/work.h"
#include "shards/dataset/captions_scan.h"

/* {"objects":...} of a meta into m->member; nothing without that member, all of a meta that cannot be walked. */
static bool cut_member(mr_mover *m, const uint8_t *meta, size_t len)
{
    const char *text = (const char *)meta;
    mr_json_walk walk = mr_json_walk_of((mr_json_span){text, text + len});
    mr_json_span key, value;
    int more = len && *text == '{' ? 1 : -1;
    mr_buf_clear(&m->member);
    while (more == 1 && (more = mr_json_next(&walk, &key, &value)) == 1) {
        if (!mr_json_equals(key, "objects"))
            continue;
        mr_buf_add_text(&m->member, "{");
        mr_buf_add(&m->member, key.at, (size_t)(value.end - key.at));
        mr_buf_add_text(&m->member, "}");
        return !m->member.failed;
    }
    if (more < 0)
        mr_buf_add(&m->member, meta, len);
    return !m->member.failed;
}

/* Into m->objects, as the view sees the image.  The message of a failure does not name the sample. */
static mr_status see_objects(mr_mover *m, const mr_stored *stored, const uint8_t *meta, size_t len, mr_error *err)
{
    if (!cut_member(m, meta, len))
        return mr_fail_memory(err, "reading objects");
    mr_objects_clear(&m->objects);
    if (m->member.len)
        MR_TRY(mr_objects_parse(m->member.data, m->member.len, &m->objects, err));
    mr_objects_show(&m->objects, stored);
    return MR_OK;
}

mr_status mr_work_objects(mr_work *w, mr_worker *worker, uint64_t sample, const mr_row *row, const mr_view *v,
                          const uint8_t *meta, mr_moved *out, mr_error *err)
{
    mr_mover *m = &worker->mover;
    const mr_object_rules rules = {w->o.transform.size, w->o.height, (double)w->o.object_side,
                                   (double)w->o.object_visible};
    const mr_stored stored = {row->width, row->height, mr_work_orientation(w, row)};
    mr_error why;
    if (!meta) {
        mr_buf_clear(&m->meta);
        if (!mr_buf_reserve(&m->meta, row->meta_len))
            return mr_fail_memory(err, "reading objects");
        MR_TRY(mr_work_meta(w, sample, row, m->meta.data, err));
        meta = m->meta.data;
    }
    mr_status status = see_objects(m, &stored, meta, row->meta_len, &why);
    if (status != MR_OK)
        return mr_work_name_sample(w, sample, row, status, &why, err);
    return mr_objects_move(m, v, &rules, out) ? MR_OK : mr_fail_memory(err, "moving objects");
}

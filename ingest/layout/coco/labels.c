/* labels.c - COCO for classification: annotations with a category and no box, as iNaturalist and camera traps have
 * them. Invariant: a dataset has labels or objects, never both; one annotation with a box, a segmentation or keypoints,
 * in any of its files, makes all of them objects. */
#include "base/scope.h"
#include "ingest/layout/coco/coco.h"
#include "ingest/layout/common/coco_classes.h"
#include "ingest/layout/common/label_list.h"

static bool has_class(const mr_coco_file *f, const mr_plan *plan)
{
    for (size_t i = 0; i < f->annotation_count; i++)
        if (f->annotations[i].category_id != MR_COCO_NO_ID && mr_coco_label(plan, f->annotations[i].category_id) >= 0)
            return true;
    return false;
}

static bool has_labels(const mr_coco_state *st, const mr_plan *plan)
{
    bool any = false;
    for (size_t i = 0; i < st->part_count; i++) {
        const mr_coco_file *f = st->parts[i].file;
        if (!f)
            continue;
        if (f->has & (MR_COCO_HAS_PLACE | MR_COCO_HAS_SEGMENTS))
            return false;
        any = any || (st->parts[i].kind == MR_COCO_INSTANCES && has_class(f, plan));
    }
    return any;
}

mr_status mr_coco_labels(const mr_plan *plan, uint64_t aux, mr_buf *out, mr_error *err)
{
    const mr_coco_state *st = plan->state;
    const uint32_t *where = st->where + aux;
    const mr_coco_group *g = &st->groups[*where++];
    mr_buf_clear(out);
    for (size_t i = 0; i < g->count; i++) {
        const mr_coco_part *part = &st->parts[g->first + i];
        if (part->kind != MR_COCO_INSTANCES || where[i] == MR_COCO_NONE)
            continue;
        const mr_coco_image *image = &part->file->images[where[i]];
        for (uint32_t k = 0; k < image->count; k++) {
            int64_t id = part->file->annotations[image->first + k].category_id;
            int32_t label = id == MR_COCO_NO_ID ? -1 : mr_coco_label(plan, id);
            if (label >= 0)
                mr_buf_add(out, &label, sizeof label);
        }
    }
    mr_label_list_settle(out);
    return mr_buf_status(out, err, "reading labels");
}

mr_status mr_coco_label_samples(const mr_coco_build *b)
{
    MR_AUTO(mr_buf_free) mr_buf list = {0};
    b->st->labels = has_labels(b->st, b->plan);
    for (size_t i = 0; i < b->plan->sample_count && b->st->labels; i++) {
        mr_sample *s = &b->plan->samples[i];
        MR_TRY(mr_coco_labels(b->plan, s->aux, &list, b->err));
        if (!list.len)
            s->flags = MR_FLAG_UNANNOTATED;
        mr_label_list_judge(b->plan, &list, s);
    }
    return MR_OK;
}

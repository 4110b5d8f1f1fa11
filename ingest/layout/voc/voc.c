/* voc.c - Pascal VOC: an XML for each image, as the development kit and Roboflow write them.
 * Invariant: a meta holds the XML as the source wrote it; the folder of an image decides whether its coordinates count
 * from 0 or from 1. */
#include "ingest/layout/voc/voc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/scope.h"
#include "base/text.h"

static mr_status voc_bid(const mr_tree *t, const mr_layout_options *o, mr_bid *bid, mr_error *err)
{
    mr_voc_places places;
    MR_TRY(mr_voc_look(t, o, &places, err));
    if (!places.kind)
        return MR_OK;
    bool whole = places.kind == MR_VOC_BESIDE && !places.dirs.count;
    bid->score = whole ? 70 : places.kind == MR_VOC_APART && !places.sets ? 84 : 88;
    for (size_t i = 0; i < places.spot_count; i++)
        if (!strcasecmp(places.spots[i].annotations, "labels"))
            bid->score = 91; /* where YOLO's labels would be, there are XML files */
    snprintf(bid->why, sizeof bid->why, "%s", places.seen);
    return MR_OK;
}

static mr_status read_again(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err)
{
    const mr_voc_state *st = plan->state;
    MR_TRY(mr_texts_read(&st->texts, t->source, (uint32_t)sample->aux, out, err));
    mr_buf_text(out);
    return mr_buf_status(out, err, "reading an annotation");
}

static mr_status voc_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf xml = {0};
    if (sample->aux == MR_VOC_NO_XML)
        return MR_OK;
    MR_TRY(read_again(t, plan, sample, &xml, err));
    mr_buf_add_text(out, ",\"voc\":");
    if (mr_utf8_valid(mr_buf_text(&xml), xml.len))
        mr_json_add_string(out, mr_buf_text(&xml), xml.len);
    else
        mr_json_add_path(out, mr_buf_text(&xml), xml.len);
    return mr_buf_status(out, err, "writing a sample's annotation");
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/* Sides in the wrong order give a negative width, which mr_objects_settle() turns round. */
static bool set_box(const mr_voc_object *from, bool pixels, mr_object *to)
{
    mr_milli sides[4];
    for (int i = 0; i < 4; i++) {
        bool first = (i < 2) != (from->sides[i % 2] - from->sides[i % 2 + 2] > 1); /* the left or upper one */
        if (!(from->seen & 1u << i) || !mr_milli_of(from->sides[i] - (pixels && first), &sides[i]))
            return false;
    }
    to->has_box = true;
    memcpy(to->box, (mr_milli[]){sides[0], sides[1], sides[2] - sides[0], sides[3] - sides[1]}, sizeof to->box);
    return true;
}

static bool add_polygon(const mr_voc_annotation *a, const mr_voc_object *from, mr_objects *out)
{
    mr_milli x, y;
    for (size_t i = 0; i < from->points; i++)
        if (!mr_milli_of(a->points[from->point + i], &x))
            return false;
    if (from->points < 6 || from->points & 1)
        return !from->points;
    mr_objects_ring(out);
    for (size_t i = 0; i + 1 < from->points && !out->failed; i += 2)
        if (mr_milli_of(a->points[from->point + i], &x) && mr_milli_of(a->points[from->point + i + 1], &y))
            mr_objects_point(out, x, y);
    return true;
}

static void add_object(const mr_plan *plan, const mr_voc_annotation *a, const mr_voc_object *from, bool pixels,
                       mr_objects *out)
{
    int32_t label =
        from->name_len ? mr_plan_class_find(plan, (const char *)a->names.data + from->name_at, from->name_len) : -1;
    mr_object probe = {0}, *object;
    bool boxed = set_box(from, pixels, &probe);
    if (!boxed && (from->boxed || from->points < 6)) {
        out->unreadable++;
        return;
    }
    object = mr_objects_add(out, label);
    if (!object)
        return;
    object->has_box = boxed;
    memcpy(object->box, probe.box, sizeof probe.box);
    out->unreadable += !add_polygon(a, from, out);
    if (boxed || out->failed)
        return;
    if (!object->ring_count)
        out->count--;
    else
        mr_objects_box_around(out, out->points + out->rings[object->ring].at, from->points);
}

/* Whether the image counts pixels from 1. */
static bool counts_pixels(const mr_tree *t, const mr_plan *plan, const mr_sample *sample)
{
    const mr_voc_state *st = plan->state;
    size_t len, skip;
    const char *path = mr_tree_path(t, sample->entry, &len);
    const mr_voc_spot *spot = mr_voc_spot_of(&st->places, path, len, &skip);
    return spot && mr_voc_from_one(spot);
}

static mr_status annotation_of(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_voc_annotation *out,
                               mr_error *err)
{
    const mr_voc_state *st = plan->state;
    MR_AUTO(mr_buf_free) mr_buf xml = {0};
    size_t len;
    const void *parsed = mr_texts_find(&st->parsed, (uint32_t)sample->aux, &len);
    if (parsed)
        return mr_voc_annotation_unpack(parsed, out, err);
    MR_TRY(read_again(t, plan, sample, &xml, err));
    return mr_voc_parse(xml.data, xml.len, out, err);
}

static mr_status voc_objects(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, const mr_stored *picture,
                             mr_objects *out, mr_error *err)
{
    MR_AUTO(mr_voc_annotation_free) mr_voc_annotation a = {0};
    bool pixels = counts_pixels(t, plan, sample);
    (void)picture;
    if (sample->aux == MR_VOC_NO_XML)
        return MR_OK;
    MR_TRY(annotation_of(t, plan, sample, &a, err));
    out->known = true;
    out->width = a.width;
    out->height = a.height;
    for (size_t i = 0; i < a.count && !out->failed; i++)
        add_object(plan, &a, &a.objects[i], pixels, out);
    return out->failed ? mr_fail_memory(err, "reading an annotation") : MR_OK;
}

static void free_state(void *state)
{
    mr_voc_state *st = state;
    if (st) {
        mr_texts_free(&st->texts);
        mr_texts_free(&st->parsed);
    }
    free(st);
}

const mr_layout mr_layout_voc = {
    .name = "voc",
    .title = "Pascal VOC: one XML per image, as in VOC2012 and Roboflow's exports",
    .needs = MR_VOC_NEEDS,
    .options = MR_OPTION_UNLISTED,
    .bid = voc_bid,
    .plan = mr_voc_plan,
    .meta = voc_meta,
    .objects = voc_objects,
    .masks = mr_voc_masks,
    .free_state = free_state,
};

/* coco_objects.c - annotations of COCO as objects.
 * Source: "Data format" on cocodataset.org: bbox is [x, y, width, height] from the upper left corner, segmentation a
 * list of polygons or a run-length mask, keypoints x, y, v one after another; segments_info of a panoptic annotation
 * is a list of segments with id, category_id, bbox and iscrowd. Invariant: an invalid part of an annotation is left out
 * and counted. */
#include "ingest/layout/common/coco_objects.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/layout/common/coco_classes.h"
#include "ingest/layout/common/coco_segmentation.h"
#include "ingest/tables/json_file.h"

enum { LEVELS = 5, SEGMENTS_DEPTH = 2, DEPTH_MAX = 300 };

typedef enum member { OTHER, ID, CATEGORY, BBOX, SEGMENTATION, KEYPOINTS, CROWD, MEMBERS } member;

static const char *const words[MEMBERS] = {"", "id", "category_id", "bbox", "segmentation", "keypoints", "iscrowd"};

typedef struct known { /* an object that an earlier file had, by its id */
    const char *id;
    size_t len, number;
} known;

typedef struct reader {
    const mr_plan *plan;
    const mr_coco_file *file;
    const uint8_t *const *shown;
    mr_objects *out;
    known *known; /* sorted; their ids are in `ids` */
    size_t known_count;
    mr_buf ids;
    member current;
    double bbox[4];
    size_t bbox_count;
    double *keypoints;
    size_t keypoint_count, keypoint_capacity;
    bool bad, has_bbox, bad_bbox;
    bool segments; /* within segments_info */
    mr_coco_segmentation shape;
    mr_error *err;
} reader;

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

static void take_bbox(reader *r, const mr_json_token *t)
{
    double value;
    if (r->bbox_count < 4 && mr_coco_number(t, &value))
        r->bbox[r->bbox_count++] = value;
    else
        r->bad_bbox = true;
}

static mr_status take_keypoint(reader *r, const mr_json_token *t)
{
    if (!MR_GROW(r->keypoints, r->keypoint_count, r->keypoint_capacity))
        return mr_fail_memory(r->err, "reading COCO annotations");
    if (mr_coco_number(t, &r->keypoints[r->keypoint_count]))
        r->keypoint_count++;
    else
        r->bad = true;
    return MR_OK;
}

static void take_category(reader *r, const mr_json_token *t)
{
    int64_t id = MR_COCO_NO_ID;
    if (t->kind == MR_JSON_STRING)
        id = mr_coco_id_find(r->file->ids, t->text, t->len);
    else if (!mr_coco_id_number(t->text, t->len, &id))
        id = MR_COCO_NO_ID;
    r->out->items[r->out->count - 1].label = id == MR_COCO_NO_ID ? -1 : mr_coco_label(r->plan, id);
}

/* 1, true and "1" say the same. */
static void take_crowd(reader *r, const mr_json_token *t)
{
    double value;
    bool *crowd = &r->out->items[r->out->count - 1].crowd;
    if (t->kind == MR_JSON_BOOLEAN || (t->kind == MR_JSON_STRING && !mr_coco_number(t, &value)))
        *crowd = t->len == 4 && !memcmp(t->text, "true", 4);
    else
        *crowd = mr_coco_number(t, &value) && value != 0;
}

static mr_status take_string(reader *r, const mr_json_token *t)
{
    MR_AUTO(mr_buf_free) mr_buf id = {0};
    if (r->current == CATEGORY)
        take_category(r, t);
    else if (r->current == CROWD)
        take_crowd(r, t);
    if (r->current != ID)
        return MR_OK;
    mr_json_add_string(&id, t->text, t->len);
    MR_TRY(mr_buf_status(&id, r->err, "reading COCO annotations"));
    mr_objects_id(r->out, mr_buf_text(&id), id.len);
    return MR_OK;
}

static mr_status take_number(reader *r, const mr_json_token *t)
{
    if (r->current == KEYPOINTS && t->depth == 3)
        return take_keypoint(r, t);
    if (r->current == ID && t->depth == 2)
        mr_objects_id(r->out, t->text, t->len);
    else if (r->current == CATEGORY && t->depth == 2)
        take_category(r, t);
    else if (r->current == CROWD && t->depth == 2)
        take_crowd(r, t);
    else if (r->current == BBOX && t->depth == 3)
        take_bbox(r, t);
    return MR_OK;
}

/* ---- annotations ------------------------------------------------------------------------------------------------ */

static int by_id(const void *a, const void *b)
{
    const known *x = a, *y = b;
    int order = memcmp(x->id, y->id, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

static mr_status list_known(reader *r)
{
    mr_objects *o = r->out;
    r->known = o->count ? mr_alloc(o->count, sizeof *r->known) : NULL;
    mr_buf_add(&r->ids, mr_buf_text(&o->ids), o->ids.len);
    if ((o->count && !r->known) || r->ids.failed)
        return mr_fail_memory(r->err, "reading COCO annotations");
    for (size_t i = 0; i < o->count; i++)
        if (o->items[i].id_len)
            r->known[r->known_count++] = (known){mr_buf_text(&r->ids) + o->items[i].id_at, o->items[i].id_len, i};
    if (r->known_count)
        qsort(r->known, r->known_count, sizeof *r->known, by_id);
    return MR_OK;
}

static void begin_annotation(reader *r)
{
    r->current = OTHER;
    r->bbox_count = r->keypoint_count = 0;
    r->bad = r->has_bbox = r->bad_bbox = r->shape.bad = false;
    mr_objects_add(r->out, -1);
}

static void add_keypoints(reader *r, size_t number)
{
    mr_objects *o = r->out;
    bool fits = r->keypoint_count % 3 == 0 && !o->items[number].keypoint_count;
    for (size_t i = 0; fits && i + 2 < r->keypoint_count; i += 3) {
        mr_keypoint k = {.visibility =
                             (int)(r->keypoints[i + 2] > 0 && r->keypoints[i + 2] < 3 ? r->keypoints[i + 2] : 0)};
        if (mr_milli_of(r->keypoints[i], &k.x) && mr_milli_of(r->keypoints[i + 1], &k.y))
            mr_objects_keypoint(o, number, k);
        else
            r->bad = true;
    }
    r->bad = r->bad || !fits;
}

/* Discards the current object in favour of an earlier one. */
static void drop_last(mr_objects *o)
{
    const mr_object *object = &o->items[--o->count];
    if (object->ring_count)
        o->point_count = o->rings[object->ring].at;
    o->ring_count = object->ring;
    if (object->id_len)
        o->ids.len = object->id_at;
}

static void set_box(reader *r, mr_object *object)
{
    object->has_box = r->has_bbox && r->bbox_count == 4 && !r->bad_bbox;
    for (int i = 0; i < 4 && object->has_box; i++)
        object->has_box = mr_milli_of(r->bbox[i], &object->box[i]);
    r->bad = r->bad || (r->has_bbox && r->bbox_count && !object->has_box);
    if (object->has_box || !object->ring_count)
        return;
    const mr_ring *first = &r->out->rings[object->ring];
    mr_objects_box_around(r->out, r->out->points + first->at, r->out->point_count - first->at);
}

static bool is_shown(const reader *r, int32_t label)
{
    for (size_t i = 0; r->shown && label >= 0 && r->shown[i]; i++)
        if (r->shown[i][label])
            return true;
    return false;
}

static void end_annotation(reader *r)
{
    mr_objects *o = r->out;
    r->current = OTHER;
    r->bad = r->bad || r->shape.bad;
    if (o->failed)
        return;
    mr_object *object = &o->items[o->count - 1];
    if (is_shown(r, object->label)) {
        drop_last(o);
        return;
    }
    known key = {mr_buf_text(&o->ids) + object->id_at, object->id_len, 0}, *found = NULL;
    if (object->id_len && r->known_count)
        found = bsearch(&key, r->known, r->known_count, sizeof key, by_id);
    if (found) {
        drop_last(o);
        if (r->keypoint_count)
            add_keypoints(r, found->number);
    } else {
        set_box(r, object);
        if (r->keypoint_count)
            add_keypoints(r, o->count - 1);
        if (!object->has_box && !object->keypoint_count && r->bad)
            drop_last(o);
    }
    o->unreadable += r->bad;
}

static void take_key(reader *r, const mr_json_token *t)
{
    r->current = OTHER;
    for (int i = 1; i < MEMBERS; i++)
        if (t->len == strlen(words[i]) && !memcmp(t->text, words[i], t->len))
            r->current = (member)i;
    r->has_bbox = r->has_bbox || r->current == BBOX;
}

static mr_status take(void *ctx, const mr_json_token *t)
{
    reader *r = ctx;
    if (r->out->failed)
        return mr_fail_memory(r->err, "reading COCO annotations");
    if (t->depth == 1 && t->kind == MR_JSON_OBJECT)
        begin_annotation(r);
    else if (t->depth == 1 && t->kind == MR_JSON_OBJECT_END)
        end_annotation(r);
    else if (r->shape.polygons || r->shape.mask)
        mr_coco_segmentation_take(&r->shape, t, r->out);
    else if (t->depth == 2 && t->kind == MR_JSON_KEY)
        take_key(r, t);
    else if (t->depth == 2 && (t->kind == MR_JSON_LIST || t->kind == MR_JSON_OBJECT) && r->current == SEGMENTATION)
        mr_coco_segmentation_begin(&r->shape, t);
    else if (t->depth == 2 && t->kind == MR_JSON_BOOLEAN && r->current == CROWD)
        take_crowd(r, t);
    else if (t->kind == MR_JSON_NUMBER)
        return t->depth >= 2 ? take_number(r, t) : MR_OK;
    else if (t->kind == MR_JSON_STRING && t->depth == 2)
        return take_string(r, t);
    return MR_OK;
}

/* The objects of "segments_info", as if they were annotations. */
static mr_status take_segments(void *ctx, const mr_json_token *t)
{
    reader *r = ctx;
    mr_json_token inner = *t;
    if (t->depth == SEGMENTS_DEPTH && t->kind == MR_JSON_KEY)
        r->segments = t->len == strlen("segments_info") && !memcmp(t->text, "segments_info", t->len);
    if (!r->segments || t->depth <= SEGMENTS_DEPTH)
        return MR_OK;
    inner.depth -= SEGMENTS_DEPTH;
    return take(ctx, &inner);
}

/* ---- the image's size ------------------------------------------------------------------------------------------- */

typedef struct size_reader {
    mr_objects *out;
    uint32_t *current; /* "width" or "height" */
} size_reader;

static mr_status take_size(void *ctx, const mr_json_token *t)
{
    size_reader *r = ctx;
    if (t->depth != 1)
        return MR_OK;
    if (t->kind == MR_JSON_KEY)
        r->current = t->len == 5 && !memcmp(t->text, "width", 5)    ? &r->out->width
                     : t->len == 6 && !memcmp(t->text, "height", 6) ? &r->out->height
                                                                    : NULL;
    double value;
    if (r->current && t->kind == MR_JSON_NUMBER && mr_coco_number(t, &value) && value >= 0 && value <= UINT32_MAX)
        *r->current = (uint32_t)value;
    return MR_OK;
}

static void free_reader(reader *r)
{
    free(r->known);
    free(r->keypoints);
    mr_buf_free(&r->ids);
}

mr_status mr_coco_objects(const mr_source *s, const mr_coco_file *f, size_t n, const mr_plan *plan,
                          const uint8_t *const *shown, mr_objects *out, mr_error *err)
{
    static const char reading[] = "reading COCO annotations";
    bool panoptic = f->has & MR_COCO_HAS_SEGMENTS;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_AUTO(free_reader) reader r = {.plan = plan, .file = f, .shown = shown, .out = out, .err = err};
    size_reader size = {.out = out};
    const mr_json_rules rules = {.handler = panoptic ? take_segments : take,
                                 .ctx = &r,
                                 .levels = panoptic ? LEVELS + SEGMENTS_DEPTH : LEVELS,
                                 .depth_max = DEPTH_MAX};
    const mr_json_rules size_rules = {.handler = take_size, .ctx = &size, .levels = 2, .depth_max = DEPTH_MAX};
    out->known = true;
    MR_TRY(mr_coco_image_text(s, f, n, &text, err));
    MR_TRY(mr_json_text_read(&text, &size_rules, reading, err));
    mr_buf_clear(&text);
    if (!f->images[n].count)
        return MR_OK;
    MR_TRY(mr_coco_annotations(s, f, n, &text, err));
    MR_TRY(list_known(&r));
    return mr_json_text_read(&text, &rules, reading, err);
}

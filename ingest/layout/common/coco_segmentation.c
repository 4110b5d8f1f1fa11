/* coco_segmentation.c - see coco_segmentation.h.
 * Source: "Data format" on cocodataset.org; the other forms are those that tools are known to write.
 * Invariant: a polygon that is not valid is removed as a whole, and `bad` says so. */
#include "ingest/layout/common/coco_segmentation.h"

#include <stdlib.h>
#include <string.h>

#include "ingest/tables/coco_ids.h"

bool mr_coco_number(const mr_json_token *t, double *out)
{
    char text[64], *end;
    if (t->len >= sizeof text)
        return false;
    memcpy(text, t->text, t->len);
    text[t->len] = '\0';
    *out = strtod(text, &end);
    return *text && !*end;
}

/* ---- masks ------------------------------------------------------------------------------------------------------ */

static void take_run(mr_coco_segmentation *s, const mr_json_token *t)
{
    int64_t run = -1;
    if (!mr_coco_id_number(t->text, t->len, &run))
        run = -1;
    if (s->counts)
        mr_coco_rle_run(&s->rle, run);
    else if (s->size)
        mr_coco_rle_size(&s->rle, run);
}

/* Members of a mask. */
static void take_mask(mr_coco_segmentation *s, const mr_json_token *t, mr_objects *out)
{
    unsigned depth = s->mask_depth;
    if (t->depth == depth + 1 && t->kind == MR_JSON_KEY) {
        s->counts = t->len == strlen("counts") && !memcmp(t->text, "counts", t->len);
        s->size = t->len == strlen("size") && !memcmp(t->text, "size", t->len);
    } else if (t->depth == depth + 1 && t->kind == MR_JSON_STRING && s->counts) {
        mr_coco_rle_text(&s->rle, t->text, t->len);
    } else if (t->depth == depth + 2 && t->kind == MR_JSON_NUMBER) {
        take_run(s, t);
    } else if (t->depth == depth && t->kind == MR_JSON_OBJECT_END) {
        s->bad = s->bad || ((s->rle.any || s->rle.sizes) && !mr_coco_rle_fits(&s->rle, out->width, out->height));
        s->mask = false;
    }
}

static void begin_mask(mr_coco_segmentation *s, const mr_json_token *t)
{
    s->mask = true;
    s->mask_depth = t->depth;
    s->counts = s->size = false;
    s->rle = (mr_coco_rle){0};
}

void mr_coco_segmentation_begin(mr_coco_segmentation *s, const mr_json_token *t)
{
    s->polygons = t->kind == MR_JSON_LIST;
    s->flat = false;
    s->lists = s->pairs = 0;
    if (t->kind == MR_JSON_OBJECT)
        begin_mask(s, t);
}

/* ---- polygons --------------------------------------------------------------------------------------------------- */

static void take_point(mr_coco_segmentation *s, const mr_json_token *t, mr_objects *out)
{
    double value;
    if (!mr_coco_number(t, &value) || !mr_milli_of(value, &s->point[s->numbers & 1])) {
        s->bad_ring = true;
        return;
    }
    if (s->numbers++ & 1 && !s->bad_ring)
        mr_objects_point(out, s->point[0], s->point[1]);
}

static void begin_ring(mr_coco_segmentation *s, mr_objects *out)
{
    s->numbers = 0;
    s->bad_ring = false;
    if (!s->pairs)
        mr_objects_ring(out);
}

static void drop_ring(mr_coco_segmentation *s, mr_objects *out)
{
    out->point_count = out->rings[--out->ring_count].at;
    out->items[out->count - 1].ring_count--;
    s->pairs = 0;
}

static void end_ring(mr_coco_segmentation *s, mr_objects *out)
{
    bool first = !s->lists++;
    if (out->failed)
        return;
    if (s->numbers == 2 && !s->bad_ring && (first || s->pairs)) {
        s->pairs++;
        return;
    }
    if (!s->pairs && s->numbers >= 6 && !(s->numbers & 1) && !s->bad_ring)
        return;
    s->bad = s->bad || s->numbers || s->bad_ring || s->pairs;
    drop_ring(s, out);
}

/* At the end of the segmentation. */
static void end_polygons(mr_coco_segmentation *s, mr_objects *out)
{
    s->polygons = false;
    if (s->flat)
        end_ring(s, out);
    if (!out->failed && s->pairs && (s->pairs < 3 || s->flat)) {
        s->bad = true;
        drop_ring(s, out);
    }
}

static void take_polygons(mr_coco_segmentation *s, const mr_json_token *t, mr_objects *out)
{
    bool number = t->kind == MR_JSON_NUMBER;
    if (t->depth == 2 && t->kind == MR_JSON_LIST_END) {
        end_polygons(s, out);
    } else if (t->depth == 3 && t->kind == MR_JSON_OBJECT) {
        begin_mask(s, t);
    } else if (t->depth == 3 && t->kind == MR_JSON_LIST) {
        if (s->flat)
            end_ring(s, out);
        s->bad = s->bad || s->flat;
        s->flat = false;
        begin_ring(s, out);
    } else if (t->depth == 3 && t->kind == MR_JSON_LIST_END) {
        end_ring(s, out);
    } else if (t->depth == 3 && number) {
        if (!s->flat)
            begin_ring(s, out);
        s->flat = true;
        take_point(s, t, out);
    } else if (number) {
        take_point(s, t, out);
    } else if (t->depth == 4 && t->kind != MR_JSON_LIST) {
        s->bad_ring = s->bad_ring || t->kind != MR_JSON_LIST_END || s->numbers & 1;
    } else if (t->kind != MR_JSON_LIST) {
        s->bad = true;
    }
}

void mr_coco_segmentation_take(mr_coco_segmentation *s, const mr_json_token *t, mr_objects *out)
{
    if (s->mask)
        take_mask(s, t, out);
    else
        take_polygons(s, t, out);
}

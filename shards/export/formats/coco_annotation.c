/* coco_annotation.c - one object as an annotation of COCO.
 * Source: "Data format" on cocodataset.org: bbox is x, y, width, height; segmentation a list of polygons, or a mask in
 * run lengths; area in square pixels, that of the segmentation; keypoints x, y, v in a row.
 * Invariant: every number is that of `objects`, or the source's own text. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "shards/export/formats/coco.h"

static void add_numbers(mr_buf *out, const mr_milli *numbers, size_t count)
{
    mr_buf_add(out, "[", 1);
    for (size_t i = 0; i < count; i++) {
        if (i)
            mr_buf_add(out, ",", 1);
        mr_milli_write(numbers[i], out);
    }
    mr_buf_add(out, "]", 1);
}

/* Twice the area, by the shoelace formula, in thousandths of square pixels. */
static double ring_area(const mr_milli *p, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i + 1 < count; i += 2) {
        size_t next = i + 3 < count ? i + 2 : 0;
        sum += (double)p[i] * (double)p[next + 1] - (double)p[next] * (double)p[i + 1];
    }
    return fabs(sum) / 1000;
}

static mr_milli area_of(const mr_export_annotation *a, const mr_milli box[4])
{
    const mr_object *o = a->object;
    double twice = 0;
    for (size_t i = 0; i < o->ring_count; i++) {
        const mr_ring *ring = &a->objects->rings[o->ring + i];
        twice += ring_area(a->objects->points + ring->at, ring->count);
    }
    if (!o->ring_count && o->oriented)
        twice = ring_area(o->corners, 8);
    else if (!o->ring_count)
        twice = 2 * (double)box[2] * (double)box[3] / 1000;
    return twice / 2 < 4e18 ? llround(twice / 2) : 0;
}

static void add_segmentation(const mr_export_annotation *a, mr_buf *out)
{
    const mr_object *o = a->object;
    mr_buf_add_text(out, ",\"segmentation\":");
    if (a->raw && a->raw->mask.len) {
        mr_buf_add(out, a->meta + a->raw->mask.at, a->raw->mask.len);
        return;
    }
    mr_buf_add(out, "[", 1);
    for (size_t i = 0; i < o->ring_count; i++) {
        const mr_ring *ring = &a->objects->rings[o->ring + i];
        mr_buf_add_text(out, i ? "," : "");
        add_numbers(out, a->objects->points + ring->at, ring->count);
    }
    if (!o->ring_count && o->oriented)
        add_numbers(out, o->corners, 8);
    mr_buf_add(out, "]", 1);
}

static void add_keypoints(const mr_export_annotation *a, mr_buf *out)
{
    const mr_object *o = a->object;
    size_t labelled = 0;
    for (size_t i = 0; i < o->keypoint_count; i++) {
        const mr_keypoint *k = &a->objects->keypoints[o->keypoint + i];
        mr_buf_add_text(out, i ? "," : ",\"keypoints\":[");
        mr_milli_write(k->x, out);
        mr_buf_add(out, ",", 1);
        mr_milli_write(k->y, out);
        mr_buf_printf(out, ",%d", k->visibility);
        labelled += k->visibility > 0;
    }
    if (o->keypoint_count)
        mr_buf_printf(out, "],\"num_keypoints\":%zu", labelled);
}

/* The object's box, or the one around its labelled keypoints. */
static bool find_box(const mr_export_annotation *a, mr_milli box[4])
{
    const mr_object *o = a->object;
    mr_milli low[2] = {INT64_MAX, INT64_MAX}, high[2] = {INT64_MIN, INT64_MIN};
    memcpy(box, o->box, sizeof o->box);
    for (size_t i = 0; i < o->keypoint_count && !o->has_box; i++) {
        const mr_keypoint *k = &a->objects->keypoints[o->keypoint + i];
        const mr_milli at[2] = {k->x, k->y};
        for (int c = 0; c < 2 && k->visibility; c++) {
            low[c] = at[c] < low[c] ? at[c] : low[c];
            high[c] = at[c] > high[c] ? at[c] : high[c];
        }
    }
    if (o->has_box || low[0] > high[0])
        return o->has_box;
    memcpy(box, (mr_milli[]){low[0], low[1], high[0] - low[0], high[1] - low[1]}, sizeof o->box);
    return true;
}

bool mr_export_annotation_write(const mr_export_annotation *a, mr_buf *out)
{
    mr_milli box[4];
    if (!find_box(a, box))
        return false;
    mr_buf_printf(out, "{\"id\":%" PRId64 ",\"image_id\":%" PRId64 ",\"category_id\":%" PRId64 ",\"bbox\":", a->id,
                  a->image, a->category);
    add_numbers(out, box, 4);
    mr_buf_add_text(out, ",\"area\":");
    if (a->raw && a->raw->area.len)
        mr_buf_add(out, a->meta + a->raw->area.at, a->raw->area.len);
    else
        mr_milli_write(area_of(a, box), out);
    mr_buf_printf(out, ",\"iscrowd\":%d", a->object->crowd);
    add_segmentation(a, out);
    add_keypoints(a, out);
    mr_buf_add(out, "}", 1);
    return true;
}

/* objects.c - the objects of one image: collected, turned back, written.
 * Invariant: an object's polygons and keypoints are runs of the arrays, and objects have theirs in order. */
#include "shards/format/objects.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { PIXELS_MAX = 1000000, NAME_MAX_LEN = 255 }; /* a longer name is in the manifest alone: no file repeats it */

void mr_objects_clear(mr_objects *o)
{
    mr_objects kept = *o;
    mr_buf_clear(&kept.ids);
    *o = (mr_objects){.items = kept.items,
                      .capacity = kept.capacity,
                      .rings = kept.rings,
                      .ring_capacity = kept.ring_capacity,
                      .points = kept.points,
                      .point_capacity = kept.point_capacity,
                      .keypoints = kept.keypoints,
                      .keypoint_capacity = kept.keypoint_capacity,
                      .ids = kept.ids};
}

void mr_objects_free(mr_objects *o)
{
    free(o->items);
    free(o->rings);
    free(o->points);
    free(o->keypoints);
    mr_buf_free(&o->ids);
    *o = (mr_objects){0};
}

bool mr_milli_of(double pixels, mr_milli *out)
{
    if (!(fabs(pixels) <= PIXELS_MAX))
        return false;
    *out = llround(pixels * 1000);
    return true;
}

mr_object *mr_objects_add(mr_objects *o, int32_t label)
{
    if (o->failed || !MR_GROW(o->items, o->count, o->capacity)) {
        o->failed = true;
        return NULL;
    }
    o->items[o->count] = (mr_object){.label = label, .ring = o->ring_count, .keypoint = o->keypoint_count};
    return &o->items[o->count++];
}

void mr_objects_ring(mr_objects *o)
{
    if (o->failed || !MR_GROW(o->rings, o->ring_count, o->ring_capacity)) {
        o->failed = true;
        return;
    }
    o->rings[o->ring_count++] = (mr_ring){.at = o->point_count};
    o->items[o->count - 1].ring_count++;
}

static void add_number(mr_objects *o, mr_milli number)
{
    if (o->failed || !MR_GROW(o->points, o->point_count, o->point_capacity)) {
        o->failed = true;
        return;
    }
    o->points[o->point_count++] = number;
    o->rings[o->ring_count - 1].count++;
}

void mr_objects_point(mr_objects *o, mr_milli x, mr_milli y)
{
    add_number(o, x);
    add_number(o, y);
}

void mr_objects_keypoint(mr_objects *o, size_t number, mr_keypoint k)
{
    if (o->failed || !MR_GROW(o->keypoints, o->keypoint_count, o->keypoint_capacity)) {
        o->failed = true;
        return;
    }
    mr_object *object = &o->items[number];
    if (!object->keypoint_count++)
        object->keypoint = o->keypoint_count;
    o->keypoints[o->keypoint_count++] = k;
}

void mr_objects_id(mr_objects *o, const char *json, size_t len)
{
    mr_object *object = &o->items[o->count - 1];
    object->id_at = o->ids.len;
    object->id_len = len;
    mr_buf_add(&o->ids, json, len);
    o->failed = o->failed || o->ids.failed;
}

void mr_objects_box_around(mr_objects *o, const mr_milli *numbers, size_t count)
{
    mr_milli low[2] = {INT64_MAX, INT64_MAX}, high[2] = {INT64_MIN, INT64_MIN};
    mr_object *object = &o->items[o->count - 1];
    for (size_t i = 0; i < count; i++) {
        low[i & 1] = numbers[i] < low[i & 1] ? numbers[i] : low[i & 1];
        high[i & 1] = numbers[i] > high[i & 1] ? numbers[i] : high[i & 1];
    }
    object->has_box = count >= 2;
    for (int i = 0; i < 2 && object->has_box; i++) {
        object->box[i] = low[i];
        object->box[2 + i] = high[i] - low[i];
    }
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

void mr_milli_write(mr_milli value, mr_buf *out)
{
    char text[32], *at = text + sizeof text;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value, fraction = rest % 1000;
    rest /= 1000;
    if (fraction) {
        for (int digits = 3; digits; digits--, fraction /= 10)
            if (at != text + sizeof text || fraction % 10)
                *--at = (char)('0' + fraction % 10);
        *--at = '.';
    }
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        *--at = '-';
    mr_buf_add(out, at, (size_t)(text + sizeof text - at));
}

/* [1,2.5]; the list's name and a comma before it, if there is one. */
static void add_list(mr_buf *out, const char *name, const mr_milli *numbers, size_t count)
{
    if (name)
        mr_buf_printf(out, ",\"%s\":", name);
    mr_buf_add_text(out, "[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            mr_buf_add(out, ",", 1);
        mr_milli_write(numbers[i], out);
    }
    mr_buf_add(out, "]", 1);
}

static void write_object(const mr_objects *o, const mr_object *object, const mr_class *classes, size_t class_count,
                         mr_buf *out)
{
    if (object->label >= 0) {
        mr_buf_printf(out, ",\"label\":%" PRId32, object->label);
        const char *name = (size_t)object->label < class_count ? classes[object->label].name : NULL;
        size_t len = name ? strnlen(name, NAME_MAX_LEN + 1) : 0;
        if (name && len <= NAME_MAX_LEN) {
            mr_buf_add_text(out, ",\"class\":");
            mr_json_add_string(out, name, len);
        }
    }
    if (object->has_box)
        add_list(out, "box", object->box, 4);
    for (size_t i = 0; i < object->ring_count; i++) {
        const mr_ring *ring = &o->rings[object->ring + i];
        mr_buf_add_text(out, i ? "," : ",\"polygons\":[");
        add_list(out, NULL, o->points + ring->at, ring->count);
    }
    mr_buf_add_text(out, object->ring_count ? "]" : "");
    if (object->oriented)
        add_list(out, "oriented_box", object->corners, 8);
    for (size_t i = 0; i < object->keypoint_count; i++) {
        const mr_keypoint *k = &o->keypoints[object->keypoint + i];
        const mr_milli numbers[3] = {k->x, k->y, (mr_milli)k->visibility * 1000};
        mr_buf_add_text(out, i ? "," : ",\"keypoints\":[");
        add_list(out, NULL, numbers, 3);
    }
    mr_buf_add_text(out, object->keypoint_count ? "]" : "");
    mr_buf_add_text(out, object->crowd ? ",\"crowd\":true" : "");
    if (object->id_len) {
        mr_buf_add_text(out, ",\"id\":");
        mr_buf_add(out, o->ids.data + object->id_at, object->id_len);
    }
}

void mr_objects_write(const mr_objects *o, const mr_class *classes, size_t class_count, mr_buf *out)
{
    mr_buf_add_text(out, ",\"objects\":[");
    for (size_t i = 0; i < o->count; i++) {
        mr_buf_add_text(out, i ? ",{" : "{");
        size_t at = out->len;
        write_object(o, &o->items[i], classes, class_count, out);
        if (!out->failed && out->len > at) { /* the first member needs no comma */
            memmove(out->data + at, out->data + at + 1, out->len - at - 1);
            out->len--;
        }
        mr_buf_add_text(out, "}");
    }
    mr_buf_add_text(out, "]");
    out->failed = out->failed || o->failed;
}

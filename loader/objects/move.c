/* move.c - the objects of one image, moved to where its pixels are delivered; see move.h.
 * Invariant: an object is taken with all of its parts, or not at all. */
#include "loader/objects/move.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"

void mr_moved_clear(mr_moved *m)
{
    m->count = m->ring_count = m->number_count = m->keypoint_count = 0;
}

void mr_moved_free(mr_moved *m)
{
    free(m->objects);
    free(m->rings);
    free(m->numbers);
    free(m->keypoints);
    *m = (mr_moved){0};
}

void mr_mover_free(mr_mover *m)
{
    mr_objects_free(&m->objects);
    mr_buf_free(&m->meta);
    mr_buf_free(&m->base64);
    free(m->path.at);
    free(m->other.at);
    mr_buf_free(&m->png);
    mr_buf_free(&m->numbers);
    mr_buf_free(&m->steps);
    *m = (mr_mover){0};
}

/* ---- one coordinate --------------------------------------------------------------------------------------------- */

typedef struct move {
    const mr_view *view;
    const mr_object_rules *rules;
} move;

static double across(const move *m, mr_milli x)
{
    const mr_view *v = m->view;
    double at = ((double)x / 1000 - v->left) * v->out_width / v->width - v->crop_left + v->pad_left;
    return v->flip ? m->rules->width - at : at;
}

static double down(const move *m, mr_milli y)
{
    const mr_view *v = m->view;
    return ((double)y / 1000 - v->top) * v->out_height / v->height - v->crop_top + v->pad_top;
}

static double within(double at, double limit)
{
    return at < 0 ? 0 : at > limit ? limit : at;
}

/* ---- boxes ------------------------------------------------------------------------------------------------------ */

typedef struct sides {
    double left, top, right, bottom;
} sides;

static sides around_nothing(void)
{
    return (sides){INFINITY, INFINITY, -INFINITY, -INFINITY};
}

static void include(sides *s, double x, double y)
{
    s->left = fmin(s->left, x);
    s->right = fmax(s->right, x);
    s->top = fmin(s->top, y);
    s->bottom = fmax(s->bottom, y);
}

/* Its box; without one, that around its polygons and corners, or around its keypoints. */
static sides place_of(const move *m, const mr_objects *o, const mr_object *object)
{
    sides s = around_nothing();
    if (object->has_box) {
        const mr_milli *b = object->box;
        include(&s, across(m, b[0]), down(m, b[1]));
        include(&s, across(m, b[0] + b[2]), down(m, b[1] + b[3]));
        return s;
    }
    for (size_t i = 0; i < object->ring_count; i++) {
        const mr_ring *ring = &o->rings[object->ring + i];
        for (size_t k = 0; k + 1 < ring->count; k += 2)
            include(&s, across(m, o->points[ring->at + k]), down(m, o->points[ring->at + k + 1]));
    }
    for (size_t k = 0; object->oriented && k < 8; k += 2)
        include(&s, across(m, object->corners[k]), down(m, object->corners[k + 1]));
    for (size_t i = 0; i < object->keypoint_count && s.left > s.right; i++) {
        const mr_keypoint *k = &o->keypoints[object->keypoint + i];
        if (k->visibility)
            include(&s, across(m, k->x), down(m, k->y));
    }
    return s;
}

static double area(const sides *s)
{
    return (s->right - s->left) * (s->bottom - s->top);
}

/* False: too little of it is in the image; an object without a place has nothing there. */
static bool clip_box(const mr_object_rules *r, const sides *whole, float box[4])
{
    if (!(whole->left <= whole->right))
        return false;
    const sides s = {within(whole->left, r->width), within(whole->top, r->height), within(whole->right, r->width),
                     within(whole->bottom, r->height)};
    if (!(s.right - s.left >= r->least_side && s.bottom - s.top >= r->least_side) ||
        area(&s) < r->least_visible * area(whole))
        return false;
    box[0] = (float)s.left;
    box[1] = (float)s.top;
    box[2] = (float)s.right;
    box[3] = (float)s.bottom;
    return true;
}

/* ---- polygons and keypoints ------------------------------------------------------------------------------------- */

static bool add_number(mr_moved *out, double value)
{
    if (!MR_GROW(out->numbers, out->number_count, out->number_capacity))
        return false;
    out->numbers[out->number_count++] = (float)value;
    return true;
}

/* A polygon of which less than a triangle is left is left out. */
static bool add_polygon(mr_mover *m, const move *way, const mr_milli *numbers, size_t count, mr_moved *out)
{
    m->path.count = 0;
    for (size_t k = 0; k + 1 < count; k += 2)
        if (!mr_path_point(&m->path, across(way, numbers[k]), down(way, numbers[k + 1])))
            return false;
    if (!mr_path_clip(&m->path, &m->other, way->rules->width, way->rules->height))
        return false;
    if (m->path.count < 6)
        return true;
    if (!MR_GROW(out->rings, out->ring_count, out->ring_capacity))
        return false;
    out->rings[out->ring_count++] = (uint32_t)(m->path.count / 2);
    out->objects[out->count - 1].polygons++;
    for (size_t i = 0; i < m->path.count; i++)
        if (!add_number(out, m->path.at[i]))
            return false;
    return true;
}

/* An oriented box without polygons is a polygon of four corners. */
static bool add_polygons(mr_mover *m, const move *way, const mr_object *object, mr_moved *out)
{
    const mr_objects *o = &m->objects;
    for (size_t i = 0; i < object->ring_count; i++) {
        const mr_ring *ring = &o->rings[object->ring + i];
        if (!add_polygon(m, way, o->points + ring->at, ring->count, out))
            return false;
    }
    return object->ring_count || !object->oriented || add_polygon(m, way, object->corners, 8, out);
}

/* All of them, so that their number says what they are; one that is not in the image is three zeros. */
static bool add_keypoints(const move *way, const mr_objects *o, const mr_object *object, mr_moved *out)
{
    for (size_t i = 0; i < object->keypoint_count; i++) {
        const mr_keypoint *k = &o->keypoints[object->keypoint + i];
        double x = across(way, k->x), y = down(way, k->y);
        bool in = k->visibility && x >= 0 && x <= way->rules->width && y >= 0 && y <= way->rules->height;
        const float numbers[3] = {in ? (float)x : 0, in ? (float)y : 0, in ? (float)k->visibility : 0};
        for (int n = 0; n < 3; n++) {
            if (!MR_GROW(out->keypoints, out->keypoint_count, out->keypoint_capacity))
                return false;
            out->keypoints[out->keypoint_count++] = numbers[n];
        }
        out->objects[out->count - 1].keypoints++;
    }
    return true;
}

bool mr_objects_move(mr_mover *m, const mr_view *v, const mr_object_rules *rules, mr_moved *out)
{
    const mr_objects *o = &m->objects;
    const move way = {v, rules};
    mr_moved_clear(out);
    for (size_t i = 0; i < o->count; i++) {
        const mr_object *object = &o->items[i];
        const sides whole = place_of(&way, o, object);
        mr_moved_object moved = {.label = object->label, .number = (uint32_t)i, .crowd = object->crowd};
        if (!clip_box(rules, &whole, moved.box))
            continue;
        if (!MR_GROW(out->objects, out->count, out->capacity))
            return false;
        out->objects[out->count++] = moved;
        if (!add_polygons(m, &way, object, out) || !add_keypoints(&way, o, object, out))
            return false;
    }
    return true;
}

/* join.c - the objects of all slots as the arrays of mr_batch_objects.
 * Invariant: they are in one block of memory, which begins with the mr_batch_objects and moves with it.
 *
 *   | mr_batch_objects | first, object by slot | first polygon, keypoint by object | first point by polygon | boxes |
 * ... */
#include <string.h>

#include "base/error.h"
#include "base/scope.h"
#include "loader/objects/move.h"

enum { ALIGN = 8 };

typedef struct sizes {
    uint64_t objects, polygons, points, keypoints;
} sizes;

static sizes count_all(const mr_moved *slots, uint64_t count)
{
    sizes s = {0};
    for (uint64_t i = 0; i < count; i++) {
        s.objects += slots[i].count;
        s.polygons += slots[i].ring_count;
        s.points += slots[i].number_count / 2;
        s.keypoints += slots[i].keypoint_count / 3;
    }
    return s;
}

typedef struct layout {
    uint8_t *base; /* NULL: only counts */
    size_t used;
} layout;

static void *take(layout *l, uint64_t count, size_t size)
{
    size_t at = l->used;
    l->used += ((size_t)count * size + ALIGN - 1) / ALIGN * ALIGN;
    return l->base ? l->base + at : NULL;
}

typedef struct arrays {
    uint64_t *first, *first_polygon, *first_point, *first_keypoint;
    float *boxes, *points, *keypoints;
    int32_t *labels;
    uint32_t *numbers;
    uint8_t *crowd;
} arrays;

static arrays lay_out(layout *l, uint64_t slots, const sizes *s)
{
    l->used = (sizeof(mr_batch_objects) + ALIGN - 1) / ALIGN * ALIGN;
    return (arrays){
        .first = take(l, slots + 1, sizeof(uint64_t)),
        .first_polygon = take(l, s->objects + 1, sizeof(uint64_t)),
        .first_point = take(l, s->polygons + 1, sizeof(uint64_t)),
        .first_keypoint = take(l, s->objects + 1, sizeof(uint64_t)),
        .boxes = take(l, s->objects, 4 * sizeof(float)),
        .points = take(l, s->points, 2 * sizeof(float)),
        .keypoints = take(l, s->keypoints, 3 * sizeof(float)),
        .labels = take(l, s->objects, sizeof(int32_t)),
        .numbers = take(l, s->objects, sizeof(uint32_t)),
        .crowd = take(l, s->objects, 1),
    };
}

static void copy(void *to, const void *from, size_t bytes)
{
    if (bytes)
        memcpy(to, from, bytes);
}

/* `done`: what the slots before have. */
static void add_slot(const arrays *a, const mr_moved *m, sizes *done)
{
    copy(a->points + 2 * done->points, m->numbers, m->number_count * sizeof(float));
    copy(a->keypoints + 3 * done->keypoints, m->keypoints, m->keypoint_count * sizeof(float));
    for (size_t i = 0; i < m->ring_count; i++) {
        done->points += m->rings[i];
        a->first_point[++done->polygons] = done->points;
    }
    done->polygons -= m->ring_count;
    for (size_t i = 0; i < m->count; i++) {
        const mr_moved_object *object = &m->objects[i];
        uint64_t at = done->objects++;
        memcpy(a->boxes + 4 * at, object->box, sizeof object->box);
        a->labels[at] = object->label;
        a->numbers[at] = object->number;
        a->crowd[at] = object->crowd;
        a->first_polygon[at + 1] = done->polygons += object->polygons;
        a->first_keypoint[at + 1] = done->keypoints += object->keypoints;
    }
}

mr_status mr_objects_join(const mr_moved *slots, uint64_t count, mr_slab *memory, mr_error *err)
{
    sizes all = count_all(slots, count), done = {0};
    layout l = {NULL, 0};
    lay_out(&l, count, &all);
    MR_TRY(mr_slab_reserve(memory, l.used, 0, NULL, err));
    if (!memory->data)
        return mr_fail_memory(err, "making a batch"); /* for analyzers: what was reserved is there */
    l.base = memory->data;
    arrays a = lay_out(&l, count, &all);
    a.first[0] = a.first_polygon[0] = a.first_point[0] = a.first_keypoint[0] = 0;
    for (uint64_t i = 0; i < count; i++) {
        add_slot(&a, &slots[i], &done);
        a.first[i + 1] = done.objects;
    }
    *(mr_batch_objects *)(void *)memory->data = (mr_batch_objects){
        .objects = all.objects,
        .polygons = all.polygons,
        .points = all.points,
        .keypoints = all.keypoints,
        .first_object = a.first,
        .labels = a.labels,
        .boxes = a.boxes,
        .crowd = a.crowd,
        .number = a.numbers,
        .first_polygon = a.first_polygon,
        .first_point = a.first_point,
        .point = a.points,
        .first_keypoint = a.first_keypoint,
        .keypoint = a.keypoints,
    };
    return MR_OK;
}

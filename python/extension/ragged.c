/* ragged.c - what the samples of a batch show: values, and where those of each sample, object or polygon begin.
 * Invariant: what is handed out is a copy of its own; it does not keep the batch's memory. */
#include <stddef.h>
#include <string.h>

#include "module.h"

typedef enum level { BY_OBJECT, BY_POINT, BY_KEYPOINT } level;

typedef struct values {
    const char *name;
    level level;
    size_t bytes; /* bytes of one item */
    size_t offset;
} values;

#define VALUES(name, level, bytes)                                                                                     \
    {                                                                                                                  \
#name, level, bytes, offsetof(mr_batch_objects, name)                                                          \
    }

static const values all_values[] = {
    VALUES(labels, BY_OBJECT, sizeof(int32_t)),
    VALUES(boxes, BY_OBJECT, 4 * sizeof(float)),
    VALUES(crowd, BY_OBJECT, 1),
    VALUES(number, BY_OBJECT, sizeof(uint32_t)),
    VALUES(point, BY_POINT, 2 * sizeof(float)),
    VALUES(keypoint, BY_KEYPOINT, 3 * sizeof(float)),
};

typedef struct starts {
    const char *name;
    size_t offset;
} starts;

static const starts all_starts[] = {
    {"first_object", offsetof(mr_batch_objects, first_object)},
    {"first_polygon", offsetof(mr_batch_objects, first_polygon)},
    {"first_point", offsetof(mr_batch_objects, first_point)},
    {"first_keypoint", offsetof(mr_batch_objects, first_keypoint)},
};

static uint64_t count_of(const mr_batch_objects *t, level of)
{
    return of == BY_OBJECT ? t->objects : of == BY_POINT ? t->points : t->keypoints;
}

/* The array that the member at `offset` points to. */
static PyObject *copy_of(const mr_batch_objects *t, size_t offset, uint64_t bytes)
{
    const char *from;
    memcpy(&from, (const char *)t + offset, sizeof from);
    return PyByteArray_FromStringAndSize(from, (Py_ssize_t)bytes);
}

static uint64_t start_count(const mr_batch *batch, const starts *s)
{
    const mr_batch_objects *t = batch->objects;
    if (s == &all_starts[0])
        return batch->count + 1;
    return (s == &all_starts[2] ? t->polygons : t->objects) + 1;
}

PyObject *batch_objects(PyObject *object, PyObject *name)
{
    const mr_batch *batch = batch_held(object);
    const char *text = batch ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    if (!text)
        return NULL;
    if (!batch->objects)
        return fail(Py_TYPE(object),
                    &(mr_error){MR_MISUSE, "the batch has no objects: the loader was opened without with_objects"});
    for (size_t i = 0; i < sizeof all_values / sizeof *all_values; i++) {
        const values *v = &all_values[i];
        if (strcmp(v->name, text) == 0)
            return copy_of(batch->objects, v->offset, count_of(batch->objects, v->level) * v->bytes);
    }
    for (size_t i = 0; i < sizeof all_starts / sizeof *all_starts; i++)
        if (strcmp(all_starts[i].name, text) == 0)
            return copy_of(batch->objects, all_starts[i].offset, start_count(batch, &all_starts[i]) * sizeof(uint64_t));
    PyErr_SetObject(PyExc_KeyError, name);
    return NULL;
}

/* options.c - a loader's options from a dict: the members of mr_loader_options and mr_transform by name.
 * Invariant: an unknown name is an error, so that nothing a user asks for is ignored. */
#include <stddef.h>
#include <string.h>

#include "module.h"

typedef enum kind { U32, U64, FLAG, FLOAT, FLOAT2, FLOAT3, NAME } kind;

typedef struct member {
    const char *name;
    kind kind;
    size_t offset;
} member;

#define MEMBER(name, kind)                                                                                             \
    {                                                                                                                  \
#name, kind, offsetof(mr_loader_options, name)                                                                 \
    }
#define TRANSFORM(name, kind)                                                                                          \
    {                                                                                                                  \
#name, kind, offsetof(mr_loader_options, transform.name)                                                       \
    }

#define AUGMENT(name, kind)                                                                                            \
    {                                                                                                                  \
#name, kind, offsetof(mr_loader_options, augment.name)                                                         \
    }

static const member members[] = {
    MEMBER(global_batch, U64),   MEMBER(rank, U32),           MEMBER(world, U32),
    MEMBER(threads, U32),        MEMBER(prefetch, U32),       MEMBER(seed, U64),
    MEMBER(shuffle, U32),        MEMBER(window_bytes, U64),   MEMBER(tail, U32),
    MEMBER(deliver, U32),        MEMBER(on_bad, U32),         MEMBER(max_bad, U64),
    MEMBER(with_meta, FLAG),     MEMBER(epochs, U64),         MEMBER(max_pixels, U64),
    MEMBER(with_objects, FLAG),  MEMBER(with_masks, FLAG),    MEMBER(mask, NAME),
    MEMBER(height, U32),         MEMBER(object_side, FLOAT),  MEMBER(object_visible, FLOAT),
    AUGMENT(brightness, FLOAT2), AUGMENT(contrast, FLOAT2),   AUGMENT(saturation, FLOAT2),
    AUGMENT(hue, FLOAT2),        AUGMENT(grey, FLOAT),        AUGMENT(erase, FLOAT),
    AUGMENT(blur, FLOAT),        AUGMENT(sigma, FLOAT2),      AUGMENT(randaugment, U32),
    AUGMENT(magnitude, U32),     AUGMENT(trivial, FLAG),      MEMBER(mixup, FLOAT),
    MEMBER(cutmix, FLOAT),       TRANSFORM(kind, U32),        TRANSFORM(size, U32),
    TRANSFORM(resize, U32),      TRANSFORM(scale_min, FLOAT), TRANSFORM(ratio_min, FLOAT),
    TRANSFORM(ratio_max, FLOAT), MEMBER(view, U32),           TRANSFORM(scale_max, FLOAT),
    TRANSFORM(flip, FLOAT),      TRANSFORM(bicubic, FLAG),    TRANSFORM(apply_orientation, FLAG),
    TRANSFORM(mean, FLOAT3),     TRANSFORM(std, FLOAT3),      TRANSFORM(libjpeg, FLAG),
    TRANSFORM(unrounded, FLAG),
};

static int read_float(PyObject *value, float *to)
{
    double number = PyFloat_AsDouble(value);
    *to = (float)number;
    return PyErr_Occurred() ? -1 : 0;
}

static int read_floats(PyObject *value, Py_ssize_t count, float *to)
{
    if (PySequence_Size(value) != count) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "mean and std take three numbers, one per colour; ranges two");
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(value, i);
        int failed = item ? read_float(item, &to[i]) : -1;
        Py_XDECREF(item);
        if (failed)
            return -1;
    }
    return 0;
}

/* All of the member is filled, so that the loader sees a text that is too long. */
static int read_name(PyObject *value, char *to)
{
    const char *text = PyUnicode_AsUTF8AndSize(value, NULL);
    if (text)
        strncpy(to, text, sizeof(((mr_loader_options *)NULL)->mask));
    return text ? 0 : -1;
}

static int read_member(const member *m, PyObject *value, char *to)
{
    if (m->kind == NAME)
        return read_name(value, to + m->offset);
    if (m->kind == FLOAT)
        return read_float(value, (float *)(void *)(to + m->offset));
    if (m->kind == FLOAT2 || m->kind == FLOAT3)
        return read_floats(value, m->kind == FLOAT2 ? 2 : 3, (float *)(void *)(to + m->offset));
    unsigned long long number = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred())
        return -1;
    if (m->kind != U64 && number > UINT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%s: %llu is too large", m->name, number);
        return -1;
    }
    if (m->kind == U64)
        memcpy(to + m->offset, &number, sizeof number);
    else
        memcpy(to + m->offset, &(uint32_t){(uint32_t)number}, sizeof(uint32_t));
    return 0;
}

static int read_items(Loader *self, PyObject *value, mr_loader_options *out)
{
    if (PyObject_GetBuffer(value, &self->item_view, PyBUF_SIMPLE) < 0)
        return -1;
    Py_INCREF(value);
    self->items = value;
    out->items = self->item_view.buf;
    out->item_count = (uint64_t)self->item_view.len / sizeof(uint64_t);
    return 0;
}

int read_options(Loader *self, PyObject *options, mr_loader_options *out)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(options, &position, &key, &value)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        size_t i = 0;
        if (!name)
            return -1;
        if (strcmp(name, "items") == 0) {
            if (read_items(self, value, out) < 0)
                return -1;
            continue;
        }
        while (i < sizeof members / sizeof *members && strcmp(members[i].name, name) != 0)
            i++;
        if (i == sizeof members / sizeof *members) {
            PyErr_Format(PyExc_TypeError, "a loader has no option %s", name);
            return -1;
        }
        if (read_member(&members[i], value, (char *)out) < 0)
            return -1;
    }
    return 0;
}

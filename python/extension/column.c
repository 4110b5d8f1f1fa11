/* column.c - one number per sample of a batch: its label, its weight, its place in the crop.
 * Invariant: a column is a copy of its own; it does not keep the batch's memory. */
#include <string.h>

#include "dlpack.h"
#include "module.h"

typedef struct column { /* a column of int64 or float32: one of the two is present */
    const char *name;
    int64_t (*integer)(const mr_sample_facts *);
    float (*real)(const mr_sample_facts *);
} column;

#define INTEGER(member)                                                                                                \
    static int64_t get_##member(const mr_sample_facts *f)                                                              \
    {                                                                                                                  \
        return (int64_t)f->member;                                                                                     \
    }
INTEGER(label)
INTEGER(sample)
INTEGER(item)
INTEGER(width)
INTEGER(height)
INTEGER(codec)
INTEGER(orientation)
INTEGER(left)
INTEGER(top)
INTEGER(crop_width)
INTEGER(crop_height)
INTEGER(flip)
INTEGER(offset)
INTEGER(length)
INTEGER(other)
INTEGER(other_label)

static float get_weight(const mr_sample_facts *f)
{
    return f->weight;
}

static float get_share(const mr_sample_facts *f)
{
    return f->share;
}

static const column columns[] = {
    {"label", get_label, NULL},
    {"weight", NULL, get_weight},
    {"share", NULL, get_share},
    {"other", get_other, NULL},
    {"other_label", get_other_label, NULL},
    {"sample", get_sample, NULL},
    {"item", get_item, NULL},
    {"width", get_width, NULL},
    {"height", get_height, NULL},
    {"codec", get_codec, NULL},
    {"orientation", get_orientation, NULL},
    {"left", get_left, NULL},
    {"top", get_top, NULL},
    {"crop_width", get_crop_width, NULL},
    {"crop_height", get_crop_height, NULL},
    {"flip", get_flip, NULL},
    {"offset", get_offset, NULL},
    {"length", get_length, NULL},
};

static const column *find_column(PyObject *name)
{
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    for (size_t i = 0; text && i < sizeof columns / sizeof *columns; i++)
        if (strcmp(columns[i].name, text) == 0)
            return &columns[i];
    if (text)
        PyErr_SetObject(PyExc_KeyError, name);
    return NULL;
}

static size_t item_bytes(const column *c)
{
    return c->real ? sizeof(float) : sizeof(int64_t);
}

static void pack(const column *c, const mr_batch *batch, void *to)
{
    for (uint64_t i = 0; i < batch->count; i++)
        if (c->real)
            ((float *)to)[i] = c->real(&batch->samples[i]);
        else
            ((int64_t *)to)[i] = c->integer(&batch->samples[i]);
}

PyObject *batch_column(PyObject *object, PyObject *name)
{
    const mr_batch *batch = batch_held(object);
    const column *c = batch ? find_column(name) : NULL;
    if (!c)
        return NULL;
    PyObject *packed = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(batch->count * item_bytes(c)));
    if (packed)
        pack(c, batch, PyByteArray_AsString(packed));
    PyObject *view = packed ? PyMemoryView_FromObject(packed) : NULL;
    PyObject *out = view ? PyObject_CallMethod(view, "cast", "s", c->real ? "f" : "q") : NULL;
    Py_XDECREF(view);
    Py_XDECREF(packed);
    return out;
}

PyObject *batch_column_dlpack(PyObject *object, PyObject *name)
{
    const mr_batch *batch = batch_held(object);
    const column *c = batch ? find_column(name) : NULL;
    void *numbers;
    PyObject *capsule =
        c ? new_column_capsule(batch->count, c->real ? DL_FLOAT : DL_INT, item_bytes(c), &numbers) : NULL;
    if (capsule)
        pack(c, batch, numbers);
    return capsule;
}

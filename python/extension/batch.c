/* batch.c - Batch: the samples of one step, lent by the loader or the batch's own.
 * Invariant: the memory stays where it is as long as the Batch exists and is not released; it cannot be released while
 * a buffer is open on it. */
#include <string.h>

#include "module.h"

static int register_lent(Batch *self)
{
    for (int i = 0; i < LENT_MAX; i++)
        if (!self->loader->lent[i]) {
            self->loader->lent[i] = self;
            return 0;
        }
    return -1;
}

static void forget_lent(Batch *self)
{
    for (int i = 0; i < LENT_MAX; i++)
        if (self->loader->lent[i] == self)
            self->loader->lent[i] = NULL;
    PyObject *loader = (PyObject *)self->loader;
    self->loader = NULL;
    Py_DECREF(loader);
}

int batch_detach(Batch *self)
{
    mr_error err;
    if (mr_batch_detach(self->loader->loader, self->batch, &self->own, &err) != MR_OK) {
        fail(Py_TYPE((PyObject *)self), &err);
        return -1;
    }
    self->batch = self->own;
    forget_lent(self);
    return 0;
}

PyObject *batch_new(PyTypeObject *type, Loader *loader, const mr_batch *batch)
{
    Batch *self = (Batch *)PyType_GenericAlloc(type, 0);
    if (!self) {
        mr_batch_release(loader->loader, batch);
        return NULL;
    }
    Py_INCREF((PyObject *)loader);
    self->loader = loader;
    self->batch = batch;
    self->deliver = loader->options.deliver;
    self->size = loader->options.transform.size ? loader->options.transform.size : 224;
    if (register_lent(self) == 0 || batch_detach(self) == 0)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return NULL;
}

static void release(Batch *self)
{
    if (self->own)
        mr_batch_free(self->own);
    else if (self->batch)
        mr_batch_release(self->loader->loader, self->batch);
    self->batch = self->own = NULL;
    if (self->loader)
        forget_lent(self);
}

static void batch_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    release((Batch *)object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static const mr_batch *held(PyObject *object)
{
    const mr_batch *batch = ((Batch *)object)->batch;
    if (!batch)
        fail(Py_TYPE(object), &(mr_error){MR_MISUSE, "the batch was released"});
    return batch;
}

static PyObject *batch_repr(PyObject *object)
{
    const mr_batch *batch = ((Batch *)object)->batch;
    if (!batch)
        return PyUnicode_FromString("<millrace.Batch, released>");
    return PyUnicode_FromFormat("<millrace.Batch, epoch %llu, step %llu, %llu samples>",
                                (unsigned long long)batch->epoch, (unsigned long long)batch->step,
                                (unsigned long long)batch->count);
}

static PyObject *batch_release(PyObject *object, PyObject *unused)
{
    (void)unused;
    Batch *self = (Batch *)object;
    if (self->exports) {
        PyErr_Format(PyExc_BufferError, "the batch is in use: %zd arrays share its memory", self->exports);
        return NULL;
    }
    release(self);
    Py_RETURN_NONE;
}

/* ---- columns -------------------------------------------------------------------------------------------------- */

typedef enum column_type { I64, F32 } column_type;

typedef struct column {
    const char *name;
    column_type type;
    int64_t (*integer)(const mr_sample_facts *);
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

static const column columns[] = {
    {"label", I64, get_label},
    {"weight", F32, NULL},
    {"sample", I64, get_sample},
    {"item", I64, get_item},
    {"width", I64, get_width},
    {"height", I64, get_height},
    {"codec", I64, get_codec},
    {"orientation", I64, get_orientation},
    {"left", I64, get_left},
    {"top", I64, get_top},
    {"crop_width", I64, get_crop_width},
    {"crop_height", I64, get_crop_height},
    {"flip", I64, get_flip},
    {"offset", I64, get_offset},
    {"length", I64, get_length},
};

static PyObject *batch_column(PyObject *object, PyObject *argument)
{
    const mr_batch *batch = held(object);
    const char *name = batch ? PyUnicode_AsUTF8AndSize(argument, NULL) : NULL;
    const column *c = columns, *end = columns + sizeof columns / sizeof *columns;
    if (!name)
        return NULL;
    while (c < end && strcmp(c->name, name) != 0)
        c++;
    if (c == end) {
        PyErr_SetObject(PyExc_KeyError, argument);
        return NULL;
    }
    size_t each = c->type == F32 ? sizeof(float) : sizeof(int64_t);
    PyObject *packed = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(batch->count * each));
    char *to = packed ? PyByteArray_AsString(packed) : NULL;
    for (uint64_t i = 0; packed && i < batch->count; i++) {
        const mr_sample_facts *f = &batch->samples[i];
        int64_t number = c->integer ? c->integer(f) : 0;
        memcpy(to + i * each, c->integer ? (const void *)&number : (const void *)&f->weight, each);
    }
    PyObject *view = packed ? PyMemoryView_FromObject(packed) : NULL;
    PyObject *out = view ? PyObject_CallMethod(view, "cast", "s", c->type == F32 ? "f" : "q") : NULL;
    Py_XDECREF(view);
    Py_XDECREF(packed);
    return out;
}

static PyObject *batch_metas(PyObject *object, PyObject *unused)
{
    (void)unused;
    const mr_batch *batch = held(object);
    PyObject *out = batch ? PyList_New(0) : NULL;
    for (uint64_t i = 0; out && i < batch->count; i++) {
        const mr_sample_facts *f = &batch->samples[i];
        PyObject *meta = PyBytes_FromStringAndSize(f->meta, f->meta ? (Py_ssize_t)f->meta_len : 0);
        if (!meta || PyList_Append(out, meta) < 0)
            Py_CLEAR(out);
        Py_XDECREF(meta);
    }
    return out;
}

/* ---- members --------------------------------------------------------------------------------------------------- */

#define GETTER(member)                                                                                                 \
    static PyObject *get_batch_##member(PyObject *object, void *unused)                                                \
    {                                                                                                                  \
        (void)unused;                                                                                                  \
        const mr_batch *batch = held(object);                                                                          \
        return batch ? PyLong_FromUnsignedLongLong(batch->member) : NULL;                                              \
    }
GETTER(epoch)
GETTER(step)
GETTER(count)
GETTER(replaced)
GETTER(data_bytes)

static PyObject *get_batch_lent(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((Batch *)object)->loader != NULL);
}

static PyObject *get_batch_address(PyObject *object, void *unused)
{
    (void)unused;
    const mr_batch *batch = held(object);
    return batch ? PyLong_FromVoidPtr((void *)(uintptr_t)batch->data) : NULL;
}

static PyObject *get_batch_bad(PyObject *object, void *unused)
{
    (void)unused;
    const mr_batch *batch = held(object);
    module_state *state = PyType_GetModuleState(Py_TYPE(object));
    PyObject *out = batch ? PyList_New(0) : NULL;
    for (uint64_t i = 0; out && i < batch->replaced; i++) {
        mr_bad_sample bad = {.struct_size = sizeof bad};
        mr_error err;
        PyObject *item = NULL;
        if (mr_batch_bad(batch, i, &bad, &err) != MR_OK)
            fail(Py_TYPE(object), &err);
        else
            item = PyObject_CallFunction(state->error, "is", (int)bad.error.status, bad.error.text);
        if (!item || PyList_Append(out, item) < 0)
            Py_CLEAR(out);
        Py_XDECREF(item);
    }
    return out;
}

static PyGetSetDef members[] = {
    {"epoch", get_batch_epoch, NULL, NULL, NULL},
    {"step", get_batch_step, NULL, NULL, NULL},
    {"count", get_batch_count, NULL, NULL, NULL},
    {"replaced", get_batch_replaced, NULL, NULL, NULL},
    {"nbytes", get_batch_data_bytes, NULL, NULL, NULL},
    {"bad", get_batch_bad, NULL, NULL, NULL},
    {"lent", get_batch_lent, NULL, NULL, NULL},
    {"address", get_batch_address, NULL, NULL, NULL},
    {0},
};

static PyMethodDef methods[] = {
    {"column", batch_column, METH_O, "column(name): a memoryview of int64, of float32 for 'weight'"},
    {"metas", batch_metas, METH_NOARGS, "Each sample's meta as JSON bytes; empty without with_meta."},
    {"release", batch_release, METH_NOARGS, "Give the memory back now."},
    {"__dlpack__", (PyCFunction)(void (*)(void))batch_dlpack, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", batch_dlpack_device, METH_NOARGS, NULL},
    {0},
};

static PyType_Slot slots[] = {{Py_tp_dealloc, batch_dealloc},
                              {Py_tp_repr, batch_repr},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, members},
                              {Py_bf_getbuffer, batch_getbuffer},
                              {Py_bf_releasebuffer, batch_releasebuffer},
                              {0, NULL}};

PyType_Spec batch_spec = {.name = "millrace.Batch",
                          .basicsize = sizeof(Batch),
                          .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                          .slots = slots};

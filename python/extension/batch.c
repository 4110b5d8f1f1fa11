/* batch.c - Batch: the samples of one step, lent by the loader or the batch's own.
 * Invariant: the memory does not move as long as the Batch exists and is not released; it cannot be released while
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
    self->width = loader->options.transform.size ? loader->options.transform.size : 224;
    self->height = loader->options.height ? loader->options.height : self->width;
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

static PyObject *meta_of(const Batch *self, uint64_t i, const char *unused)
{
    (void)unused;
    const mr_sample_facts *f = &self->batch->samples[i];
    return PyBytes_FromStringAndSize(f->meta, f->meta ? (Py_ssize_t)f->meta_len : 0);
}

static PyObject *bad_of(const Batch *self, uint64_t i, const char *unused)
{
    (void)unused;
    PyTypeObject *type = Py_TYPE((PyObject *)(uintptr_t)self);
    module_state *state = PyType_GetModuleState(type);
    mr_bad_sample bad = {.struct_size = sizeof bad};
    mr_error err;
    if (mr_batch_bad(self->batch, i, &bad, &err) != MR_OK)
        return fail(type, &err);
    return PyObject_CallFunction(state->error, "is", (int)bad.error.status, bad.error.text);
}

/* Making objects may run other code of Python, which may release the batch, or close its loader so that it moves: it
 * counts as in use meanwhile, and is looked up again each time. */
static PyObject *list_of(Batch *self, uint64_t count, PyObject *(*make)(const Batch *, uint64_t, const char *),
                         const char *name)
{
    self->exports++;
    PyObject *out = PyList_New(0);
    for (uint64_t i = 0; out && i < count; i++) {
        PyObject *item = make(self, i, name);
        if (!item || PyList_Append(out, item) < 0)
            Py_CLEAR(out);
        Py_XDECREF(item);
    }
    self->exports--;
    return out;
}

static PyObject *batch_metas(PyObject *object, PyObject *unused)
{
    (void)unused;
    const mr_batch *batch = batch_held(object);
    return batch ? list_of((Batch *)object, batch->count, meta_of, NULL) : NULL;
}

typedef struct texts {
    PyObject *list;
    bool failed;
} texts;

static void take_text(void *ctx, const char *text, size_t len)
{
    texts *t = ctx;
    PyObject *item = t->failed ? NULL : PyUnicode_DecodeUTF8(text, (Py_ssize_t)len, NULL);
    t->failed = t->failed || !item || PyList_Append(t->list, item) < 0;
    Py_XDECREF(item);
}

static PyObject *captions_of(const Batch *self, uint64_t i, const char *column)
{
    const mr_sample_facts *f = &self->batch->samples[i];
    texts t = {PyList_New(0), false};
    mr_error err;
    if (t.list && f->meta && mr_meta_captions(f->meta, f->meta_len, column, take_text, &t, &err) != MR_OK) {
        fail(Py_TYPE((PyObject *)(uintptr_t)self), &err);
        t.failed = true;
    }
    if (t.failed)
        Py_CLEAR(t.list);
    return t.list;
}

static PyObject *batch_captions(PyObject *object, PyObject *column)
{
    const mr_batch *batch = batch_held(object);
    const char *name = column == Py_None ? NULL : PyUnicode_AsUTF8AndSize(column, NULL);
    if (!batch || (!name && column != Py_None))
        return NULL;
    return list_of((Batch *)object, batch->count, captions_of, name);
}

/* ---- members --------------------------------------------------------------------------------------------------- */

#define GETTER(member)                                                                                                 \
    static PyObject *get_batch_##member(PyObject *object, void *unused)                                                \
    {                                                                                                                  \
        (void)unused;                                                                                                  \
        const mr_batch *batch = batch_held(object);                                                                    \
        return batch ? PyLong_FromUnsignedLongLong(batch->member) : NULL;                                              \
    }
GETTER(epoch)
GETTER(step)
GETTER(count)
GETTER(replaced)
GETTER(data_bytes)

static PyObject *get_batch_width(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(((Batch *)object)->width);
}

static PyObject *get_batch_height(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(((Batch *)object)->height);
}

static PyObject *get_batch_lent(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((Batch *)object)->loader != NULL);
}

static PyObject *get_batch_address(PyObject *object, void *unused)
{
    (void)unused;
    const mr_batch *batch = batch_held(object);
    return batch ? PyLong_FromVoidPtr((void *)(uintptr_t)batch->data) : NULL;
}

static PyObject *get_batch_bad(PyObject *object, void *unused)
{
    (void)unused;
    const mr_batch *batch = batch_held(object);
    return batch ? list_of((Batch *)object, batch->replaced, bad_of, NULL) : NULL;
}

static PyGetSetDef members[] = {
    {"epoch", get_batch_epoch, NULL, NULL, NULL},
    {"step", get_batch_step, NULL, NULL, NULL},
    {"count", get_batch_count, NULL, NULL, NULL},
    {"replaced", get_batch_replaced, NULL, NULL, NULL},
    {"nbytes", get_batch_data_bytes, NULL, NULL, NULL},
    {"bad", get_batch_bad, NULL, NULL, NULL},
    {"width", get_batch_width, NULL, NULL, NULL},
    {"height", get_batch_height, NULL, NULL, NULL},
    {"lent", get_batch_lent, NULL, NULL, NULL},
    {"address", get_batch_address, NULL, NULL, NULL},
    {0},
};

static PyMethodDef methods[] = {
    {"column", batch_column, METH_O, "column(name): a memoryview of int64, of float32 for 'weight'"},
    {"column_dlpack", batch_column_dlpack, METH_O, "column_dlpack(name): the same numbers as a DLPack capsule"},
    {"objects", batch_objects, METH_O, "objects(name): a bytearray, a copy of that member of mr_batch_objects"},
    {"masks", batch_masks, METH_NOARGS, "masks(): a buffer of count x height x width bytes, the batch's memory"},
    {"metas", batch_metas, METH_NOARGS, "Each sample's meta as JSON bytes; empty without with_meta."},
    {"captions", batch_captions, METH_O, "captions(column): a list of texts for each sample; None: the usual column."},
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

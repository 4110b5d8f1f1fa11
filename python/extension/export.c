/* export.c - a batch's memory to other libraries, without a copy: the buffer protocol and DLPack.
 * Invariant: every view of a Batch's memory holds a reference to it, and counts as an export until it is gone.
 * Sources: PEP 3118; the Python array API standard, "Data interchange mechanisms"; DLPack 1.0. */
#include <stdlib.h>

#include "dlpack.h"
#include "module.h"

/* A batch's items: returns the number of dimensions, fills in the shape, the bytes of an item and its DLPack type. */
static int batch_shape(const Batch *self, int64_t shape[4], int *item, uint8_t *code)
{
    int64_t count = (int64_t)self->batch->count, width = self->width, height = self->height;
    *item = 1;
    *code = DL_UINT;
    if (self->deliver == MR_DELIVER_ENCODED) {
        shape[0] = (int64_t)self->batch->data_bytes;
        return 1;
    }
    shape[0] = count;
    shape[1] = height;
    shape[2] = width;
    shape[3] = 3;
    if (self->deliver == MR_DELIVER_U8_NHWC)
        return 4;
    shape[1] = 3;
    shape[2] = height;
    shape[3] = width;
    *item = self->deliver == MR_DELIVER_F32_NCHW ? 4 : 2;
    *code = self->deliver == MR_DELIVER_BF16_NCHW ? DL_BFLOAT : DL_FLOAT;
    return 4;
}

static bool is_held(Batch *self)
{
    if (!self->batch)
        PyErr_SetString(PyExc_BufferError, "the batch was released");
    return self->batch;
}

int batch_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
    static char *const formats[] = {"", "B", "H", "", "f"}; /* by the bytes of an item; bfloat16 has no letter */
    Batch *self = (Batch *)object;
    int64_t shape[4];
    int item;
    uint8_t code;
    view->obj = NULL;
    if (!is_held(self))
        return -1;
    int dimensions = batch_shape(self, shape, &item, &code);
    char *format = self->deliver == MR_DELIVER_F16_NCHW ? "e" : formats[item];
    Py_ssize_t stride = item;
    for (int i = dimensions - 1; i >= 0; i--) {
        self->shape[i] = (Py_ssize_t)shape[i];
        self->strides[i] = stride;
        stride *= self->shape[i];
    }
    Py_INCREF(object);
    *view = (Py_buffer){.buf = (void *)(uintptr_t)self->batch->data,
                        .obj = object,
                        .len = stride,
                        .itemsize = item,
                        .ndim = dimensions,
                        .format = flags & PyBUF_FORMAT ? format : NULL,
                        .shape = flags & PyBUF_ND ? self->shape : NULL,
                        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? self->strides : NULL};
    self->exports++;
    return 0;
}

void batch_releasebuffer(PyObject *object, Py_buffer *view)
{
    (void)view;
    ((Batch *)object)->exports--;
}

/* ---- masks ------------------------------------------------------------------------------------------------------ */

typedef struct Masks { /* the masks of a Batch, as a buffer */
    PyObject_HEAD Batch *batch;
} Masks;

PyObject *batch_masks(PyObject *object, PyObject *unused)
{
    (void)unused;
    const mr_batch *batch = batch_held(object);
    module_state *state = PyType_GetModuleState(Py_TYPE(object));
    if (!batch)
        return NULL;
    if (!batch->objects || (batch->count && !batch->objects->masks))
        return fail(Py_TYPE(object),
                    &(mr_error){MR_MISUSE, "the batch has no masks: the loader was opened without with_masks"});
    Masks *self = (Masks *)PyType_GenericAlloc(state->masks, 0);
    if (self) {
        Py_INCREF(object);
        self->batch = (Batch *)object;
    }
    return (PyObject *)self;
}

static int masks_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
    Batch *batch = ((Masks *)object)->batch;
    view->obj = NULL;
    if (!is_held(batch))
        return -1;
    void *masks = (void *)(uintptr_t)batch->batch->objects->masks;
    Py_ssize_t len = (Py_ssize_t)(batch->batch->count * batch->width * batch->height);
    if (PyBuffer_FillInfo(view, object, masks, len, 0, flags) != 0)
        return -1;
    batch->exports++;
    return 0;
}

static void masks_releasebuffer(PyObject *object, Py_buffer *view)
{
    batch_releasebuffer((PyObject *)((Masks *)object)->batch, view);
}

static void masks_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_DECREF((PyObject *)((Masks *)object)->batch);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {{Py_tp_dealloc, masks_dealloc},
                              {Py_bf_getbuffer, masks_getbuffer},
                              {Py_bf_releasebuffer, masks_releasebuffer},
                              {0, NULL}};

PyType_Spec masks_spec = {.name = "millrace.Masks",
                          .basicsize = sizeof(Masks),
                          .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                          .slots = slots};

/* ---- DLPack --------------------------------------------------------------------------------------------------- */

typedef struct exported { /* either form, what it points to, and its owner */
    union {
        dl_managed plain;
        dl_managed_versioned versioned;
    } form;
    int64_t shape[4], strides[4];
    Batch *owner; /* NULL: the numbers are here */
    int64_t numbers[];
} exported;

/* Called by any thread, with or without the GIL. */
static void delete_export(exported *e)
{
    if (e->owner && Py_IsInitialized()) {
        PyGILState_STATE state = PyGILState_Ensure();
        e->owner->exports--;
        Py_DECREF((PyObject *)e->owner);
        PyGILState_Release(state);
    }
    free(e);
}

static void delete_plain(dl_managed *self)
{
    delete_export(self->context);
}

static void delete_versioned(dl_managed_versioned *self)
{
    delete_export(self->context);
}

/* A consumer renames the capsule and calls the deleter itself. */
static void delete_capsule(PyObject *capsule)
{
    exported *e = NULL;
    if (PyCapsule_IsValid(capsule, "dltensor"))
        e = ((dl_managed *)PyCapsule_GetPointer(capsule, "dltensor"))->context;
    else if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        e = ((dl_managed_versioned *)PyCapsule_GetPointer(capsule, "dltensor_versioned"))->context;
    if (e)
        delete_export(e);
}

static void describe(exported *e, int dimensions, dl_tensor *tensor)
{
    int64_t stride = 1;
    for (int i = dimensions - 1; i >= 0; i--) {
        e->strides[i] = stride;
        stride *= e->shape[i];
    }
    tensor->device.type = DL_CPU;
    tensor->dimensions = dimensions;
    tensor->type.lanes = 1;
    tensor->shape = e->shape;
    tensor->strides = e->strides;
}

static void fill_tensor(exported *e, dl_tensor *tensor)
{
    int item;
    describe(e, batch_shape(e->owner, e->shape, &item, &tensor->type.code), tensor);
    tensor->type.bits = (uint8_t)(item * 8);
    tensor->data = (void *)(uintptr_t)e->owner->batch->data;
}

static PyObject *make_plain(exported *e)
{
    e->form.plain.context = e;
    e->form.plain.deleter = delete_plain;
    return PyCapsule_New(&e->form.plain, "dltensor", delete_capsule);
}

static PyObject *make_capsule(exported *e, bool versioned)
{
    if (!versioned) {
        fill_tensor(e, &e->form.plain.tensor);
        return make_plain(e);
    }
    e->form.versioned.version.major = 1;
    e->form.versioned.context = e;
    e->form.versioned.deleter = delete_versioned;
    fill_tensor(e, &e->form.versioned.tensor);
    return PyCapsule_New(&e->form.versioned, "dltensor_versioned", delete_capsule);
}

PyObject *new_column_capsule(uint64_t count, uint8_t code, size_t bytes, void **numbers)
{
    exported *e = calloc(1, sizeof *e + count * bytes);
    if (!e)
        return PyErr_NoMemory();
    dl_tensor *tensor = &e->form.plain.tensor;
    e->shape[0] = (int64_t)count;
    describe(e, 1, tensor);
    tensor->type.code = code;
    tensor->type.bits = (uint8_t)(bytes * 8);
    tensor->data = *numbers = e->numbers;
    PyObject *capsule = make_plain(e);
    if (!capsule)
        free(e);
    return capsule;
}

/* Is this the CPU, or not given? */
static bool is_cpu(PyObject *device)
{
    int type, id;
    if (!device || device == Py_None)
        return true;
    if (!PyTuple_Check(device) || !PyArg_ParseTuple(device, "ii", &type, &id)) {
        PyErr_Clear();
        return false;
    }
    return type == DL_CPU;
}

PyObject *batch_dlpack(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = NULL, *version = NULL, *device = NULL, *copy = NULL;
    unsigned major = 0, minor = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO", names, &stream, &version, &device, &copy))
        return NULL;
    if (version && version != Py_None &&
        (!PyTuple_Check(version) || !PyArg_ParseTuple(version, "II", &major, &minor))) {
        PyErr_SetString(PyExc_TypeError, "max_version is a pair of numbers");
        return NULL;
    }
    if (!is_cpu(device) || (stream && stream != Py_None) || copy == Py_True) {
        PyErr_SetString(PyExc_BufferError, "a batch is in the CPU's memory and is not copied");
        return NULL;
    }
    exported *e = is_held((Batch *)object) ? calloc(1, sizeof *e) : NULL;
    if (!e)
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    Py_INCREF(object);
    e->owner = (Batch *)object;
    e->owner->exports++;
    PyObject *capsule = make_capsule(e, major >= 1);
    if (!capsule)
        delete_export(e);
    return capsule;
}

PyObject *batch_dlpack_device(PyObject *object, PyObject *unused)
{
    (void)object;
    (void)unused;
    return Py_BuildValue("(ii)", DL_CPU, 0);
}

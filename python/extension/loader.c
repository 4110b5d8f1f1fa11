/* loader.c - Loader: batches one after another, interruptible by signals.
 * Invariant: a loader is freed by the last to leave it once it is closing: no thread is in a call of it, and no batch
 * is lent from it.  Each lent batch holds a reference to its Loader, and close() detaches what is lent. */
#include <string.h>

#include "module.h"

enum { LOOK_AROUND = 100 }; /* milliseconds between two looks for signals */

static PyObject *loader_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    module_state *state = PyType_GetModuleState(type);
    PyObject *dataset, *split, *options;
    static char *names[] = {"dataset", "split", "options", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!UO!", names, state->dataset, &dataset, &split, &PyDict_Type,
                                     &options))
        return NULL;
    Loader *self = (Loader *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    Py_INCREF(dataset);
    Py_INCREF(split);
    self->dataset = (Dataset *)dataset;
    self->split = split;
    mr_loader_options *o = &self->options;
    *o = (mr_loader_options){.struct_size = sizeof *o, .split = PyUnicode_AsUTF8AndSize(split, NULL)};
    if (!o->split || read_options(self, options, o) < 0) {
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    mr_error err;
    mr_status status;
    Py_BEGIN_ALLOW_THREADS status = mr_loader_open(self->dataset->dataset, o, &self->loader, &err);
    Py_END_ALLOW_THREADS if (status == MR_OK) return (PyObject *)self;
    fail(type, &err);
    Py_DECREF((PyObject *)self);
    return NULL;
}

static void free_loader(Loader *self)
{
    mr_loader *loader = self->loader;
    self->loader = NULL;
    Py_BEGIN_ALLOW_THREADS mr_loader_free(loader);
    Py_END_ALLOW_THREADS
}

static void loader_dealloc(PyObject *object)
{
    Loader *self = (Loader *)object;
    PyTypeObject *type = Py_TYPE(object);
    free_loader(self);
    if (self->items)
        PyBuffer_Release(&self->item_view);
    Py_XDECREF(self->items);
    Py_XDECREF(self->split);
    Py_XDECREF((PyObject *)self->dataset);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static bool is_closed(Loader *self)
{
    if (self->loader && !self->closing)
        return false;
    fail(Py_TYPE((PyObject *)self), &(mr_error){MR_MISUSE, "the loader is closed"});
    return true;
}

/* Around every call that gives up the GIL: in between, neither the Loader nor its mr_loader goes away. */
static void enter(Loader *self)
{
    Py_INCREF((PyObject *)self);
    self->inside++;
}

static void leave(Loader *self)
{
    if (--self->inside == 0 && self->closing)
        free_loader(self);
    Py_DECREF((PyObject *)self);
}

/* Returns when the threads have stopped; threads that wait for a batch wake up and raise. */
static PyObject *loader_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    Loader *self = (Loader *)object;
    if (!self->loader)
        Py_RETURN_NONE;
    for (int i = 0; i < LENT_MAX; i++)
        if (self->lent[i] && batch_detach(self->lent[i]) < 0)
            return NULL;
    self->closing = true;
    enter(self);
    Py_BEGIN_ALLOW_THREADS mr_loader_stop(self->loader);
    Py_END_ALLOW_THREADS leave(self);
    Py_RETURN_NONE;
}

/* What mr_loader_next_for() returned, as next() does: NULL without an exception is the end.  A batch that comes when
 * the loader is being closed is dropped, so that what is not delivered is never mistaken for the end of an epoch. */
static PyObject *deliver(Loader *self, mr_status status, const mr_batch *batch, const mr_error *err)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    module_state *state = PyType_GetModuleState(type);
    if (self->closing && status == MR_OK)
        mr_batch_release(self->loader, batch);
    if (PyErr_Occurred())
        return NULL;
    if (status < 0)
        return fail(type, err);
    if (self->closing)
        return fail(type, &(mr_error){MR_MISUSE, "the loader was closed while this thread waited for a batch"});
    return status == MR_OK ? batch_new(state->batch, self, batch) : NULL;
}

static PyObject *loader_next(PyObject *object)
{
    Loader *self = (Loader *)object;
    const mr_batch *batch = NULL;
    mr_error err;
    mr_status status = MR_AGAIN;
    if (is_closed(self))
        return NULL;
    enter(self);
    do {
        Py_BEGIN_ALLOW_THREADS status = mr_loader_next_for(self->loader, LOOK_AROUND, &batch, &err);
        Py_END_ALLOW_THREADS
    } while (status == MR_AGAIN && !self->closing && PyErr_CheckSignals() == 0);
    PyObject *out = deliver(self, status, batch, &err);
    leave(self);
    return out;
}

static PyObject *loader_self(PyObject *self)
{
    Py_INCREF(self);
    return self;
}

static PyObject *loader_steps(PyObject *object, PyObject *unused)
{
    (void)unused;
    Loader *self = (Loader *)object;
    return is_closed(self) ? NULL : PyLong_FromUnsignedLongLong(mr_loader_steps(self->loader));
}

static PyObject *loader_cursor(PyObject *object, PyObject *unused)
{
    (void)unused;
    Loader *self = (Loader *)object;
    if (is_closed(self))
        return NULL;
    mr_cursor at = mr_loader_cursor(self->loader);
    return Py_BuildValue("(KK)", (unsigned long long)at.epoch, (unsigned long long)at.position);
}

static PyObject *loader_seek(PyObject *object, PyObject *args)
{
    Loader *self = (Loader *)object;
    unsigned long long epoch, position;
    mr_error err;
    mr_status status;
    if (!PyArg_ParseTuple(args, "KK", &epoch, &position) || is_closed(self))
        return NULL;
    if (self->inside)
        return fail(Py_TYPE(object), &(mr_error){MR_MISUSE, "another thread is waiting for a batch of this loader"});
    enter(self);
    Py_BEGIN_ALLOW_THREADS status = mr_loader_seek(self->loader, &(mr_cursor){epoch, position}, &err);
    Py_END_ALLOW_THREADS PyObject *out = status == MR_OK ? Py_BuildValue("") : fail(Py_TYPE(object), &err);
    leave(self);
    return out;
}

static PyObject *loader_stats(PyObject *object, PyObject *unused)
{
    (void)unused;
    Loader *self = (Loader *)object;
    mr_loader_stats s = {.struct_size = sizeof s};
    if (is_closed(self))
        return NULL;
    mr_loader_get_stats(self->loader, &s);
    return Py_BuildValue("{sKsKsKsdsdsd}", "batches", (unsigned long long)s.batches, "samples",
                         (unsigned long long)s.samples, "replaced", (unsigned long long)s.replaced, "waited", s.waited,
                         "reading", s.reading, "decoding", s.decoding);
}

static PyMethodDef methods[] = {
    {"steps", loader_steps, METH_NOARGS, "Steps of an epoch, the same on every rank."},
    {"cursor", loader_cursor, METH_NOARGS, "(epoch, position) after the batches returned."},
    {"seek", loader_seek, METH_VARARGS, "seek(epoch, position): continue there."},
    {"stats", loader_stats, METH_NOARGS, "A dict with the members of mr_loader_stats."},
    {"close", loader_close, METH_NOARGS, "Stop the threads; batches that are held stay valid."},
    {0},
};

static PyType_Slot slots[] = {{Py_tp_new, loader_new},       {Py_tp_dealloc, loader_dealloc}, {Py_tp_iter, loader_self},
                              {Py_tp_iternext, loader_next}, {Py_tp_methods, methods},        {0, NULL}};

PyType_Spec loader_spec = {
    .name = "_millrace.Loader", .basicsize = sizeof(Loader), .flags = Py_TPFLAGS_DEFAULT, .slots = slots};

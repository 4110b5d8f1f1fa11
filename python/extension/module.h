/* module.h - the types of the extension _millrace: libmillrace for Python by the limited API of 3.11.
 * Invariant: no thread of a loader touches Python, and every call that may wait is made without the GIL.
 *
 *   module    the module, its state, failures as exceptions
 *   dataset   Dataset: facts, labels, single samples
 *   options   mr_loader_options from a dict
 *   loader    Loader: batches, interruptible
 *   batch     Batch: memory, metas, what was wrong
 *   column    Batch: one number per sample
 *   ragged    Batch: boxes, polygons, keypoints
 *   export    Batch, and its masks, by the buffer protocol; Batch by DLPack
 *   tokenizer Tokenizer: texts to token ids
 *
 * What users see is written in Python, in millrace/; these types are not documented for them. */
#ifndef MR_PYTHON_MODULE_H
#define MR_PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <structmember.h>

#include <stdbool.h>

#include "millrace.h"

typedef struct module_state {
    PyObject *error; /* millrace._errors.make(status, text) -> exception */
    PyTypeObject *dataset, *loader, *batch, *masks, *tokenizer;
} module_state;

typedef struct Dataset {
    PyObject_HEAD mr_dataset *dataset;
} Dataset;

typedef struct Batch Batch;

enum { LENT_MAX = 2 }; /* batches that Python holds and the loader cannot reuse; more are detached */

typedef struct Loader {
    PyObject_HEAD Dataset *dataset;
    mr_loader *loader; /* NULL: closed */
    PyObject *split, *items;
    Py_buffer item_view;
    mr_loader_options options;
    Batch *lent[LENT_MAX]; /* borrowed: a batch removes itself */
    unsigned inside;       /* calls that use `loader` without the GIL */
    bool closing;          /* no batch comes any more, and the last call to end frees the loader */
} Loader;

struct Batch {
    PyObject_HEAD Loader *loader; /* the loader that lent the batch */
    const mr_batch *batch;        /* NULL: released */
    mr_batch *own;                /* the same, detached; NULL: lent */
    Py_ssize_t exports;           /* buffers that Python has open on it */
    mr_delivery deliver;
    unsigned width, height;
    Py_ssize_t shape[4], strides[4]; /* shape and strides of the buffers */
};

extern PyType_Spec dataset_spec, loader_spec, batch_spec, masks_spec, tokenizer_spec;

/* Sets the exception for a failure; returns NULL. */
PyObject *fail(PyTypeObject *type, const mr_error *err);

/* `options` into *out (which lends from it and from `self`); -1: exception set. */
int read_options(Loader *self, PyObject *options, mr_loader_options *out);

/* A batch just returned by mr_loader_next_for(); detached if too many are lent.  NULL: exception set. */
PyObject *batch_new(PyTypeObject *type, Loader *loader, const mr_batch *batch);
/* Makes a lent batch independent of its loader; -1: exception set. */
int batch_detach(Batch *self);

/* The batch of a Batch; NULL: it was released, exception set. */
const mr_batch *batch_held(PyObject *self);

PyObject *batch_column(PyObject *self, PyObject *name);
PyObject *batch_column_dlpack(PyObject *self, PyObject *name);
PyObject *batch_objects(PyObject *self, PyObject *name);

/* A DLPack capsule of `count` numbers of `bytes` bytes each that holds them itself, at *numbers, to be filled in. */
PyObject *new_column_capsule(uint64_t count, uint8_t code, size_t bytes, void **numbers);

int batch_getbuffer(PyObject *self, Py_buffer *view, int flags);
void batch_releasebuffer(PyObject *self, Py_buffer *view);
PyObject *batch_masks(PyObject *self, PyObject *unused);
PyObject *batch_dlpack(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *batch_dlpack_device(PyObject *self, PyObject *unused);

#endif

/* checks.c - failures as exceptions, and the batch of an object that may have been released.
 * Invariant: an exception has the failure's status and its sentence. */
#include "module.h"

PyObject *fail(PyTypeObject *type, const mr_error *err)
{
    module_state *state = PyType_GetModuleState(type);
    PyObject *error = PyObject_CallFunction(state->error, "is", (int)err->status, err->text);
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return NULL;
}

const mr_batch *batch_held(PyObject *object)
{
    const mr_batch *batch = ((Batch *)object)->batch;
    if (!batch)
        fail(Py_TYPE(object), &(mr_error){MR_MISUSE, "the batch was released"});
    return batch;
}

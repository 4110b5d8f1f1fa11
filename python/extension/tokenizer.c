/* tokenizer.c - Tokenizer: texts to token ids.
 * Invariant: it does not change once it is open, and encodes without the GIL. */
#include <stdlib.h>

#include "module.h"

typedef struct Tokenizer {
    PyObject_HEAD mr_tokenizer *tokenizer;
} Tokenizer;

static PyObject *tokenizer_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"path", NULL};
    PyObject *path;
    mr_error err;
    mr_status status;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&", names, PyUnicode_FSConverter, &path))
        return NULL;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Tokenizer *self = (Tokenizer *)alloc(type, 0);
    if (!self) {
        Py_DECREF(path);
        return NULL;
    }
    const char *name = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS status = mr_tokenizer_open(name, &self->tokenizer, &err);
    Py_END_ALLOW_THREADS Py_DECREF(path);
    if (status == MR_OK)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return fail(type, &err);
}

static void tokenizer_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    mr_tokenizer_free(((Tokenizer *)object)->tokenizer);
    release(object);
    Py_DECREF((PyObject *)type);
}

typedef struct text {
    const char *at;
    Py_ssize_t len;
} text;

typedef struct encoding {
    mr_tokenizer_scratch *scratch;
    int32_t *ids; /* `length` */
    size_t length;
} encoding;

/* `rows`: count x length. */
static mr_status encode_all(const mr_tokenizer *t, const encoding *e, const text *texts, size_t count, int64_t *rows,
                            mr_error *err)
{
    mr_status status = MR_OK;
    for (size_t i = 0; i < count && status == MR_OK; i++) {
        size_t used = 0;
        status = mr_tokenizer_encode(t, e->scratch, texts[i].at, (size_t)texts[i].len, e->length, e->ids, &used, err);
        for (size_t k = 0; k < e->length; k++)
            rows[i * e->length + k] = k < used ? e->ids[k] : mr_tokenizer_pad(t);
    }
    return status;
}

/* The texts of a tuple, lent by it; NULL: an exception is set. */
static text *texts_of(PyObject *tuple, Py_ssize_t count)
{
    text *texts = calloc(count ? (size_t)count : 1, sizeof *texts);
    if (!texts)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; texts && i < count; i++) {
        texts[i].at = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), &texts[i].len);
        if (!texts[i].at) {
            free(texts);
            return NULL;
        }
    }
    return texts;
}

static PyObject *tokenizer_encode(PyObject *object, PyObject *args)
{
    PyObject *sequence;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "On", &sequence, &length))
        return NULL;
    PyObject *tuple = PySequence_Tuple(sequence);
    if (!tuple)
        return NULL;
    Py_ssize_t count = PyTuple_Size(tuple);
    text *texts = texts_of(tuple, count);
    encoding e = {mr_tokenizer_scratch_new(), calloc((size_t)length, sizeof *e.ids), (size_t)length};
    PyObject *out = NULL;
    if (texts)
        out = e.scratch && e.ids ? PyByteArray_FromStringAndSize(NULL, count * length * (Py_ssize_t)sizeof(int64_t))
                                 : PyErr_NoMemory();
    mr_error err;
    mr_status status = MR_OK;
    if (out) {
        int64_t *rows = (int64_t *)(void *)PyByteArray_AsString(out);
        const mr_tokenizer *t = ((Tokenizer *)object)->tokenizer;
        Py_BEGIN_ALLOW_THREADS status = encode_all(t, &e, texts, (size_t)count, rows, &err);
        Py_END_ALLOW_THREADS
    }
    free(texts);
    free(e.ids);
    mr_tokenizer_scratch_free(e.scratch);
    Py_DECREF(tuple);
    if (status == MR_OK)
        return out;
    Py_DECREF(out);
    return fail(Py_TYPE(object), &err);
}

static PyObject *tokenizer_size(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(mr_tokenizer_size(((Tokenizer *)object)->tokenizer));
}

static PyObject *tokenizer_pad(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromLong(mr_tokenizer_pad(((Tokenizer *)object)->tokenizer));
}

static PyMethodDef methods[] = {
    {"encode", tokenizer_encode, METH_VARARGS,
     "encode(texts, length): int64 ids in a bytearray, a row of `length` for each text, at least 2"},
    {0},
};

static PyGetSetDef members[] = {{"size", tokenizer_size, NULL, "1 + the largest id", NULL},
                                {"pad", tokenizer_pad, NULL, "the id of <pad>", NULL},
                                {0}};

static PyType_Slot slots[] = {{Py_tp_new, tokenizer_new},
                              {Py_tp_dealloc, tokenizer_dealloc},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, members},
                              {0, NULL}};

PyType_Spec tokenizer_spec = {
    .name = "_millrace.Tokenizer", .basicsize = sizeof(Tokenizer), .flags = Py_TPFLAGS_DEFAULT, .slots = slots};

/* dataset.c - Dataset: an open dataset's facts, labels and single samples.
 * Invariant: nothing is cached; a read opens, checks and closes, so a Dataset serves any number of threads and
 * forks. */
#include <stdlib.h>
#include <string.h>

#include "module.h"

static PyObject *dataset_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"path", NULL};
    PyObject *path;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&", names, PyUnicode_FSConverter, &path))
        return NULL;
    mr_error err;
    mr_dataset *dataset = NULL;
    mr_status status;
    const char *name = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS status = mr_dataset_open(name, &dataset, &err);
    Py_END_ALLOW_THREADS Py_DECREF(path);
    if (status != MR_OK)
        return fail(type, &err);
    Dataset *self = (Dataset *)PyType_GenericAlloc(type, 0);
    if (!self)
        mr_dataset_free(dataset);
    else
        self->dataset = dataset;
    return (PyObject *)self;
}

static void dataset_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    mr_dataset_free(((Dataset *)object)->dataset);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyObject *facts(PyObject *object, PyObject *unused)
{
    (void)unused;
    const mr_dataset *ds = ((Dataset *)object)->dataset;
    PyObject *splits = PyList_New(0), *classes = PyList_New(0), *out = NULL;
    for (size_t i = 0; splits && i < mr_dataset_split_count(ds); i++) {
        const char *name = mr_dataset_split_name(ds, i);
        PyObject *item = Py_BuildValue("(sK)", name, (unsigned long long)mr_dataset_samples(ds, name));
        if (!item || PyList_Append(splits, item) < 0)
            Py_CLEAR(splits);
        Py_XDECREF(item);
    }
    for (size_t i = 0; classes && i < mr_dataset_class_count(ds); i++) {
        PyObject *item = PyUnicode_FromString(mr_dataset_class_name(ds, i));
        if (!item || PyList_Append(classes, item) < 0)
            Py_CLEAR(classes);
        Py_XDECREF(item);
    }
    if (splits && classes)
        out = Py_BuildValue("(ssOO)", mr_dataset_sha256(ds), mr_dataset_layout(ds), splits, classes);
    Py_XDECREF(splits);
    Py_XDECREF(classes);
    return out;
}

static PyObject *labels(PyObject *object, PyObject *argument)
{
    const mr_dataset *ds = ((Dataset *)object)->dataset;
    const char *split = PyUnicode_AsUTF8AndSize(argument, NULL);
    if (!split)
        return NULL;
    uint64_t count = mr_dataset_samples(ds, split);
    PyObject *out = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof(int64_t)));
    int32_t *narrow = malloc(count ? count * sizeof *narrow : 1);
    if (!out || !narrow) {
        free(narrow);
        Py_XDECREF(out);
        return PyErr_NoMemory();
    }
    mr_error err;
    mr_status status;
    char *wide = PyByteArray_AsString(out);
    Py_BEGIN_ALLOW_THREADS status = mr_dataset_labels(ds, split, narrow, &err);
    for (uint64_t i = 0; status == MR_OK && i < count; i++)
        memcpy(wide + i * sizeof(int64_t), &(int64_t){narrow[i]}, sizeof(int64_t));
    Py_END_ALLOW_THREADS free(narrow);
    if (status == MR_OK)
        return out;
    Py_DECREF(out);
    return fail(Py_TYPE(object), &err);
}

static PyObject *sizes(PyObject *object, PyObject *args)
{
    const mr_dataset *ds = ((Dataset *)object)->dataset;
    const char *split;
    int apply_orientation;
    if (!PyArg_ParseTuple(args, "sp", &split, &apply_orientation))
        return NULL;
    uint64_t count = mr_dataset_samples(ds, split);
    PyObject *out = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(count * 2 * sizeof(uint32_t)));
    if (!out)
        return NULL;
    mr_error err;
    mr_status status;
    uint32_t *numbers = (uint32_t *)(void *)PyByteArray_AsString(out);
    Py_BEGIN_ALLOW_THREADS status = mr_dataset_sizes(ds, split, apply_orientation, numbers, &err);
    Py_END_ALLOW_THREADS if (status == MR_OK) return out;
    Py_DECREF(out);
    return fail(Py_TYPE(object), &err);
}

static PyObject *read_sample(PyObject *object, PyObject *args)
{
    const char *split;
    unsigned long long n;
    int image;
    if (!PyArg_ParseTuple(args, "sKp", &split, &n, &image))
        return NULL;
    mr_error err;
    mr_sample_view view = {0};
    mr_status status;
    const mr_dataset *ds = ((Dataset *)object)->dataset;
    Py_BEGIN_ALLOW_THREADS status = (image ? mr_dataset_read : mr_dataset_read_meta)(ds, split, n, &view, &err);
    Py_END_ALLOW_THREADS PyObject *out = NULL;
    if (status == MR_OK)
        out = Py_BuildValue("(y#s#iIIBB)", image ? (const char *)view.image : "", (Py_ssize_t)view.image_len, view.meta,
                            (Py_ssize_t)view.meta_len, (int)view.label, (unsigned)view.width, (unsigned)view.height,
                            view.codec, view.orientation);
    else
        fail(Py_TYPE(object), &err);
    mr_sample_view_free(&view);
    return out;
}

static PyObject *stage(PyObject *object, PyObject *args)
{
    PyObject *dir;
    unsigned long long most;
    if (!PyArg_ParseTuple(args, "O&K", PyUnicode_FSConverter, &dir, &most))
        return NULL;
    mr_error err;
    mr_status status;
    const char *name = PyBytes_AsString(dir);
    mr_dataset *ds = ((Dataset *)object)->dataset;
    Py_BEGIN_ALLOW_THREADS status = mr_dataset_stage(ds, name, most, 1, &err);
    Py_END_ALLOW_THREADS Py_DECREF(dir);
    if (status != MR_OK)
        return fail(Py_TYPE(object), &err);
    Py_RETURN_NONE;
}

static PyObject *stage_remark(PyObject *object, PyObject *unused)
{
    mr_error remark;
    (void)unused;
    if (mr_dataset_stage_remark(((Dataset *)object)->dataset, &remark) != MR_OK)
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(remark.text);
}

static PyObject *folder(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyUnicode_DecodeFSDefault(mr_dataset_folder(((Dataset *)object)->dataset));
}

static PyMethodDef methods[] = {
    {"folder", folder, METH_NOARGS, "where manifest.json is: the dataset, or what stands for a URL"},
    {"facts", facts, METH_NOARGS, "(digest, layout, [(split, samples)], [class])"},
    {"labels", labels, METH_O, "labels(split): every label as int64 in a bytearray, -1 for none"},
    {"sizes", sizes, METH_VARARGS, "sizes(split, apply_orientation): widths and heights as uint32 in a bytearray"},
    {"stage", stage, METH_VARARGS,
     "stage(folder, most_bytes): loaders read copies of shards from there, as they are made"},
    {"stage_remark", stage_remark, METH_NOARGS, "what went wrong with the copies, or None"},
    {"read", read_sample, METH_VARARGS,
     "read(split, n, image): (image, meta, label, width, height, codec, orientation), checked against its hashes"},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_new, dataset_new}, {Py_tp_dealloc, dataset_dealloc}, {Py_tp_methods, methods}, {0, NULL}};

PyType_Spec dataset_spec = {
    .name = "_millrace.Dataset", .basicsize = sizeof(Dataset), .flags = Py_TPFLAGS_DEFAULT, .slots = slots};

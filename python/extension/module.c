/* module.c - the module _millrace: its types, and failures as exceptions.
 * Invariant: the module keeps its state per interpreter; it prints nothing. */
#include "module.h"

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, type) < 0)
        Py_CLEAR(type);
    return type;
}

static int execute(PyObject *module)
{
    module_state *state = PyModule_GetState(module);
    PyObject *errors = PyImport_ImportModule("millrace._errors");
    state->error = errors ? PyObject_GetAttrString(errors, "make") : NULL;
    Py_XDECREF(errors);
    if (!state->error || PyModule_AddStringConstant(module, "__version__", MILLRACE_VERSION) < 0)
        return -1;
    state->dataset = add_type(module, &dataset_spec);
    state->loader = state->dataset ? add_type(module, &loader_spec) : NULL;
    state->batch = state->loader ? add_type(module, &batch_spec) : NULL;
    state->masks = state->batch ? add_type(module, &masks_spec) : NULL;
    state->tokenizer = state->masks ? add_type(module, &tokenizer_spec) : NULL;
    return state->tokenizer ? 0 : -1;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    module_state *state = PyModule_GetState(module);
    Py_VISIT(state->error);
    Py_VISIT(state->dataset);
    Py_VISIT(state->loader);
    Py_VISIT(state->batch);
    Py_VISIT(state->masks);
    Py_VISIT(state->tokenizer);
    return 0;
}

static int clear(PyObject *module)
{
    module_state *state = PyModule_GetState(module);
    Py_CLEAR(state->error);
    Py_CLEAR(state->dataset);
    Py_CLEAR(state->loader);
    Py_CLEAR(state->batch);
    Py_CLEAR(state->masks);
    Py_CLEAR(state->tokenizer);
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_millrace",  .m_size = sizeof(module_state),
    .m_slots = slots,      .m_traverse = traverse, .m_clear = clear,
};

PyMODINIT_FUNC PyInit__millrace(void); /* called by the interpreter */

PyMODINIT_FUNC PyInit__millrace(void)
{
    return PyModuleDef_Init(&definition);
}

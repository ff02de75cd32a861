/* The least that Python can do: what the annotation library is measured against. Built at run time by annotate.py. */
#include <Python.h>

typedef struct {
  PyObject_HEAD
} Null;

static PyObject *null_enter(PyObject *self, PyObject *unused) {
  (void)unused;
  Py_INCREF(self);
  return self;
}

static PyObject *null_exit(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  (void)self, (void)args, (void)n;
  Py_RETURN_FALSE;
}

static PyObject *noop(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  Py_RETURN_NONE;
}

static PyMethodDef null_methods[] = {
    {"__enter__", null_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))null_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject NullType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "floor.Null",
    .tp_basicsize = sizeof(Null),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = null_methods,
    .tp_new = PyType_GenericNew,
};

static PyMethodDef functions[] = {{"noop", noop, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "floor", .m_size = -1,
                                    .m_methods = functions};

PyMODINIT_FUNC PyInit_floor(void) {
  PyObject *m = PyType_Ready(&NullType) < 0 ? NULL : PyModule_Create(&module);
  if (m != NULL) {
    Py_INCREF(&NullType);
    PyModule_AddObject(m, "Null", (PyObject *)&NullType);
  }
  return m;
}

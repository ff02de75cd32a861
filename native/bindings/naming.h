// Names of threads and of CUDA's devices, streams, events and contexts.
#pragma once

#include "bindings/values/compat.h"

namespace warplens::binding {

PyObject *name_thread(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *name_cuda_device(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *name_cuda_stream(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *name_cuda_event(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *name_cuda_context(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

// Reports names to a tool that came after they were given.
bool init_naming();

}  // namespace warplens::binding

// A decorated function: calls the function between push and pop, and looks like it in every other way.
#pragma once

#include "bindings/values/compat.h"

namespace warplens::binding {

extern PyTypeObject WrappedType;

// wrap(annotation, func, name) for warplens.nvtx._decorate; `name` is used where the annotation has no message.
PyObject *wrap(PyObject *module, PyObject *const *args, Py_ssize_t nargs);

}  // namespace warplens::binding

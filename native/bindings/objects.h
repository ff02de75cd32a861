// Objects that a tool knows by a handle: resources, and synchronisation objects of the program's own.
#pragma once

#include "bindings/values/compat.h"
#include "domain.h"

namespace warplens::binding {

extern PyTypeObject ResourceType;
extern PyTypeObject SyncType;

bool ready_objects();

// Domain.create_resource() and create_sync().
PyObject *domain_create_resource(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *domain_create_sync(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

}  // namespace warplens::binding

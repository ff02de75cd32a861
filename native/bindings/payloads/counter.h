// Counters of a domain: Int64Counter, Float64Counter, and ExtCounter for all else.
#pragma once

#include "bindings/domain.h"
#include "bindings/values/compat.h"

namespace warplens::binding {

extern PyTypeObject CounterType;  // what the three have in common
extern PyTypeObject Int64CounterType;
extern PyTypeObject Float64CounterType;
extern PyTypeObject ExtCounterType;

bool ready_counters();

// Domain.get_counter() and get_timestamp().
PyObject *domain_get_counter(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *domain_get_timestamp(PyObject *self, PyObject *);

}  // namespace warplens::binding

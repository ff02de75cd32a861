// Shared by functions of the module and methods of domains.
// The ends of ranges with a message, and names of categories.
#pragma once

#include "bindings/ranges/event.h"
#include "bindings/values/compat.h"

namespace warplens::binding {

// `values`: message, color, category, payload, null where not given. New reference, or null with TypeError.
PyObject *pop_with_attributes(Domain *domain, int32_t state, PyObject *const *values);
PyObject *end_with_attributes(Domain *domain, int32_t state, nvtxRangeId_t id, PyObject *const *values);

PyObject *name_category(Domain *domain, PyObject *id, PyObject *name);

}  // namespace warplens::binding

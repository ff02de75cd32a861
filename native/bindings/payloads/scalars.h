// Numbers with a width for NVTX: int64, uint64, int32, uint32 are ints, float64 and float32 are
// floats.
#pragma once

#include "bindings/values/compat.h"
#include "reading.h"

namespace warplens::binding {

bool add_scalar_types(PyObject *module);

// False where the payload is none of them.
bool typed_scalar(PyObject *payload, Reading *out);

}  // namespace warplens::binding

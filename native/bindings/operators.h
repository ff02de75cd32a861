// Emits operators of PyTorch as NVTX ranges of the default domain.
#pragma once

#include "bindings/values/compat.h"

namespace warplens::binding {

// From now on operators of this thread, and of the backward passes that it starts, are NVTX ranges. `path` is that of
// libtorch_cpu.so, which the program has loaded. Returns a number for stop_operators(); OSError where PyTorch lacks a function.
PyObject *emit_operators(PyObject *module, PyObject *path);

// In the same thread.
PyObject *stop_operators(PyObject *module, PyObject *number);

}  // namespace warplens::binding

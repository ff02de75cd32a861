// CounterSemantics as NVTX's structure.
#pragma once

#include <nvtx3/nvToolsExtSemanticsCounters.h>

#include "bindings/values/compat.h"

namespace warplens::binding {

// From the tuple (flags, unit as bytes or None, numerator, denominator, limit type, min, max) that
// warplens.nvtx._counters makes. The unit lives as long as the tuple. False without an exception.
bool read_semantics(PyObject *meaning, nvtxSemanticsCounter_t *out);

}  // namespace warplens::binding

// The functions of the module, and the id that start_range() returns.
#pragma once

#include "bindings/values/compat.h"

namespace warplens::binding {

extern PyMethodDef g_functions[];
extern PyTypeObject RangeIdType;

}  // namespace warplens::binding

// The type Profile: every call of a Python or C function is a range.
#pragma once

#include "compat.h"

namespace warpline::binding {

extern PyTypeObject ProfileType;

bool init_profile();

}  // namespace warpline::binding

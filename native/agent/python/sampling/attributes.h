// Reads attributes of Python objects from memory, without calling Python.
#pragma once

#include <string_view>

#include "agent/python/memory/layout.h"

namespace warplens::agent {

//! [MT] The value of an attribute in the `__dict__` of an object of a class that Python code defines; 0: it has none of that name, or this
//! version's objects are not known (3.10 to 3.15 are). Throws bad_alloc.
uintptr_t read_attribute(const PythonRuntime &python, uintptr_t object, std::string_view name);

}  // namespace warplens::agent

// Reads Python's texts as UTF-8.
#pragma once

#include <string>

#include "layout.h"

namespace warplens::agent {

//! [MT] The str at `address`, cut to some 500 characters; false where there is none. Throws bad_alloc.
bool read_text(const PythonRuntime &python, uintptr_t address, std::string &text);

//! [MT] The bytes at `address`; false where there are none, or more than `most`. Throws bad_alloc.
bool read_bytes(const PythonRuntime &python, uintptr_t address, size_t most, std::string &bytes);

}  // namespace warplens::agent

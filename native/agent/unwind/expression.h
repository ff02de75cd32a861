// Evaluates the DWARF expressions of unwind tables.
#pragma once

#include <cstddef>
#include <cstdint>

#include "registers.h"
#include "stack_view.h"

namespace warplens::agent {

//! Carries out `size` bytes; false for what is not known, reads what cannot be read, or does not end.
bool evaluate(const uint8_t *bytes, size_t size, const Registers &registers, const StackView &stack,
              const uint64_t *first, uint64_t *result);

}  // namespace warplens::agent

// Reads memory of this process that may be unmapped: that is an error, never a fault.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warplens::agent {

//! [MT] Copies from `address`; how many bytes there were, up to the first that cannot be read. Signal-safe.
size_t read_own(uint64_t address, void *to, size_t size);

//! [MT] The same of the process that is recorded, which may be another one.
size_t read_subject(uint64_t address, void *to, size_t size);

}  // namespace warplens::agent

// A thread's stack as unwinding sees it: a copy of its top, and behind that perhaps the memory itself.
#pragma once

#include <cstdint>
#include <cstring>

#include "own_memory.h"

namespace warplens::agent {

struct StackView {
  uint64_t begin;        // address of bytes[0]
  const uint8_t *bytes;  // may be unaligned
  uint64_t size;
  bool live;  // what lies behind may be read where it is: the thread stands still, or is our own

  bool read(uint64_t address, uint64_t *value) const {
    if (address - begin < size && size - (address - begin) >= sizeof(*value)) {
      std::memcpy(value, bytes + (address - begin), sizeof(*value));
      return true;
    }
    return live && read_subject(address, value, sizeof(*value)) == sizeof(*value);
  }
};

}  // namespace warplens::agent

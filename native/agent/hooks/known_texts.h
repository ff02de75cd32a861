// Numbers texts that return often, without a lock, and counts texts of unlimited number.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace warplens::agent {

// The upper half of a slot tells which text it is, the lower is its number. Two that collide take turns.
class KnownTexts {
 public:
  template <typename Make>
  uint32_t get(uint64_t hash, const Make &make) {
    std::atomic<uint64_t> &slot = slots_[hash % kSlots];
    uint64_t known = slot.load(std::memory_order_relaxed);
    if (known >> 32 == hash >> 32 && known != 0) {
      return static_cast<uint32_t>(known);
    }
    uint32_t number = make();
    if (number != 0) {
      slot.store((hash >> 32) << 32 | number, std::memory_order_relaxed);
    }
    return number;
  }

 private:
  static constexpr size_t kSlots = 4096;
  std::atomic<uint64_t> slots_[kSlots];
};

//! [MT] As text_number(), for paths and addresses: a program may look at every file of a disk, and talk to everybody. 0 for all that
//! come after the first 500 000.
uint32_t any_text_number(std::string_view text);

}  // namespace warplens::agent

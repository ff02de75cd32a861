// Handles of objects that programs make: the domain and a number, so that using one needs no look-up.
#pragma once

#include <algorithm>

#include "event.h"
#include "registry.h"

namespace warplens::agent {

//! [MT] Never 0.
inline uint64_t new_handle(uint16_t domain) {
  return static_cast<uint64_t>(domain) << 40 | (new_id() - kDynamicIds);
}
inline uint16_t domain_of_handle(uint64_t handle) {
  return static_cast<uint16_t>(handle >> 40);
}
template <typename Pointer>
uint64_t number_of(Pointer *handle) {
  return reinterpret_cast<uintptr_t>(handle);
}

//! An older, shorter structure in full, and what is known of a newer, longer one; `size` as the structure says.
template <typename Whole>
Whole whole_of(const Whole &given, size_t size) {
  Whole whole{};
  std::memcpy(&whole, &given, std::min(size, sizeof(whole)));
  return whole;
}

}  // namespace warplens::agent

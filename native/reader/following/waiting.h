// Holds ranges that have an id and a place, but no end yet: the process still records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "reader/spool/nest.h"

namespace warplens::reader {

// A range is known again by where it began; `task`, `id`, `parent` decided its place and must not have changed.
struct Waiting {
  uint64_t start;  // as the spool has it
  uint32_t name;
  uint32_t thread;
  uint16_t domain;
  uint8_t type;
  uint32_t task;
  uint64_t parent;
  int64_t row;  // its id
  Place place;

  bool looks_like(const Waiting &other) const {
    return start == other.start && name == other.name && thread == other.thread && domain == other.domain &&
           type == other.type && task == other.task && parent == other.parent;
  }
};

class WaitingRanges {
 public:
  void add(const Waiting &one) { all_.emplace(one.start, one); }
  size_t size() const { return all_.size(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  // Returns the range that looks like `wanted`, which waits no more. Nothing where there is none, or several.
  std::optional<Waiting> take(const Waiting &wanted) {
    const auto [first, last] = all_.equal_range(wanted.start);
    auto found = last;
    for (auto at = first; at != last; ++at) {
      if (at->second.looks_like(wanted)) {
        if (found != last) {
          return std::nullopt;
        }
        found = at;
      }
    }
    if (found == last) {
      return std::nullopt;
    }
    const Waiting result = found->second;
    all_.erase(found);
    return result;
  }

 private:
  std::unordered_multimap<uint64_t, Waiting> all_;
};

}  // namespace warplens::reader

// Tracks the start/end ranges of tasks.
// A program may have millions of tasks, few at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "nest.h"

namespace warplens::reader {

class TaskNests {
 public:
  Place add(uint32_t task, int64_t start, int64_t end, int64_t id) {
    if (nests_.size() >= limit_) {
      std::erase_if(nests_, [start](const auto &entry) { return entry.second.over(start); });
      limit_ = std::max(kFew, 2 * nests_.size());
    }
    return nests_[task].add(start, end, id);
  }
  // The innermost open range of the task that encloses this one; -1: none.
  int64_t enclosing(uint32_t task, int64_t start, int64_t end) const {
    const auto at = nests_.find(task);
    return at == nests_.end() ? -1 : at->second.enclosing(start, end);
  }
  // As `Nest::settle`, and whether the ranges of the task are in order then.
  bool settle(uint32_t task, int64_t id, int64_t end) {
    const auto at = nests_.find(task);
    return at != nests_.end() && at->second.settle(id, end) && at->second.in_order();
  }

 private:
  static constexpr size_t kFew = 1024;
  std::unordered_map<uint32_t, Nest> nests_;
  size_t limit_ = kFew;
};

}  // namespace warplens::reader

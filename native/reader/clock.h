// Maps times through knots, linear between them and with the outer knots' offsets beyond them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace warplens::reader {

class ClockMap {
 public:
  ClockMap() = default;
  // `from` rises strictly, `to` does not fall.
  ClockMap(const int64_t *from, const int64_t *to, size_t count)
      : from_(from, from + count), to_(to, to + count) {}

  int64_t operator()(int64_t time) const {
    if (from_.empty()) {
      return time;
    }
    // Times come nearly in order: mostly, they lie between the same knots as the last one.
    if (last_ + 1 >= from_.size() || time <= from_[last_] || time >= from_[last_ + 1]) {
      if (time <= from_.front()) {
        return time + (to_.front() - from_.front());
      }
      if (time >= from_.back()) {
        return time + (to_.back() - from_.back());
      }
      last_ = static_cast<size_t>(std::upper_bound(from_.begin(), from_.end(), time) - from_.begin()) - 1;
      slope_ = static_cast<double>(to_[last_ + 1] - to_[last_]) /
               static_cast<double>(from_[last_ + 1] - from_[last_]);
    }
    return to_[last_] + static_cast<int64_t>(static_cast<double>(time - from_[last_]) * slope_ + 0.5);
  }

 private:
  std::vector<int64_t> from_;
  std::vector<int64_t> to_;
  mutable size_t last_ = SIZE_MAX - 1;  // the knot before the last time, and the slope behind it
  mutable double slope_ = 0;
};

}  // namespace warplens::reader

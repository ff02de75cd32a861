// Maps times through knots, linear between them and with the outer knots' offsets beyond them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace warplens::desk {

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
    if (time <= from_.front()) {
      return time + (to_.front() - from_.front());
    }
    if (time >= from_.back()) {
      return time + (to_.back() - from_.back());
    }
    const auto next = static_cast<size_t>(std::upper_bound(from_.begin(), from_.end(), time) - from_.begin());
    const size_t last = next - 1;
    const double slope =
        static_cast<double>(to_[next] - to_[last]) / static_cast<double>(from_[next] - from_[last]);
    return to_[last] + std::llround(static_cast<double>(time - from_[last]) * slope);
  }

 private:
  std::vector<int64_t> from_;
  std::vector<int64_t> to_;
};

}  // namespace warplens::desk

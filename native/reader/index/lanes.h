// Finds the lowest lane that is free at a time, at or above a floor, however many there are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "format.h"

namespace warplens::reader::lod {

class FreeLanes {
 public:
  // `start` must not go back. The lane is taken until `end`.
  uint32_t take(uint32_t floor, int64_t start, int64_t end) {
    size_t lane = std::min<size_t>(floor, ends_.size() + kGap);
    if (lane < ends_.size() && ends_[lane] > start) {
      lane = search(lane + 1, start);
    }
    if (lane >= ends_.size()) {
      const size_t block = ends_.size() / kBlock;
      ends_.resize(lane + 1, INT64_MIN);
      earliest_.resize(std::min(block, earliest_.size()));
      earliest_.resize(lane / kBlock + 1, INT64_MIN);
    }
    ends_[lane] = end;
    const size_t block = lane / kBlock;
    if (ends_.size() > kBlock) {
      const auto first = ends_.begin() + static_cast<ptrdiff_t>(block * kBlock);
      const auto last = ends_.begin() + static_cast<ptrdiff_t>(std::min((block + 1) * kBlock, ends_.size()));
      earliest_[block] = *std::min_element(first, last);
    }
    return static_cast<uint32_t>(lane);
  }

  static constexpr size_t kGap =
      255;  // a floor far above all lanes costs memory, and nobody would look there

 private:
  static constexpr size_t kBlock = 64;

  size_t search(size_t lane, int64_t start) const {
    while (lane < ends_.size()) {
      const size_t behind = std::min((lane / kBlock + 1) * kBlock, ends_.size());
      if (ends_.size() <= kBlock || earliest_[lane / kBlock] <= start) {
        for (; lane < behind; ++lane) {
          if (ends_[lane] <= start) {
            return lane;
          }
        }
      }
      lane = behind;
    }
    return lane;
  }

  std::vector<int64_t> ends_;
  std::vector<int64_t> earliest_;  // of each block of lanes; not kept while there is one block only
};

}  // namespace warplens::reader::lod

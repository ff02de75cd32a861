// Hands out the smallest free lane at or above a floor in a few steps, however many are taken.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace warplens::reader {

class LaneSet {
 public:
  uint32_t take(uint32_t floor) {
    size_t position = floor;
    size_t level = 0;
    for (; level + 1 < kLevels; ++level) {
      const uint64_t free = ~word(level, position / 64) & (~uint64_t{0} << (position % 64));
      if (free != 0) {
        position = position / 64 * 64 + static_cast<size_t>(std::countr_zero(free));
        break;
      }
      position = position / 64 + 1;
    }
    for (; level > 0; --level) {
      position = position * 64 + static_cast<size_t>(std::countr_zero(~word(level - 1, position)));
    }
    set(position);
    return static_cast<uint32_t>(position);
  }

  void release(uint32_t lane) {
    size_t position = lane;
    for (size_t level = 0; level < kLevels; ++level) {
      uint64_t &bits = word(level, position / 64);
      const bool was_full = bits == ~uint64_t{0};
      bits &= ~(uint64_t{1} << (position % 64));
      if (!was_full) {
        return;
      }
      position /= 64;
    }
  }

 private:
  static constexpr size_t kLevels = 6;  // 64^6 lanes are more than 32 bits can number

  void set(size_t position) {
    for (size_t level = 0; level < kLevels; ++level) {
      uint64_t &bits = word(level, position / 64);
      bits |= uint64_t{1} << (position % 64);
      if (bits != ~uint64_t{0}) {
        return;
      }
      position /= 64;
    }
  }

  uint64_t &word(size_t level, size_t index) {
    auto &words = levels_[level];
    if (index >= words.size()) {
      words.resize(index + 1);
    }
    return words[index];
  }

  // levels_[0]: one bit per taken lane; levels_[k]: one bit per full word of the level below.
  std::array<std::vector<uint64_t>, kLevels> levels_;
};

}  // namespace warplens::reader

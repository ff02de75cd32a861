// Packs slices into leaves.
// A leaf has up to 64 slices as columns, each as narrow as its values allow.
#pragma once

#include <array>
#include <cstring>
#include <vector>

#include "format.h"

namespace warplens::reader::lod {

// Appends the slices to `out`; returns the leaf, whose `first` is to be set.
Node pack(const Slice *slices, uint32_t count, std::vector<uint8_t> &out);

inline uint32_t packed_bytes(const Node &leaf) {
  uint32_t bytes = 0;
  for (uint32_t column = 0; column < kColumns; ++column) {
    bytes += leaf.slices * width_of(leaf.widths, column);
  }
  return bytes;
}

template <typename Stored>
uint64_t load_as(const uint8_t *at, uint32_t index) {
  Stored value;
  std::memcpy(&value, at + index * sizeof(Stored), sizeof(Stored));
  return value;
}

inline uint64_t load(const uint8_t *at, uint32_t width, uint32_t index) {
  switch (width) {
    case 0:
      return 0;
    case 1:
      return at[index];
    case 2:
      return load_as<uint16_t>(at, index);
    case 4:
      return load_as<uint32_t>(at, index);
    default:
      return load_as<uint64_t>(at, index);
  }
}

// Reads a leaf whose bytes have been checked to be there.
class Leaf {
 public:
  Leaf(const Node &node, const uint8_t *bytes) : node_(node) {
    for (uint32_t column = 0; column < kColumns; ++column) {
      at_[column] = bytes;
      bytes += size_t{node.slices} * width_of(node.widths, column);
    }
  }
  uint32_t size() const { return node_.slices; }
  int64_t start(uint32_t index) const {
    return cut(cut(node_.begin) + cut(static_cast<int64_t>(value(kStart, index))));
  }
  int64_t duration(uint32_t index) const {
    const int64_t found = cut(static_cast<int64_t>(value(kDuration, index)));
    return found < 0 ? 0 : found;
  }
  uint32_t name(uint32_t index) const { return node_.name_base + static_cast<uint32_t>(value(kName, index)); }
  uint32_t row(uint32_t index) const { return node_.row_base + static_cast<uint32_t>(value(kRow, index)); }
  uint32_t link(uint32_t index) const { return node_.link_base + static_cast<uint32_t>(value(kLink, index)); }
  Slice slice(uint32_t index) const {
    return {start(index), duration(index), name(index), row(index), link(index)};
  }
  // All at once, which is much faster than one by one.
  void times(int64_t *start, int64_t *duration) const;
  void names(uint32_t *out) const;

 private:
  uint64_t value(uint32_t column, uint32_t index) const {
    return load(at_[column], width_of(node_.widths, column), index);
  }
  const Node &node_;
  std::array<const uint8_t *, kColumns> at_;
};

}  // namespace warplens::reader::lod

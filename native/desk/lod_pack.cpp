#include "lod_pack.h"

#include <algorithm>

namespace warpline::desk::lod {

namespace {

uint32_t power_for(uint64_t most) {
  return most == 0 ? 0 : most < 1U << 8 ? 1 : most < 1U << 16 ? 2 : most <= UINT32_MAX ? 3 : 4;
}

template <typename Stored, typename ValueOf>
void store(std::vector<uint8_t> &out, uint32_t count, const ValueOf &value) {
  std::array<Stored, kLeaf> column;
  for (uint32_t i = 0; i < count; ++i) {
    column[i] = static_cast<Stored>(value(i));
  }
  const auto *bytes = reinterpret_cast<const uint8_t *>(column.data());
  out.insert(out.end(), bytes, bytes + count * sizeof(Stored));
}

// Appends a column and returns the power of its width.
template <typename ValueOf>
uint32_t append(std::vector<uint8_t> &out, uint32_t count, uint64_t most, const ValueOf &value) {
  const uint32_t power = power_for(most);
  switch (power) {
    case 0:
      break;
    case 1:
      store<uint8_t>(out, count, value);
      break;
    case 2:
      store<uint16_t>(out, count, value);
      break;
    case 3:
      store<uint32_t>(out, count, value);
      break;
    default:
      store<uint64_t>(out, count, value);
  }
  return power;
}

template <typename Out, typename Stored>
void widen(const uint8_t *at, uint32_t count, Out *out) {
  for (uint32_t i = 0; i < count; ++i) {
    Stored value;
    std::memcpy(&value, at + i * sizeof(Stored), sizeof(Stored));
    out[i] = static_cast<Out>(value);
  }
}

template <typename Out>
void unpack(const uint8_t *at, uint32_t width, uint32_t count, Out *out) {
  switch (width) {
    case 0:
      std::fill_n(out, count, Out{0});
      break;
    case 1:
      widen<Out, uint8_t>(at, count, out);
      break;
    case 2:
      widen<Out, uint16_t>(at, count, out);
      break;
    case 4:
      widen<Out, uint32_t>(at, count, out);
      break;
    default:
      widen<Out, uint64_t>(at, count, out);
  }
}

}  // namespace

Node pack(const Slice *slices, uint32_t count, std::vector<uint8_t> &out) {
  Node node{};
  node.begin = node.end = slices[0].start;
  node.longest = -1;
  node.slices = count;
  node.name_base = node.row_base = node.link_base = UINT32_MAX;
  int64_t last = slices[0].start;
  uint32_t name = 0, row = 0, link = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const Slice &slice = slices[i];
    node.begin = std::min(node.begin, slice.start);
    last = std::max(last, slice.start);
    node.end = std::max(node.end, slice.start + slice.duration);
    node.busy = plus(node.busy, slice.duration);
    node.names |= uint64_t{1} << (slice.name % 64);
    if (slice.duration > node.longest) {
      node.longest = slice.duration;
      node.name = slice.name;
      node.row = slice.row;
      node.link = slice.link;
    }
    node.name_base = std::min(node.name_base, slice.name);
    node.row_base = std::min(node.row_base, slice.row);
    node.link_base = std::min(node.link_base, slice.link);
    name = std::max(name, slice.name);
    row = std::max(row, slice.row);
    link = std::max(link, slice.link);
  }
  uint32_t widths = append(out, count, static_cast<uint64_t>(last - node.begin),
                           [&](uint32_t i) { return slices[i].start - node.begin; });
  widths |=
      append(out, count, static_cast<uint64_t>(node.longest), [&](uint32_t i) { return slices[i].duration; })
      << 3;
  widths |=
      append(out, count, name - node.name_base, [&](uint32_t i) { return slices[i].name - node.name_base; })
      << 6;
  widths |= append(out, count, row - node.row_base, [&](uint32_t i) { return slices[i].row - node.row_base; })
            << 9;
  widths |=
      append(out, count, link - node.link_base, [&](uint32_t i) { return slices[i].link - node.link_base; })
      << 12;
  node.widths = static_cast<uint16_t>(widths);
  return node;
}

void Leaf::times(int64_t *start, int64_t *duration) const {
  unpack(at_[kStart], width_of(node_.widths, kStart), size(), start);
  unpack(at_[kDuration], width_of(node_.widths, kDuration), size(), duration);
  const int64_t begin = cut(node_.begin);
  for (uint32_t i = 0; i < size(); ++i) {
    start[i] = cut(begin + cut(start[i]));
    duration[i] = duration[i] < 0 ? 0 : cut(duration[i]);
  }
}

void Leaf::names(uint32_t *out) const {
  unpack(at_[kName], width_of(node_.widths, kName), size(), out);
  for (uint32_t i = 0; i < size(); ++i) {
    out[i] += node_.name_base;
  }
}

}  // namespace warpline::desk::lod

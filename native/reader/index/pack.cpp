// Packs up to 64 slices into narrow columns.
#include "pack.h"

#include <algorithm>

namespace warplens::reader::lod {

namespace {

uint32_t power_for(uint64_t most) {
  return most == 0 ? 0 : most < 1U << 8 ? 1 : most < 1U << 16 ? 2 : most <= UINT32_MAX ? 3 : 4;
}

uint32_t least(const uint32_t *values, uint32_t count) {
  uint32_t found = values[0];
  for (uint32_t i = 1; i < count; ++i) {
    found = values[i] < found ? values[i] : found;
  }
  return found;
}

uint32_t most(const uint32_t *values, uint32_t count) {
  uint32_t found = values[0];
  for (uint32_t i = 1; i < count; ++i) {
    found = values[i] > found ? values[i] : found;
  }
  return found;
}

template <typename Stored, typename Value>
void store(std::vector<uint8_t> &out, uint32_t count, const Value *values, Value base) {
  std::array<Stored, kLeaf> column;
  for (uint32_t i = 0; i < count; ++i) {
    column[i] = static_cast<Stored>(values[i] - base);
  }
  const auto *bytes = reinterpret_cast<const uint8_t *>(column.data());
  out.insert(out.end(), bytes, bytes + count * sizeof(Stored));
}

// Appends a column, counted from `base`, and returns the power of its width.
template <typename Value>
uint32_t append(std::vector<uint8_t> &out, uint32_t count, const Value *values, Value base, Value most) {
  const uint32_t power = power_for(static_cast<uint64_t>(most - base));
  switch (power) {
    case 0:
      break;
    case 1:
      store<uint8_t>(out, count, values, base);
      break;
    case 2:
      store<uint16_t>(out, count, values, base);
      break;
    case 3:
      store<uint32_t>(out, count, values, base);
      break;
    default:
      store<uint64_t>(out, count, values, base);
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
  if (count == 0 || count > kLeaf) {
    return node;
  }
  // As columns first: what follows then works on several slices at a time.
  std::array<int64_t, kLeaf> start, duration;
  std::array<uint32_t, kLeaf> name, row, link;
  for (uint32_t i = 0; i < count; ++i) {
    start[i] = slices[i].start;
    duration[i] = slices[i].duration;
    name[i] = slices[i].name;
    row[i] = slices[i].row;
    link[i] = slices[i].link;
  }
  node.begin = *std::min_element(start.data(), start.data() + count);
  node.slices = count;
  int64_t last = node.begin;
  node.end = node.begin;
  uint32_t longest = 0;
  for (uint32_t i = 0; i < count; ++i) {
    last = std::max(last, start[i]);
    node.end = std::max(node.end, start[i] + duration[i]);
    node.busy = plus(node.busy, duration[i]);
    node.names |= uint64_t{1} << (name[i] % 64);
    longest = duration[i] > duration[longest] ? i : longest;
  }
  node.longest = duration[longest];
  node.name = name[longest];
  node.row = row[longest];
  node.link = link[longest];
  uint32_t widths = append(out, count, start.data(), node.begin, last);
  widths |= append(out, count, duration.data(), int64_t{0}, node.longest) << 3;
  node.name_base = least(name.data(), count);
  node.row_base = least(row.data(), count);
  node.link_base = least(link.data(), count);
  widths |= append(out, count, name.data(), node.name_base, most(name.data(), count)) << 6;
  widths |= append(out, count, row.data(), node.row_base, most(row.data(), count)) << 9;
  widths |= append(out, count, link.data(), node.link_base, most(link.data(), count)) << 12;
  node.widths = static_cast<uint16_t>(widths);
  return node;
}

void Leaf::times(int64_t *start, int64_t *duration) const {
  unpack(at_[kStart], width_of(node_.widths, kStart), size(), start);
  unpack(at_[kDuration], width_of(node_.widths, kDuration), size(), duration);
  const int64_t begin = cut(node_.begin);
  constexpr uint32_t kNarrow =
      4;  // bytes: values of this width need no cutting, except for starts at the end of all time
  if (width_of(node_.widths, kStart) <= kNarrow && width_of(node_.widths, kDuration) <= kNarrow &&
      begin <= kFar - int64_t{UINT32_MAX}) {
    for (uint32_t i = 0; i < size(); ++i) {
      start[i] += begin;
    }
    return;
  }
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

}  // namespace warplens::reader::lod

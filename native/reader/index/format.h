// The format of an index file.
// Packed slices, and a tree of nodes over those of each lane (docs/dev/formats/index.md).
#pragma once

#include <cstddef>
#include <cstdint>

namespace warplens::reader::lod {

constexpr uint32_t kLeaf = 64;              // slices of a leaf, at most
constexpr uint32_t kFan = 8;                // children of a node, at most
constexpr uint32_t kNone = UINT32_MAX;      // no link
constexpr size_t kMostLevels = 16;          // more than 2^32 slices need
constexpr int64_t kFar = int64_t{1} << 61;  // times are cut to this, so that differences fit

// Columns of a packed leaf, in this order; each has a width of 0 (all are the base), 1, 2, 4 or 8 bytes, as its power.
enum Column : uint32_t { kStart, kDuration, kName, kRow, kLink, kColumns };

struct Slice {
  int64_t start, duration;
  uint32_t name, row, link;
};

// A leaf, or what is below a node of a higher level.
struct Node {
  int64_t begin, end;        // of the first slice; of the one that ends last
  int64_t busy;              // durations together
  int64_t longest;           // duration of the longest slice
  uint64_t names;            // bit `name % 64` of each name
  uint64_t first;            // leaf: where its slices lie in the file
  uint32_t name, row, link;  // of the longest slice
  uint32_t slices;
  uint32_t name_base, row_base,
      link_base;    // leaf: what the columns are counted from; starts from `begin`, durations from 0
  uint16_t widths;  // leaf: 3 bits for each column
  uint16_t spare;
};
static_assert(sizeof(Node) == 80);

struct LaneRecord {
  uint32_t track, lane;
  uint64_t first_node;  // leaves first, then their parents, …, last the root
  uint64_t leaves;
  uint64_t slices;
};
static_assert(sizeof(LaneRecord) == 32);

struct TrackRecord {
  int64_t begin, end;
  int64_t busy;  // union of its slices
  uint64_t events;
  uint64_t first_lane;
  uint32_t lanes;
  uint32_t flags;
};
static_assert(sizeof(TrackRecord) == 48);
// Only lane 0 can be busy where no lane below it is: what it covers is the union.
constexpr uint32_t kNested = 1;
constexpr uint32_t kRowsAscend = 2;  // in order of time, in each lane

struct NameRecord {
  int64_t first, last;  // when slices of this name begin
  uint64_t count;
  uint32_t text;
  uint32_t color;  // 0xRRGGBB, kNone: none was given
};
static_assert(sizeof(NameRecord) == 32);

inline uint32_t width_of(uint16_t widths, uint32_t column) {
  constexpr uint32_t kBytes[8] = {0, 1, 2, 4, 8, 8, 8, 8};
  return kBytes[widths >> (3 * column) & 7];
}

inline int64_t cut(int64_t time) {
  return time < -kFar ? -kFar : time > kFar ? kFar : time;
}

// Times that are asked for: what begins at the greatest time of all is before the end of all.
inline int64_t bound(int64_t time) {
  return time < -kFar ? -kFar : time > kFar ? kFar + 1 : time;
}

// Sums of hostile durations stay where they are greatest.
inline int64_t plus(int64_t a, int64_t b) {
  return a > INT64_MAX - b ? INT64_MAX : a + b;
}

}  // namespace warplens::reader::lod

// Finds the names that fill each column of a picture.
// For some lanes together, each column gets the group of names that took most of its time.
#pragma once

#include <vector>

#include "index.h"

namespace warplens::reader::lod {

struct LaneOf {
  uint32_t track, lane;
};

// A column that holds something. A group is what names count as together: `groups[name]`.
struct Cell {
  double busy;      // time of all groups, ns
  double covered;   // time in which at least one slice ran, ns
  double time;      // of the one with most
  uint64_t number;  // slices that touch the column
  uint64_t begun;   // slices of that group that begin in it
  int64_t start;    // of its longest slice in the column
  uint32_t column;
  uint32_t group;
  uint32_t row, name, track;  // of its longest slice in the column
};

// [begin, end) is cut into `columns` of the same width. The lanes belong to one row: in order of column, one cell each. Slices of a
// name without a group (kNone) are left out.
std::vector<Cell> cells_of(const Index &index, std::span<const LaneOf> lanes, int64_t begin, int64_t end,
                           uint32_t columns, std::span<const uint32_t> groups);

}  // namespace warplens::reader::lod

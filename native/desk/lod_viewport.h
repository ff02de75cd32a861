// What is to be drawn of some tracks between two times: rectangles that hold whole slices, joined where they are too narrow.
#pragma once

#include <vector>

#include "lod_index.h"

namespace warpline::desk::lod {

struct Run {
  uint32_t track, lane, first, count;
};

// Rectangles as columns; those of a lane follow one another.
struct Rects {
  std::vector<Run> runs;
  std::vector<int64_t> start, duration;
  std::vector<uint32_t> name, row, slices;  // name and row: of the longest slice
  std::vector<float> busy;                  // share of the duration in which something ran
  std::vector<uint32_t> link;
  int64_t grain = 0;  // no two neighbours that are narrower together
  void clear();
};

// Fills `out`. `grain` (ns) grows until there are at most `limit` rectangles, or one for each lane.
void viewport(const Index &index, int64_t begin, int64_t end, int64_t grain, std::span<const uint32_t> tracks,
              uint64_t limit, Rects &out);

}  // namespace warpline::desk::lod

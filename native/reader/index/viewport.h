// What is to be drawn of some tracks between two times: rectangles that hold whole slices, joined where they are too narrow.
#pragma once

#include <vector>

#include "index.h"

namespace warplens::desk::lod {

struct Run {
  uint32_t track, lane, first, count;
};

// What becomes one rectangle: slices of a lane that follow one another. Name, row and link are those of the longest.
struct Piece {
  int64_t begin, end, busy, longest;  // ns
  uint32_t name, row, link, slices;
};

// Pieces of a lane follow one another.
struct Rects {
  std::vector<Run> runs;
  std::vector<Piece> pieces;
  int64_t grain = 0;  // no two neighbours that are narrower together
};

// Fills `out`. `grain` (ns) grows until there are at most `limit` rectangles, or one for each lane.
void viewport(const Index &index, int64_t begin, int64_t end, int64_t grain, std::span<const uint32_t> tracks,
              uint64_t limit, Rects &out);

}  // namespace warplens::desk::lod

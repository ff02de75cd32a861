// Computes the rectangles of a view.
// Each holds whole slices; those that are too narrow are joined.
#pragma once

#include <vector>

#include "index.h"

namespace warplens::reader::lod {

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

}  // namespace warplens::reader::lod

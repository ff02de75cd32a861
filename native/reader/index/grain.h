// Chooses the least width of rectangles in a view.
// A view then has few enough rectangles; the upper levels of the lanes give the estimate.
#pragma once

#include "index.h"

namespace warplens::reader::lod {

// The grain (ns) to begin drawing [begin, end) with: `grain` itself, unless it is sure that there are more than `limit` then.
int64_t starting_grain(const Index &index, std::span<const LaneRecord *const> lanes, int64_t begin,
                       int64_t end, int64_t grain, uint64_t limit);

}  // namespace warplens::reader::lod

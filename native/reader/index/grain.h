// How wide rectangles must be at least for a view to have few enough of them, by what the upper levels of the lanes tell.
#pragma once

#include "index.h"

namespace warplens::desk::lod {

// The grain (ns) to begin drawing [begin, end) with: `grain` itself, unless it is sure that there are more than `limit` then.
int64_t starting_grain(const Index &index, std::span<const LaneRecord *const> lanes, int64_t begin,
                       int64_t end, int64_t grain, uint64_t limit);

}  // namespace warplens::desk::lod

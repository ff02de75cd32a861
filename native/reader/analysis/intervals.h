// Sets of half-open intervals [start, end).
#pragma once

#include <cstdint>

namespace warplens::reader {

// Joins intervals that come sorted by start and touch or overlap; empty ones vanish. Output may be the input. Returns how many.
uint64_t unite(const int64_t *start, const int64_t *end, uint64_t count, int64_t *out_start,
               int64_t *out_end);

}  // namespace warplens::reader

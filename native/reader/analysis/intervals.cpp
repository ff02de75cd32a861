// Unions and gaps of half-open intervals.
#include "intervals.h"

namespace warplens::reader {

uint64_t unite(const int64_t *start, const int64_t *end, uint64_t count, int64_t *out_start,
               int64_t *out_end) {
  uint64_t size = 0;
  for (uint64_t index = 0; index < count; ++index) {
    if (end[index] <= start[index]) {
      continue;
    }
    if (size != 0 && start[index] <= out_end[size - 1]) {
      out_end[size - 1] = end[index] > out_end[size - 1] ? end[index] : out_end[size - 1];
    } else {
      out_start[size] = start[index];
      out_end[size] = end[index];
      ++size;
    }
  }
  return size;
}

}  // namespace warplens::reader

// Finds the innermost push/pop range around points in time.
#include "enclosing.h"

namespace warplens::reader {

void Enclosing::push(const Ranges &ranges, size_t row) {
  const auto found = threads_.find(ranges.thread[row]);
  if (ranges.style[row] != 0 || found == threads_.end()) {
    return;
  }
  // Whatever ended before is gone, so a stack is never deeper than the ranges are nested.
  close(found->second, ranges.start[row]);
  found->second.push_back({ranges.end[row], ranges.id[row]});
}

void Enclosing::add(const Ranges &ranges, const int64_t *thread, const int64_t *time, size_t count,
                    int64_t *out) {
  size_t next = 0;
  for (size_t point = 0; point < count; ++point) {
    for (; next < ranges.count && ranges.start[next] <= time[point]; ++next) {
      push(ranges, next);
    }
    const auto found = threads_.find(thread[point]);
    out[point] = -1;
    if (found != threads_.end()) {
      close(found->second, time[point]);
      out[point] = found->second.empty() ? -1 : found->second.back().id;
    }
  }
  for (; next < ranges.count; ++next) {
    push(ranges, next);
  }
}

}  // namespace warplens::reader

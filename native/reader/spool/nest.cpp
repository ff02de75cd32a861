// Places ranges in lanes by their nesting, in order of start.
//
// `enclosing_` is a stack with falling ends, the innermost range on top. Ranges that cross the new one
// move to `crossed_`, where they only keep their lanes until they end. [0, 10), [2, 5), [4, 8): the
// third leaves [2, 5) in crossed_, has [0, 10) as its parent, and lane 2, as lane 1 is taken.
#include "nest.h"

#include <algorithm>
#include <utility>

namespace warplens::reader {

Place Nest::add(int64_t start, int64_t end, int64_t id) {
  while (!enclosing_.empty() && enclosing_.back().end <= start) {
    lanes_.release(enclosing_.back().lane);
    enclosing_.pop_back();
  }
  while (!crossed_.empty() && crossed_.top().end <= start) {
    lanes_.release(crossed_.top().lane);
    crossed_.pop();
  }
  // What ends before this range does can never again be the innermost: this one encloses whatever it would.
  while (!enclosing_.empty() && enclosing_.back().end < end) {
    crossed_.push(enclosing_.back());
    enclosing_.pop_back();
  }
  Place place{0, -1};
  if (!enclosing_.empty()) {
    place = {enclosing_.back().lane + 1, enclosing_.back().id};
  }
  place.depth = lanes_.take(place.depth);
  enclosing_.push_back({end, id, place.depth});
  return place;
}

int64_t Nest::enclosing(int64_t start, int64_t end) const {
  const auto past = std::partition_point(enclosing_.begin(), enclosing_.end(), [=](const OpenRange &open) {
    return open.end >= end && open.end > start;
  });
  return past == enclosing_.begin() ? -1 : std::prev(past)->id;
}

bool Nest::settle(int64_t id, int64_t end) {
  const auto at =
      std::find_if(enclosing_.begin(), enclosing_.end(), [id](const OpenRange &one) { return one.id == id; });
  if (at == enclosing_.end()) {
    return false;
  }
  at->end = end;
  return true;
}

bool Nest::in_order() const {
  return std::is_sorted(enclosing_.begin(), enclosing_.end(),
                        [](const OpenRange &a, const OpenRange &b) { return a.end > b.end; });
}

uint32_t ProcessLanes::add(int64_t start, int64_t end, int64_t id) {
  while (!open_.empty() && open_.top().end <= start) {
    lanes_.release(open_.top().lane);
    open_.pop();
  }
  const uint32_t lane = lanes_.take(0);
  open_.push({end, id, lane});
  return lane;
}

void ProcessLanes::settle(int64_t id, int64_t end) {
  std::vector<OpenRange> all;
  for (; !open_.empty(); open_.pop()) {
    all.push_back(open_.top());
    all.back().end = all.back().id == id ? end : all.back().end;
  }
  open_ = ByEnd(EndsLater(), std::move(all));
}

}  // namespace warplens::reader

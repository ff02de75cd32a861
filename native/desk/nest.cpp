#include "nest.h"

#include <algorithm>

namespace warplens::desk {

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

uint32_t ProcessLanes::add(int64_t start, int64_t end) {
  while (!open_.empty() && open_.top().end <= start) {
    lanes_.release(open_.top().lane);
    open_.pop();
  }
  const uint32_t lane = lanes_.take(0);
  open_.push({end, 0, lane});
  return lane;
}

}  // namespace warplens::desk

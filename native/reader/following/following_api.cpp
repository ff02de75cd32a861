// The C functions behind `warplens.spool.events`: a process that goes on. Negative results are errors; nothing throws across.
#include <algorithm>
#include <cstdint>

#include "reader/guard.h"
#include "reader/spool/timeline.h"

using warplens::desk::guarded;
using warplens::desk::Timeline;

WARPLENS_API void warplens_desk_follow(Timeline *timeline) {
  timeline->events.follow();
}

WARPLENS_API void warplens_desk_young_from(Timeline *timeline, uint64_t time) {
  timeline->events.young_from(time);
}

WARPLENS_API uint64_t warplens_desk_young_start(const Timeline *timeline) {
  return timeline->events.young_start();
}

WARPLENS_API uint32_t warplens_desk_owner(const Timeline *timeline) {
  return timeline->events.owner();
}

WARPLENS_API int64_t warplens_desk_wait_for(Timeline *timeline, const uint8_t *records,
                                            const warplens::desk::OpenFacts *facts, uint64_t count) {
  return guarded([&] {
    timeline->events.wait_for(records, facts, count);
    return 0;
  });
}

WARPLENS_API uint64_t warplens_desk_cut_at(Timeline *timeline, uint64_t rows, uint64_t upper) {
  return timeline->events.cut_at(rows, upper);
}

WARPLENS_API int64_t warplens_desk_cut(Timeline *timeline, const uint8_t *base, uint64_t upper) {
  return guarded([&] {
    timeline->events.cut(base, upper);
    return 0;
  });
}

// Before which ranges of the slice there belong others that have not ended.
WARPLENS_API int64_t warplens_desk_splits(const Timeline *timeline, uint64_t *out, uint64_t room) {
  const auto &splits = timeline->slicer->splits();
  std::copy_n(splits.begin(), std::min<uint64_t>(room, splits.size()), out);
  return static_cast<int64_t>(splits.size());
}

// Fills the columns of ranges with those that waited until now; returns how many there are.
WARPLENS_API int64_t warplens_desk_late(Timeline *timeline) {
  return guarded([&] { return timeline->slicer->build_late(); });
}

// How many ranges wait; out: what could not be as it is, and how many ids are kept.
WARPLENS_API int64_t warplens_desk_waiting(Timeline *timeline, uint64_t *out) {
  out[0] = timeline->slicer->surprises();
  out[1] = timeline->events.parents().kept();
  return static_cast<int64_t>(timeline->slicer->waiting());
}

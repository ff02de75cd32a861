// The functions `events_…` for a process that goes on: slices are cut while it runs (warplens.spool.events).
#include <algorithm>
#include <cstdint>

#include "reader/door.h"
#include "reader/spool/timeline.h"

namespace warplens::reader {
namespace {

void events_follow(Timeline &timeline) {
  timeline.events.follow();
}
WARPLENS_FUNCTION(events_follow);

void events_young_from(Timeline &timeline, uint64_t time) {
  timeline.events.young_from(time);
}
WARPLENS_FUNCTION(events_young_from);

uint64_t events_young_start(Timeline &timeline) {
  return timeline.events.young_start();
}
WARPLENS_FUNCTION(events_young_start);

void events_wait_for(Timeline &timeline, Array<const uint8_t> records, Array<const OpenFacts> facts) {
  require_size(facts.size * timeline.events.stride(), records);
  timeline.events.wait_for(records.data, facts.data, facts.size);
}
WARPLENS_FUNCTION(events_wait_for);

uint64_t events_cut_at(Timeline &timeline, uint64_t rows, uint64_t upper) {
  return timeline.events.cut_at(rows, upper);
}
WARPLENS_FUNCTION(events_cut_at);

void events_cut(Timeline &timeline, Array<const uint8_t> file, uint64_t upper) {
  timeline.events.cut(timeline.base(file), upper);
}
WARPLENS_FUNCTION(events_cut);

// Before which ranges of the slice there belong others that have not ended; returns how many there are.
int64_t events_splits(Timeline &timeline, Array<uint64_t> out) {
  const auto &splits = timeline.slicer().splits();
  std::copy_n(splits.begin(), std::min<uint64_t>(out.size, splits.size()), out.data);
  return static_cast<int64_t>(splits.size());
}
WARPLENS_FUNCTION(events_splits);

// Fills the columns of ranges with those that waited until now; returns how many there are.
int64_t events_late(Timeline &timeline) {
  return static_cast<int64_t>(timeline.slicer().build_late());
}
WARPLENS_FUNCTION(events_late);

// How many ranges wait; what could not be as it is; how many ids are kept.
void events_waiting(Timeline &timeline, Array<uint64_t> out) {
  require_size(3, out);
  out[0] = timeline.slicer().waiting();
  out[1] = timeline.slicer().surprises();
  out[2] = timeline.events.parents().kept();
}
WARPLENS_FUNCTION(events_waiting);

}  // namespace
}  // namespace warplens::reader

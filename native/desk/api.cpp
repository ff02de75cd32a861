// The C functions that warpline.spool.desk calls through ctypes. Negative results are errors; nothing throws across.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <numeric>
#include <vector>

#include "clock.h"
#include "events.h"
#include "intervals.h"
#include "nest.h"
#include "slice.h"
#include "string_chunk.h"

#if defined(_WIN32)
#define WARPLINE_API extern "C" __declspec(dllexport)
#else
#define WARPLINE_API extern "C" __attribute__((visibility("default")))
#endif

using warpline::desk::ClockMap;
using warpline::desk::Events;
using warpline::desk::Layout;
using warpline::desk::Slicer;

namespace {

struct Timeline {
  explicit Timeline(const Layout &layout) : events(layout) {}
  Events events;
  std::unique_ptr<Slicer> slicer;
};

constexpr int64_t kNoMemory = -1;

template <typename Work>
int64_t guarded(const Work &work) noexcept {
  try {
    return static_cast<int64_t>(work());
  } catch (...) {
    return kNoMemory;
  }
}

}  // namespace

WARPLINE_API uint32_t warpline_desk_abi_version() {
  return 1;
}

WARPLINE_API Timeline *warpline_desk_new(const Layout *layout) {
  try {
    return new Timeline(*layout);
  } catch (...) {
    return nullptr;
  }
}

WARPLINE_API void warpline_desk_free(Timeline *timeline) {
  delete timeline;
}

WARPLINE_API int64_t warpline_desk_scan(Timeline *timeline, const uint8_t *base, uint64_t offset,
                                        uint64_t bytes, uint32_t thread) {
  return guarded([&] { return timeline->events.scan(base, offset, bytes, thread); });
}

WARPLINE_API int64_t warpline_desk_open(Timeline *timeline, const uint8_t *records, const uint32_t *threads,
                                        uint64_t count) {
  return guarded([&] {
    timeline->events.add_open(records, threads, count);
    return 0;
  });
}

WARPLINE_API int64_t warpline_desk_plan(Timeline *timeline, uint64_t rows) {
  return guarded([&] { return timeline->events.plan(rows); });
}

WARPLINE_API int64_t warpline_desk_assign(Timeline *timeline, const uint8_t *base, uint64_t first,
                                          uint64_t last) {
  return guarded([&] {
    timeline->events.assign(base, first, last);
    return 0;
  });
}

WARPLINE_API int64_t warpline_desk_keys(Timeline *timeline, int64_t process, int64_t thread_base,
                                        int64_t range_base) {
  return guarded([&] {
    timeline->slicer = std::make_unique<Slicer>(timeline->events, process, thread_base, range_base);
    return 0;
  });
}

WARPLINE_API int64_t warpline_desk_set_strings(Timeline *timeline, const uint32_t *lookup, uint64_t count,
                                               uint64_t strings) {
  return guarded([&] {
    timeline->slicer->set_strings(lookup, count, strings);
    return 0;
  });
}

WARPLINE_API int64_t warpline_desk_set_clock(Timeline *timeline, const int64_t *from, const int64_t *to,
                                             uint64_t count) {
  return guarded([&] {
    timeline->slicer->set_clock(ClockMap(from, to, count));
    return 0;
  });
}

// Fills the columns of one slice; out[0] ranges, out[1] marks.
WARPLINE_API int64_t warpline_desk_slice(Timeline *timeline, const uint8_t *base, uint64_t slice,
                                         uint64_t *out) {
  return guarded([&] {
    timeline->slicer->build(base, slice);
    out[0] = timeline->slicer->ranges();
    out[1] = timeline->slicer->marks();
    return 0;
  });
}

WARPLINE_API const void *warpline_desk_column(const Timeline *timeline, uint32_t marks, const char *name,
                                              uint64_t *bytes) {
  return timeline->slicer->buffer(marks != 0, name, bytes);
}

// Offset, records, thread of each segment.
WARPLINE_API int64_t warpline_desk_segments(const Timeline *timeline, uint64_t *out, uint64_t room) {
  const auto &segments = timeline->events.segments();
  for (uint64_t index = 0; index < std::min<uint64_t>(room, segments.size()); ++index) {
    out[3 * index] = segments[index].offset;
    out[3 * index + 1] = segments[index].count;
    out[3 * index + 2] = segments[index].thread;
  }
  return static_cast<int64_t>(segments.size());
}

// Offsets of the records that are no events.
WARPLINE_API int64_t warpline_desk_meta(const Timeline *timeline, uint64_t *out, uint64_t room) {
  const auto &meta = timeline->events.meta();
  std::copy_n(meta.begin(), std::min<uint64_t>(room, meta.size()), out);
  return static_cast<int64_t>(meta.size());
}

// Thread, start, name, domain, type of the last event of each segment.
WARPLINE_API int64_t warpline_desk_last_events(const Timeline *timeline, uint64_t *out, uint64_t room) {
  const auto &events = timeline->events.last_events();
  for (uint64_t index = 0; index < std::min<uint64_t>(room, events.size()); ++index) {
    const auto &event = events[index];
    const uint64_t row[5] = {event.thread, event.start, event.name, event.domain, event.type};
    std::copy_n(row, 5, out + 5 * index);
  }
  return static_cast<int64_t>(events.size());
}

// Index, first start, events of each thread.
WARPLINE_API int64_t warpline_desk_threads(const Timeline *timeline, int64_t *out, uint64_t room) {
  uint64_t index = 0;
  for (const auto &[thread, seen] : timeline->events.threads()) {
    if (index == room) {
      break;
    }
    out[3 * index] = thread;
    out[3 * index + 1] = seen.first;
    out[3 * index + 2] = static_cast<int64_t>(seen.events);
    ++index;
  }
  return static_cast<int64_t>(timeline->events.threads().size());
}

// ranges, start_ends, marks, damaged, backwards, lost_names, first, last.
WARPLINE_API void warpline_desk_counts(Timeline *timeline, int64_t *out) {
  const auto &counts = timeline->events.counts();
  const uint64_t numbers[6] = {counts.ranges,  counts.start_ends, counts.marks,
                               counts.damaged, counts.backwards,  counts.lost_names};
  std::copy_n(numbers, 6, out);
  out[6] = counts.first;
  out[7] = counts.last;
}

WARPLINE_API int64_t warpline_desk_strings(const uint8_t *chunk, uint64_t size, uint32_t *ids, int64_t *ends,
                                           uint8_t *data, uint64_t *bytes, uint32_t *broken) {
  return static_cast<int64_t>(warpline::desk::read_strings(chunk, size, ids, ends, data, bytes, broken));
}

WARPLINE_API int64_t warpline_desk_unite(const int64_t *start, const int64_t *end, uint64_t count,
                                         int64_t *out_start, int64_t *out_end) {
  return static_cast<int64_t>(warpline::desk::unite(start, end, count, out_start, out_end));
}

WARPLINE_API int64_t warpline_desk_map_times(const int64_t *from, const int64_t *to, uint64_t knots,
                                             const int64_t *times, int64_t *out, uint64_t count) {
  return guarded([&] {
    std::transform(times, times + count, out, ClockMap(from, to, knots));
    return 0;
  });
}

// Depth and parent (row number or -1) of push/pop ranges of one or more threads, rows in order of start.
WARPLINE_API int64_t warpline_desk_nest(const int64_t *thread, const int64_t *start, const int64_t *end,
                                        uint64_t count, int32_t *depth, int64_t *parent) {
  return guarded([&] {
    std::unordered_map<int64_t, warpline::desk::ThreadNest> nests;
    for (uint64_t row = 0; row < count; ++row) {
      const auto place = nests[thread[row]].add(start[row], end[row], static_cast<int64_t>(row));
      depth[row] = static_cast<int32_t>(place.depth);
      parent[row] = place.parent;
    }
    return 0;
  });
}

// Lanes of start/end ranges, rows in order of start.
WARPLINE_API int64_t warpline_desk_lanes(const int64_t *start, const int64_t *end, uint64_t count,
                                         int32_t *lane) {
  return guarded([&] {
    warpline::desk::ProcessLanes lanes;
    for (uint64_t row = 0; row < count; ++row) {
      lane[row] = static_cast<int32_t>(lanes.add(start[row], end[row]));
    }
    return 0;
  });
}

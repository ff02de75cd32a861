// The C functions that warplens.spool.desk calls through ctypes. Negative results are errors; nothing throws across.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "blobs.h"
#include "events.h"
#include "nest.h"
#include "reader/analysis/intervals.h"
#include "reader/clock.h"
#include "reader/guard.h"
#include "slice.h"
#include "string_chunk.h"
#include "timeline.h"

using warplens::desk::ClockMap;
using warplens::desk::guarded;
using warplens::desk::Layout;
using warplens::desk::Slicer;
using warplens::desk::Timeline;

namespace {

// How the push/pop ranges of some threads lie within one another; they come in order of start, some at a time.
struct Nests {
  std::unordered_map<int64_t, warplens::desk::Nest> of;
};

}  // namespace

WARPLENS_API uint32_t warplens_desk_abi_version() {
  return 7;
}

WARPLENS_API Timeline *warplens_desk_new(const Layout *layout) {
  try {
    return new Timeline(*layout);
  } catch (...) {
    return nullptr;
  }
}

WARPLENS_API void warplens_desk_free(Timeline *timeline) {
  delete timeline;
}

// Only events that overlap one of `count` times are wanted.
WARPLENS_API int64_t warplens_desk_choose(Timeline *timeline, const uint64_t *begins, const uint64_t *ends,
                                          uint64_t count) {
  return guarded([&] {
    timeline->events.choose(begins, ends, count);
    return 0;
  });
}

WARPLENS_API int64_t warplens_desk_scan(Timeline *timeline, const uint8_t *base, uint64_t offset,
                                        uint64_t bytes, uint32_t thread) {
  return guarded([&] { return timeline->events.scan(base, offset, bytes, thread); });
}

WARPLENS_API int64_t warplens_desk_open(Timeline *timeline, const uint8_t *records,
                                        const warplens::desk::OpenFacts *facts, uint64_t count) {
  return guarded([&] {
    timeline->events.add_open(records, facts, count);
    return 0;
  });
}

WARPLENS_API int64_t warplens_desk_plan(Timeline *timeline, uint64_t rows) {
  return guarded([&] { return timeline->events.plan(rows); });
}

WARPLENS_API int64_t warplens_desk_assign(Timeline *timeline, const uint8_t *base, uint64_t first,
                                          uint64_t last) {
  return guarded([&] {
    timeline->events.assign(base, first, last);
    return 0;
  });
}

WARPLENS_API int64_t warplens_desk_keys(Timeline *timeline, int64_t process, int64_t thread_base,
                                        int64_t range_base) {
  return guarded([&] {
    timeline->slicer =
        std::make_unique<Slicer>(timeline->events, timeline->blobs, process, thread_base, range_base);
    return 0;
  });
}

WARPLENS_API int64_t warplens_desk_set_strings(Timeline *timeline, const uint32_t *lookup, uint64_t count,
                                               uint64_t strings) {
  return guarded([&] {
    timeline->slicer->set_strings(lookup, count, strings);
    return 0;
  });
}

WARPLENS_API int64_t warplens_desk_set_clock(Timeline *timeline, const int64_t *from, const int64_t *to,
                                             uint64_t count) {
  return guarded([&] {
    timeline->slicer->set_clock(ClockMap(from, to, count));
    return 0;
  });
}

WARPLENS_API int64_t warplens_desk_set_makers(Timeline *timeline, const uint32_t *tasks,
                                              const uint64_t *makers, uint64_t count) {
  return guarded([&] {
    timeline->slicer->set_makers(tasks, makers, count);
    return 0;
  });
}

// Fills the columns of one slice; out: how many rows each table has.
WARPLENS_API int64_t warplens_desk_slice(Timeline *timeline, const uint8_t *base, uint64_t slice,
                                         uint64_t *out) {
  return guarded([&] {
    timeline->slicer->build(base, slice);
    for (uint32_t table = 0; table < Slicer::kTables; ++table) {
      out[table] = timeline->slicer->rows(table);
    }
    return 0;
  });
}

WARPLENS_API const void *warplens_desk_column(const Timeline *timeline, uint32_t table, const char *name,
                                              uint64_t *bytes) {
  return timeline->slicer->buffer(table, name, bytes);
}

// Offset, records, thread of each segment.
WARPLENS_API int64_t warplens_desk_segments(const Timeline *timeline, uint64_t *out, uint64_t room) {
  const auto &segments = timeline->events.segments();
  for (uint64_t index = 0; index < std::min<uint64_t>(room, segments.size()); ++index) {
    out[3 * index] = segments[index].offset;
    out[3 * index + 1] = segments[index].count;
    out[3 * index + 2] = segments[index].thread;
  }
  return static_cast<int64_t>(segments.size());
}

// Offsets of the records that are no events.
WARPLENS_API int64_t warplens_desk_meta(const Timeline *timeline, uint64_t *out, uint64_t room) {
  const auto &meta = timeline->events.meta();
  std::copy_n(meta.begin(), std::min<uint64_t>(room, meta.size()), out);
  return static_cast<int64_t>(meta.size());
}

// Thread, start, name, domain, type of the last event of each segment.
WARPLENS_API int64_t warplens_desk_last_events(const Timeline *timeline, uint64_t *out, uint64_t room) {
  const auto &events = timeline->events.last_events();
  for (uint64_t index = 0; index < std::min<uint64_t>(room, events.size()); ++index) {
    const auto &event = events[index];
    const uint64_t row[5] = {event.thread, event.start, event.name, event.domain, event.type};
    std::copy_n(row, 5, out + 5 * index);
  }
  return static_cast<int64_t>(events.size());
}

// Index, first start, events of each thread.
WARPLENS_API int64_t warplens_desk_threads(const Timeline *timeline, int64_t *out, uint64_t room) {
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

// Task, first start, thread of each task.
WARPLENS_API int64_t warplens_desk_tasks(const Timeline *timeline, int64_t *out, uint64_t room) {
  uint64_t index = 0;
  for (const auto &[task, seen] : timeline->events.tasks()) {
    if (index == room) {
      break;
    }
    const int64_t row[3] = {task, seen.first, seen.thread};
    std::copy_n(row, 3, out + 3 * index);
    ++index;
  }
  return static_cast<int64_t>(timeline->events.tasks().size());
}

// The rows of ranges by the agent's ids, -1 where there is none; those that nobody named as a parent are not known.
WARPLENS_API int64_t warplens_desk_rows_of(Timeline *timeline, const uint64_t *ids, uint64_t count,
                                           int64_t *rows) {
  std::transform(ids, ids + count, rows, [&](uint64_t id) { return timeline->events.parents().row(id); });
  return 0;
}

WARPLENS_API int64_t warplens_desk_blob_chunks(Timeline *timeline, const uint64_t *offsets,
                                               const uint64_t *sizes, uint64_t count) {
  return guarded([&] {
    timeline->blobs.set_chunks(offsets, sizes, count);
    return 0;
  });
}

// Follows chains of payloads; returns how many payloads `blobs_found` will copy out.
WARPLENS_API int64_t warplens_desk_blobs_walk(Timeline *timeline, const uint8_t *base, const uint64_t *first,
                                              uint64_t count) {
  return guarded([&] {
    timeline->blobs.walk(base, first, count);
    return timeline->blobs.found.event.size();
  });
}

WARPLENS_API void warplens_desk_blobs_found(const Timeline *timeline, uint32_t *event, uint64_t *offset,
                                            uint32_t *size, uint32_t *flags, uint64_t *schema) {
  const auto &found = timeline->blobs.found;
  std::copy(found.event.begin(), found.event.end(), event);
  std::copy(found.offset.begin(), found.offset.end(), offset);
  std::copy(found.size.begin(), found.size.end(), size);
  std::copy(found.flags.begin(), found.flags.end(), flags);
  std::copy(found.schema.begin(), found.schema.end(), schema);
}

// Puts pieces of memory behind each other.
WARPLENS_API void warplens_desk_gather(const uint8_t *base, const uint64_t *offsets, const uint32_t *sizes,
                                       uint64_t count, uint8_t *out) {
  for (uint64_t index = 0; index < count; ++index) {
    out = std::copy_n(base + offsets[index], sizes[index], out);
  }
}

// ranges, start_ends, marks, samples, operations, damaged, backwards, lost_names, lost_parents, damaged_blobs, first, last.
WARPLENS_API void warplens_desk_counts(Timeline *timeline, int64_t *out) {
  const auto &counts = timeline->events.counts();
  const uint64_t numbers[] = {
      counts.ranges,  counts.start_ends, counts.marks,      counts.samples,      counts.operations,
      counts.damaged, counts.backwards,  counts.lost_names, counts.lost_parents, timeline->blobs.damaged};
  out = std::copy(std::begin(numbers), std::end(numbers), out);
  out[0] = counts.first;
  out[1] = counts.last;
}

// At most `most` strings of at most `*bytes` bytes together; `*bytes` becomes what they have.
WARPLENS_API int64_t warplens_desk_strings(const uint8_t *chunk, uint64_t size, uint64_t most, uint32_t *ids,
                                           int64_t *ends, uint8_t *data, uint64_t *bytes, uint32_t *broken) {
  return static_cast<int64_t>(
      warplens::desk::read_strings(chunk, size, most, ids, ends, data, bytes, broken));
}

WARPLENS_API int64_t warplens_desk_unite(const int64_t *start, const int64_t *end, uint64_t count,
                                         int64_t *out_start, int64_t *out_end) {
  return static_cast<int64_t>(warplens::desk::unite(start, end, count, out_start, out_end));
}

WARPLENS_API int64_t warplens_desk_map_times(const int64_t *from, const int64_t *to, uint64_t knots,
                                             const int64_t *times, int64_t *out, uint64_t count) {
  return guarded([&] {
    std::transform(times, times + count, out, ClockMap(from, to, knots));
    return 0;
  });
}

WARPLENS_API Nests *warplens_desk_nests_new() {
  return new (std::nothrow) Nests;
}

WARPLENS_API void warplens_desk_nests_free(Nests *nests) {
  delete nests;
}

// Depth and parent (row number or -1) of the next ranges; `first` is the number of the first row.
WARPLENS_API int64_t warplens_desk_nest(Nests *nests, int64_t first, const int64_t *thread,
                                        const int64_t *start, const int64_t *end, uint64_t count,
                                        int32_t *depth, int64_t *parent) {
  return guarded([&] {
    for (uint64_t row = 0; row < count; ++row) {
      const auto place = nests->of[thread[row]].add(start[row], end[row], first + static_cast<int64_t>(row));
      depth[row] = static_cast<int32_t>(place.depth);
      parent[row] = place.parent;
    }
    return 0;
  });
}

// Lanes of start/end ranges, rows in order of start.
WARPLENS_API int64_t warplens_desk_lanes(const int64_t *start, const int64_t *end, uint64_t count,
                                         int32_t *lane) {
  return guarded([&] {
    warplens::desk::ProcessLanes lanes;
    for (uint64_t row = 0; row < count; ++row) {
      lane[row] = static_cast<int32_t>(lanes.add(start[row], end[row]));
    }
    return 0;
  });
}

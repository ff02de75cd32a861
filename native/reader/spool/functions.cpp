// The functions `events_…`: one process's events, read slice by slice (warplens.spool.events).
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "blobs.h"
#include "events.h"
#include "reader/arrow.h"
#include "reader/clock.h"
#include "reader/door.h"
#include "slice.h"
#include "timeline.h"

namespace warplens::reader {
namespace {

// Copies rows of numbers as far as there is room; returns how many rows there are.
template <size_t width, typename Rows, typename Number, typename RowOf>
int64_t copy_rows(const Rows &rows, const Array<Number> &out, const RowOf &row_of) {
  uint64_t at = 0;
  for (const auto &row : rows) {
    if (at + width > out.size) {
      break;
    }
    const std::array<Number, width> numbers = row_of(row);
    std::copy(numbers.begin(), numbers.end(), out.data + at);
    at += width;
  }
  return static_cast<int64_t>(rows.size());
}

std::unique_ptr<Timeline> events_new(Array<const uint32_t> layout) {
  Layout offsets;
  require_size(sizeof(Layout) / sizeof(uint32_t), layout);
  std::memcpy(&offsets, layout.data, sizeof offsets);
  return std::make_unique<Timeline>(offsets);
}
WARPLENS_FUNCTION(events_new);

// Only events that overlap one of these times are wanted.
void events_choose(Timeline &timeline, Array<const uint64_t> begins, Array<const uint64_t> ends) {
  require_size(begins.size, ends);
  timeline.events.choose(begins.data, ends.data, begins.size);
}
WARPLENS_FUNCTION(events_choose);

// Returns how many records were read.
int64_t events_scan(Timeline &timeline, Array<const uint8_t> file, uint64_t offset, uint64_t bytes,
                    uint32_t thread) {
  timeline.note_read(file, offset, bytes);
  return static_cast<int64_t>(timeline.events.scan(file.data, offset, bytes, thread));
}
WARPLENS_FUNCTION(events_scan);

// The thread whose records were read last.
uint32_t events_owner(Timeline &timeline) {
  return timeline.events.owner();
}
WARPLENS_FUNCTION(events_owner);

// `records`: as many as there are facts, each as long as the layout says.
const uint8_t *open_records(const Timeline &timeline, const Array<const uint8_t> &records, uint64_t count) {
  require_size(count * timeline.events.stride(), records);
  return records.data;
}

void events_open(Timeline &timeline, Array<const uint8_t> records, Array<const OpenFacts> facts) {
  timeline.events.add_open(open_records(timeline, records, facts.size), facts.data, facts.size);
}
WARPLENS_FUNCTION(events_open);

// Returns how many slices there are.
int64_t events_plan(Timeline &timeline, uint64_t rows) {
  return static_cast<int64_t>(timeline.events.plan(rows));
}
WARPLENS_FUNCTION(events_plan);

void events_assign(Timeline &timeline, Array<const uint8_t> file, uint64_t first, uint64_t last) {
  timeline.events.assign(timeline.base(file), first, std::min(last, timeline.events.segments().size()));
}
WARPLENS_FUNCTION(events_assign);

void events_keys(Timeline &timeline, int64_t process, int64_t thread_base, int64_t range_base) {
  if (timeline.slicing != nullptr) {
    throw std::invalid_argument("the keys of the process are set already");
  }
  timeline.slicing =
      std::make_unique<Slicer>(timeline.events, timeline.blobs, process, thread_base, range_base);
}
WARPLENS_FUNCTION(events_keys);

void events_set_strings(Timeline &timeline, Array<const uint32_t> lookup, uint64_t strings) {
  timeline.slicer().set_strings(lookup.data, lookup.size, strings);
}
WARPLENS_FUNCTION(events_set_strings);

void events_set_clock(Timeline &timeline, Array<const int64_t> from, Array<const int64_t> to) {
  require_size(from.size, to);
  timeline.slicer().set_clock(ClockMap(from.data, to.data, from.size));
}
WARPLENS_FUNCTION(events_set_clock);

void events_set_makers(Timeline &timeline, Array<const uint32_t> tasks, Array<const uint64_t> makers) {
  require_size(tasks.size, makers);
  timeline.slicer().set_makers(tasks.data, makers.data, tasks.size);
}
WARPLENS_FUNCTION(events_set_makers);

// Fills the columns of one slice; `rows`: how many each table has.
void events_slice(Timeline &timeline, Array<const uint8_t> file, uint64_t slice, Array<uint64_t> rows) {
  require_size(Slicer::kTables, rows);
  Slicer &slicer = timeline.slicer();
  slicer.build(timeline.base(file), slice);
  for (uint32_t table = 0; table < Slicer::kTables; ++table) {
    rows[table] = slicer.rows(table);
  }
}
WARPLENS_FUNCTION(events_slice);

// The columns of a table of the current slice, and its extended payloads.
ArrowColumns events_columns(Timeline &timeline, uint32_t table) {
  return timeline.slicer().columns(table);
}
WARPLENS_FUNCTION(events_columns);

ArrowColumns events_payloads(Timeline &timeline, uint32_t table) {
  return timeline.slicer().payloads(table);
}
WARPLENS_FUNCTION(events_payloads);

// Offset, records, thread of each segment.
int64_t events_segments(Timeline &timeline, Array<uint64_t> out) {
  return copy_rows<3>(timeline.events.segments(), out, [](const auto &segment) {
    return std::array<uint64_t, 3>{segment.offset, segment.count, segment.thread};
  });
}
WARPLENS_FUNCTION(events_segments);

// Offsets of the records that are no events.
int64_t events_meta(Timeline &timeline, Array<uint64_t> out) {
  return copy_rows<1>(timeline.events.meta(), out,
                      [](uint64_t offset) { return std::array<uint64_t, 1>{offset}; });
}
WARPLENS_FUNCTION(events_meta);

// Thread, start, name, domain, type of the last event of each segment.
int64_t events_last_events(Timeline &timeline, Array<uint64_t> out) {
  return copy_rows<5>(timeline.events.last_events(), out, [](const auto &event) {
    return std::array<uint64_t, 5>{event.thread, event.start, event.name, event.domain, event.type};
  });
}
WARPLENS_FUNCTION(events_last_events);

// Index, first start, events of each thread.
int64_t events_threads(Timeline &timeline, Array<int64_t> out) {
  return copy_rows<3>(timeline.events.threads(), out, [](const auto &entry) {
    const auto &[thread, seen] = entry;
    return std::array<int64_t, 3>{thread, seen.first, static_cast<int64_t>(seen.events)};
  });
}
WARPLENS_FUNCTION(events_threads);

// Task, first start, thread of each task.
int64_t events_tasks(Timeline &timeline, Array<int64_t> out) {
  return copy_rows<3>(timeline.events.tasks(), out, [](const auto &entry) {
    const auto &[task, seen] = entry;
    return std::array<int64_t, 3>{task, seen.first, seen.thread};
  });
}
WARPLENS_FUNCTION(events_tasks);

// The rows of ranges by the agent's ids, -1 where there is none; those that nobody named as a parent are not known.
void events_rows_of(Timeline &timeline, Array<const uint64_t> ids, Array<int64_t> rows) {
  require_size(ids.size, rows);
  std::transform(ids.begin(), ids.end(), rows.begin(),
                 [&](uint64_t id) { return timeline.events.parents().row(id); });
}
WARPLENS_FUNCTION(events_rows_of);

void events_blob_chunks(Timeline &timeline, Array<const uint64_t> offsets, Array<const uint64_t> sizes) {
  require_size(offsets.size, sizes);
  for (uint64_t chunk = 0; chunk < offsets.size; ++chunk) {
    timeline.note_chunk(offsets[chunk], sizes[chunk]);
  }
  timeline.blobs.set_chunks(offsets.data, sizes.data, offsets.size);
}
WARPLENS_FUNCTION(events_blob_chunks);

// Follows chains of payloads.
ArrowColumns events_blobs(Timeline &timeline, Array<const uint8_t> file, Array<const uint64_t> first) {
  const auto blobs =
      std::make_shared<const Blobs>(timeline.blobs.walk(timeline.base(file), first.data, first.size));
  ArrowColumns columns(blobs, blobs->event.size());
  columns.add("event", blobs->event);
  columns.add("offset", blobs->offset);
  columns.add("size", blobs->size);
  columns.add("flags", blobs->flags);
  columns.add("schema", blobs->schema);
  return columns;
}
WARPLENS_FUNCTION(events_blobs);

// ranges, start_ends, marks, samples, operations, damaged, backwards, lost_names, lost_parents, damaged_blobs, first, last.
void events_counts(Timeline &timeline, Array<int64_t> out) {
  const auto &counts = timeline.events.counts();
  const uint64_t numbers[] = {counts.ranges,       counts.start_ends,     counts.marks,     counts.samples,
                              counts.operations,   counts.damaged,        counts.backwards, counts.lost_names,
                              counts.lost_parents, timeline.blobs.damaged};
  require_size(std::size(numbers) + 2, out);
  int64_t *next = std::copy(std::begin(numbers), std::end(numbers), out.data);
  next[0] = counts.first;
  next[1] = counts.last;
}
WARPLENS_FUNCTION(events_counts);

}  // namespace
}  // namespace warplens::reader

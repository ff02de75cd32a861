// Functions over columns of ranges: union, clock, nesting, lanes; strings and pieces of a spool file (warplens.native.columns).
#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <unordered_map>

#include "enclosing.h"
#include "nest.h"
#include "reader/analysis/intervals.h"
#include "reader/arrow.h"
#include "reader/clock.h"
#include "reader/demangle.h"
#include "reader/door.h"
#include "string_chunk.h"

namespace warplens::reader {
namespace {

// Puts pieces of a file behind each other.
void gather(Array<const uint8_t> file, Array<const uint64_t> offsets, Array<const uint32_t> sizes,
            Array<uint8_t> out) {
  require_size(offsets.size, sizes);
  uint8_t *next = out.data;
  for (uint64_t index = 0; index < offsets.size; ++index) {
    if (offsets[index] > file.size || sizes[index] > file.size - offsets[index] ||
        sizes[index] > static_cast<uint64_t>(out.end() - next)) {
      throw std::invalid_argument("a piece lies outside of the file, or there is no room for it");
    }
    next = std::copy_n(file.data + offsets[index], sizes[index], next);
  }
}
WARPLENS_FUNCTION(gather);

// Counts the strings of a chunk. `facts`: bytes of all of them; 1 where a length does not fit.
int64_t count_strings(Array<const uint8_t> chunk, Array<uint64_t> facts) {
  require_size(2, facts);
  uint64_t bytes = UINT64_MAX;
  uint32_t broken = 0;
  const uint64_t count =
      read_strings(chunk.data, chunk.size, UINT64_MAX, nullptr, nullptr, nullptr, &bytes, &broken);
  facts[0] = bytes;
  facts[1] = broken;
  return static_cast<int64_t>(count);
}
WARPLENS_FUNCTION(count_strings);

// Copies out as many strings as there is room for: their ids, their ends in `data`, their bytes. Returns how many.
int64_t strings(Array<const uint8_t> chunk, Array<uint32_t> ids, Array<int64_t> ends, Array<uint8_t> data) {
  require_size(ids.size, ends);
  uint64_t bytes = data.size;
  uint32_t broken = 0;
  return static_cast<int64_t>(
      read_strings(chunk.data, chunk.size, ids.size, ids.data, ends.data, data.data, &bytes, &broken));
}
WARPLENS_FUNCTION(strings);

// Returns how many intervals the union has.
int64_t unite_intervals(Array<const int64_t> start, Array<const int64_t> end, Array<int64_t> out_start,
                        Array<int64_t> out_end) {
  require_size(start.size, end, out_start, out_end);
  return static_cast<int64_t>(unite(start.data, end.data, start.size, out_start.data, out_end.data));
}
WARPLENS_FUNCTION(unite_intervals);

void map_times(Array<const int64_t> from, Array<const int64_t> to, Array<const int64_t> times,
               Array<int64_t> out) {
  require_size(from.size, to);
  require_size(times.size, out);
  std::transform(times.begin(), times.end(), out.begin(), ClockMap(from.data, to.data, from.size));
}
WARPLENS_FUNCTION(map_times);

// How the push/pop ranges of some threads lie within one another; they come in order of start, some at a time.
struct Nests {
  std::unordered_map<int64_t, Nest> of;
  int64_t rows = 0;
};

std::unique_ptr<Nests> nests_new() {
  return std::make_unique<Nests>();
}
WARPLENS_FUNCTION(nests_new);

// Depth and parent (row number or -1) of the next ranges; rows count from the first ranges on.
void nests_add(Nests &nests, Array<const int64_t> thread, Array<const int64_t> start,
               Array<const int64_t> end, Array<int32_t> depth, Array<int64_t> parent) {
  require_size(thread.size, start, end, depth, parent);
  for (uint64_t row = 0; row < thread.size; ++row) {
    const auto place = nests.of[thread[row]].add(start[row], end[row], nests.rows++);
    depth[row] = static_cast<int32_t>(place.depth);
    parent[row] = place.parent;
  }
}
WARPLENS_FUNCTION(nests_add);

// Lanes of one process's start/end ranges, rows in order of start.
void process_lanes(Array<const int64_t> start, Array<const int64_t> end, Array<int32_t> lane) {
  require_size(start.size, end, lane);
  ProcessLanes lanes;
  for (uint64_t row = 0; row < start.size; ++row) {
    lane[row] = static_cast<int32_t>(lanes.add(start[row], end[row]));
  }
}
WARPLENS_FUNCTION(process_lanes);

// `name` ends with a NUL. Returns the length of what `out` begins with; 0: it is no mangled name.
int64_t demangle_name(Array<const char> name, Array<char> out) {
  if (name.size == 0 || name[name.size - 1] != '\0') {
    throw std::invalid_argument("the name does not end with NUL");
  }
  return static_cast<int64_t>(demangle(name.data, out.data, out.size));
}
WARPLENS_FUNCTION(demangle_name);

std::unique_ptr<Enclosing> enclosing_new(Array<const int64_t> threads) {
  auto enclosing = std::make_unique<Enclosing>();
  for (const int64_t thread : threads) {
    enclosing->watch(thread);
  }
  return enclosing;
}
WARPLENS_FUNCTION(enclosing_new);

// See Enclosing::add: the next ranges, and thread and time of the points.
void enclosing_add(Enclosing &enclosing, GivenColumns ranges, GivenColumns points, Array<int64_t> out) {
  require_size(points.rows(), out);
  Enclosing::Ranges next{};
  if (ranges.rows() != 0) {
    next = {ranges.required<int64_t>("thread"), ranges.required<int64_t>("start"),
            ranges.required<int64_t>("end"),    ranges.required<int64_t>("id"),
            ranges.required<int32_t>("style"),  ranges.rows()};
  }
  enclosing.add(next, points.required<int64_t>("thread"), points.required<int64_t>("time"), out.size,
                out.data);
}
WARPLENS_FUNCTION(enclosing_add);

}  // namespace
}  // namespace warplens::reader

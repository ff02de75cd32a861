// Looks slices of an index up: by name, by time, by row; and sums them over a time.
#pragma once

#include <optional>
#include <vector>

#include "index.h"

namespace warplens::reader::lod {

struct Hit {
  uint32_t track, lane;
  Slice slice;
};

// The first `limit` slices with one of the names that begin in [begin, end), in order of begin; `backward`: the last ones, last first.
std::vector<Hit> find(const Index &index, std::span<const uint32_t> names, int64_t begin, int64_t end,
                      std::span<const uint32_t> tracks, uint64_t limit, bool backward);

// The slice of a lane that is open at a time: began by then, and has not ended before.
std::optional<Hit> at(const Index &index, uint32_t track, uint32_t lane, int64_t time);

// The slice of a row; `start` helps, where it is known.
std::optional<Hit> locate(const Index &index, std::span<const uint32_t> tracks, uint32_t row,
                          std::optional<int64_t> start);

struct Load {
  int64_t busy;     // time in which something ran
  uint64_t events;  // slices that overlap
};
Load load_of(const Index &index, uint32_t track, int64_t begin, int64_t end);

struct Sum {
  int64_t total = 0, longest = 0;  // of what lies in the time, cut to it
  uint64_t count = 0;
};
// By name, of the slices that overlap [begin, end).
void sum_up(const Index &index, std::span<const uint32_t> tracks, int64_t begin, int64_t end,
            std::span<Sum> sums);

}  // namespace warplens::reader::lod

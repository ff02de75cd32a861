// Turns one slice of a process's events into Arrow column buffers, in order of start.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "clock.h"
#include "events.h"
#include "nest.h"
#include "sort.h"

namespace warpline::desk {

struct Bits {
  std::vector<uint8_t> bytes;
  void reset(size_t rows) { bytes.assign((rows + 7) / 8, 0); }
  void set(size_t row) { bytes[row / 8] = static_cast<uint8_t>(bytes[row / 8] | (1U << (row % 8))); }
};

template <typename T>
struct Nullable {
  std::vector<T> values;
  Bits valid;
  // Values that are not valid may hold anything: nobody reads them, and clearing them all costs more than setting some.
  void reset(size_t rows) {
    values.resize(rows);
    valid.reset(rows);
  }
  void set(size_t row, T value) {
    values[row] = value;
    valid.set(row);
  }
};

// Dense codes for the few of many numbered things that a slice uses; no clearing between slices.
class Coder {
 public:
  void reset(size_t universe) {
    if (stamps_.size() < universe) {
      stamps_.resize(universe);
      codes_.resize(universe);
    }
    ++stamp_;
    used.clear();
  }
  int32_t code(uint32_t thing) {
    if (stamps_[thing] != stamp_) {
      stamps_[thing] = stamp_;
      codes_[thing] = static_cast<int32_t>(used.size());
      used.push_back(thing);
    }
    return codes_[thing];
  }
  std::vector<uint32_t> used;

 private:
  std::vector<uint32_t> stamps_;
  std::vector<int32_t> codes_;
  uint32_t stamp_ = 0;
};

struct PairCoder {
  std::vector<uint64_t> used;  // domain << 32 | category
  std::unordered_map<uint64_t, int32_t> codes;
  uint64_t last = 0;  // neither domain nor category: never asked for
  int32_t last_code = 0;
  void reset() {
    used.clear();
    codes.clear();
    last = 0;
  }
  int32_t code(uint64_t pair) {
    if (pair != last) {
      const auto [at, added] = codes.try_emplace(pair, static_cast<int32_t>(used.size()));
      if (added) {
        used.push_back(pair);
      }
      last = pair;
      last_code = at->second;
    }
    return last_code;
  }
};

// The columns that ranges and marks share.
struct EventColumns {
  size_t rows = 0;
  std::vector<int64_t> id, process, thread, start;
  Nullable<int64_t> task;
  Nullable<int32_t> domain, category, message;
  Nullable<uint32_t> category_id, color;
  Nullable<int64_t> payload_int;
  Nullable<double> payload_float;
  Coder domains, messages;
  PairCoder categories;
  void reset(size_t rows, size_t strings);
};

struct RangeColumns : EventColumns {
  std::vector<int64_t> end;
  std::vector<int32_t> style, depth;
  Nullable<int64_t> end_thread, parent;
  Bits unfinished, inherited, clipped;
  void reset(size_t rows, size_t strings);
};

class Slicer {
 public:
  Slicer(Events &events, int64_t process, int64_t thread_base, int64_t range_base)
      : events_(events), process_(process), thread_base_(thread_base), range_base_(range_base) {}

  // `lookup[id]` is the position of string `id` in the caller's list, or kNone where it was lost.
  void set_strings(const uint32_t *lookup, uint64_t count, uint64_t strings) {
    lookup_.assign(lookup, lookup + count);
    strings_ = strings;
  }
  void set_clock(ClockMap clock) { clock_ = std::move(clock); }

  void build(const uint8_t *base, uint64_t slice);
  // The buffer of a column ("start"), its validity ("color?") or its dictionary ("message="); nullptr if there is none.
  const void *buffer(bool marks, std::string_view name, uint64_t *bytes) const;
  uint64_t ranges() const { return ranges_.rows; }
  uint64_t marks() const { return marks_.rows; }

 private:
  struct Row {
    int64_t start;
    int64_t end;
    const uint8_t *record;
    uint32_t thread;
    uint32_t end_thread;
    uint32_t nest;
    bool unfinished;
  };

  void gather(const uint8_t *base, uint64_t slice);
  void add_row(const uint8_t *record, uint32_t thread, uint32_t end_thread, uint32_t nest, bool unfinished);
  void sort();
  bool before(uint32_t a, uint32_t b) const;
  void emit_event(EventColumns &out, size_t at, const Row &row);
  void emit_range(size_t at, const Row &row);
  uint32_t nest_of(uint32_t thread);

  Events &events_;
  int64_t process_, thread_base_, range_base_;
  std::vector<uint32_t> lookup_;
  uint64_t strings_ = 0;
  ClockMap clock_;
  std::vector<Row> rows_;
  std::vector<uint32_t> order_;
  SortScratch scratch_;
  RangeColumns ranges_;
  EventColumns marks_;
  std::unordered_map<uint32_t, uint32_t> nest_numbers_;
  std::vector<ThreadNest> nests_;
  ProcessLanes lanes_;
  int64_t next_range_ = 0;
  int64_t next_mark_ = 0;
};

}  // namespace warpline::desk

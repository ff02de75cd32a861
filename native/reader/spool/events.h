// Finds the event records of one process.
// For each: its place in the spool, and the slice of time in which it starts.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "parents.h"

namespace warplens::reader {

inline constexpr uint32_t kNone = 0xffffffff;
inline constexpr uint32_t kUnknownThread = (1U << 24) - 1;  // the last index a thread key can hold

// Offsets of the fields in a record, and the ids of the record types, as the spool itself gives them.
struct Layout {
  uint32_t stride;
  uint32_t flags;
  uint32_t domain;
  uint32_t name;
  uint32_t start;
  uint32_t end;
  uint32_t payload;
  uint32_t color;
  uint32_t category;
  uint32_t switch_thread;
  uint32_t switch_task;
  uint32_t origin_id;
  uint32_t origin_parent;
  uint32_t origin_thread;
  uint32_t origin_task;
  uint32_t operation_object;
  uint32_t operation_value;
  uint32_t operation_action;
  uint32_t range_type;
  uint32_t start_end_type;
  uint32_t mark_type;
  uint32_t sample_type;
  uint32_t operation_type;
  uint32_t switch_type;
  uint32_t task_switch_type;
  uint32_t origin_type;
  uint32_t op_type;  // 0: the spool has none
};

// What a record is: an event in one of the tables, or none.
enum class Kind : uint8_t { other = 0, range, start_end, mark, sample, operation };

template <typename T>
T load(const uint8_t *record, uint32_t offset) {
  T value;
  std::memcpy(&value, record + offset, sizeof value);
  return value;
}

// Records of one thread that lie behind each other.
struct Segment {
  uint64_t offset;
  uint64_t count;
  uint32_t thread;
  uint32_t task;  // in force at its first record
};

// Part of a segment that holds the records of one slice, and few others.
struct Run {
  uint64_t offset;
  uint32_t count;
  uint32_t segment;
  uint32_t task;  // in force at its first record
};

// An event that starts before the slice in which it was found: a range that was waited for.
struct Late {
  uint64_t offset;
  uint32_t segment;
  uint32_t task;
};

// The last event of a segment: an open slot that looks the same was closed by it.
struct LastEvent {
  uint64_t start;
  uint32_t name;
  uint32_t thread;
  uint32_t domain;
  uint32_t type;
};

struct ThreadSeen {
  int64_t first;
  uint64_t events;
};

struct TaskSeen {
  int64_t first;
  uint32_t thread;
};

// What an open start/end range is beside its record; all 0 for push/pop ranges.
struct OpenFacts {
  uint64_t id;
  uint64_t parent;
  uint32_t thread;
  uint32_t task;
};

struct Counts {
  uint64_t ranges = 0;
  uint64_t start_ends = 0;
  uint64_t marks = 0;
  uint64_t samples = 0;
  uint64_t operations = 0;
  uint64_t damaged = 0;  // events with impossible times
  uint64_t backwards = 0;
  uint64_t lost_names = 0;
  uint64_t lost_parents = 0;
  int64_t first = INT64_MAX;
  int64_t last = 0;
};

class Events {
 public:
  explicit Events(const Layout &layout);

  // Before the first pass: only events that overlap one of these times (sorted, disjoint) are wanted.
  void choose(const uint64_t *begins, const uint64_t *ends, uint64_t count);
  // First pass, chunk by chunk: returns how many records were there. Other records' offsets go to `meta()`,
  // but for those that only explain their neighbours (thread_switch, task_switch, origin).
  uint64_t scan(const uint8_t *base, uint64_t offset, uint64_t bytes, uint32_t thread);
  uint32_t stride() const { return layout_.stride; }
  // Ranges still open: `count` records of the same stride with an end put in, innermost first.
  void add_open(const uint8_t *records, const OpenFacts *facts, uint64_t count);
  // Cuts time so that a slice holds about `rows` events; returns the number of slices.
  uint64_t plan(uint64_t rows);
  // Second pass: finds the slice of each event in the segments [first, last).
  void assign(const uint8_t *base, uint64_t first, uint64_t last);

  // While the process goes on, `follow` once, then again and again `young_from`, `scan`, `wait_for` and `cut` take the place of the
  // two passes: what starts before `upper`, and after the cut before it, is the next slice.
  void follow();
  // What ends at `time` or later may have been written after the open ranges were read; `young_start`: the first start of those.
  void young_from(uint64_t time);
  uint64_t young_start() const { return young_start_; }
  // The owner of the chunk where the last `scan` stopped.
  uint32_t owner() const { return owner_; }
  // The ranges that are open now. Those that start in the next slice wait for their ends.
  void wait_for(const uint8_t *records, const OpenFacts *facts, uint64_t count);
  void cut(const uint8_t *base, uint64_t upper);
  // Where to cut for about `rows` events, at most `upper`.
  uint64_t cut_at(uint64_t rows, uint64_t upper);
  bool following() const { return following_; }

  Kind kind(uint8_t type) const { return kinds_[type]; }
  bool is_event(uint8_t type) const { return kinds_[type] != Kind::other; }
  bool plausible(const uint8_t *record) const {
    return load<uint64_t>(record, layout_.start) <= kLatest &&
           (load<uint64_t>(record, layout_.end) <= kLatest || kind(record[0]) == Kind::operation);
  }
  // An event that becomes a row.
  bool wanted(const uint8_t *record) const { return plausible(record) && (!choosy_ || chosen(record)); }
  bool choosy() const { return choosy_; }
  // Whether a range goes over an edge of the last of the wanted times that it overlaps.
  bool crosses_edge(const uint8_t *record) const;
  uint32_t switched_task(const uint8_t *record) const {
    return static_cast<uint32_t>(std::min<uint64_t>(load<uint64_t>(record, layout_.switch_task), kNone));
  }
  void see(uint32_t thread, int64_t start);

  const Layout &layout() const { return layout_; }
  const std::vector<Segment> &segments() const { return segments_; }
  const std::vector<uint64_t> &meta() const { return meta_; }
  const std::vector<LastEvent> &last_events() const { return last_events_; }
  const std::vector<Run> &runs(uint64_t slice) const { return runs_[slice]; }
  const std::vector<uint32_t> &open_of(uint64_t slice) const { return open_of_[slice]; }
  const std::vector<Late> &late() const { return late_; }
  // Open ranges that were waited for, and stay open: there is no more to come.
  const std::vector<uint32_t> &left_open() const { return left_open_; }
  bool waits() const { return waits_; }
  const uint8_t *open_record(uint32_t index) const { return open_.data() + uint64_t{index} * layout_.stride; }
  const OpenFacts &open_facts(uint32_t index) const { return open_facts_[index]; }
  uint64_t lower(uint64_t slice) const { return bounds_[slice]; }
  uint64_t upper(uint64_t slice) const {
    return slice + 1 < bounds_.size() ? bounds_[slice + 1] : UINT64_MAX;
  }
  uint64_t slices() const { return bounds_.size(); }
  const std::unordered_map<uint32_t, ThreadSeen> &threads() const { return threads_; }
  const std::unordered_map<uint32_t, TaskSeen> &tasks() const { return tasks_; }
  ParentRows &parents() { return parents_; }
  Counts &counts() { return counts_; }

 private:
  struct Window {
    uint64_t begin;
    uint64_t end;
  };

  static constexpr uint64_t kLatest = uint64_t{1} << 62;  // 146 years of uptime
  static constexpr uint64_t kSampleEvery = 64;
  static constexpr uint64_t kJoinGap = 16;

  const Window *last_around(const uint8_t *record) const;
  bool chosen(const uint8_t *record) const { return last_around(record) != nullptr; }
  uint64_t slice_of(uint64_t start) const;
  void place_open(uint64_t slice);
  void take(const uint8_t *base, const Run &run, uint64_t slice, bool fresh, std::vector<Run> &rest);
  void see_closed(const uint8_t *record, uint32_t thread);
  void see_task(uint32_t task, uint32_t thread, uint64_t start);

  Layout layout_;
  bool choosy_ = false;
  std::vector<Window> windows_;
  std::array<Kind, 256> kinds_{};
  std::vector<Segment> segments_;
  std::vector<uint64_t> meta_;
  std::vector<LastEvent> last_events_;
  std::vector<uint64_t> samples_;
  std::vector<uint64_t> bounds_;
  std::vector<std::vector<Run>> runs_;
  std::vector<uint8_t> open_;
  std::vector<OpenFacts> open_facts_;
  std::vector<std::vector<uint32_t>> open_of_;
  std::unordered_map<uint32_t, ThreadSeen> threads_;
  std::unordered_map<uint32_t, uint32_t> task_of_;  // thread -> the task it was last in
  std::unordered_map<uint32_t, TaskSeen> tasks_;
  ParentRows parents_;
  uint64_t seen_ = 0;
  Counts counts_;
  bool following_ = false;
  bool waits_ = false;      // the open ranges are as they are now, not as they were at the end
  uint64_t rest_from_ = 0;  // where the first slice begins after the process went on
  uint64_t young_from_ = UINT64_MAX;
  uint64_t young_start_ = UINT64_MAX;
  uint32_t owner_ = kNone;
  uint64_t taken_ = 0;     // segments whose runs were made
  std::vector<Run> rest_;  // runs with events of later slices
  std::vector<Late> late_;
  std::vector<uint32_t> left_open_;
  std::vector<std::pair<uint64_t, uint32_t>> open_starts_;  // start, index: of the open ranges of this slice
  uint64_t open_mask_ = 0;                                  // a bit for each of these starts
};

}  // namespace warplens::reader

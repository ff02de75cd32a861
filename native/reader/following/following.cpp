// Reads the events of a process that still records.
// Slices are cut while it records, and open ranges wait for their ends.
#include <algorithm>
#include <utility>

#include "reader/spool/events.h"

namespace warplens::reader {

namespace {

constexpr uint32_t kMostInRun = 4096;  // so that few records are looked at again in the next slice

uint64_t bit_of(uint64_t start) {
  return uint64_t{1} << ((start * 0x9E3779B97F4A7C15U) >> 58U);
}

}  // namespace

void Events::follow() {
  following_ = true;
  waits_ = true;
  bounds_.assign(1, 0);
  parents_.keep_all();
}

void Events::young_from(uint64_t time) {
  young_from_ = time;
  young_start_ = UINT64_MAX;
}

void Events::wait_for(const uint8_t *records, const OpenFacts *facts, uint64_t count) {
  open_.assign(records, records + count * layout_.stride);
  open_facts_.assign(facts, facts + count);
  for (OpenFacts &one : open_facts_) {
    one.thread = std::min(one.thread, kUnknownThread);
  }
}

uint64_t Events::cut_at(uint64_t rows, uint64_t upper) {
  std::sort(samples_.begin(), samples_.end());
  const auto before =
      static_cast<uint64_t>(std::lower_bound(samples_.begin(), samples_.end(), upper) - samples_.begin());
  const uint64_t most = std::max<uint64_t>(rows / kSampleEvery, 1);
  return before <= most ? upper : std::max(samples_[most], bounds_.back() + 1);
}

void Events::place_open(uint64_t slice) {
  open_of_.resize(slice + 1);
  open_starts_.clear();
  left_open_.clear();
  open_mask_ = 0;
  for (uint32_t index = 0; index < open_facts_.size(); ++index) {
    const auto start = load<uint64_t>(open_record(index), layout_.start);
    if (start >= bounds_[slice] && start < bounds_[slice + 1]) {
      open_of_[slice].push_back(index);
      open_starts_.emplace_back(start, index);
      open_mask_ |= bit_of(start);
    } else if (start < bounds_[slice] && !waits_ && bounds_[slice] == rest_from_) {
      left_open_.push_back(index);
    }
  }
  std::sort(open_starts_.begin(), open_starts_.end());
}

// A range may have ended after the open ones were read, and before its record was.
void Events::see_closed(const uint8_t *record, uint32_t thread) {
  const auto start = load<uint64_t>(record, layout_.start);
  if ((open_mask_ & bit_of(start)) == 0) {
    return;
  }
  for (auto at = std::lower_bound(open_starts_.begin(), open_starts_.end(), std::pair{start, 0U});
       at != open_starts_.end() && at->first == start; ++at) {
    const uint8_t *open = open_record(at->second);
    if (open[0] == record[0] && load<uint32_t>(open, layout_.name) == load<uint32_t>(record, layout_.name) &&
        load<uint16_t>(open, layout_.domain) == load<uint16_t>(record, layout_.domain) &&
        (open[0] == layout_.start_end_type || open_facts_[at->second].thread == thread)) {
      std::erase(open_of_.back(), at->second);
      open_starts_.erase(at);
      return;
    }
  }
}

void Events::take(const uint8_t *base, const Run &run, uint64_t slice, bool fresh, std::vector<Run> &rest) {
  const uint64_t lower = bounds_[slice];
  const uint64_t upper = bounds_[slice + 1];
  const uint32_t thread = segments_[run.segment].thread;
  uint32_t task = run.task;
  bool here = false;
  bool later = false;
  for (uint64_t index = 0; index < run.count; ++index) {
    const uint64_t at = run.offset + index * layout_.stride;
    const uint8_t *record = base + at;
    if (!is_event(record[0]) || !wanted(record)) {
      task = record[0] == layout_.task_switch_type ? switched_task(record) : task;
      continue;
    }
    const auto start = load<uint64_t>(record, layout_.start);
    if (start >= upper) {
      later = true;
    } else if (start >= lower) {
      here = true;
      see_closed(record, thread);
    } else if (fresh) {
      late_.push_back({at, run.segment, task});
    }
  }
  if (here) {
    runs_[slice].push_back(run);
  }
  if (later) {
    rest.push_back(run);
  }
}

void Events::cut(const uint8_t *base, uint64_t upper) {
  const uint64_t slice = bounds_.size() - 1;
  bounds_.push_back(upper);
  runs_.resize(slice + 1);
  if (slice > 0) {
    runs_[slice - 1] = {};
    open_of_[slice - 1] = {};
  }
  late_.clear();
  place_open(slice);
  std::vector<Run> rest;
  for (const Run &run : rest_) {
    take(base, run, slice, false, rest);
  }
  for (; taken_ < segments_.size(); ++taken_) {
    const Segment &segment = segments_[taken_];
    Run run{segment.offset, 0, static_cast<uint32_t>(taken_), segment.task};
    uint32_t task = segment.task;
    for (uint64_t index = 0; index < segment.count; ++index) {
      const uint8_t *record = base + segment.offset + index * layout_.stride;
      task = record[0] == layout_.task_switch_type ? switched_task(record) : task;
      if (++run.count == kMostInRun) {
        take(base, run, slice, true, rest);
        run = {segment.offset + (index + 1) * layout_.stride, 0, run.segment, task};
      }
    }
    if (run.count != 0) {
      take(base, run, slice, true, rest);
    }
  }
  rest_ = std::move(rest);
  std::erase_if(samples_, [upper](uint64_t start) { return start < upper; });
}

}  // namespace warplens::reader

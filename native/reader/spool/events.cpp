// Finds the event records of one process, and the slice in which each starts.
#include "events.h"

#include <algorithm>
#include <utility>

namespace warplens::reader {

Events::Events(const Layout &layout) : layout_(layout) {
  const std::pair<uint32_t, Kind> known[] = {
      {layout.range_type, Kind::range},         {layout.start_end_type, Kind::start_end},
      {layout.mark_type, Kind::mark},           {layout.sample_type, Kind::sample},
      {layout.operation_type, Kind::operation}, {layout.op_type, Kind::range}};
  for (const auto &[type, kind] : known) {
    if (type != 0) {
      kinds_[type & 0xff] = kind;
    }
  }
}

void Events::choose(const uint64_t *begins, const uint64_t *ends, uint64_t count) {
  choosy_ = true;
  for (uint64_t index = 0; index < count; ++index) {
    windows_.push_back({begins[index], ends[index]});
  }
}

const Events::Window *Events::last_around(const uint8_t *record) const {
  const auto start = load<uint64_t>(record, layout_.start);
  const auto end = kind(record[0]) == Kind::operation ? start : load<uint64_t>(record, layout_.end);
  const auto behind = std::lower_bound(windows_.begin(), windows_.end(), std::max(end, start + 1),
                                       [](const Window &one, uint64_t time) { return one.begin < time; });
  return behind == windows_.begin() || behind[-1].end <= start ? nullptr : &behind[-1];
}

bool Events::crosses_edge(const uint8_t *record) const {
  const Window *window = last_around(record);
  return window != nullptr && (load<uint64_t>(record, layout_.start) < window->begin ||
                               load<uint64_t>(record, layout_.end) > window->end);
}

void Events::see_task(uint32_t task, uint32_t thread, uint64_t start) {
  if (task != 0) {
    const TaskSeen here{static_cast<int64_t>(std::min(start, kLatest)), thread};
    TaskSeen &first = tasks_.try_emplace(task, here).first->second;
    if (here.first < first.first) {  // chunks are read in another order while the process goes on
      first = here;
    }
  }
}

void Events::see(uint32_t thread, int64_t start) {
  auto &seen = threads_.try_emplace(thread, ThreadSeen{INT64_MAX, 0}).first->second;
  seen.first = std::min(seen.first, start);
  ++seen.events;
}

uint64_t Events::scan(const uint8_t *base, uint64_t offset, uint64_t bytes, uint32_t thread) {
  const uint32_t stride = layout_.stride;
  const uint64_t most = bytes / stride;
  const auto begin = [this](uint64_t at, uint32_t owner) {
    const auto in_task = task_of_.find(owner);
    return Segment{at, 0, owner, in_task == task_of_.end() ? 0 : in_task->second};
  };
  Segment segment = begin(offset, std::min(thread, kUnknownThread));
  LastEvent last{0, 0, 0, 0, 0};
  ThreadSeen seen{INT64_MAX, 0};
  bool any = false;
  const auto close = [&] {
    if (segment.count != 0) {
      segments_.push_back(segment);
    }
    if (seen.events != 0) {
      auto &known = threads_.try_emplace(segment.thread, ThreadSeen{INT64_MAX, 0}).first->second;
      known.first = std::min(known.first, seen.first);
      known.events += seen.events;
    }
    if (any) {
      last.thread = segment.thread;
      last_events_.push_back(last);
    }
    seen = {INT64_MAX, 0};
    any = false;
  };
  uint64_t *const totals[] = {nullptr,        &counts_.ranges,  &counts_.start_ends,
                              &counts_.marks, &counts_.samples, &counts_.operations};
  uint64_t index = 0;
  for (; index < most; ++index) {
    const uint64_t at = offset + index * stride;
    const uint8_t *record = base + at;
    const uint8_t type = record[0];
    if (type == 0) {
      break;
    }
    if (is_event(type)) {
      if (plausible(record) && kind(type) != Kind::operation &&
          load<uint64_t>(record, layout_.end) >= young_from_) {
        young_start_ = std::min(young_start_, load<uint64_t>(record, layout_.start));
        if (type == layout_.start_end_type && (index + 1 == most || record[stride] == 0)) {
          break;  // its `origin` may be on its way
        }
      }
      ++segment.count;
      if (!plausible(record)) {
        ++counts_.damaged;
        continue;
      }
      const auto start = load<uint64_t>(record, layout_.start);
      const auto end = kind(type) == Kind::operation ? start : load<uint64_t>(record, layout_.end);
      any = true;
      last = {start, load<uint32_t>(record, layout_.name), 0, load<uint16_t>(record, layout_.domain), type};
      counts_.last = std::max(counts_.last, static_cast<int64_t>(std::max(start, end)));
      if (!wanted(record)) {
        continue;
      }
      ++*totals[static_cast<size_t>(kind(type))];
      counts_.first = std::min(counts_.first, static_cast<int64_t>(start));
      seen.first = std::min(seen.first, static_cast<int64_t>(start));
      ++seen.events;
      if (seen_++ % kSampleEvery == 0) {
        samples_.push_back(start);
      }
    } else if (type == layout_.switch_type) {
      close();
      segment = begin(at + stride, std::min(load<uint32_t>(record, layout_.switch_thread), kUnknownThread));
    } else if (type == layout_.task_switch_type) {
      ++segment.count;
      const uint32_t task = switched_task(record);
      task_of_[segment.thread] = task;
      see_task(task, segment.thread, load<uint64_t>(record, layout_.start));
    } else if (type == layout_.origin_type) {
      ++segment.count;
      parents_.need(load<uint64_t>(record, layout_.origin_parent));
      see_task(load<uint32_t>(record, layout_.origin_task),
               std::min(load<uint32_t>(record, layout_.origin_thread), kUnknownThread), last.start);
    } else {
      ++segment.count;
      meta_.push_back(at);
    }
  }
  close();
  owner_ = segment.thread;
  return index;
}

void Events::add_open(const uint8_t *records, const OpenFacts *facts, uint64_t count) {
  waits_ = false;
  rest_from_ = bounds_.empty() ? 0 : bounds_.back();
  open_.assign(records, records + count * layout_.stride);
  open_facts_.assign(facts, facts + count);
  for (uint32_t index = 0; index < count; ++index) {
    OpenFacts &one = open_facts_[index];
    one.thread = std::min(one.thread, kUnknownThread);
    const auto start = load<uint64_t>(open_record(index), layout_.start);
    see(one.thread, static_cast<int64_t>(start));
    see_task(one.task, one.thread, start);
    parents_.need(one.parent);
    if (seen_++ % kSampleEvery == 0) {
      samples_.push_back(start);
    }
  }
}

uint64_t Events::plan(uint64_t rows) {
  std::sort(samples_.begin(), samples_.end());
  const uint64_t slices = rows == 0 ? 1 : (seen_ + rows - 1) / rows;
  bounds_.assign(1, 0);
  for (uint64_t slice = 1; slice < slices; ++slice) {
    const uint64_t bound = samples_[samples_.size() * slice / slices];
    if (bound > bounds_.back()) {
      bounds_.push_back(bound);
    }
  }
  samples_ = {};
  runs_.assign(bounds_.size(), {});
  open_of_.assign(bounds_.size(), {});
  for (uint32_t index = 0; index < open_facts_.size(); ++index) {
    open_of_[slice_of(load<uint64_t>(open_record(index), layout_.start))].push_back(index);
  }
  return bounds_.size();
}

uint64_t Events::slice_of(uint64_t start) const {
  return static_cast<uint64_t>(std::upper_bound(bounds_.begin(), bounds_.end(), start) - bounds_.begin()) - 1;
}

void Events::assign(const uint8_t *base, uint64_t first, uint64_t last) {
  const uint64_t stride = layout_.stride;
  uint64_t slice = 0;
  for (uint64_t number = first; number < last; ++number) {
    const Segment &segment = segments_[number];
    uint32_t task = segment.task;
    for (uint64_t index = 0; index < segment.count; ++index) {
      const uint64_t at = segment.offset + index * stride;
      const uint8_t *record = base + at;
      if (!is_event(record[0]) || !wanted(record)) {
        task = record[0] == layout_.task_switch_type ? switched_task(record) : task;
        continue;
      }
      const auto start = load<uint64_t>(record, layout_.start);
      if (start < lower(slice) || start >= upper(slice)) {
        slice = slice_of(start);
      }
      auto &runs = runs_[slice];
      if (!runs.empty() && runs.back().segment == number) {
        Run &run = runs.back();
        const uint64_t length = (at - run.offset) / stride + 1;
        if (length <= uint64_t{run.count} + kJoinGap && length < kNone) {
          run.count = static_cast<uint32_t>(length);
          continue;
        }
      }
      runs.push_back({at, 1, static_cast<uint32_t>(number), task});
    }
  }
}

}  // namespace warplens::reader

#include "events.h"

#include <algorithm>

namespace warpline::desk {

void Events::see(uint32_t thread, int64_t start) {
  auto &seen = threads_.try_emplace(thread, ThreadSeen{INT64_MAX, 0}).first->second;
  seen.first = std::min(seen.first, start);
  ++seen.events;
}

uint64_t Events::scan(const uint8_t *base, uint64_t offset, uint64_t bytes, uint32_t thread) {
  const uint32_t stride = layout_.stride;
  const uint64_t most = bytes / stride;
  Segment segment{offset, 0, std::min(thread, kUnknownThread)};
  LastEvent last{0, 0, 0, 0, 0};
  ThreadSeen seen{INT64_MAX, 0};
  const auto close = [&] {
    if (segment.count != 0) {
      segments_.push_back(segment);
    }
    if (seen.events != 0) {
      auto &known = threads_.try_emplace(segment.thread, ThreadSeen{INT64_MAX, 0}).first->second;
      known.first = std::min(known.first, seen.first);
      known.events += seen.events;
      last.thread = segment.thread;
      last_events_.push_back(last);
    }
    seen = {INT64_MAX, 0};
  };
  uint64_t index = 0;
  for (; index < most; ++index) {
    const uint64_t at = offset + index * stride;
    const uint8_t *record = base + at;
    const uint8_t type = record[0];
    if (type == 0) {
      break;
    }
    if (is_event(type)) {
      ++segment.count;
      if (!plausible(record)) {
        ++counts_.damaged;
        continue;
      }
      const auto start = load<uint64_t>(record, layout_.start);
      const auto end = load<uint64_t>(record, layout_.end);
      if (type == layout_.range_type) {
        ++counts_.ranges;
      } else if (type == layout_.start_end_type) {
        ++counts_.start_ends;
      } else {
        ++counts_.marks;
      }
      counts_.first = std::min(counts_.first, static_cast<int64_t>(start));
      counts_.last = std::max(counts_.last, static_cast<int64_t>(std::max(start, end)));
      seen.first = std::min(seen.first, static_cast<int64_t>(start));
      ++seen.events;
      last = {start, load<uint32_t>(record, layout_.name), 0, load<uint16_t>(record, layout_.domain), type};
      if (seen_++ % kSampleEvery == 0) {
        samples_.push_back(start);
      }
    } else if (type == layout_.switch_type) {
      close();
      segment = {at + stride, 0, std::min(load<uint32_t>(record, layout_.switch_thread), kUnknownThread)};
    } else {
      ++segment.count;
      if (type != layout_.origin_type) {
        meta_.push_back(at);
      }
    }
  }
  close();
  return index;
}

void Events::add_open(const uint8_t *records, const uint32_t *threads, uint64_t count) {
  open_.assign(records, records + count * layout_.stride);
  open_threads_.assign(threads, threads + count);
  for (uint32_t index = 0; index < count; ++index) {
    open_threads_[index] = std::min(open_threads_[index], kUnknownThread);
    const auto start = load<uint64_t>(open_record(index), layout_.start);
    see(open_threads_[index], static_cast<int64_t>(start));
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
  for (uint32_t index = 0; index < open_threads_.size(); ++index) {
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
    for (uint64_t index = 0; index < segment.count; ++index) {
      const uint64_t at = segment.offset + index * stride;
      const uint8_t *record = base + at;
      if (!is_event(record[0]) || !plausible(record)) {
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
      runs.push_back({at, 1, static_cast<uint32_t>(number)});
    }
  }
}

}  // namespace warpline::desk

// Holds open ranges until they end.
// They get ids and places in order of start, and their rows when they end.
#include <algorithm>

#include "reader/spool/slice.h"

namespace warplens::reader {

Waiting Slicer::looks(const Row &row) const {
  const Layout &layout = events_.layout();
  const Extra &extra = extras_[row.extra];
  return {load<uint64_t>(row.record, layout.start),
          load<uint32_t>(row.record, layout.name),
          row.thread,
          load<uint16_t>(row.record, layout.domain),
          row.record[0],
          extra.task,
          extra.parent,
          -1,
          {0, -1}};
}

// It is around all that comes, until it ends: whatever encloses one of two open ranges is taken to enclose both.
void Slicer::wait(const Row &row) {
  Waiting one = looks(row);
  // Of two that begin together the longer one comes first: on one thread the one that was open before.
  if (row.start == last_wait_.start && (row.thread != last_wait_.thread || one.type != last_wait_.type)) {
    ++surprises_;
  }
  last_wait_ = {row.start, row.thread, one.type};
  one.row = range_base_ + next_range_++;
  one.place = place(row, one.row, one.type == events_.layout().start_end_type);
  waiting_.add(one);
}

// Finds the ranges that have their ends by now, and tells those ends to what keeps the places.
void Slicer::settle(const uint8_t *base) {
  late_.clear();
  for (const Late &late : events_.late()) {
    const Segment &segment = events_.segments()[late.segment];
    const uint8_t *segment_end = base + segment.offset + segment.count * events_.layout().stride;
    add_event(base + late.offset, segment_end, segment.thread, nest_of(segment.thread), late.task);
  }
  for (const uint32_t index : events_.left_open()) {
    add_open(index, false);
  }
  std::vector<uint32_t> nests;
  for (const Row &row : rows_) {
    const auto known = waiting_.take(looks(row));
    if (!known) {
      ++surprises_;
      continue;
    }
    late_.push_back({row, known->row, known->place});
    const uint32_t task = extras_[row.extra].task;
    if (row.record[0] != events_.layout().start_end_type) {
      surprises_ += nests_[row.nest].settle(known->row, row.end) ? 0 : 1;
      nests.push_back(row.nest);
    } else if (task != 0) {
      surprises_ += tasks_.settle(task, known->row, row.end) ? 0 : 1;
    } else {
      lanes_.settle(known->row, row.end);
    }
  }
  for (const uint32_t nest : nests) {
    surprises_ += nests_[nest].in_order() ? 0 : 1;
  }
  rows_.clear();
  std::sort(late_.begin(), late_.end(), [](const LateRow &a, const LateRow &b) { return a.id < b.id; });
  check_parents();
}

// Of two open ranges the one that began first was taken to enclose the other: it must end last.
void Slicer::check_parents() {
  const auto ended = [this](int64_t id) {
    const auto at = std::lower_bound(late_.begin(), late_.end(), id,
                                     [](const LateRow &one, int64_t wanted) { return one.id < wanted; });
    return at != late_.end() && at->id == id ? at->row.end : INT64_MAX;
  };
  for (const LateRow &one : late_) {
    const bool named = extras_[one.row.extra].parent != 0;
    surprises_ += !named && ended(one.place.parent) < one.row.end ? 1 : 0;
  }
  for (const auto &[start, one] : waiting_) {
    surprises_ += one.parent == 0 && ended(one.place.parent) != INT64_MAX ? 1 : 0;
  }
}

uint64_t Slicer::build_late() {
  ranges_.next().reset(late_.size(), strings_);
  ops_.next().reset(strings_);
  for (size_t at = 0; at < late_.size(); ++at) {
    emit_placed(at, late_[at].row, late_[at].id, late_[at].place, true);
  }
  return late_.size();
}

}  // namespace warplens::reader

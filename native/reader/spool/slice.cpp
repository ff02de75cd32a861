// Converts one slice of a process's events to Arrow columns, in order of start.
#include "slice.h"

#include <algorithm>

namespace warplens::reader {

namespace {

// Of a record's flags (docs/dev/formats/spool.md).
constexpr uint8_t kPayloadMask = 0x07;
constexpr uint8_t kExtended = 7;
constexpr uint8_t kColor = 0x08;
constexpr uint8_t kInherited = 0x10;
constexpr uint8_t kClipped = 0x20;
constexpr uint8_t kClosed = 0x40;  // of a slot: the range has ended

}  // namespace

void Slicer::set_makers(const uint32_t *tasks, const uint64_t *makers, uint64_t count) {
  for (uint64_t index = 0; index < count; ++index) {
    if (makers[index] != 0) {
      makers_[tasks[index]] = makers[index];
    }
  }
}

uint32_t Slicer::nest_of(uint32_t thread) {
  const auto [at, added] = nest_numbers_.try_emplace(thread, static_cast<uint32_t>(nests_.size()));
  if (added) {
    nests_.emplace_back();
  }
  return at->second;
}

void Slicer::add_row(const uint8_t *record, uint32_t thread, uint32_t nest, uint32_t extra, bool unfinished,
                     bool waits) {
  const Layout &layout = events_.layout();
  const int64_t start = clock_(static_cast<int64_t>(load<uint64_t>(record, layout.start)));
  int64_t end = start;
  if (waits) {
    end = INT64_MAX;
  } else if (const Kind kind = events_.kind(record[0]); kind == Kind::range || kind == Kind::start_end) {
    end = clock_(static_cast<int64_t>(load<uint64_t>(record, layout.end)));
    if (end < start) {
      end = start;
      ++events_.counts().backwards;
    }
  }
  rows_.push_back({start, end, record, thread, nest, extra, unfinished, waits});
}

uint32_t Slicer::extra_of(uint32_t task) {
  const Extra &last = extras_.back();
  if (task != 0 && (last.task != task || last.id != 0 || last.parent != 0 || last.end_thread != kNone)) {
    extras_.push_back({0, 0, task, kNone});
  }
  return task == 0 ? 0 : static_cast<uint32_t>(extras_.size() - 1);
}

void Slicer::gather(const uint8_t *base, uint64_t slice) {
  const Layout &layout = events_.layout();
  const uint64_t lower = events_.lower(slice);
  const uint64_t upper = events_.upper(slice);
  rows_.clear();
  extras_.assign(1, {0, 0, 0, kNone});
  if (events_.following()) {
    settle(base);
  }
  for (const Run &run : events_.runs(slice)) {
    const Segment &segment = events_.segments()[run.segment];
    const uint8_t *segment_end = base + segment.offset + segment.count * layout.stride;
    const uint8_t *record = base + run.offset;
    const uint32_t nest = nest_of(segment.thread);
    uint32_t task = run.task;
    for (uint32_t index = 0; index < run.count; ++index, record += layout.stride) {
      if (!events_.is_event(record[0]) || !events_.wanted(record)) {
        task = record[0] == layout.task_switch_type ? events_.switched_task(record) : task;
        continue;
      }
      const auto start = load<uint64_t>(record, layout.start);
      if (start < lower || start >= upper) {
        continue;
      }
      add_event(record, segment_end, segment.thread, nest, task);
    }
  }
  for (const uint32_t index : events_.open_of(slice)) {
    add_open(index, events_.waits());
  }
}

void Slicer::add_event(const uint8_t *record, const uint8_t *segment_end, uint32_t thread, uint32_t nest,
                       uint32_t task) {
  const Layout &layout = events_.layout();
  if (record[0] != layout.start_end_type) {
    add_row(record, thread, nest, extra_of(task), false);
    return;
  }
  const uint8_t *next = record + layout.stride;
  if (next < segment_end && next[0] == layout.origin_type) {
    const uint32_t origin = std::min(load<uint32_t>(next, layout.origin_thread), kUnknownThread);
    extras_.push_back({load<uint64_t>(next, layout.origin_id), load<uint64_t>(next, layout.origin_parent),
                       load<uint32_t>(next, layout.origin_task), origin == thread ? kNone : thread});
    add_row(record, origin, origin == thread ? nest : nest_of(origin),
            static_cast<uint32_t>(extras_.size() - 1), false);
  } else {
    add_row(record, thread, nest, 0, false);
  }
}

void Slicer::add_open(uint32_t index, bool waits) {
  const OpenFacts &facts = events_.open_facts(index);
  uint32_t extra = 0;
  if (facts.id != 0 || facts.parent != 0 || facts.task != 0) {
    extra = static_cast<uint32_t>(extras_.size());
    extras_.push_back({facts.id, facts.parent, facts.task, kNone});
  }
  const uint8_t *record = events_.open_record(index);
  const bool unfinished = (record[events_.layout().flags] & kClosed) == 0;
  add_row(record, facts.thread, nest_of(facts.thread), extra, unfinished, waits);
}

bool Slicer::in_file(const Row &row) const {
  return !row.unfinished && !row.waits && (row.record[events_.layout().flags] & kClosed) == 0;
}

// By start; of two that start together the longer one is the outer one, of two alike the one that was closed later: it lies behind
// in the file, in whatever order that was read, or is open.
bool Slicer::before(uint32_t a, uint32_t b) const {
  const Row &first = rows_[a];
  const Row &second = rows_[b];
  if (first.start != second.start) {
    return first.start < second.start;
  }
  if (first.end != second.end) {
    return first.end > second.end;
  }
  return in_file(first) && in_file(second) ? first.record > second.record : a > b;
}

void Slicer::sort() {
  sort_numbers(
      rows_.size(), [this](uint32_t row) { return static_cast<uint64_t>(rows_[row].start); },
      [this](uint32_t a, uint32_t b) { return before(a, b); }, order_, scratch_);
}

void Slicer::emit_instant(InstantColumns &out, size_t at, const Row &row) {
  out.process[at] = process_;
  out.thread[at] = thread_base_ + row.thread;
  out.start[at] = row.start;
  if (const uint32_t task = extras_[row.extra].task; task != 0) {
    out.task.set(at, range_base_ + task);
  }
}

void Slicer::set_message(EventColumns &out, size_t at, const uint8_t *record) {
  const auto name = load<uint32_t>(record, events_.layout().name);
  if (name == 0) {
    return;
  }
  if (const uint32_t text = text_of(name); text != kNone) {
    out.message.set(at, out.messages.code(text));
  } else {
    ++events_.counts().lost_names;
  }
}

void Slicer::emit_op(size_t at, const Row &row, int64_t id, bool late) {
  const Layout &layout = events_.layout();
  const OpFields op{load<uint64_t>(row.record, layout.payload),
                    text_of(load<uint32_t>(row.record, layout.color)),
                    text_of(load<uint32_t>(row.record, layout.category)), row.unfinished};
  if (!passes_.add(*ops_, static_cast<uint32_t>(at), op, id, row.thread, row.start, row.end, late)) {
    ++surprises_;
  }
}

void Slicer::emit_event(EventColumns &out, size_t at, const Row &row, int64_t id) {
  emit_instant(out, at, row);
  out.id[at] = id;
  const Layout &layout = events_.layout();
  const uint8_t *record = row.record;
  const auto flags = record[layout.flags];
  const auto domain = load<uint16_t>(record, layout.domain);
  if (domain != 0) {
    out.domain.set(at, out.domains.code(domain));
  }
  if (record[0] == layout.op_type) {
    set_message(out, at, record);
    return;
  }
  if (const auto category = load<uint32_t>(record, layout.category); category != 0) {
    out.category.set(at, out.categories.code(domain, category));
    out.category_id.set(at, category);
  }
  set_message(out, at, record);
  if ((flags & kColor) != 0) {
    out.color.set(at, load<uint32_t>(record, layout.color));
  }
  const auto payload = load<uint64_t>(record, layout.payload);
  if ((flags & kPayloadMask) != kExtended) {
    out.payload.set(at, flags, payload);
  } else if (payload != 0) {
    out.blobs.add(id, payload, domain);
    if (const auto number = blobs_.number_at_end(base_, payload)) {
      out.payload.set(at, number->flags, number->payload);
    }
  }
}

// A range that somebody names as another's parent, but that is not known by now, was not recorded.
int64_t Slicer::explicit_parent(uint64_t parent, int64_t id) {
  const int64_t row = events_.parents().row(parent);
  if (row < 0 || row >= id) {
    events_.counts().lost_parents += events_.choosy() ? 0 : 1;  // it may have been left out
    return -1;
  }
  return row;
}

int64_t Slicer::maker_of(uint32_t task, int64_t id) const {
  const auto maker = makers_.find(task);
  const int64_t row = maker == makers_.end() ? -1 : events_.parents().row(maker->second);
  return row < id ? row : -1;
}

// Returns lane and parent. Ids grow with start: of several ranges around this one the largest id is the innermost.
Place Slicer::place(const Row &row, int64_t id, bool start_end) {
  const Extra &extra = extras_[row.extra];
  Place place{0, -1};
  if (!start_end) {
    place = nests_[row.nest].add(row.start, row.end, id);
    if (extra.task != 0) {
      place.parent = std::max(
          {place.parent, tasks_.enclosing(extra.task, row.start, row.end), maker_of(extra.task, id)});
    }
  } else if (extra.task != 0) {
    place = tasks_.add(extra.task, row.start, row.end, id);
    if (extra.parent == 0) {
      place.parent =
          std::max({place.parent, nests_[row.nest].enclosing(row.start, row.end), maker_of(extra.task, id)});
    }
  } else {
    place.depth = lanes_.add(row.start, row.end, id);
  }
  if (extra.parent != 0) {
    place.parent = explicit_parent(extra.parent, id);
  }
  if (extra.id != 0) {
    events_.parents().set(extra.id, id);
  }
  return place;
}

void Slicer::emit_range(size_t at, const Row &row) {
  const int64_t id = range_base_ + next_range_++;
  emit_placed(at, row, id, place(row, id, row.record[0] == events_.layout().start_end_type));
}

void Slicer::emit_placed(size_t at, const Row &row, int64_t id, const Place &place, bool late) {
  RangeColumns &out = *ranges_;
  emit_event(out, at, row, id);
  if (row.record[0] == events_.layout().op_type) {
    emit_op(at, row, id, late);
  }
  out.end[at] = row.end;
  if (const uint32_t end_thread = extras_[row.extra].end_thread; end_thread != kNone) {
    out.end_thread.set(at, thread_base_ + end_thread);
  }
  out.style[at] = row.record[0] == events_.layout().start_end_type ? 1 : 0;
  out.depth[at] = static_cast<int32_t>(place.depth);
  if (place.parent >= 0) {
    out.parent.set(at, place.parent);
  }
  const uint8_t flags = row.record[events_.layout().flags];
  if (row.unfinished) {
    out.unfinished.set(at);
  }
  if ((flags & kInherited) != 0) {
    out.inherited.set(at);
  }
  if ((flags & kClipped) != 0 || (events_.choosy() && events_.crosses_edge(row.record))) {
    out.clipped.set(at);
  }
}

void Slicer::emit_sample(size_t at, const Row &row) {
  SampleColumns &out = *samples_;
  emit_instant(out, at, row);
  const Layout &layout = events_.layout();
  const auto domain = load<uint16_t>(row.record, layout.domain);
  out.counter[at] = out.counters.code(domain, load<uint32_t>(row.record, layout.category));
  out.reason[at] = load<uint32_t>(row.record, layout.color);
  const auto flags = row.record[layout.flags];
  const auto payload = load<uint64_t>(row.record, layout.payload);
  if ((flags & kPayloadMask) == kExtended) {
    out.blobs.add(static_cast<int64_t>(at), payload, domain);
  } else {
    out.value.set(at, flags, payload);
  }
}

void Slicer::emit_operation(size_t at, const Row &row) {
  OperationColumns &out = *operations_;
  emit_instant(out, at, row);
  const Layout &layout = events_.layout();
  out.domain[at] = load<uint16_t>(row.record, layout.domain);
  out.action[at] = load<uint32_t>(row.record, layout.operation_action);
  out.object[at] = load<uint64_t>(row.record, layout.operation_object);
  out.value[at] = load<uint64_t>(row.record, layout.operation_value);
}

uint64_t Slicer::rows(uint32_t table) const {
  return table == kRanges    ? ranges_->rows
         : table == kMarks   ? marks_->rows
         : table == kSamples ? samples_->rows
                             : operations_->rows;
}

void Slicer::build(const uint8_t *base, uint64_t slice) {
  if (slice == 0) {
    for (const auto &[task, maker] : makers_) {
      events_.parents().need(maker);
    }
    events_.parents().freeze();
  }
  base_ = base;
  gather(base, slice);
  sort();
  size_t counts[kTables] = {};
  const auto table_of = [this](const Row &row) {
    switch (events_.kind(row.record[0])) {
      case Kind::mark:
        return kMarks;
      case Kind::sample:
        return kSamples;
      case Kind::operation:
        return kOperations;
      default:
        return kRanges;
    }
  };
  for (const Row &row : rows_) {
    counts[table_of(row)] += row.waits ? 0 : 1;
  }
  ranges_.next().reset(counts[kRanges], strings_);
  marks_.next().reset(counts[kMarks], strings_);
  samples_.next().reset(counts[kSamples]);
  operations_.next().reset(counts[kOperations]);
  ops_.next().reset(strings_);
  size_t at[kTables] = {};
  splits_.clear();
  for (const uint32_t number : order_) {
    const Row &row = rows_[number];
    if (row.waits) {
      splits_.push_back(at[kRanges]);
      wait(row);
      continue;
    }
    const Table table = table_of(row);
    switch (table) {
      case kMarks:
        emit_event(*marks_, at[table]++, row, range_base_ + next_mark_++);
        break;
      case kSamples:
        emit_sample(at[table]++, row);
        break;
      case kOperations:
        emit_operation(at[table]++, row);
        break;
      default:
        emit_range(at[table]++, row);
    }
  }
}

}  // namespace warplens::reader

#include "slice.h"

#include <algorithm>
#include <bit>

namespace warpline::desk {

namespace {

// The low bits of a record's flags (docs/dev/formats/spool.md).
constexpr uint8_t kPayloadMask = 0x07;
constexpr uint8_t kColor = 0x08;
constexpr uint8_t kInherited = 0x10;
constexpr uint8_t kClipped = 0x20;
enum Payload : uint8_t { kU64 = 1, kI64 = 2, kF64 = 3, kU32 = 4, kI32 = 5, kF32 = 6 };

}  // namespace

void EventColumns::reset(size_t count, size_t strings) {
  rows = count;
  for (auto *column : {&id, &process, &thread, &start}) {
    column->resize(count);
  }
  task.reset(count);
  for (auto *column : {&domain, &category, &message}) {
    column->reset(count);
  }
  category_id.reset(count);
  color.reset(count);
  payload_int.reset(count);
  payload_float.reset(count);
  domains.reset(size_t{1} << 16);
  messages.reset(strings);
  categories.reset();
}

void RangeColumns::reset(size_t count, size_t strings) {
  EventColumns::reset(count, strings);
  end.resize(count);
  style.resize(count);
  depth.resize(count);
  end_thread.reset(count);
  parent.reset(count);
  for (auto *bits : {&unfinished, &inherited, &clipped}) {
    bits->reset(count);
  }
}

uint32_t Slicer::nest_of(uint32_t thread) {
  const auto [at, added] = nest_numbers_.try_emplace(thread, static_cast<uint32_t>(nests_.size()));
  if (added) {
    nests_.emplace_back();
  }
  return at->second;
}

void Slicer::add_row(const uint8_t *record, uint32_t thread, uint32_t end_thread, uint32_t nest,
                     bool unfinished) {
  const Layout &layout = events_.layout();
  const int64_t start = clock_(static_cast<int64_t>(load<uint64_t>(record, layout.start)));
  int64_t end = start;
  if (record[0] != layout.mark_type) {
    end = clock_(static_cast<int64_t>(load<uint64_t>(record, layout.end)));
    if (end < start) {
      end = start;
      ++events_.counts().backwards;
    }
  }
  rows_.push_back({start, end, record, thread, end_thread, nest, unfinished});
}

void Slicer::gather(const uint8_t *base, uint64_t slice) {
  const Layout &layout = events_.layout();
  const uint64_t lower = events_.lower(slice);
  const uint64_t upper = events_.upper(slice);
  rows_.clear();
  for (const Run &run : events_.runs(slice)) {
    const Segment &segment = events_.segments()[run.segment];
    const uint8_t *segment_end = base + segment.offset + segment.count * layout.stride;
    const uint8_t *record = base + run.offset;
    const uint32_t nest = nest_of(segment.thread);
    for (uint32_t index = 0; index < run.count; ++index, record += layout.stride) {
      if (!events_.is_event(record[0]) || !events_.plausible(record)) {
        continue;
      }
      const auto start = load<uint64_t>(record, layout.start);
      if (start < lower || start >= upper) {
        continue;
      }
      const uint8_t *next = record + layout.stride;
      if (record[0] == layout.start_end_type && next < segment_end && next[0] == layout.origin_type) {
        const uint32_t origin = std::min(load<uint32_t>(next, layout.origin_thread), kUnknownThread);
        add_row(record, origin, segment.thread, nest, false);
      } else {
        add_row(record, segment.thread, kNone, nest, false);
      }
    }
  }
  for (const uint32_t index : events_.open_of(slice)) {
    const uint32_t thread = events_.open_thread(index);
    add_row(events_.open_record(index), thread, kNone, nest_of(thread), true);
  }
}

// By start; of two that start together the longer one is the outer one, of two alike the one that was closed later.
bool Slicer::before(uint32_t a, uint32_t b) const {
  const Row &first = rows_[a];
  const Row &second = rows_[b];
  if (first.start != second.start) {
    return first.start < second.start;
  }
  return first.end != second.end ? first.end > second.end : a > b;
}

void Slicer::sort() {
  sort_numbers(
      rows_.size(), [this](uint32_t row) { return static_cast<uint64_t>(rows_[row].start); },
      [this](uint32_t a, uint32_t b) { return before(a, b); }, order_, scratch_);
}

void Slicer::emit_event(EventColumns &out, size_t at, const Row &row) {
  const Layout &layout = events_.layout();
  const uint8_t *record = row.record;
  const auto flags = record[layout.flags];
  out.process[at] = process_;
  out.thread[at] = thread_base_ + row.thread;
  out.start[at] = row.start;
  const auto domain = load<uint16_t>(record, layout.domain);
  if (domain != 0) {
    out.domain.set(at, out.domains.code(domain));
  }
  if (const auto category = load<uint32_t>(record, layout.category); category != 0) {
    out.category.set(at, out.categories.code(uint64_t{domain} << 32 | category));
    out.category_id.set(at, category);
  }
  if (const auto name = load<uint32_t>(record, layout.name); name != 0) {
    if (name < lookup_.size() && lookup_[name] != kNone) {
      out.message.set(at, out.messages.code(lookup_[name]));
    } else {
      ++events_.counts().lost_names;
    }
  }
  if ((flags & kColor) != 0) {
    out.color.set(at, load<uint32_t>(record, layout.color));
  }
  const auto payload = load<uint64_t>(record, layout.payload);
  switch (flags & kPayloadMask) {
    case kU64:
    case kI64:
      out.payload_int.set(at, static_cast<int64_t>(payload));
      break;
    case kU32:
      out.payload_int.set(at, static_cast<uint32_t>(payload));
      break;
    case kI32:
      out.payload_int.set(at, static_cast<int32_t>(payload));
      break;
    case kF64:
      out.payload_float.set(at, std::bit_cast<double>(payload));
      break;
    case kF32:
      out.payload_float.set(at, static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(payload))));
      break;
    default:
      break;
  }
}

void Slicer::emit_range(size_t at, const Row &row) {
  emit_event(ranges_, at, row);
  const int64_t id = range_base_ + next_range_++;
  ranges_.id[at] = id;
  ranges_.end[at] = row.end;
  if (row.end_thread != kNone && row.end_thread != row.thread) {
    ranges_.end_thread.set(at, thread_base_ + row.end_thread);
  }
  const bool start_end = row.record[0] == events_.layout().start_end_type;
  ranges_.style[at] = start_end ? 1 : 0;
  if (start_end) {
    ranges_.depth[at] = static_cast<int32_t>(lanes_.add(row.start, row.end));
  } else {
    const Place place = nests_[row.nest].add(row.start, row.end, id);
    ranges_.depth[at] = static_cast<int32_t>(place.depth);
    if (place.parent >= 0) {
      ranges_.parent.set(at, place.parent);
    }
  }
  const uint8_t flags = row.record[events_.layout().flags];
  if (row.unfinished) {
    ranges_.unfinished.set(at);
  }
  if ((flags & kInherited) != 0) {
    ranges_.inherited.set(at);
  }
  if ((flags & kClipped) != 0) {
    ranges_.clipped.set(at);
  }
}

void Slicer::build(const uint8_t *base, uint64_t slice) {
  gather(base, slice);
  sort();
  const uint8_t mark = static_cast<uint8_t>(events_.layout().mark_type);
  size_t marks = 0;
  for (const Row &row : rows_) {
    marks += row.record[0] == mark ? 1 : 0;
  }
  ranges_.reset(rows_.size() - marks, strings_);
  marks_.reset(marks, strings_);
  size_t range_at = 0;
  size_t mark_at = 0;
  for (const uint32_t number : order_) {
    const Row &row = rows_[number];
    if (row.record[0] == mark) {
      marks_.id[mark_at] = range_base_ + next_mark_++;
      emit_event(marks_, mark_at++, row);
    } else {
      emit_range(range_at++, row);
    }
  }
}

const void *Slicer::buffer(bool marks, std::string_view name, uint64_t *bytes) const {
  const auto of = [bytes](const auto &values) -> const void * {
    *bytes = values.size() * sizeof(values[0]);
    return values.data();
  };
  const EventColumns &both = marks ? marks_ : static_cast<const EventColumns &>(ranges_);
  const bool valid = !name.empty() && name.back() == '?';
  const bool dictionary = !name.empty() && name.back() == '=';
  if (valid || dictionary) {
    name.remove_suffix(1);
  }
  if (dictionary) {
    if (name == "domain") return of(both.domains.used);
    if (name == "message") return of(both.messages.used);
    if (name == "category") return of(both.categories.used);
    return nullptr;
  }
  const auto pick = [&](const auto &column) { return valid ? of(column.valid.bytes) : of(column.values); };
  if (name == "domain") return pick(both.domain);
  if (name == "category") return pick(both.category);
  if (name == "message") return pick(both.message);
  if (name == "category_id") return pick(both.category_id);
  if (name == "color") return pick(both.color);
  if (name == "payload_int") return pick(both.payload_int);
  if (name == "payload_float") return pick(both.payload_float);
  if (name == "task") return pick(both.task);
  if (!marks && name == "end_thread") return pick(ranges_.end_thread);
  if (!marks && name == "parent") return pick(ranges_.parent);
  if (valid) return nullptr;
  if (name == "process") return of(both.process);
  if (name == "thread") return of(both.thread);
  if (name == "start") return of(both.start);
  if (name == "id") return of(both.id);
  if (marks) return nullptr;
  if (name == "end") return of(ranges_.end);
  if (name == "style") return of(ranges_.style);
  if (name == "depth") return of(ranges_.depth);
  if (name == "unfinished") return of(ranges_.unfinished.bytes);
  if (name == "inherited") return of(ranges_.inherited.bytes);
  if (name == "clipped") return of(ranges_.clipped.bytes);
  return nullptr;
}

}  // namespace warpline::desk

// Adds details of framework operators to their ranges.
#include "ops.h"

#include <algorithm>

namespace warplens::reader {

namespace {

constexpr unsigned kScope = 56;  // kOpScope
constexpr uint64_t kNoSequence = (uint64_t{1} << kScope) - 1;
constexpr uint64_t kBackward = 1;
constexpr uint32_t kNoText = UINT32_MAX;

template <typename T>
void append(Nullable<T> &column, size_t row, bool valid, T value) {
  if (row % 8 == 0) {
    column.valid.bytes.push_back(0);
  }
  column.values.push_back(value);
  if (valid) {
    column.valid.set(row);
  }
}

template <typename T>
void clear(Nullable<T> &column) {
  column.values.clear();
  column.valid.bytes.clear();
}

void append_text(Nullable<int32_t> &column, Coder &texts, size_t row, uint32_t text) {
  append(column, row, text != kNoText, text != kNoText ? texts.code(text) : 0);
}

}  // namespace

void OpColumns::reset(size_t strings) {
  row.clear();
  backward.clear();
  clear(sequence);
  clear(forward);
  clear(shapes);
  clear(types);
  shape_texts.reset(strings);
  type_texts.reset(strings);
}

bool OpPasses::add(OpColumns &columns, uint32_t row, const OpFields &op, int64_t id, uint32_t thread,
                   int64_t start, int64_t end, bool late) {
  const bool numbered = !op.open && (op.sequence & kNoSequence) != kNoSequence;
  const auto sequence = static_cast<int64_t>(op.sequence & kNoSequence);
  const bool begins_backward = !op.open && op.sequence >> kScope == kBackward;
  int64_t &until = backward_until_.try_emplace(thread, INT64_MIN).first->second;
  if (begins_backward) {
    until = std::max(until, end);
  }
  const bool backward = begins_backward || start < until;
  const int64_t forward = numbered && begins_backward ? forward_of(sequence) : -1;
  if (numbered && !backward) {
    note_forward(sequence, id);
  }
  const size_t at = columns.row.size();
  columns.row.push_back(row);
  columns.backward.push_back(backward ? 1 : 0);
  append(columns.sequence, at, numbered, sequence);
  append(columns.forward, at, forward >= 0, forward);
  append_text(columns.shapes, columns.shape_texts, at, op.shapes);
  append_text(columns.types, columns.type_texts, at, op.types);
  return !late || !begins_backward;
}

int64_t OpPasses::forward_of(int64_t sequence) const {
  if (forwards_.empty()) {
    return -1;
  }
  const Forward &known = forwards_[static_cast<size_t>(sequence) % kForwards];
  return known.sequence == sequence ? known.id : -1;
}

void OpPasses::note_forward(int64_t sequence, int64_t id) {
  if (forwards_.empty()) {
    forwards_.resize(kForwards);
  }
  Forward &known = forwards_[static_cast<size_t>(sequence) % kForwards];
  if (known.sequence != sequence || known.id < id) {
    known = {sequence, id};
  }
}

}  // namespace warplens::reader

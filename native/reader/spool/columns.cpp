// The Arrow columns of a slice.
#include "columns.h"

#include <bit>

namespace warplens::reader {

namespace {

enum Payload : uint8_t { kU64 = 1, kI64 = 2, kF64 = 3, kU32 = 4, kI32 = 5, kF32 = 6 };
constexpr uint8_t kPayloadMask = 0x07;

}  // namespace

void Values::set(size_t row, uint8_t flags, uint64_t payload) {
  switch (flags & kPayloadMask) {
    case kU64:
    case kI64:
      ints.set(row, static_cast<int64_t>(payload));
      break;
    case kU32:
      ints.set(row, static_cast<uint32_t>(payload));
      break;
    case kI32:
      ints.set(row, static_cast<int32_t>(payload));
      break;
    case kF64:
      floats.set(row, std::bit_cast<double>(payload));
      break;
    case kF32:
      floats.set(row, static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(payload))));
      break;
    default:
      break;
  }
}

void InstantColumns::reset(size_t count) {
  rows = count;
  for (auto *column : {&process, &thread, &start}) {
    column->resize(count);
  }
  task.reset(count);
  blobs.clear();
}

void EventColumns::reset(size_t count, size_t strings) {
  InstantColumns::reset(count);
  id.resize(count);
  for (auto *column : {&domain, &category, &message}) {
    column->reset(count);
  }
  category_id.reset(count);
  color.reset(count);
  payload.reset(count);
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

void SampleColumns::reset(size_t count) {
  InstantColumns::reset(count);
  counter.resize(count);
  counters.reset();
  value.reset(count);
  reason.resize(count);
}

void OperationColumns::reset(size_t count) {
  InstantColumns::reset(count);
  domain.resize(count);
  action.resize(count);
  object.resize(count);
  value.resize(count);
}

}  // namespace warplens::reader

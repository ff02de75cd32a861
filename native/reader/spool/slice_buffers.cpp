// Finds the columns of a slice by name.
#include "slice.h"

namespace warplens::desk {

namespace {

struct Wanted {
  std::string_view name;
  bool valid;       // "color?"
  bool dictionary;  // "message="
  uint64_t *bytes;

  template <typename T>
  const void *all(const std::vector<T> &values) const {
    *bytes = values.size() * sizeof(T);
    return values.data();
  }
  template <typename T>
  const void *pick(const Nullable<T> &column) const {
    return valid ? all(column.valid.bytes) : all(column.values);
  }
};

const void *find(const InstantColumns &columns, const Wanted &wanted) {
  const auto name = wanted.name;
  if (name == "task") return wanted.pick(columns.task);
  if (wanted.valid) return nullptr;
  if (name == "process") return wanted.all(columns.process);
  if (name == "thread") return wanted.all(columns.thread);
  if (name == "start") return wanted.all(columns.start);
  if (name == "blob_row") return wanted.all(columns.blobs.row);
  if (name == "blob_offset") return wanted.all(columns.blobs.offset);
  if (name == "blob_domain") return wanted.all(columns.blobs.domain);
  return nullptr;
}

const void *find(const EventColumns &columns, const Wanted &wanted) {
  const auto name = wanted.name;
  if (wanted.dictionary) {
    if (name == "domain") return wanted.all(columns.domains.used);
    if (name == "message") return wanted.all(columns.messages.used);
    if (name == "category") return wanted.all(columns.categories.used);
    return nullptr;
  }
  if (name == "domain") return wanted.pick(columns.domain);
  if (name == "category") return wanted.pick(columns.category);
  if (name == "message") return wanted.pick(columns.message);
  if (name == "category_id") return wanted.pick(columns.category_id);
  if (name == "color") return wanted.pick(columns.color);
  if (name == "payload_int") return wanted.pick(columns.payload.ints);
  if (name == "payload_float") return wanted.pick(columns.payload.floats);
  if (name == "id" && !wanted.valid) return wanted.all(columns.id);
  return find(static_cast<const InstantColumns &>(columns), wanted);
}

const void *find(const RangeColumns &columns, const Wanted &wanted) {
  const auto name = wanted.name;
  if (!wanted.dictionary) {
    if (name == "end_thread") return wanted.pick(columns.end_thread);
    if (name == "parent") return wanted.pick(columns.parent);
  }
  if (!wanted.valid && !wanted.dictionary) {
    if (name == "end") return wanted.all(columns.end);
    if (name == "style") return wanted.all(columns.style);
    if (name == "depth") return wanted.all(columns.depth);
    if (name == "unfinished") return wanted.all(columns.unfinished.bytes);
    if (name == "inherited") return wanted.all(columns.inherited.bytes);
    if (name == "clipped") return wanted.all(columns.clipped.bytes);
  }
  return find(static_cast<const EventColumns &>(columns), wanted);
}

const void *find(const SampleColumns &columns, const Wanted &wanted) {
  const auto name = wanted.name;
  if (wanted.dictionary) return name == "counter" ? wanted.all(columns.counters.used) : nullptr;
  if (name == "value_int") return wanted.pick(columns.value.ints);
  if (name == "value_float") return wanted.pick(columns.value.floats);
  if (name == "counter" && !wanted.valid) return wanted.all(columns.counter);
  if (name == "reason" && !wanted.valid) return wanted.all(columns.reason);
  return find(static_cast<const InstantColumns &>(columns), wanted);
}

const void *find(const OperationColumns &columns, const Wanted &wanted) {
  const auto name = wanted.name;
  if (!wanted.valid && !wanted.dictionary) {
    if (name == "domain") return wanted.all(columns.domain);
    if (name == "action") return wanted.all(columns.action);
    if (name == "object") return wanted.all(columns.object);
    if (name == "value") return wanted.all(columns.value);
  }
  return find(static_cast<const InstantColumns &>(columns), wanted);
}

const void *find(const OpColumns &columns, const Wanted &wanted) {
  const auto name = wanted.name;
  if (wanted.dictionary) {
    if (name == "shapes") return wanted.all(columns.shape_texts.used);
    if (name == "types") return wanted.all(columns.type_texts.used);
    return nullptr;
  }
  if (name == "sequence") return wanted.pick(columns.sequence);
  if (name == "forward") return wanted.pick(columns.forward);
  if (name == "shapes") return wanted.pick(columns.shapes);
  if (name == "types") return wanted.pick(columns.types);
  if (name == "row" && !wanted.valid) return wanted.all(columns.row);
  if (name == "backward" && !wanted.valid) return wanted.all(columns.backward);
  return nullptr;
}

}  // namespace

const InstantColumns &Slicer::instants(uint32_t table) const {
  switch (table) {
    case kRanges:
      return ranges_;
    case kMarks:
      return marks_;
    case kSamples:
      return samples_;
    default:
      return operations_;
  }
}

const void *Slicer::buffer(uint32_t table, std::string_view name, uint64_t *bytes) const {
  Wanted wanted{name, !name.empty() && name.back() == '?', !name.empty() && name.back() == '=', bytes};
  if (wanted.valid || wanted.dictionary) {
    wanted.name.remove_suffix(1);
  }
  switch (table) {
    case kRanges:
      return find(ranges_, wanted);
    case kMarks:
      return find(marks_, wanted);
    case kSamples:
      return find(samples_, wanted);
    case kOperations:
      return find(operations_, wanted);
    case kOps:
      return find(ops_.columns, wanted);
    default:
      return nullptr;
  }
}

}  // namespace warplens::desk

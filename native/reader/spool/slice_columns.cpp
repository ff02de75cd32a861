// The tables of a slice as Arrow columns.
#include <stdexcept>

#include "slice.h"

namespace warplens::reader {

namespace {

template <typename T>
void add(ArrowColumns &out, const char *name, const Nullable<T> &column) {
  out.add(name, column.values, &column.valid.bytes);
}

template <typename T>
void add_coded(ArrowColumns &out, const char *name, const Nullable<int32_t> &codes,
               const std::vector<T> &dictionary) {
  out.add_coded(name, codes.values, dictionary, &codes.valid.bytes);
}

void add_instants(ArrowColumns &out, const InstantColumns &columns) {
  out.add("process", columns.process);
  out.add("thread", columns.thread);
  out.add("start", columns.start);
  add(out, "task", columns.task);
}

void add_events(ArrowColumns &out, const EventColumns &columns) {
  add_instants(out, columns);
  out.add("id", columns.id);
  add_coded(out, "domain", columns.domain, columns.domains.used);
  add_coded(out, "category", columns.category, columns.categories.used);
  add_coded(out, "message", columns.message, columns.messages.used);
  add(out, "category_id", columns.category_id);
  add(out, "color", columns.color);
  add(out, "payload_int", columns.payload.ints);
  add(out, "payload_float", columns.payload.floats);
}

void add_rest(ArrowColumns &out, const EventColumns &marks) {
  add_events(out, marks);
}

void add_rest(ArrowColumns &out, const RangeColumns &ranges) {
  add_events(out, ranges);
  out.add("end", ranges.end);
  out.add("style", ranges.style);
  out.add("depth", ranges.depth);
  add(out, "end_thread", ranges.end_thread);
  add(out, "parent", ranges.parent);
  out.add_bits("unfinished", ranges.unfinished.bytes);
  out.add_bits("inherited", ranges.inherited.bytes);
  out.add_bits("clipped", ranges.clipped.bytes);
}

void add_rest(ArrowColumns &out, const SampleColumns &samples) {
  add_instants(out, samples);
  out.add_coded("counter", samples.counter, samples.counters.used);
  add(out, "value_int", samples.value.ints);
  add(out, "value_float", samples.value.floats);
  out.add("reason", samples.reason);
}

void add_rest(ArrowColumns &out, const OperationColumns &operations) {
  add_instants(out, operations);
  out.add("domain", operations.domain);
  out.add("action", operations.action);
  out.add("object", operations.object);
  out.add("value", operations.value);
}

void add_rest(ArrowColumns &out, const OpColumns &ops) {
  out.add("row", ops.row);
  add(out, "sequence", ops.sequence);
  add(out, "forward", ops.forward);
  add_coded(out, "shapes", ops.shapes, ops.shape_texts.used);
  add_coded(out, "types", ops.types, ops.type_texts.used);
  out.add("backward", ops.backward);
}

template <typename Columns>
ArrowColumns table_of(const Refilled<Columns> &columns, size_t rows) {
  ArrowColumns out(columns.shared(), rows);
  add_rest(out, *columns);
  return out;
}

template <typename Columns>
ArrowColumns payloads_of(const Refilled<Columns> &columns) {
  const BlobRefs &blobs = columns->blobs;
  ArrowColumns out(columns.shared(), blobs.row.size());
  out.add("row", blobs.row);
  out.add("offset", blobs.offset);
  out.add("domain", blobs.domain);
  return out;
}

}  // namespace

ArrowColumns Slicer::columns(uint32_t table) const {
  switch (table) {
    case kRanges:
      return table_of(ranges_, ranges_->rows);
    case kMarks:
      return table_of(marks_, marks_->rows);
    case kSamples:
      return table_of(samples_, samples_->rows);
    case kOperations:
      return table_of(operations_, operations_->rows);
    case kOps:
      return table_of(ops_, ops_->row.size());
    default:
      throw std::invalid_argument("there is no such table");
  }
}

ArrowColumns Slicer::payloads(uint32_t table) const {
  switch (table) {
    case kRanges:
      return payloads_of(ranges_);
    case kMarks:
      return payloads_of(marks_);
    case kSamples:
      return payloads_of(samples_);
    default:
      throw std::invalid_argument("there is no such table");
  }
}

}  // namespace warplens::reader

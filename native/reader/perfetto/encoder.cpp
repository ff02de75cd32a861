// Encodes ranges and marks as Perfetto TrackEvent packets (protobuf), into a buffer that the caller writes out.
//
// Only the packets that come per event are made here; descriptors, clocks and interned strings are few and come from the caller.
// Field numbers: perfetto/trace/trace_packet.proto, track_event/{track_event,debug_annotation}.proto (part of the public format).
#include "reader/spool/placing.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/arrow.h"
#include "reader/door.h"

namespace warplens::reader {
namespace {

// A column of annotations. `name`: the interned id of its name.
struct Notes {
  enum Kind { kInt, kDouble, kBool, kText };

  uint64_t name;
  Kind kind;
  GivenNumbers<int64_t> ints;
  GivenNumbers<double> doubles;
  GivenNumbers<uint8_t> bits;
  GivenCodes<uint64_t> texts;  // interned ids
  ValidRows valid;
};

Notes notes_of(const GivenColumns &columns, uint64_t place, uint64_t name) {
  Notes notes{};
  notes.name = name;
  const std::string_view format = columns.format(place);
  if (format == "l") {
    notes.kind = Notes::kInt;
    notes.ints = columns.numbers<int64_t>(place);
    notes.valid = notes.ints.valid;
  } else if (format == "g") {
    notes.kind = Notes::kDouble;
    notes.doubles = columns.numbers<double>(place);
    notes.valid = notes.doubles.valid;
  } else if (format == "b") {
    notes.kind = Notes::kBool;
    notes.bits = columns.bits(place);
    notes.valid = notes.bits.valid;
  } else {
    notes.kind = Notes::kText;
    notes.texts = columns.codes<uint64_t>(place);
    notes.valid = notes.texts.valid;
  }
  return notes;
}

// One batch of rows; a null pointer is a column without values. Of names, domains and categories: interned ids, 0: nothing to write.
struct Batch {
  uint64_t rows;
  const int32_t *family;
  const int64_t *id;
  const int64_t *parent;
  const int64_t *start;
  const int64_t *end;
  GivenCodes<uint64_t> name, domain, category;
  GivenNumbers<uint32_t> color;
  GivenNumbers<int64_t> payload_int;
  GivenNumbers<double> payload_float;
  const uint8_t *flags;  // bit 0 unfinished, 1 inherited, 2 clipped
  GivenTexts more;       // encoded fields that are put behind each event
  std::vector<Notes> notes;
  const uint64_t *flow;  // an arrow's id, 0: none
  bool flow_ends;        // arrows end at these rows; else they begin there
};

Batch batch_of(const GivenColumns &rows, const GivenColumns &notes, const Array<const uint64_t> &note_names,
               bool flow_ends) {
  require_size(notes.count(), note_names);
  if (notes.count() != 0 && notes.rows() != rows.rows()) {
    throw std::invalid_argument("the tables differ in length");
  }
  Batch batch{rows.rows(),
              rows.required<int32_t>("family"),
              rows.values<int64_t>("id"),
              rows.values<int64_t>("parent"),
              rows.required<int64_t>("start"),
              rows.values<int64_t>("end"),
              rows.codes<uint64_t>("name"),
              rows.codes<uint64_t>("domain"),
              rows.codes<uint64_t>("category"),
              rows.numbers<uint32_t>("color"),
              rows.numbers<int64_t>("payload_int"),
              rows.numbers<double>("payload_float"),
              rows.values<uint8_t>("flags"),
              rows.texts("more"),
              {},
              rows.values<uint64_t>("flow"),
              flow_ends};
  for (uint64_t place = 0; place < notes.count(); ++place) {
    batch.notes.push_back(notes_of(notes, place, note_names[place]));
  }
  return batch;
}

// Interned ids of the annotation names, as the caller wrote them.
enum Annotation : uint64_t { kColor = 1, kPayload = 2, kUnfinished = 3, kInherited = 4, kClipped = 5 };
enum EventType : uint64_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

constexpr uint64_t tag(uint64_t field, uint64_t wire) {
  return field << 3 | wire;
}

class Encoder {
 public:
  Encoder(int32_t families, uint64_t first_uuid, uint32_t sequence)
      : lanes_(static_cast<size_t>(families)),
        uuids_(static_cast<size_t>(families)),
        next_uuid_(first_uuid),
        sequence_(sequence) {}

  void ranges(const Batch &batch) {
    for (uint64_t i = 0; i < batch.rows; ++i) {
      const size_t family = family_of(batch, i);
      const auto close = [&](int32_t lane, int64_t end) { end_packet(uuid(family, lane), end); };
      const int32_t lane =
          lanes_[family].place(batch.id[i], batch.parent[i], batch.start[i], batch.end[i], close);
      event_packet(kBegin, uuid(family, lane), batch, i);
    }
  }
  void marks(const Batch &batch) {
    for (uint64_t i = 0; i < batch.rows; ++i) event_packet(kInstant, uuid(family_of(batch, i), 0), batch, i);
  }
  // Work of GPUs as stages: each row's queue, context and GPU; of sizes the columns x, y and z. `extra` are its extra data.
  void stages(uint64_t stage, const GivenColumns &rows, const GivenColumns &extra) {
    const auto *start = rows.required<int64_t>("start");
    const auto *end = rows.required<int64_t>("end");
    const auto *queue = rows.required<uint64_t>("queue");
    const auto *context = rows.required<uint64_t>("context");
    const auto *gpu = rows.required<int32_t>("gpu");
    const auto name = rows.codes<uint64_t>("name");
    const Size grid = size_columns(rows, "grid ");
    const Size block = size_columns(rows, "block ");
    std::vector<GivenNumbers<int64_t>> values;
    for (uint64_t place = 0; place < extra.count(); ++place) {
      values.push_back(extra.numbers<int64_t>(place));
    }
    for (uint64_t i = 0; i < rows.rows(); ++i) {
      Message event;
      event.field(2, static_cast<uint64_t>(end[i] - start[i]));
      event.field(5, context[i]);
      event.field(11, static_cast<uint64_t>(int64_t{gpu[i]}));
      event.field(13, queue[i]);
      event.field(14, stage);
      if (name.has(i) && name[i] != 0) event.field(20, name[i]);
      if (grid[0] != nullptr && block[0] != nullptr) {
        Message launch;
        launch.message(1, size_of(grid, i));
        launch.message(2, size_of(block, i));
        event.message(21, launch);
      }
      notes_.clear();
      for (uint64_t place = 0; place < values.size(); ++place) {
        if (!values[place].has(i)) continue;
        char digits[24];
        const char *behind = std::to_chars(digits, digits + sizeof digits, values[place].values[i]).ptr;
        const std::string_view what = extra.name(place).substr(0, 64);
        Message fact;
        Message whole;
        fact.text(1, what.data(), what.size());
        fact.text(2, digits, static_cast<size_t>(behind - digits));
        whole.message(6, fact);
        notes_.append(reinterpret_cast<const char *>(whole.data), whole.size);
      }
      packet(start[i], event, notes_, 53);
    }
  }
  // Samples of counters: each row has a value in `whole` or in `real`.
  void samples(const GivenColumns &rows) {
    const auto *track = rows.required<uint64_t>("track");
    const auto *time = rows.required<int64_t>("time");
    const auto whole = rows.numbers<int64_t>("whole");
    const auto *real = rows.required<double>("real");
    for (uint64_t i = 0; i < rows.rows(); ++i) {
      Message event;
      event.field(9, kCounter);
      event.field(11, track[i]);
      if (whole.has(i)) {
        event.field(30, static_cast<uint64_t>(whole.values[i]));  // counter_value
      } else {
        event.fixed64(44, real[i]);  // double_counter_value
      }
      packet(time[i], event);
    }
  }
  // Makes the first track of a family known before it has events.
  void touch(size_t family) { uuid(family, 0); }
  void finish() {
    for (size_t family = 0; family < lanes_.size(); ++family) {
      lanes_[family].drain_all([&](int32_t lane, int64_t end) { end_packet(uuid(family, lane), end); });
    }
  }

  std::string bytes;
  // Lanes used for the first time: family, lane, track uuid; the caller describes them.
  std::vector<uint64_t> fresh;

 private:
  // A scratch area for one message: written front to back, copied out with its length.
  struct Message {
    uint8_t data[256];
    size_t size = 0;
    void varint(uint64_t value) {
      while (value >= 0x80) {
        data[size++] = static_cast<uint8_t>(value) | 0x80;
        value >>= 7;
      }
      data[size++] = static_cast<uint8_t>(value);
    }
    void field(uint64_t number, uint64_t value) {
      varint(tag(number, 0));
      varint(value);
    }
    void fixed64(uint64_t number, double value) {
      varint(tag(number, 1));
      const auto raw = std::bit_cast<uint64_t>(value);
      for (int byte = 0; byte < 8; ++byte) data[size++] = static_cast<uint8_t>(raw >> (8 * byte));
    }
    void append(const void *value, size_t length) {
      std::memcpy(data + size, value, length);
      size += length;
    }
    void text(uint64_t number, const char *value, size_t length) {
      varint(tag(number, 2));
      varint(length);
      append(value, length);
    }
    void message(uint64_t number, const Message &inner) {
      text(number, reinterpret_cast<const char *>(inner.data), inner.size);
    }
  };

  uint64_t uuid(size_t family, int32_t lane) {
    auto &known = uuids_[family];
    while (known.size() <= static_cast<size_t>(lane)) {
      fresh.insert(fresh.end(), {family, known.size(), next_uuid_});
      known.push_back(next_uuid_++);
    }
    return known[static_cast<size_t>(lane)];
  }

  size_t family_of(const Batch &batch, uint64_t i) const {
    const auto family = static_cast<size_t>(batch.family[i]);
    if (family >= lanes_.size()) {
      throw std::invalid_argument("there is no such family of tracks");
    }
    return family;
  }

  using Size = std::array<const int64_t *, 3>;  // null: it has none
  static Size size_columns(const GivenColumns &rows, const std::string &what) {
    return {rows.values<int64_t>(what + "x"), rows.values<int64_t>(what + "y"),
            rows.values<int64_t>(what + "z")};
  }
  static Message size_of(const Size &columns, uint64_t i) {
    Message size;
    for (size_t axis = 0; axis < columns.size(); ++axis)
      size.field(axis + 1, static_cast<uint64_t>(columns[axis][i]));
    return size;
  }

  // `more` are further fields of the event, which is a track_event or, by `kind`, another field of the packet.
  void packet(int64_t time, const Message &event, std::string_view more = {}, uint64_t kind = 11) {
    Message out;
    out.field(8, static_cast<uint64_t>(time));  // timestamp
    out.field(10, sequence_);                   // trusted_packet_sequence_id
    out.field(13, 2);                           // sequence_flags: needs the interned strings
    out.varint(tag(kind, 2));
    out.varint(event.size + more.size());
    out.append(event.data, event.size);
    Message head;
    head.varint(tag(1, 2));  // Trace.packet
    head.varint(out.size + more.size());
    bytes.append(reinterpret_cast<const char *>(head.data), head.size);
    bytes.append(reinterpret_cast<const char *>(out.data), out.size);
    bytes.append(more);
  }
  void end_packet(uint64_t track, int64_t time) {
    Message event;
    event.field(9, kEnd);
    event.field(11, track);
    packet(time, event);
  }
  static void annotate(Message &event, Annotation name, auto &&value) {
    Message note;
    note.field(1, name);
    value(note);
    event.message(4, note);
  }
  void event_packet(EventType type, uint64_t track, const Batch &batch, uint64_t i) {
    Message event;
    event.field(9, type);
    event.field(11, track);
    const auto interned = [&](uint64_t field, const GivenCodes<uint64_t> &ids) {
      if (!ids.has(i)) return;
      if (const uint64_t id = ids[i]; id != 0) event.field(field, id);
    };
    interned(10, batch.name);
    interned(3, batch.domain);
    interned(3, batch.category);
    if (batch.color.has(i)) {
      annotate(event, kColor, [&](Message &note) {
        char text[7] = {'#'};
        for (int digit = 0; digit < 6; ++digit)
          text[6 - digit] = "0123456789ABCDEF"[batch.color.values[i] >> (4 * digit) & 15];
        note.text(6, text, sizeof text);
      });
    }
    if (batch.payload_int.has(i)) {
      annotate(event, kPayload,
               [&](Message &note) { note.field(4, static_cast<uint64_t>(batch.payload_int.values[i])); });
    }
    if (batch.payload_float.has(i)) {
      annotate(event, kPayload, [&](Message &note) { note.fixed64(5, batch.payload_float.values[i]); });
    }
    if (batch.flags != nullptr) {
      for (uint64_t bit = 0; bit < 3; ++bit) {
        if ((batch.flags[i] >> bit & 1) == 0) continue;
        annotate(event, static_cast<Annotation>(kUnfinished + bit), [](Message &note) { note.field(2, 1); });
      }
    }
    if (batch.flow != nullptr && batch.flow[i] != 0) {
      event.fixed64(batch.flow_ends ? 48 : 47, std::bit_cast<double>(batch.flow[i]));
    }
    std::string_view more;
    if (batch.more.ends != nullptr) {
      more = batch.more[i];
    }
    if (!batch.notes.empty()) {
      notes_.assign(more);
      for (const Notes &column : batch.notes) note(column, i);
      more = notes_;
    }
    packet(batch.start[i], event, more);
  }

  void note(const Notes &column, uint64_t i) {
    if (!column.valid[i]) return;
    Message event;
    annotate(event, static_cast<Annotation>(column.name), [&](Message &note) {
      switch (column.kind) {
        case Notes::kInt:
          note.field(4, static_cast<uint64_t>(column.ints.values[i]));
          break;
        case Notes::kDouble:
          note.fixed64(5, column.doubles.values[i]);
          break;
        case Notes::kBool:
          note.field(2, ValidRows{column.bits.values, column.bits.valid.offset}[i] ? 1 : 0);
          break;
        default:
          note.field(17, column.texts[i]);
      }
    });
    notes_.append(reinterpret_cast<const char *>(event.data), event.size);
  }

  std::string notes_;  // of one event
  std::vector<warplens::Lanes> lanes_;
  std::vector<std::vector<uint64_t>> uuids_;
  uint64_t next_uuid_;
  uint32_t sequence_;
};

std::unique_ptr<Encoder> perfetto_new(int32_t families, uint64_t first_uuid, uint32_t sequence) {
  return std::make_unique<Encoder>(families, first_uuid, sequence);
}
WARPLENS_FUNCTION(perfetto_new);

// Columns: see Batch. `notes`: their annotations, `note_names` the interned ids of the names of those.
void perfetto_ranges(Encoder &encoder, GivenColumns rows, GivenColumns notes,
                     Array<const uint64_t> note_names, int32_t flow_ends) {
  for (const char *name : {"id", "parent", "end"}) {
    (void)rows.required<int64_t>(name);
  }
  encoder.ranges(batch_of(rows, notes, note_names, flow_ends != 0));
}
WARPLENS_FUNCTION(perfetto_ranges);

void perfetto_marks(Encoder &encoder, GivenColumns rows, GivenColumns notes, Array<const uint64_t> note_names,
                    int32_t flow_ends) {
  encoder.marks(batch_of(rows, notes, note_names, flow_ends != 0));
}
WARPLENS_FUNCTION(perfetto_marks);

void perfetto_samples(Encoder &encoder, GivenColumns rows) {
  encoder.samples(rows);
}
WARPLENS_FUNCTION(perfetto_samples);

void perfetto_stages(Encoder &encoder, uint64_t stage, GivenColumns rows, GivenColumns extra) {
  if (extra.count() != 0 && extra.rows() != rows.rows()) {
    throw std::invalid_argument("the tables differ in length");
  }
  encoder.stages(stage, rows, extra);
}
WARPLENS_FUNCTION(perfetto_stages);

void perfetto_touch(Encoder &encoder, int32_t family) {
  encoder.touch(static_cast<size_t>(family));
}
WARPLENS_FUNCTION(perfetto_touch);

void perfetto_finish(Encoder &encoder) {
  encoder.finish();
}
WARPLENS_FUNCTION(perfetto_finish);

// The packets since the last clear.
Array<const char> perfetto_bytes(Encoder &encoder) {
  return {encoder.bytes.data(), encoder.bytes.size()};
}
WARPLENS_FUNCTION(perfetto_bytes);

// The lanes seen since the last clear, three numbers each: family, lane, uuid.
Array<const uint64_t> perfetto_fresh(Encoder &encoder) {
  return {encoder.fresh.data(), encoder.fresh.size()};
}
WARPLENS_FUNCTION(perfetto_fresh);

void perfetto_clear(Encoder &encoder) {
  encoder.bytes.clear();
  encoder.fresh.clear();
}
WARPLENS_FUNCTION(perfetto_clear);

}  // namespace
}  // namespace warplens::reader

// Encodes ranges and marks as Perfetto TrackEvent packets (protobuf), into a buffer that the caller writes out.
//
// Only the packets that come per event are made here; descriptors, clocks and interned strings are few and come from the caller.
// Field numbers: perfetto/trace/trace_packet.proto, track_event/{track_event,debug_annotation}.proto (part of the public format).
#include "reader/spool/placing.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "reader/door.h"

namespace warplens::desk {
namespace {

// A column of annotations: `values` are int64, double, bool or int32 codes of interned texts, whose ids are in
// `ids[code + 1]`. Without `has` each row has one.
struct Notes {
  uint64_t name;
  const void *values;
  const uint8_t *has;
  const uint64_t *ids;
  int32_t kind;
};
enum NoteKind : int32_t { kInt = 0, kDouble = 1, kBool = 2, kText = 3 };

// One batch of rows; a null pointer is a column without values. `name`, `domain` and `category` are dictionary codes (-1: null),
// whose interned ids are in `*_ids[code + 1]` (0: nothing to write).
struct Batch {
  int64_t rows;
  const int32_t *family;
  const int64_t *id;
  const int64_t *parent;
  const int64_t *start;
  const int64_t *end;
  const int32_t *name;
  const uint64_t *name_ids;
  const int32_t *domain;
  const uint64_t *domain_ids;
  const int32_t *category;
  const uint64_t *category_ids;
  const uint32_t *color;
  const uint8_t *has_color;
  const int64_t *payload_int;
  const uint8_t *has_int;
  const double *payload_float;
  const uint8_t *has_float;
  const uint8_t *flags;  // bit 0 unfinished, 1 inherited, 2 clipped
  // Encoded fields that are put behind each event: those of row i lie at [more_offsets[i], more_offsets[i + 1]).
  const char *more;
  const int64_t *more_offsets;
  const Notes *notes;
  int64_t note_columns;
  const uint64_t *flow;  // an arrow's id, 0: none
  int64_t flow_ends;     // 1: arrows end at these rows, 0: they begin there
};

// Work of GPUs as stages: each row's queue, stage, context and GPU; `notes` are its extra data. A size is three columns, x, y and z.
struct Stages {
  int64_t rows;
  const int64_t *start;
  const int64_t *end;
  const int32_t *name;
  const uint64_t *name_ids;
  const uint64_t *queue;
  const uint64_t *context;
  const int32_t *gpu;
  uint64_t stage;
  const int64_t *grid;  // null: it has none
  const int64_t *block;
  const Notes *notes;
  int64_t note_columns;
  const char *const *note_names;
};

// Samples of counters: each row's value is in `whole` or, where `is_float` says so, in `real`.
struct Samples {
  int64_t rows;
  const uint64_t *track;
  const int64_t *time;
  const int64_t *whole;
  const double *real;
  const uint8_t *is_float;
};

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
    for (int64_t i = 0; i < batch.rows; ++i) {
      const auto family = static_cast<size_t>(batch.family[i]);
      const auto close = [&](int32_t lane, int64_t end) { end_packet(uuid(family, lane), end); };
      const int32_t lane =
          lanes_[family].place(batch.id[i], batch.parent[i], batch.start[i], batch.end[i], close);
      event_packet(kBegin, uuid(family, lane), batch, i);
    }
  }
  void marks(const Batch &batch) {
    for (int64_t i = 0; i < batch.rows; ++i)
      event_packet(kInstant, uuid(static_cast<size_t>(batch.family[i]), 0), batch, i);
  }
  void stages(const Stages &stages) {
    for (int64_t i = 0; i < stages.rows; ++i) {
      Message event;
      event.field(2, static_cast<uint64_t>(stages.end[i] - stages.start[i]));
      event.field(5, stages.context[i]);
      event.field(11, static_cast<uint64_t>(int64_t{stages.gpu[i]}));
      event.field(13, stages.queue[i]);
      event.field(14, stages.stage);
      if (const uint64_t id = stages.name_ids[stages.name[i] + 1]; id != 0) event.field(20, id);
      if (stages.grid != nullptr) {
        Message launch;
        launch.message(1, size_of(stages.grid, stages.rows, i));
        launch.message(2, size_of(stages.block, stages.rows, i));
        event.message(21, launch);
      }
      notes_.clear();
      for (int64_t column = 0; column < stages.note_columns; ++column) {
        const Notes &told = stages.notes[column];
        if (told.has != nullptr && told.has[i] == 0) continue;
        char digits[24];
        const int64_t value = static_cast<const int64_t *>(told.values)[i];
        const size_t size =
            static_cast<size_t>(std::to_chars(digits, digits + sizeof digits, value).ptr - digits);
        Message extra;
        Message whole;
        extra.text(1, stages.note_names[column],
                   std::min<size_t>(std::strlen(stages.note_names[column]), 64));
        extra.text(2, digits, size);
        whole.message(6, extra);
        notes_.append(reinterpret_cast<const char *>(whole.data), whole.size);
      }
      packet(stages.start[i], event, notes_, 53);
    }
  }
  void samples(const Samples &samples) {
    for (int64_t i = 0; i < samples.rows; ++i) {
      Message event;
      event.field(9, kCounter);
      event.field(11, samples.track[i]);
      if (samples.is_float[i] != 0) {
        event.fixed64(44, samples.real[i]);  // double_counter_value
      } else {
        event.field(30, static_cast<uint64_t>(samples.whole[i]));  // counter_value
      }
      packet(samples.time[i], event);
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

  static Message size_of(const int64_t *columns, int64_t rows, int64_t i) {
    Message size;
    for (int64_t axis = 0; axis < 3; ++axis)
      size.field(static_cast<uint64_t>(axis + 1), static_cast<uint64_t>(columns[axis * rows + i]));
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
  void event_packet(EventType type, uint64_t track, const Batch &batch, int64_t i) {
    Message event;
    event.field(9, type);
    event.field(11, track);
    const auto interned = [&](uint64_t field, const int32_t *codes, const uint64_t *ids) {
      if (codes == nullptr) return;
      if (const uint64_t id = ids[codes[i] + 1]; id != 0) event.field(field, id);
    };
    interned(10, batch.name, batch.name_ids);
    interned(3, batch.domain, batch.domain_ids);
    interned(3, batch.category, batch.category_ids);
    if (batch.color != nullptr && (batch.has_color == nullptr || batch.has_color[i] != 0)) {
      annotate(event, kColor, [&](Message &note) {
        char text[7] = {'#'};
        for (int digit = 0; digit < 6; ++digit)
          text[6 - digit] = "0123456789ABCDEF"[batch.color[i] >> (4 * digit) & 15];
        note.text(6, text, sizeof text);
      });
    }
    if (batch.payload_int != nullptr && (batch.has_int == nullptr || batch.has_int[i] != 0)) {
      annotate(event, kPayload,
               [&](Message &note) { note.field(4, static_cast<uint64_t>(batch.payload_int[i])); });
    }
    if (batch.payload_float != nullptr && (batch.has_float == nullptr || batch.has_float[i] != 0)) {
      annotate(event, kPayload, [&](Message &note) { note.fixed64(5, batch.payload_float[i]); });
    }
    if (batch.flags != nullptr) {
      for (uint64_t bit = 0; bit < 3; ++bit) {
        if ((batch.flags[i] >> bit & 1) == 0) continue;
        annotate(event, static_cast<Annotation>(kUnfinished + bit), [](Message &note) { note.field(2, 1); });
      }
    }
    if (batch.flow != nullptr && batch.flow[i] != 0) {
      event.fixed64(batch.flow_ends != 0 ? 48 : 47, std::bit_cast<double>(batch.flow[i]));
    }
    std::string_view more;
    if (batch.more_offsets != nullptr) {
      const int64_t first = batch.more_offsets[i];
      more = {batch.more + first, static_cast<size_t>(batch.more_offsets[i + 1] - first)};
    }
    if (batch.note_columns > 0) {
      notes_.assign(more);
      for (int64_t column = 0; column < batch.note_columns; ++column) note(batch.notes[column], i);
      more = notes_;
    }
    packet(batch.start[i], event, more);
  }

  void note(const Notes &column, int64_t i) {
    if (column.has != nullptr && column.has[i] == 0) return;
    Message event;
    annotate(event, static_cast<Annotation>(column.name), [&](Message &note) {
      switch (column.kind) {
        case kInt:
          note.field(4, static_cast<uint64_t>(static_cast<const int64_t *>(column.values)[i]));
          break;
        case kDouble:
          note.fixed64(5, static_cast<const double *>(column.values)[i]);
          break;
        case kBool:
          note.field(2, static_cast<const uint8_t *>(column.values)[i]);
          break;
        default:
          note.field(17, column.ids[static_cast<const int32_t *>(column.values)[i] + 1]);
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

void perfetto_ranges(Encoder &encoder, const Batch *batch) {
  encoder.ranges(*batch);
}
WARPLENS_FUNCTION(perfetto_ranges);

void perfetto_marks(Encoder &encoder, const Batch *batch) {
  encoder.marks(*batch);
}
WARPLENS_FUNCTION(perfetto_marks);

void perfetto_samples(Encoder &encoder, const Samples *samples) {
  encoder.samples(*samples);
}
WARPLENS_FUNCTION(perfetto_samples);

void perfetto_stages(Encoder &encoder, const Stages *stages) {
  encoder.stages(*stages);
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
}  // namespace warplens::desk

// Decodes the events of a Perfetto trace.
// TrackEvent with its annotations and its older formats, and stages of GPUs.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "decoder.h"

namespace warplens::perfetto {

using wire::Field;
using wire::Message;

namespace {

constexpr int kDeepest = 32;
constexpr uint64_t kMonotonic = 3;
constexpr int64_t kLongest = int64_t{1} << 52;  // us
constexpr char kBetween = '\x1f';               // categories of one event

// Looks a number up; without a text it has none.
int32_t text_of(const Numbered<int32_t> &known, uint64_t id) {
  const int32_t *found = known.get(id);
  return found == nullptr ? kNoText : *found;
}

// Times of a broken file may be anything: sums and products wrap.
int64_t plus(int64_t one, int64_t other) {
  return static_cast<int64_t>(static_cast<uint64_t>(one) + static_cast<uint64_t>(other));
}
int64_t thousand(int64_t value) {
  return static_cast<int64_t>(static_cast<uint64_t>(value) * 1000);
}

void quoted(std::string_view text, std::string &out) {
  static constexpr char kDigits[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20) {
      out += "\\u00";
      out += kDigits[code >> 4];
      out += kDigits[code & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

// Calls `each` for the varints of a packed field.
void packed(std::string_view bytes, auto &&each) {
  const auto *at = reinterpret_cast<const uint8_t *>(bytes.data());
  const uint8_t *const end = at + bytes.size();
  uint64_t value = 0;
  while (at < end && (at = wire::varint(at, end, value)) != nullptr) each(value);
}

template <typename T>
void number(T value, std::string &out) {
  char text[40];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void real(double value, std::string &out) {
  if (std::isfinite(value)) {
    const size_t before = out.size();
    number(value, out);
    if (out.find_first_of(".e", before) == std::string::npos) out += ".0";
  } else {
    out += std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  }
}

}  // namespace

// What a TrackEvent says, before it becomes a row.
struct TrackEvent {
  uint64_t type = 0;
  int64_t time = 0;
  uint8_t clock = 0;
  int32_t name = kNoText;
  int32_t category = kNoText;
  bool has_track = false;
  uint32_t track = 0;
  int64_t duration = -1;  // ns, of events of older formats that have one
  std::string_view legacy;
};

void Decoder::track_event(Sequence &sequence, const Packet &packet, std::string_view bytes) {
  TrackEvent event;
  event.time = packet.time;
  event.clock = packet.clock;
  spans_.clear();
  flow_spans_.clear();
  category_ids_.clear();
  counts_.clear();
  int64_t whole = 0;
  double value = 0;
  bool has_whole = false;
  bool has_real = false;
  Message message(bytes);
  Field field;
  while (message.next(field)) {
    switch (field.id) {
      case 1:
        sequence.reference_us = plus(sequence.reference_us, field.whole());
        event.time = thousand(sequence.reference_us);
        event.clock = clock(kMonotonic);
        break;
      case 16:
        event.time = thousand(field.whole());
        event.clock = clock(kMonotonic);
        break;
      case 3:
        if (field.type == 0) {
          category_ids_.push_back(text_of(sequence.categories, field.number));
        } else {
          packed(field.bytes,
                 [&](uint64_t id) { category_ids_.push_back(text_of(sequence.categories, id)); });
        }
        break;
      case 22:
        category_ids_.push_back(texts.number(field.bytes));
        break;
      case 4:
        spans_.push_back(field.bytes);
        break;
      case 6:
        event.legacy = field.bytes;
        break;
      case 9:
        event.type = field.number;
        break;
      case 10:
        event.name = text_of(sequence.names, field.number);
        break;
      case 23:
        event.name = texts.number(field.bytes);
        break;
      case 11:
        event.track = track(kUuid, field.number);
        event.has_track = true;
        break;
      case 30:
        whole = field.whole();
        has_whole = true;
        break;
      case 44:
        value = field.real();
        has_real = true;
        break;
      case 12:
      case 31:
      case 45:
      case 46:
        counts_.push_back(field);
        break;
      case 36:
      case 42:
      case 47:
      case 48:
        flow_spans_.push_back(field);
        break;
      default:
        break;
    }
  }
  if (message.broken()) {
    ++lost.broken;
    return;
  }
  extra_counters(sequence, event.time, event.clock);
  event.category = joined();
  if (!event.legacy.empty()) legacy(sequence, event);
  if (!event.has_track) event.track = default_track(sequence);
  if (event.type == 4) {
    if (has_real || has_whole) sample(event.time, event.clock, event.track, whole, value, has_real);
    return;
  }
  if (event.type < 1 || event.type > 4) {
    if (event.duration < 0) {
      ++lost.phases;
      return;
    }
  }
  for (const std::string_view span : spans_) annotation(sequence, span);
  const auto row = static_cast<uint32_t>(events.time.size());
  for (const Field &flow : flow_spans_) {
    const auto one = [&](uint64_t id) {
      flows.event.push_back(row);
      flows.id.push_back(id);
      flows.ends.push_back(flow.id == 42 || flow.id == 48 ? 1 : 0);
    };
    if (flow.type != 2) {
      one(flow.number);
    } else if (flow.id == 36 || flow.id == 42) {
      packed(flow.bytes, one);
    }
  }
  if (event.duration >= 0) {
    add(event.time, event.clock, event.track, event.name, event.category, kWhole);
    add(plus(event.time, event.duration), event.clock, event.track, event.name, event.category, kWholeEnd);
  } else {
    add(event.time, event.clock, event.track, event.name, event.category, static_cast<Type>(event.type));
  }
}

// The categories of an event, each text once.
int32_t Decoder::joined() {
  if (category_ids_.empty()) return kNoText;
  if (category_ids_.size() == 1) return category_ids_[0];
  uint64_t key = 0;
  const bool two = category_ids_.size() == 2;
  if (two) {
    key = static_cast<uint64_t>(static_cast<uint32_t>(category_ids_[0])) << 32 |
          static_cast<uint32_t>(category_ids_[1]);
    if (const auto known = joined_.find(key); known != joined_.end()) return known->second;
  }
  scratch_.clear();
  for (const int32_t id : category_ids_) {
    if (!scratch_.empty()) scratch_ += kBetween;
    if (id != kNoText) scratch_ += texts.text(id);
  }
  const int32_t number = texts.number(scratch_);
  if (two) joined_[key] = number;
  return number;
}

// Values of counters that travel with another event: those of the sequence's tracks, unless the event names its own.
void Decoder::extra_counters(const Sequence &sequence, int64_t time, uint8_t clock) {
  if (counts_.empty()) return;
  std::vector<uint64_t> whole_tracks, real_tracks, wholes, reals;
  for (const Field &field : counts_) {
    auto &into = field.id == 31   ? whole_tracks
                 : field.id == 12 ? wholes
                 : field.id == 45 ? real_tracks
                                  : reals;
    if (field.type != 2) {
      into.push_back(field.number);
    } else if (field.id != 46) {
      packed(field.bytes, [&](uint64_t value) { into.push_back(value); });
    } else {
      for (size_t at = 0; at + 8 <= field.bytes.size(); at += 8) {
        uint64_t raw = 0;
        std::memcpy(&raw, field.bytes.data() + at, 8);
        into.push_back(raw);
      }
    }
  }
  if (whole_tracks.empty()) whole_tracks = sequence.counters;
  if (real_tracks.empty()) real_tracks = sequence.real_counters;
  for (size_t i = 0; i < std::min(wholes.size(), whole_tracks.size()); ++i)
    sample(time, clock, track(kUuid, whole_tracks[i]), static_cast<int64_t>(wholes[i]), 0, false);
  for (size_t i = 0; i < std::min(reals.size(), real_tracks.size()); ++i)
    sample(time, clock, track(kUuid, real_tracks[i]), 0, std::bit_cast<double>(reals[i]), true);
}

// What an event of the format before this one means: a phase as in Chrome's JSON, ids, and its own thread.
void Decoder::legacy(Sequence &sequence, TrackEvent &event) {
  Message message(event.legacy);
  Field field;
  uint64_t phase = 0;
  uint64_t id = 0;
  uint64_t scope = 0;
  uint64_t kind = 0;
  int64_t duration = 0;
  int64_t pid = sequence.pid;
  int64_t tid = sequence.tid;
  bool moved = false;
  while (message.next(field)) {
    switch (field.id) {
      case 1:
        if (event.name == kNoText) event.name = text_of(sequence.names, field.number);
        break;
      case 2:
        phase = field.number;
        break;
      case 3:
        duration = field.whole();
        break;
      case 6:
      case 10:
      case 11:
        id = field.number;
        kind = field.id;
        break;
      case 7:
        scope = std::hash<std::string_view>{}(field.bytes);
        break;
      case 18:
        pid = static_cast<int32_t>(field.number);
        moved = true;
        break;
      case 19:
        tid = static_cast<int32_t>(field.number);
        moved = true;
        break;
      default:
        break;
    }
  }
  if (moved) {
    event.track = track(kThread, static_cast<uint64_t>(pid), static_cast<uint64_t>(tid));
    event.has_track = true;
  }
  switch (phase) {
    case 0:
      break;
    case 'B':
      event.type = kBegin;
      break;
    case 'E':
      event.type = kEnd;
      break;
    case 'X':
      event.type = 0;
      event.duration = std::clamp<int64_t>(duration, 0, kLongest) * 1000;
      break;
    case 'i':
    case 'I':
    case 'R':
      event.type = kInstant;
      break;
    case 'b':
    case 'S':
    case 'e':
    case 'F':
    case 'n':
    case 'T':
    case 'p':
      event.type = phase == 'b' || phase == 'S' ? kBegin : phase == 'e' || phase == 'F' ? kEnd : kInstant;
      event.track = track(kAsync, kind == 11 ? 0 : static_cast<uint64_t>(pid), id, scope, event.category);
      event.has_track = true;
      break;
    default:
      event.type = 0;
  }
}

void Decoder::annotation(const Sequence &sequence, std::string_view bytes) {
  Message message(bytes);
  Field field;
  int32_t name = kNoText;
  bool nested = false;
  bool any = false;
  NoteKind kind = kText;
  uint64_t value = 0;
  const auto take = [&](NoteKind as, uint64_t what) {
    kind = as;
    value = what;
    any = true;
  };
  while (message.next(field)) {
    switch (field.id) {
      case 1:
        name = text_of(sequence.notes, field.number);
        break;
      case 10:
        name = texts.number(field.bytes);
        break;
      case 2:
        take(kBool, field.number != 0);
        break;
      case 3:
      case 7:
        take(kUint, field.number);
        break;
      case 4:
        take(kInt, field.number);
        break;
      case 5:
        take(kDouble, field.number);
        break;
      case 6:
      case 9:  // JSON of unknown quality
        take(kText, static_cast<uint64_t>(static_cast<int64_t>(texts.number(field.bytes))));
        break;
      case 17:
        take(kText, static_cast<uint64_t>(static_cast<int64_t>(text_of(sequence.values, field.number))));
        break;
      case 8:
      case 11:
      case 12:
        nested = true;
        break;
      default:
        break;
    }
  }
  if (nested) {
    std::string out;
    json(sequence, bytes, out, 0, name);
    take(kJson, static_cast<uint64_t>(static_cast<int64_t>(texts.number(out))));
  }
  if (any) note(name, kind, value);
}

// Writes the value of an annotation as JSON.
void Decoder::json(const Sequence &sequence, std::string_view bytes, std::string &out, int depth,
                   int32_t &name) {
  if (depth > kDeepest) {
    ++lost.deep;
    out += "null";
    return;
  }
  Message message(bytes);
  Field field;
  const size_t before = out.size();
  uint32_t within = 0;
  while (message.next(field)) {
    switch (field.id) {
      case 1:
        name = text_of(sequence.notes, field.number);
        break;
      case 10:
        name = texts.number(field.bytes);
        break;
      case 2:
        out += field.number != 0 ? "true" : "false";
        break;
      case 3:
      case 7:
        number(field.number, out);
        break;
      case 4:
        number(field.whole(), out);
        break;
      case 5:
        real(field.real(), out);
        break;
      case 6:
      case 9:
        quoted(field.bytes, out);
        break;
      case 17: {
        const int32_t text = text_of(sequence.values, field.number);
        if (text != kNoText) quoted(texts.text(text), out);
        break;
      }
      case 8:
        nested_value(sequence, field.bytes, out, depth + 1);
        break;
      case 11:
      case 12: {
        if (within != 0 && within != field.id) break;
        out += within == 0 ? (field.id == 11 ? '{' : '[') : ',';
        within = field.id;
        std::string value;
        int32_t key = kNoText;
        json(sequence, field.bytes, value, depth + 1, key);
        if (field.id == 11) {
          quoted(key == kNoText ? std::string_view() : texts.text(key), out);
          out += ':';
        }
        out += value;
        break;
      }
      default:
        break;
    }
  }
  if (within != 0) out += within == 11 ? '}' : ']';
  if (out.size() == before) out += "null";
}

// The same in the way it was written before: keys and values apart.
void Decoder::nested_value(const Sequence &sequence, std::string_view bytes, std::string &out, int depth) {
  if (depth > kDeepest) {
    ++lost.deep;
    out += "null";
    return;
  }
  std::vector<std::string_view> keys, values, items;
  uint64_t kind = 0;
  const size_t before = out.size();
  Message message(bytes);
  Field field;
  while (message.next(field)) {
    switch (field.id) {
      case 1:
        kind = field.number;
        break;
      case 2:
        keys.push_back(field.bytes);
        break;
      case 3:
        values.push_back(field.bytes);
        break;
      case 4:
        items.push_back(field.bytes);
        break;
      case 5:
        number(field.whole(), out);
        break;
      case 6:
        real(field.real(), out);
        break;
      case 7:
        out += field.number != 0 ? "true" : "false";
        break;
      case 8:
        quoted(field.bytes, out);
        break;
      default:
        break;
    }
  }
  if (kind == 1) {
    out += '{';
    for (size_t i = 0; i < std::min(keys.size(), values.size()); ++i) {
      if (i != 0) out += ',';
      quoted(keys[i], out);
      out += ':';
      nested_value(sequence, values[i], out, depth + 1);
    }
    out += '}';
  } else if (kind == 2) {
    out += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i != 0) out += ',';
      nested_value(sequence, items[i], out, depth + 1);
    }
    out += ']';
  }
  if (out.size() == before) out += "null";
}

const Objects &Decoder::objects(const uint8_t *skipped) {
  objects_ = {};
  std::string &out = objects_.bytes;
  uint32_t last = UINT32_MAX;
  for (size_t i = 0; i < notes.event.size(); ++i) {
    const int32_t name = notes.name[i];
    if (name != kNoText && skipped[name] != 0) continue;
    if (notes.event[i] != last) {
      if (last != UINT32_MAX) out += '}';
      last = notes.event[i];
      objects_.events.push_back(last);
      objects_.offsets.push_back(static_cast<int64_t>(out.size()));
      out += '{';
    } else {
      out += ',';
    }
    quoted(name == kNoText ? std::string_view() : texts.text(name), out);
    out += ':';
    const uint64_t value = notes.value[i];
    const auto text = static_cast<int32_t>(static_cast<int64_t>(value));
    switch (notes.kind[i]) {
      case kInt:
        number(static_cast<int64_t>(value), out);
        break;
      case kUint:
        number(value, out);
        break;
      case kDouble:
        real(std::bit_cast<double>(value), out);
        break;
      case kBool:
        out += value != 0 ? "true" : "false";
        break;
      case kJson:
        out += text == kNoText ? std::string_view("null") : texts.text(text);
        break;
      default:
        text == kNoText ? static_cast<void>(out += "null") : quoted(texts.text(text), out);
    }
  }
  if (last != UINT32_MAX) out += '}';
  objects_.offsets.push_back(static_cast<int64_t>(out.size()));
  return objects_;
}

void Decoder::render_stage(Sequence &sequence, const Packet &packet, std::string_view bytes) {
  Message message(bytes);
  Field field;
  uint64_t duration = 0;
  uint64_t queue = 0;
  uint64_t stage = 0;
  uint64_t context = 0;
  uint64_t gpu = 0;
  bool interned_queue = false;
  int32_t name = kNoText;
  int32_t queue_name = kNoText;
  const auto axes = [&](std::string_view size, const int32_t *names) {
    Message inner(size);
    Field part;
    while (inner.next(part)) {
      if (part.id >= 1 && part.id <= 3) note(names[part.id - 1], kInt, part.number);
    }
  };
  if (axis_names_[0] == kNoText) {
    const char *const words[] = {"grid x", "grid y", "grid z", "block x", "block y", "block z"};
    for (size_t i = 0; i < 6; ++i) axis_names_[i] = texts.number(words[i]);
    submission_ = texts.number("submission");
  }
  while (message.next(field)) {
    switch (field.id) {
      case 2:
        duration = field.number;
        break;
      case 3:
        if (!interned_queue) queue = field.number;
        break;
      case 13:
        queue = field.number;
        interned_queue = true;
        queue_name = text_of(sequence.specifications, queue);
        break;
      case 14:
        stage = field.number;
        break;
      case 11:
        gpu = field.number;
        break;
      case 5:
        context = field.number;
        break;
      case 17:
        name = texts.number(field.bytes);
        break;
      case 20:
        name = text_of(sequence.names, field.number);
        break;
      case 10:
        note(submission_, kUint, field.number);
        break;
      case 6: {
        Message inner(field.bytes);
        Field part;
        std::string_view key, value;
        while (inner.next(part)) {
          if (part.id == 1) key = part.bytes;
          if (part.id == 2) value = part.bytes;
        }
        note(texts.number(key), kText, static_cast<uint64_t>(static_cast<int64_t>(texts.number(value))));
        break;
      }
      case 21: {
        Message inner(field.bytes);
        Field part;
        while (inner.next(part)) {
          if (part.id == 1) axes(part.bytes, axis_names_);
          if (part.id == 2) axes(part.bytes, axis_names_ + 3);
        }
        break;
      }
      default:
        break;
    }
  }
  const int32_t stage_name = text_of(sequence.specifications, stage);
  const GraphicsContext *known = sequence.contexts.get(context);
  const uint64_t pid = known == nullptr ? 0 : static_cast<uint32_t>(known->pid);
  const uint32_t on =
      track(kQueue, uint64_t{sequence.index} << 33 | uint64_t{interned_queue} << 32 | (queue & 0xffffffff),
            context, pid << 32 | (gpu & 0xffffffff), queue_name);
  add(packet.time, packet.clock, on, name == kNoText ? stage_name : name, stage_name, kStage);
  const auto end = static_cast<int64_t>(static_cast<uint64_t>(packet.time) + duration);
  add(end, packet.clock, on, name, stage_name, kWholeEnd);
}

}  // namespace warplens::perfetto

// Decodes a Perfetto trace into columns.
// Field numbers: perfetto/trace/trace_packet.proto, interned_data.proto, track_event/*.proto, gpu/gpu_render_stage_event.proto.
#include "decoder.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace warplens::perfetto {

using wire::Field;
using wire::Message;

namespace {

enum PacketField : uint32_t {
  kFtrace = 1,
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kInterned = 12,
  kFlags = 13,
  kCleared = 41,
  kDropped = 42,
  kThreadDescriptor = 44,
  kCompressed = 50,
  kRenderStage = 53,
  kClockId = 58,
  kDefaults = 59,
  kTrackDescriptor = 60,
  kZstdCompressed = 133,
};
// Read by the caller: clocks, processes, threads, tracks, samples, counters and descriptions of GPUs, attributes of the trace.
constexpr uint32_t kForTheCaller[] = {2, 6, 43, 44, 52, 60, 66, 126, 128};
// About the packet, not what it holds.
constexpr uint32_t kAround[] = {3, 8, 10, 12, 13, 41, 42, 58, 59, 79, 87, 98};
constexpr uint64_t kBootTime = 6;
constexpr uint8_t kTooManyClocks = 255;

bool among(const uint32_t *begin, const uint32_t *end, uint32_t field) {
  return std::find(begin, end, field) != end;
}

}  // namespace

uint64_t Decoder::feed(std::string_view data, uint64_t most, std::string_view &packed, uint32_t &kind,
                       bool &cut) {
  const auto *const begin = reinterpret_cast<const uint8_t *>(data.data());
  const uint8_t *const end = begin + data.size();
  const uint8_t *at = begin;
  cut = false;
  packed = {};
  while (at < end && static_cast<uint64_t>(at - begin) < most) {
    // One field of `Trace` at a time; anything but `packet` is passed over.
    uint64_t tag = 0;
    uint64_t size = 0;
    const uint8_t *next = wire::varint(at, end, tag);
    if (next == nullptr || (tag & 7) != 2) {
      cut = true;
      break;
    }
    next = wire::varint(next, end, size);
    if (next == nullptr || size > static_cast<uint64_t>(end - next)) {
      cut = true;
      break;
    }
    const std::string_view bytes(reinterpret_cast<const char *>(next), static_cast<size_t>(size));
    at = next + size;
    if (tag >> 3 != 1) continue;
    // Compressed packets hold nothing else.
    Message peek(bytes);
    Field field;
    bool is_packed = false;
    if (!bytes.empty() &&
        (bytes[0] == static_cast<char>(0x92) || bytes[0] == static_cast<char>(0xaa) || size > 64)) {
      for (int fields = 0; fields < 8 && peek.next(field); ++fields) {
        if ((field.id == kCompressed || field.id == kZstdCompressed) && field.type == 2) {
          packed = field.bytes;
          kind = field.id;
          is_packed = true;
        }
      }
    }
    if (is_packed) break;
    packet(bytes);
  }
  return static_cast<uint64_t>(at - begin);
}

void Decoder::packet(std::string_view bytes) {
  Packet about;
  Field field;
  std::string_view interned_data;
  std::string_view default_values;
  Message first(bytes);
  while (first.next(field)) {
    switch (field.id) {
      case kTimestamp:
        about.timestamp = field.number;
        about.timed = true;
        break;
      case kSequenceId:
        about.sequence = static_cast<uint32_t>(field.number);
        break;
      case kFlags:
        about.cleared |= (field.number & 1) != 0;
        about.needs |= (field.number & 2) != 0;
        break;
      case kCleared:
        about.cleared |= field.number != 0;
        break;
      case kDropped:
        about.dropped |= field.number != 0;
        break;
      case kClockId:
        about.clock_id = field.number;
        break;
      case kInterned:
        interned_data = field.bytes;
        break;
      case kDefaults:
        default_values = field.bytes;
        break;
      default:
        break;
    }
  }
  if (first.broken()) {
    ++lost.broken;
    return;
  }
  const auto [found, fresh] = sequences_.try_emplace(about.sequence);
  Sequence &sequence = found->second;
  if (fresh) sequence.index = static_cast<uint32_t>(sequences_.size() - 1);
  about.index = sequence.index;
  if (about.cleared) {
    if (sequence.stacks) other(about, kFlags, {});
    sequence.clear();
  } else if (about.dropped) {
    sequence.valid = false;
  }
  lost.dropped += about.dropped && !about.cleared ? 1 : 0;
  if (!default_values.empty()) defaults(sequence, default_values);
  if (!interned_data.empty()) interned(sequence, interned_data);
  when(sequence, about);

  Message second(bytes);
  while (second.next(field)) {
    if (field.id == kTrackEvent && field.type == 2) {
      if (about.needs && !sequence.valid) {
        ++lost.without_state;
      } else {
        track_event(sequence, about, field.bytes);
      }
    } else if (field.id == kRenderStage && field.type == 2) {
      render_stage(sequence, about, field.bytes);
    } else if (field.id == kFtrace && field.type == 2) {
      ftrace(field.bytes);
    } else if (field.type == 2 && among(std::begin(kForTheCaller), std::end(kForTheCaller), field.id)) {
      if (field.id == kClockSnapshot) snapshot(sequence, field.bytes);
      if (field.id == kThreadDescriptor) thread(sequence, field.bytes);
      other(about, field.id, field.bytes);
    } else if (!among(std::begin(kAround), std::end(kAround), field.id)) {
      ++left_out[std::min<uint32_t>(field.id, left_out.size() - 1)];
    }
  }
}

void Decoder::interned(Sequence &sequence, std::string_view bytes) {
  Message message(bytes);
  Field field;
  bool stacks = false;
  const auto texts_of = [&](Numbered<int32_t> &into, uint32_t text_field) {
    Message entry(field.bytes);
    Field part;
    uint64_t id = 0;
    std::string_view text;
    while (entry.next(part)) {
      if (part.id == 1) id = part.number;
      if (part.id == text_field) text = part.bytes;
    }
    into.set(id, texts.number(text));
  };
  while (message.next(field)) {
    if (field.type != 2) continue;
    switch (field.id) {
      case 1:
        texts_of(sequence.categories, 2);
        break;
      case 2:
        texts_of(sequence.names, 2);
        break;
      case 3:
        texts_of(sequence.notes, 2);
        break;
      case 29:
        texts_of(sequence.values, 2);
        break;
      case 24:
        texts_of(sequence.specifications, 2);
        break;
      case 23: {
        Message entry(field.bytes);
        Field part;
        uint64_t id = 0;
        GraphicsContext context;
        while (entry.next(part)) {
          if (part.id == 1) id = part.number;
          if (part.id == 2) context.pid = static_cast<int32_t>(part.number);
        }
        sequence.contexts.set(id, context);
        break;
      }
      case 5:
      case 6:
      case 7:
      case 16:
      case 17:
      case 19:
        stacks = true;
        break;
      default:
        break;
    }
  }
  if (stacks) {
    sequence.stacks = true;
    Packet about;
    about.index = sequence.index;
    other(about, kInterned, bytes);
  }
}

void Decoder::defaults(Sequence &sequence, std::string_view bytes) {
  Message message(bytes);
  Field field;
  sequence.clock = 0;
  sequence.has_track = false;
  sequence.counters.clear();
  sequence.real_counters.clear();
  while (message.next(field)) {
    if (field.id == 58) sequence.clock = field.number;
    if (field.id != 11 || field.type != 2) continue;
    Message inner(field.bytes);
    Field part;
    while (inner.next(part)) {
      if (part.id == 11) {
        sequence.track = part.number;
        sequence.has_track = true;
      }
      if (part.id == 31 && part.type == 0) sequence.counters.push_back(part.number);
      if (part.id == 45 && part.type == 0) sequence.real_counters.push_back(part.number);
    }
  }
}

void Decoder::snapshot(Sequence &sequence, std::string_view bytes) {
  Message message(bytes);
  Field field;
  while (message.next(field)) {
    if (field.id != 1 || field.type != 2) continue;
    Message entry(field.bytes);
    Field part;
    uint64_t id = 0;
    ScopedClock given;
    while (entry.next(part)) {
      if (part.id == 1) id = part.number;
      if (part.id == 2) given.value = part.number;
      if (part.id == 3) given.incremental = part.number != 0;
      if (part.id == 4 && part.number != 0) given.multiplier = part.number;
    }
    if (id < 64 || id > 127) continue;
    given.value *= given.multiplier;
    sequence.clocks[id] = given;
  }
}

void Decoder::thread(Sequence &sequence, std::string_view bytes) {
  Message message(bytes);
  Field field;
  sequence.thread = true;
  while (message.next(field)) {
    if (field.id == 1) sequence.pid = static_cast<int32_t>(field.number);
    if (field.id == 2) sequence.tid = field.whole();
    if (field.id == 6) sequence.reference_us = field.whole();
  }
}

uint8_t Decoder::clock(uint64_t key) {
  const auto known = known_clocks_.find(key);
  if (known != known_clocks_.end()) return known->second;
  if (clocks.size() >= kTooManyClocks) return kTooManyClocks;
  clocks.push_back(key);
  return known_clocks_[key] = static_cast<uint8_t>(clocks.size() - 1);
}

void Decoder::when(Sequence &sequence, Packet &packet) {
  if (!packet.timed) return;
  const uint64_t id = packet.clock_id != 0  ? packet.clock_id
                      : sequence.clock != 0 ? sequence.clock
                                            : kBootTime;
  uint64_t time = packet.timestamp;
  uint64_t key = id;
  if (id >= 64 && id <= 127) {
    key = (uint64_t{sequence.index} + 1) << 8 | id;
    ScopedClock &scoped = sequence.clocks[id];
    time *= scoped.multiplier;
    if (scoped.incremental) time = scoped.value += time;
  }
  packet.clock = clock(key);
  packet.time = static_cast<int64_t>(time);
}

uint32_t Decoder::track(TrackKind kind, uint64_t first, uint64_t second, uint64_t third, int32_t name) {
  if (kind == kUuid && first == last_uuid_ && last_track_ != UINT32_MAX) return last_track_;
  const auto next = static_cast<uint32_t>(tracks.kind.size());
  uint32_t found = next;
  if (kind == kUuid) {
    found = plain_tracks_.try_emplace(first, next).first->second;
    last_uuid_ = first;
    last_track_ = found;
  } else {
    found = known_tracks_.try_emplace(TrackKey{first, second, third, kind}, next).first->second;
  }
  if (found == next) {
    tracks.kind.push_back(kind);
    tracks.first.push_back(first);
    tracks.second.push_back(second);
    tracks.third.push_back(third);
    tracks.name.push_back(name);
  }
  return found;
}

uint32_t Decoder::default_track(const Sequence &sequence) {
  if (sequence.has_track) return track(kUuid, sequence.track);
  if (sequence.thread)
    return track(kThread, static_cast<uint64_t>(sequence.pid), static_cast<uint64_t>(sequence.tid));
  return track(kUuid, 0);
}

void Decoder::add(int64_t time, uint8_t clock, uint32_t track, int32_t name, int32_t category, Type type) {
  events.time.push_back(time);
  events.track.push_back(track);
  events.name.push_back(name);
  events.category.push_back(category);
  events.type.push_back(type);
  events.clock.push_back(clock);
}

void Decoder::sample(int64_t time, uint8_t clock, uint32_t track, int64_t whole, double real, bool is_float) {
  samples.time.push_back(time);
  samples.track.push_back(track);
  samples.whole.push_back(whole);
  samples.real.push_back(real);
  samples.is_float.push_back(is_float ? 1 : 0);
  samples.clock.push_back(clock);
}

// Puts an annotation on the event that is added next.
void Decoder::note(int32_t name, NoteKind kind, uint64_t value) {
  notes.event.push_back(static_cast<uint32_t>(events.time.size()));
  notes.name.push_back(name);
  notes.kind.push_back(kind);
  notes.value.push_back(value);
}

void Decoder::other(const Packet &packet, uint32_t field, std::string_view bytes) {
  others.field.push_back(field);
  others.sequence.push_back(packet.index);
  others.time.push_back(packet.time);
  others.clock.push_back(packet.clock);
  others.offset.push_back(others.bytes.size());
  others.bytes.append(bytes);
}

uint64_t pair(const Events &events, const int64_t *time, int64_t *partner) {
  const uint64_t rows = events.time.size();
  uint32_t most = 0;
  for (const uint32_t track : events.track) most = std::max(most, track + 1);
  // The events of each track behind each other, in the order of the file, which is nearly that of time.
  std::vector<uint64_t> first(uint64_t{most} + 1);
  for (uint64_t row = 0; row < rows; ++row) {
    partner[row] = -1;
    if (events.type[row] == kBegin || events.type[row] == kEnd) ++first[events.track[row] + 1];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<uint64_t> order(first[most]);
  std::vector<uint64_t> next(first.begin(), first.end() - 1);
  for (uint64_t row = 0; row < rows; ++row) {
    if (events.type[row] == kBegin || events.type[row] == kEnd) order[next[events.track[row]]++] = row;
    if ((events.type[row] == kWhole || events.type[row] == kStage) && row + 1 < rows) {
      partner[row] = static_cast<int64_t>(row + 1);
      partner[row + 1] = static_cast<int64_t>(row);
    }
  }
  uint64_t without = 0;
  std::vector<uint64_t> open;
  for (uint32_t track = 0; track < most; ++track) {
    const auto begin = order.begin() + static_cast<ptrdiff_t>(first[track]);
    const auto end = order.begin() + static_cast<ptrdiff_t>(first[track + 1]);
    const auto earlier = [&](uint64_t one, uint64_t other) { return time[one] < time[other]; };
    if (!std::is_sorted(begin, end, earlier)) std::stable_sort(begin, end, earlier);
    open.clear();
    for (auto at = begin; at != end; ++at) {
      if (events.type[*at] == kBegin) {
        open.push_back(*at);
      } else if (open.empty()) {
        ++without;
      } else {
        partner[*at] = static_cast<int64_t>(open.back());
        partner[open.back()] = static_cast<int64_t>(*at);
        open.pop_back();
      }
    }
  }
  return without;
}

}  // namespace warplens::perfetto

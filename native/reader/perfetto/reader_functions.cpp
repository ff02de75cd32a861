// The functions `perfetto_reader_…`: a Perfetto trace as columns (warplens.importers.perfetto.trace). Arrays that they return belong to
// the reader and live as long as it.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "decoder.h"
#include "reader/arrow.h"
#include "reader/door.h"

namespace warplens::reader {
namespace {

using perfetto::Decoder;

enum Status : int64_t { kDone = 0, kPacked = 1, kCut = 2 };

// The columns that were handed out keep the decoder alive.
struct PerfettoReader {
  std::shared_ptr<Decoder> decoder = std::make_shared<Decoder>();
  perfetto::Objects none;
  const perfetto::Objects *objects = &none;  // made by perfetto_reader_json
};

std::unique_ptr<PerfettoReader> perfetto_reader_new() {
  return std::make_unique<PerfettoReader>();
}
WARPLENS_FUNCTION(perfetto_reader_new);

// Reads whole packets until `most` bytes were read; returns a Status. `facts`: how many bytes were; offset, size and field of a
// compressed packet.
int64_t perfetto_reader_feed(PerfettoReader &reader, Array<const char> data, uint64_t most,
                             Array<uint64_t> facts) {
  require_size(4, facts);
  std::string_view packed;
  uint32_t kind = 0;
  bool cut = false;
  facts[0] = reader.decoder->feed({data.data, static_cast<size_t>(data.size)}, most, packed, kind, cut);
  if (!packed.empty()) {
    facts[1] = static_cast<uint64_t>(packed.data() - data.data);
    facts[2] = packed.size();
    facts[3] = kind;
    return kPacked;
  }
  return cut ? kCut : kDone;
}
WARPLENS_FUNCTION(perfetto_reader_feed);

// `lost`: what was not taken over, number of texts and their bytes. `left_out`: packets by field, `ftrace`: events of the kernel.
void perfetto_reader_facts(PerfettoReader &reader, Array<uint64_t> lost, Array<uint64_t> left_out,
                           Array<uint64_t> ftrace) {
  const uint64_t counts[] = {reader.decoder->lost.without_state, reader.decoder->lost.broken,
                             reader.decoder->lost.phases,        reader.decoder->lost.dropped,
                             reader.decoder->lost.deep,          reader.decoder->texts.size(),
                             reader.decoder->texts.bytes()};
  require_size(std::size(counts), lost);
  require_size(reader.decoder->left_out.size(), left_out);
  std::copy(std::begin(counts), std::end(counts), lost.data);
  std::copy(reader.decoder->left_out.begin(), reader.decoder->left_out.end(), left_out.data);
  require_size(reader.decoder->ftrace_left_out.size(), ftrace);
  std::copy(reader.decoder->ftrace_left_out.begin(), reader.decoder->ftrace_left_out.end(), ftrace.data);
}
WARPLENS_FUNCTION(perfetto_reader_facts);

enum Group : uint32_t { kEvents, kNotes, kFlows, kSamples, kTracks, kOthers, kClocks };

// The columns of a group; after the last feed.
ArrowColumns perfetto_reader_columns(PerfettoReader &reader, uint32_t group) {
  const Decoder &d = *reader.decoder;
  const auto columns = [&](size_t rows) { return ArrowColumns(reader.decoder, rows); };
  if (group == kEvents) {
    ArrowColumns events = columns(d.events.time.size());
    events.add("time", d.events.time);
    events.add("track", d.events.track);
    events.add("name", d.events.name);
    events.add("category", d.events.category);
    events.add("type", d.events.type);
    events.add("clock", d.events.clock);
    return events;
  }
  if (group == kNotes) {
    ArrowColumns notes = columns(d.notes.event.size());
    notes.add("event", d.notes.event);
    notes.add("name", d.notes.name);
    notes.add("kind", d.notes.kind);
    notes.add("value", d.notes.value);
    return notes;
  }
  if (group == kFlows) {
    ArrowColumns flows = columns(d.flows.event.size());
    flows.add("event", d.flows.event);
    flows.add("id", d.flows.id);
    flows.add("ends", d.flows.ends);
    return flows;
  }
  if (group == kSamples) {
    ArrowColumns samples = columns(d.samples.time.size());
    samples.add("time", d.samples.time);
    samples.add("track", d.samples.track);
    samples.add("whole", d.samples.whole);
    samples.add("real", d.samples.real);
    samples.add("is_float", d.samples.is_float);
    samples.add("clock", d.samples.clock);
    return samples;
  }
  if (group == kTracks) {
    ArrowColumns tracks = columns(d.tracks.kind.size());
    tracks.add("kind", d.tracks.kind);
    tracks.add("first", d.tracks.first);
    tracks.add("second", d.tracks.second);
    tracks.add("third", d.tracks.third);
    tracks.add("name", d.tracks.name);
    return tracks;
  }
  if (group == kOthers) {
    ArrowColumns others = columns(d.others.field.size());
    others.add("field", d.others.field);
    others.add("sequence", d.others.sequence);
    others.add("time", d.others.time);
    others.add("clock", d.others.clock);
    others.add("offset", d.others.offset);
    return others;
  }
  if (group == kClocks) {
    ArrowColumns clocks = columns(d.clocks.size());
    clocks.add("key", d.clocks);
    return clocks;
  }
  throw std::invalid_argument("there is no such group of columns");
}
WARPLENS_FUNCTION(perfetto_reader_columns);

// The payloads of `others`, behind each other.
Array<const char> perfetto_reader_others(PerfettoReader &reader) {
  return {reader.decoder->others.bytes.data(), reader.decoder->others.bytes.size()};
}
WARPLENS_FUNCTION(perfetto_reader_others);

void perfetto_reader_texts(PerfettoReader &reader, Array<char> bytes, Array<int64_t> offsets) {
  require_size(reader.decoder->texts.bytes(), bytes);
  require_size(reader.decoder->texts.size() + 1, offsets);
  reader.decoder->texts.copy(bytes.data, offsets.data);
}
WARPLENS_FUNCTION(perfetto_reader_texts);

// `time`: of all events, on one clock. Returns how many ENDs end nothing.
int64_t perfetto_reader_pair(PerfettoReader &reader, Array<const int64_t> time, Array<int64_t> partner) {
  require_size(reader.decoder->events.time.size(), time, partner);
  return static_cast<int64_t>(perfetto::pair(reader.decoder->events, time.data, partner.data));
}
WARPLENS_FUNCTION(perfetto_reader_pair);

// Makes a JSON object of the annotations of each event, but those whose name has `skipped[number]` set. Returns how many events have one;
// the three functions below give their rows, where each text begins and the last one ends, and the texts.
int64_t perfetto_reader_json(PerfettoReader &reader, Array<const uint8_t> skipped) {
  if (skipped.size < reader.decoder->texts.size()) {
    throw std::invalid_argument("there are more texts than that");
  }
  reader.objects = &reader.decoder->objects(skipped.data);
  return static_cast<int64_t>(reader.objects->events.size());
}
WARPLENS_FUNCTION(perfetto_reader_json);

Array<const uint32_t> perfetto_reader_json_events(PerfettoReader &reader) {
  return {reader.objects->events.data(), reader.objects->events.size()};
}
WARPLENS_FUNCTION(perfetto_reader_json_events);

Array<const int64_t> perfetto_reader_json_offsets(PerfettoReader &reader) {
  return {reader.objects->offsets.data(), reader.objects->offsets.size()};
}
WARPLENS_FUNCTION(perfetto_reader_json_offsets);

Array<const char> perfetto_reader_json_bytes(PerfettoReader &reader) {
  return {reader.objects->bytes.data(), reader.objects->bytes.size()};
}
WARPLENS_FUNCTION(perfetto_reader_json_bytes);

}  // namespace
}  // namespace warplens::reader

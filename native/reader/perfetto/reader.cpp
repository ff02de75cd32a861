// The C functions that read a Perfetto trace; see perfetto_decoder.h. Arrays belong to the reader and live as long as it.
#include <cstring>
#include <new>

#include "decoder.h"

#if defined(_WIN32)
#define WARPLENS_EXPORT extern "C" __declspec(dllexport)
#else
#define WARPLENS_EXPORT extern "C" __attribute__((visibility("default")))
#endif

using warplens::perfetto::Decoder;

namespace {

// Where an array lies, and how many values it has.
struct Array {
  const void *data;
  uint64_t size;
};

enum Status : int32_t { kDone = 0, kPacked = 1, kCut = 2, kNoMemory = -1 };

}  // namespace

WARPLENS_EXPORT void *warplens_perfetto_reader_new() {
  return new (std::nothrow) Decoder();
}

WARPLENS_EXPORT void warplens_perfetto_reader_free(void *handle) {
  delete static_cast<Decoder *>(handle);
}

// Reads whole packets until `most` bytes were read. `told` gets: how many bytes were; offset, size and field of a compressed packet.
WARPLENS_EXPORT int32_t warplens_perfetto_reader_feed(void *handle, const char *data, uint64_t size,
                                                      uint64_t most, uint64_t *told) {
  auto &decoder = *static_cast<Decoder *>(handle);
  try {
    std::string_view packed;
    uint32_t kind = 0;
    bool cut = false;
    told[0] = decoder.feed({data, static_cast<size_t>(size)}, most, packed, kind, cut);
    if (!packed.empty()) {
      told[1] = static_cast<uint64_t>(packed.data() - data);
      told[2] = packed.size();
      told[3] = kind;
      return kPacked;
    }
    return cut ? kCut : kDone;
  } catch (const std::bad_alloc &) {
    return kNoMemory;
  }
}

// `arrays` gets those of events, notes, flows, samples, tracks and others, in the order of perfetto_decoder.h, and clocks; then the
// bytes of others. `lost`: what was not taken over. `left_out`: packets by field.
WARPLENS_EXPORT void warplens_perfetto_reader_arrays(void *handle, void *arrays, uint64_t *lost,
                                                     uint64_t *left_out) {
  const auto &d = *static_cast<Decoder *>(handle);
  auto *out = static_cast<Array *>(arrays);
  const auto put = [&](const auto &values) { *out++ = {values.data(), values.size()}; };
  const auto each = [&](const auto &...values) { (put(values), ...); };
  each(d.events.time, d.events.track, d.events.name, d.events.category, d.events.type, d.events.clock);
  each(d.notes.event, d.notes.name, d.notes.kind, d.notes.value);
  each(d.flows.event, d.flows.id, d.flows.ends);
  each(d.samples.time, d.samples.track, d.samples.whole, d.samples.real, d.samples.is_float, d.samples.clock);
  each(d.tracks.kind, d.tracks.first, d.tracks.second, d.tracks.third, d.tracks.name);
  each(d.others.field, d.others.sequence, d.others.time, d.others.clock, d.others.offset);
  each(d.clocks, d.others.bytes);
  const uint64_t counts[] = {d.lost.without_state, d.lost.broken,  d.lost.phases,  d.lost.dropped,
                             d.lost.deep,          d.texts.size(), d.texts.bytes()};
  std::memcpy(lost, counts, sizeof counts);
  std::memcpy(left_out, d.left_out.data(), sizeof d.left_out);
}

WARPLENS_EXPORT void warplens_perfetto_reader_texts(void *handle, char *bytes, int64_t *offsets) {
  static_cast<Decoder *>(handle)->texts.copy(bytes, offsets);
}

// `time`: of all events, on one clock. Returns how many ENDs end nothing, -1: no memory.
WARPLENS_EXPORT int64_t warplens_perfetto_reader_pair(void *handle, const int64_t *time, int64_t *partner) {
  try {
    return static_cast<int64_t>(
        warplens::perfetto::pair(static_cast<Decoder *>(handle)->events, time, partner));
  } catch (const std::bad_alloc &) {
    return -1;
  }
}

// Gives the annotations of each event as a JSON object, but those whose name has `skipped[number]` set: rows of events, where their texts
// begin and the last one ends, and the texts. Returns -1 where there is no memory.
WARPLENS_EXPORT int64_t warplens_perfetto_reader_json(void *handle, const uint8_t *skipped, void *arrays) {
  try {
    auto &decoder = *static_cast<Decoder *>(handle);
    const auto &json = decoder.objects(skipped);
    auto *out = static_cast<Array *>(arrays);
    out[0] = {json.events.data(), json.events.size()};
    out[1] = {json.offsets.data(), json.offsets.size()};
    out[2] = {json.bytes.data(), json.bytes.size()};
    return static_cast<int64_t>(json.events.size());
  } catch (const std::bad_alloc &) {
    return -1;
  }
}

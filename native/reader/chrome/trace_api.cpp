// The C functions that warplens.importers.kineto.native calls through ctypes. Negative results are errors; nothing throws across.
#include <algorithm>
#include <cstring>
#include <string>

#include "json_text.h"
#include "reader/guard.h"
#include "trace_reader.h"

using warplens::desk::Count;
using warplens::desk::Field;
using warplens::desk::Kind;
using warplens::desk::kKinds;
using warplens::desk::LaneKey;
using warplens::desk::TextCodes;
using warplens::desk::TraceReader;
namespace json = warplens::desk::json;
using warplens::desk::guarded;

namespace {

struct Trace {
  TraceReader reader;
  std::string text;  // what was asked for last
};

}  // namespace

WARPLENS_API Trace *warplens_trace_new() {
  try {
    return new Trace;
  } catch (...) {
    return nullptr;
  }
}

WARPLENS_API void warplens_trace_free(Trace *trace) {
  delete trace;
}

// 1: go on; 0: nothing behind can be read.
WARPLENS_API int64_t warplens_trace_feed(Trace *trace, const char *data, uint64_t size) {
  return guarded([&] { return trace->reader.feed(data, size) ? 1 : 0; });
}

// Writes ending, where it broke, events that are broken, those that were too long, arrays of events, the latest time, numbers of texts,
// of raw texts and of lanes; then the counts.
WARPLENS_API int64_t warplens_trace_finish(Trace *trace, int64_t *out) {
  return guarded([&] {
    trace->reader.finish();
    const TraceReader &reader = trace->reader;
    auto &events = trace->reader.events();
    const int64_t facts[] = {reader.ending(),
                             reader.broken_at(),
                             reader.broken(),
                             reader.too_long(),
                             reader.arrays(),
                             events.last(),
                             static_cast<int64_t>(events.texts().size()),
                             static_cast<int64_t>(events.raws().size()),
                             static_cast<int64_t>(events.lanes().size())};
    out = std::copy(std::begin(facts), std::end(facts), out);
    for (int count = 0; count < warplens::desk::kCounts; ++count) {
      *out++ = events.count(static_cast<Count>(count));
    }
    return 0;
  });
}

WARPLENS_API int64_t warplens_trace_rows(Trace *trace, uint32_t kind) {
  return kind < kKinds ? static_cast<int64_t>(trace->reader.events().rows(static_cast<Kind>(kind)).size())
                       : 0;
}

// Copies a column, once; 0: there is none.
WARPLENS_API int64_t warplens_trace_take(Trace *trace, uint32_t kind, uint32_t field, char *out) {
  return guarded([&] {
    return kind < kKinds &&
           trace->reader.events().rows(static_cast<Kind>(kind)).take(static_cast<Field>(field), out);
  });
}

// Writes pid, tid and which of them are texts, of all lanes.
WARPLENS_API void warplens_trace_lanes(const Trace *trace, int64_t *out) {
  for (const LaneKey &key : const_cast<Trace *>(trace)->reader.events().lanes()) {
    *out++ = key.pid;
    *out++ = key.tid;
    *out++ = key.texts;
  }
}

// Makes valid UTF-8 of all texts, one behind the other; `ends` has room for where each ends. Returns the bytes, to be fetched with
// warplens_trace_text. `which`: 0 the texts, with their escapes resolved, 1 what was kept as JSON.
WARPLENS_API int64_t warplens_trace_texts(Trace *trace, uint32_t which, int64_t *ends) {
  return guarded([&] {
    const auto &events = trace->reader.events();
    const TextCodes &codes = which == 0 ? events.texts() : events.raws();
    std::string &text = trace->text;
    text.clear();
    for (uint32_t code = 0; code < codes.size(); ++code) {
      if (which == 0) {
        json::unescape(codes[code], text);
      } else {
        json::repair(codes[code], text);
      }
      ends[code] = static_cast<int64_t>(text.size());
    }
    return text.size();
  });
}

// Writes the members of the object that are known as lines of `name TAB JSON`, those that are not as lines of their name alone; spaces of
// lines within the JSON are blanks. Returns the bytes, to be fetched with warplens_trace_text.
WARPLENS_API int64_t warplens_trace_members(Trace *trace) {
  return guarded([&] {
    std::string &text = trace->text;
    text.clear();
    const auto add = [&text](std::string_view part) {
      const size_t begin = text.size();
      json::repair(part, text);
      std::replace_if(
          text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(),
          [](char letter) { return letter == '\n' || letter == '\r' || letter == '\t'; }, ' ');
    };
    for (const auto &[name, value] : trace->reader.members()) {
      add(name);
      text.push_back('\t');
      add(value);
      text.push_back('\n');
    }
    for (const std::string &name : trace->reader.skipped()) {
      add(name);
      text.push_back('\n');
    }
    return text.size();
  });
}

WARPLENS_API void warplens_trace_text(const Trace *trace, char *out) {
  std::memcpy(out, trace->text.data(), trace->text.size());
}

// Writes `ph`, the code of the category and how many, of what has no place; returns how many there are. `out`: null, or with room for all.
WARPLENS_API int64_t warplens_trace_unsupported(Trace *trace, int64_t *out) {
  const auto &found = trace->reader.events().unsupported();
  if (out != nullptr) {
    for (const auto &[what, count] : found) {
      *out++ = what.first;
      *out++ = what.second;
      *out++ = count;
    }
  }
  return static_cast<int64_t>(found.size());
}

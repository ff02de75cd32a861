// The functions `trace_…`: a Chrome trace, text in, columns out (warplens.importers.kineto.native).
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>

#include "json_text.h"
#include "reader/door.h"
#include "trace_reader.h"

namespace warplens::reader {
namespace {

struct Trace {
  TraceReader reader;
  std::string text;  // the text that was requested last
};

std::unique_ptr<Trace> trace_new() {
  return std::make_unique<Trace>();
}
WARPLENS_FUNCTION(trace_new);

// 1: go on; 0: nothing behind can be read.
int64_t trace_feed(Trace &trace, Array<const char> data) {
  return trace.reader.feed(data.data, data.size) ? 1 : 0;
}
WARPLENS_FUNCTION(trace_feed);

// Writes ending, where it broke, events that are broken, those that were too long, arrays of events, the latest time, numbers of texts,
// of raw texts and of lanes; then the counts.
void trace_finish(Trace &trace, Array<int64_t> out) {
  trace.reader.finish();
  const TraceReader &reader = trace.reader;
  auto &events = trace.reader.events();
  const int64_t facts[] = {reader.ending(),
                           reader.broken_at(),
                           reader.broken(),
                           reader.too_long(),
                           reader.arrays(),
                           events.last(),
                           static_cast<int64_t>(events.texts().size()),
                           static_cast<int64_t>(events.raws().size()),
                           static_cast<int64_t>(events.lanes().size())};
  require_size(std::size(facts) + kCounts, out);
  int64_t *next = std::copy(std::begin(facts), std::end(facts), out.data);
  for (int count = 0; count < kCounts; ++count) {
    *next++ = events.count(static_cast<Count>(count));
  }
}
WARPLENS_FUNCTION(trace_finish);

EventRows &rows_of(Trace &trace, uint32_t kind) {
  if (kind >= kKinds) {
    throw std::invalid_argument("there is no such kind of event");
  }
  return trace.reader.events().rows(static_cast<Kind>(kind));
}

int64_t trace_rows(Trace &trace, uint32_t kind) {
  return static_cast<int64_t>(rows_of(trace, kind).size());
}
WARPLENS_FUNCTION(trace_rows);

template <typename T>
int64_t take(EventRows &rows, uint32_t field, const Array<T> &out) {
  require_size(rows.size(), out);
  if (rows.width_of(static_cast<Field>(field)) != sizeof(T)) {
    return 0;
  }
  return rows.take(static_cast<Field>(field), reinterpret_cast<char *>(out.data)) ? 1 : 0;
}

// Copies a column, once; 0: there is none of this width.
int64_t trace_take_narrow(Trace &trace, uint32_t kind, uint32_t field, Array<int32_t> out) {
  return take(rows_of(trace, kind), field, out);
}
WARPLENS_FUNCTION(trace_take_narrow);

int64_t trace_take_wide(Trace &trace, uint32_t kind, uint32_t field, Array<int64_t> out) {
  return take(rows_of(trace, kind), field, out);
}
WARPLENS_FUNCTION(trace_take_wide);

// Writes pid, tid and which of them are texts, of all lanes.
void trace_lanes(Trace &trace, Array<int64_t> out) {
  const auto &lanes = trace.reader.events().lanes();
  require_size(3 * lanes.size(), out);
  int64_t *next = out.data;
  for (const LaneKey &key : lanes) {
    *next++ = key.pid;
    *next++ = key.tid;
    *next++ = key.texts;
  }
}
WARPLENS_FUNCTION(trace_lanes);

// Makes valid UTF-8 of all texts, one behind the other: the result, good until texts are asked for again. `ends` has room for where each
// ends. `which`: 0 the texts, with their escapes resolved, 1 what was kept as JSON.
Array<const char> trace_texts(Trace &trace, uint32_t which, Array<int64_t> ends) {
  const auto &events = trace.reader.events();
  const TextCodes &codes = which == 0 ? events.texts() : events.raws();
  require_size(codes.size(), ends);
  std::string &text = trace.text;
  text.clear();
  for (uint32_t code = 0; code < codes.size(); ++code) {
    if (which == 0) {
      json::unescape(codes[code], text);
    } else {
      json::repair(codes[code], text);
    }
    ends[code] = static_cast<int64_t>(text.size());
  }
  return {text.data(), text.size()};
}
WARPLENS_FUNCTION(trace_texts);

// The members of the object that are known as lines of `name TAB JSON`, those that are not as lines of their name alone; spaces of
// lines within the JSON are blanks. Good until texts are asked for again.
Array<const char> trace_members(Trace &trace) {
  std::string &text = trace.text;
  text.clear();
  const auto add = [&text](std::string_view part) {
    const size_t begin = text.size();
    json::repair(part, text);
    std::replace_if(
        text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(),
        [](char letter) { return letter == '\n' || letter == '\r' || letter == '\t'; }, ' ');
  };
  for (const auto &[name, value] : trace.reader.members()) {
    add(name);
    text.push_back('\t');
    add(value);
    text.push_back('\n');
  }
  for (const std::string &name : trace.reader.skipped()) {
    add(name);
    text.push_back('\n');
  }
  return {text.data(), text.size()};
}
WARPLENS_FUNCTION(trace_members);

// Writes `ph`, the code of the category and how many, of what has no place; returns how many there are. `out`: null, or with room for all.
int64_t trace_unsupported(Trace &trace, Array<int64_t> out) {
  const auto &unsupported = trace.reader.events().unsupported();
  if (out.data != nullptr) {
    require_size(3 * unsupported.size(), out);
    int64_t *next = out.data;
    for (const auto &[what, count] : unsupported) {
      *next++ = what.first;
      *next++ = what.second;
      *next++ = count;
    }
  }
  return static_cast<int64_t>(unsupported.size());
}
WARPLENS_FUNCTION(trace_unsupported);

}  // namespace
}  // namespace warplens::reader

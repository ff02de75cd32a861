// Reads the text of a Chrome trace piece by piece: an array of events, or an object that has one as `traceEvents`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace_events.h"

namespace warplens::reader {

class TraceReader {
 public:
  // What the text has turned out to be; mirrored in importers/kineto/layout.py.
  enum Ending : int64_t {
    kWhole,      // as it should end
    kOpenArray,  // an array of events without its closing bracket, which is allowed
    kCut,        // it ends within something
    kBroken,     // what stands at `broken_at` is no JSON, and nothing behind it could be read
    kNoTrace,    // neither an object nor an array
  };

  // Takes the next piece. False: nothing behind can be read.
  bool feed(const char *data, size_t size);
  void finish();

  TraceEvents &events() { return events_; }
  Ending ending() const { return ending_; }
  // Where the part begins that was cut off, or the first thing that is no JSON; -1: nowhere.
  int64_t broken_at() const { return broken_at_; }
  int64_t broken() const { return broken_; }      // events that could not be read
  int64_t too_long() const { return too_long_; }  // of them, those that were too long
  int64_t arrays() const { return arrays_; }      // arrays of events
  // Members of the object that are known, as JSON text, and the names of those that are not.
  const std::vector<std::pair<std::string, std::string>> &members() const { return members_; }
  const std::vector<std::string> &skipped() const { return skipped_; }

 private:
  enum class State { begin, member, skip, events, search, behind, failed };

  bool step();
  bool begin();
  bool member();
  bool event();
  bool skip();
  bool search();
  bool fail(const char *where);
  const char *at() const { return text_ + at_; }
  const char *end() const { return text_ + size_; }
  void move(const char *to) { at_ = static_cast<size_t>(to - text_); }
  int64_t offset(const char *where) const { return before_ + (where - text_); }

  TraceEvents events_;
  std::string buffer_;
  const char *text_ = nullptr;  // of the buffer
  size_t size_ = 0;
  size_t at_ = 0;
  int64_t before_ = 0;  // bytes that left the buffer
  State state_ = State::begin;
  State after_skip_ = State::member;
  size_t skip_depth_ = 0;
  bool skip_string_ = false, skip_escaped_ = false, skip_began_ = false;
  bool is_array_ = false, member_first_ = true;
  Ending ending_ = kCut;
  int64_t broken_at_ = -1, broken_ = 0, too_long_ = 0, arrays_ = 0;
  std::vector<std::pair<std::string, std::string>> members_;
  std::vector<std::string> skipped_;
};

}  // namespace warplens::reader

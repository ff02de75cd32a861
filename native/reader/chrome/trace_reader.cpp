// Splits the text of a Chrome trace into events.
#include "trace_reader.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "json_text.h"

namespace warplens::reader {
namespace {

constexpr size_t kLongestEvent = size_t{8} << 20;
constexpr size_t kLongestMember = size_t{32} << 20;
constexpr size_t kMostSkipped = 64;
constexpr size_t kLongestName = 200;
constexpr size_t kLookBehind = 64;  // bytes that the begin of an event has to be recognised by

// What is read of the object beside the events: nothing else is ever taken over, environments among it.
constexpr std::array<std::string_view, 16> kMembers = {
    "schemaVersion",       "deviceProperties",   "distributedInfo",      "baseTimeNanoseconds",
    "displayTimeUnit",     "cupti_version",      "cuda_runtime_version", "cuda_driver_version",
    "hip_runtime_version", "hip_driver_version", "roctracer_version",    "record_shapes",
    "with_stack",          "with_modules",       "profile_memory",       "with_flops",
};

// Keys that events begin with, for finding the next one behind a broken one.
constexpr std::array<std::string_view, 9> kFirstKeys = {"ph", "name", "cat", "pid", "tid",
                                                        "ts", "args", "id",  "dur"};

}  // namespace

bool TraceReader::feed(const char *data, size_t size) {
  if (state_ == State::failed) {
    return false;
  }
  buffer_.erase(0, at_);
  before_ += static_cast<int64_t>(at_);
  at_ = 0;
  buffer_.append(data, size);
  size_ = buffer_.size();
  buffer_.append(json::kPadding, '\0');
  text_ = buffer_.data();
  while (state_ != State::failed && step()) {
  }
  buffer_.resize(size_);
  text_ = buffer_.data();
  return state_ != State::failed;
}

void TraceReader::finish() {
  feed("\n", 1);  // a number at the end of the text ends there
  const bool rest = json::space(at()) < end();
  if (state_ == State::failed) {
    // `ending_` says why.
  } else if (state_ == State::behind) {
    ending_ = kWhole;
  } else if (state_ == State::events && is_array_ && arrays_ == 1 && !rest) {
    ending_ = kOpenArray;
  } else {
    ending_ = state_ == State::begin ? kNoTrace : kCut;
    broken_at_ = broken_at_ < 0 ? offset(at()) : broken_at_;
  }
  events_.finish();
}

// Goes on by one thing; false: more text is needed.
bool TraceReader::step() {
  if (state_ == State::skip) {
    return skip();
  }
  if (state_ == State::search) {
    return search();
  }
  move(json::space(at()));
  if (at() >= end()) {
    return false;
  }
  switch (state_) {
    case State::begin:
      return begin();
    case State::member:
      return member();
    case State::events:
      return event();
    case State::behind:  // Proton writes one object for each stream
      if (*at() == '{' || *at() == '[') {
        member_first_ = true;
        return begin();
      }
      return fail(at());
    default:
      return fail(at());
  }
}

bool TraceReader::begin() {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  const std::string_view rest(at(), static_cast<size_t>(end() - at()));
  if (rest.starts_with(kMark)) {
    move(at() + kMark.size());
    return true;
  }
  if (kMark.starts_with(rest)) {
    return false;
  }
  is_array_ = *at() == '[';
  if (!is_array_ && *at() != '{') {
    ending_ = kNoTrace;
    return fail(at());
  }
  arrays_ += is_array_;
  state_ = is_array_ ? State::events : State::member;
  move(at() + 1);
  return true;
}

bool TraceReader::member() {
  if (*at() == '}') {
    state_ = State::behind;
    move(at() + 1);
    return true;
  }
  if (*at() == ',' && !member_first_) {
    move(at() + 1);
    member_first_ = true;
    return true;
  }
  if (*at() != '"') {
    return fail(at());
  }
  const char *const closing = json::string_end(at() + 1, end());
  const bool endless = static_cast<size_t>(end() - at()) > kLongestMember;
  if (closing == nullptr) {
    return endless && fail(at());
  }
  const std::string_view name(at() + 1, static_cast<size_t>(closing - at() - 1));
  const char *value = json::space(closing + 1);
  if (*value != ':') {
    return value < end() && fail(value);
  }
  value = json::space(value + 1);
  if (value >= end()) {
    return endless && fail(at());
  }
  member_first_ = false;
  if (name == "traceEvents" && *value == '[') {
    ++arrays_;
    state_ = State::events;
    move(value + 1);
    return true;
  }
  if (std::find(kMembers.begin(), kMembers.end(), name) != kMembers.end()) {
    const char *bad = nullptr;
    const char *const behind = json::value_end(value, end(), bad);
    if (bad != nullptr) {
      return fail(bad);
    }
    if (behind != nullptr) {
      members_.emplace_back(name, std::string(value, behind));
      move(behind);
      return true;
    }
    if (!endless) {
      return false;
    }
  }
  if (skipped_.size() < kMostSkipped && (*value == '{' || *value == '[')) {
    skipped_.emplace_back(name.substr(0, kLongestName));
  }
  state_ = State::skip;
  after_skip_ = State::member;
  skip_depth_ = 0;
  skip_string_ = skip_escaped_ = skip_began_ = false;
  move(value);
  return true;
}

bool TraceReader::event() {
  if (*at() == ']') {
    state_ = is_array_ ? State::behind : State::member;
    move(at() + 1);
    return true;
  }
  if (*at() == ',') {
    move(at() + 1);
    return true;
  }
  const char *bad = nullptr;
  const char *behind = *at() == '{' ? events_.read(at(), end(), bad) : json::value_end(at(), end(), bad);
  if (behind != nullptr) {
    broken_ += *at() != '{';
    move(behind);
    return true;
  }
  if (bad != nullptr) {
    ++broken_;
    broken_at_ = broken_at_ < 0 ? offset(bad) : broken_at_;
    state_ = State::search;
    move(bad);
    return true;
  }
  if (static_cast<size_t>(end() - at()) > kLongestEvent) {
    ++broken_;
    ++too_long_;
    broken_at_ = broken_at_ < 0 ? offset(at()) : broken_at_;
    state_ = State::skip;
    after_skip_ = State::events;
    skip_depth_ = 0;
    skip_string_ = skip_escaped_ = skip_began_ = false;
    return true;
  }
  return false;
}

// Goes over a value without keeping it, however long it is.
bool TraceReader::skip() {
  for (const char *now = at(); now < end(); ++now) {
    const char letter = *now;
    if (skip_string_) {
      if (skip_escaped_) {
        skip_escaped_ = false;
      } else if (letter == '\\') {
        skip_escaped_ = true;
      } else if (letter == '"') {
        skip_string_ = false;
      }
      continue;
    }
    if (skip_depth_ == 0 && skip_began_) {  // it ended with the letter before, or goes on as a number does
      if (!json::is_bare(letter)) {
        state_ = after_skip_;
        move(now);
        return true;
      }
      continue;
    }
    if (letter == '"') {
      skip_string_ = true;
    } else if (letter == '{' || letter == '[') {
      ++skip_depth_;
    } else if (letter == '}' || letter == ']') {
      if (skip_depth_ == 0) {
        return fail(now);
      }
      --skip_depth_;
    } else if (letter == ',' || letter == ':' || json::is_space(letter)) {
      if (skip_depth_ == 0 && !json::is_space(letter)) {
        return fail(now);
      }
      continue;
    } else if (!json::is_bare(letter)) {
      return fail(now);
    }
    skip_began_ = true;
  }
  move(end());
  return false;
}

// Looks for the next event behind one that could not be read.
bool TraceReader::search() {
  while (at() < end()) {
    const auto *const brace =
        static_cast<const char *>(std::memchr(at(), '{', static_cast<size_t>(end() - at())));
    if (brace == nullptr) {
      move(end());
      return false;
    }
    const char *const key = json::space(brace + 1);
    const char *const closing =
        *key == '"' ? json::string_end(key + 1, std::min(end(), key + kLookBehind)) : nullptr;
    if (closing != nullptr) {
      const std::string_view name(key + 1, static_cast<size_t>(closing - key - 1));
      const char *before = brace;
      while (before > text_ && json::is_space(before[-1])) {
        --before;
      }
      // An argument may be an object, too: the events of one list stand behind a comma.
      if (std::find(kFirstKeys.begin(), kFirstKeys.end(), name) != kFirstKeys.end() &&
          (before == text_ || before[-1] == ',')) {
        state_ = State::events;
        move(brace);
        return true;
      }
    } else if (end() - key < static_cast<std::ptrdiff_t>(kLookBehind) && (*key == '"' || key >= end())) {
      move(brace);  // its key is not here yet
      return false;
    }
    move(brace + 1);
  }
  return false;
}

bool TraceReader::fail(const char *where) {
  if (state_ == State::behind) {  // something follows a whole trace
    broken_at_ = broken_at_ < 0 ? offset(where) : broken_at_;
    ending_ = kWhole;
    ++broken_;
    move(end());
    state_ = State::failed;
    return false;
  }
  ending_ = ending_ == kNoTrace ? kNoTrace : kBroken;
  broken_at_ = broken_at_ < 0 ? offset(where) : broken_at_;
  state_ = State::failed;
  return false;
}

}  // namespace warplens::reader

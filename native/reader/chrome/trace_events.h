// Converts the events of a Chrome trace to columns, one event after the other.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reader/spool/event_pairs.h"
#include "reader/spool/event_rows.h"
#include "text_codes.h"
#include "trace_fields.h"
#include "trace_keys.h"

namespace warplens::reader {

// pid and tid as the file has them: numbers, texts (codes), or nothing.
struct LaneKey {
  int64_t pid = kNull;
  int64_t tid = kNull;
  int64_t texts = 0;  // 1: the pid is one, 2: the tid
  bool operator==(const LaneKey &) const = default;
};

struct LaneHash {
  size_t operator()(const LaneKey &key) const {
    const uint64_t process = static_cast<uint64_t>(key.pid) * 3 + static_cast<uint64_t>(key.texts);
    return PairHash{}({static_cast<int64_t>(process), key.tid});
  }
};

// What was counted; order as in importers/kineto/layout.py.
enum Count : uint8_t {
  kEvents,
  kNoTime,
  kNegative,
  kNoEnd,
  kNoBegin,
  kGpuAnnotations,
  kSpans,
  kKnownFlows,
  kPayloadsLost,
  kCounts,
};

class TraceEvents {
 public:
  TraceEvents();

  // Reads the event at `at`, which is a brace; returns where it ends. nullptr: it is cut off, or broken at `bad` (not null).
  const char *read(const char *at, const char *end, const char *&bad);
  // There are no more: what is open stays unfinished.
  void finish();

  EventRows &rows(Kind kind) { return rows_[kind]; }
  const std::vector<LaneKey> &lanes() const { return lanes_; }
  const TextCodes &texts() const { return texts_; }
  const TextCodes &raws() const { return raws_; }
  int64_t count(Count which) const { return counts_[which]; }
  // What has no place: `ph` and category (a code; kNull: none) with how many there were.
  const std::map<std::pair<char, int64_t>, int64_t> &unsupported() const { return unsupported_; }
  int64_t last() const { return last_; }

 private:
  // Where a value lies in the text.
  struct Span {
    const char *begin = nullptr;
    const char *end = nullptr;
  };

  template <typename Keys, typename Find, typename Take>
  const char *object(const char *at, const char *end, const char *&bad, Keys &keys, const Find &find,
                     const Take &take);
  const char *member(Member known, const char *at, const char *end, const char *&bad);
  const char *arguments(const char *at, const char *end, const char *&bad);
  const char *argument(const Argument *known, const char *at, const char *end, const char *&bad);
  const char *compact(const char *at, const char *end, Field field, const char *&bad);
  template <typename Each>
  void each_argument(const Each &each) const;
  int64_t text_code(Span value);
  static std::string_view inner(Span value);
  void number(Span value, Field field);
  void identify(Span value, int64_t &out, bool &is_text);

  void take();
  void complete();
  void instant();
  void counter();
  void metadata();
  void flow();
  void put(Kind kind) { rows_[kind].add(values_); }
  void put_range(Kind kind, const Begun &begun, int64_t end, bool unfinished);
  int64_t lane();
  int64_t payload();
  Begun begun();
  PairKey async_key() const;
  void leave() { ++unsupported_[{phase_, values_[kCategory]}]; }
  bool timed();

  std::vector<EventRows> rows_;
  std::vector<LaneKey> lanes_;
  std::unordered_map<LaneKey, uint32_t, LaneHash> lane_codes_;
  LaneKey last_key_;
  uint32_t last_lane_ = UINT32_MAX;
  TextCodes texts_;
  TextCodes raws_;
  uint64_t payload_bytes_ = 0;
  std::vector<uint8_t> kinds_;  // of categories, by code
  std::array<int64_t, kCounts> counts_{};
  std::map<std::pair<char, int64_t>, int64_t> unsupported_;
  EventPairs threads_, ids_;
  int64_t last_ = kNull;

  TraceKeys<Member> member_keys_;
  TraceKeys<const Argument *> argument_keys_;

  // Of the event that is read:
  uint32_t context_ = 0;  // what its keys follow from: its phase and category
  Values values_{};
  LaneKey key_;
  char phase_ = 0;
  Span arguments_, scope_;
  int64_t duration_ = kNull;
  bool id_is_text_ = false;
  std::string scratch_;
  int64_t unnamed_, memory_name_, forward_backward_;
};

}  // namespace warplens::reader

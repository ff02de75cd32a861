// What one thread writes: closed records into its chunk, open push/pop ranges into its stack. No locks, no system calls
// but at the end of a window.
#pragma once

#include <cstring>
#include <string_view>

#include "blob_log.h"
#include "busy.h"
#include "clock.h"
#include "names.h"

namespace warpline {

//! What a range or mark says, resolved to numbers.
struct Label {
  uint64_t payload = 0;
  uint32_t color = 0;
  uint32_t category = 0;
  uint32_t name = 0;
  uint8_t flags = 0;  // payload type and kFlagColor
};

//! What the end of a range adds to it: the members of `label` that are named here, its colour and its payloads.
struct Change {
  Label label;  // payload: the first of a chain of blobs, or one number
  BlobHead *last_blob = nullptr;
  bool name = false;
  bool category = false;

  bool has_number() const {
    uint8_t type = label.flags & kPayloadMask;
    return type != 0 && type != kPayloadMask;
  }
};

//! Payload, colour and category lie in a record as in a Label, and move as two words.
inline constexpr size_t kDetails = 16;
static_assert(offsetof(EventRecord, payload) + kDetails == sizeof(EventRecord) &&
              offsetof(Label, name) == kDetails &&
              offsetof(EventRecord, color) - offsetof(EventRecord, payload) == offsetof(Label, color) &&
              offsetof(EventRecord, category) - offsetof(EventRecord, payload) == offsetof(Label, category));

//! Written as whole words: what is read back at once as a wider word than it was written waits for the cache.
inline void store_word(void *to, uint64_t word) {
  asm("" : "+r"(word));  // or compilers make one vector of two
  std::memcpy(to, &word, sizeof(word));
}

inline void copy_details(EventRecord *record, const Label &label) {
  store_word(&record->payload, label.payload);
  store_word(&record->color, label.color | static_cast<uint64_t>(label.category) << 32);
}

inline void copy_details(EventRecord *record, const EventRecord &from) {
  uint64_t words[2];
  std::memcpy(words, &from.payload, kDetails);
  store_word(&record->payload, words[0]);
  store_word(&record->color, words[1]);
}

class ProcessLog;

class ThreadLog {
 public:
  //! Held on the slow paths, which take locks: a signal handler that annotates must not wait for the thread it interrupted.
  class Busy : public warpline::Busy {
   public:
    explicit Busy(ThreadLog &) {}
  };

  //! [HOT] Opens a push/pop range; returns its level in `domain`, from 0.
  int push(uint16_t domain, const Label &label);

  //! [HOT] Closes the innermost open range of `domain` with the time `end`; returns its level, or -1 if none is open.
  int pop(uint16_t domain, uint64_t end);

  //! Closes the innermost open range of `domain`, changed.
  int pop(uint16_t domain, uint64_t end, const Change &change);

  //! [HOT] Writes a finished record; false when there is no space (then it is counted as lost).
  bool append(RecordHead head, uint64_t start, uint64_t end, const Label &label);

  //! [HOT] Writes what was done to an object. False when there is no space.
  bool operate(uint16_t domain, OperationAction action, uint64_t object, uint64_t value, uint64_t now);

  //! [HOT] What comes from here on belongs to `task`, 0 = none.
  void switch_task(uint32_t task, uint64_t now);

  //! Writes a payload; see BlobLog. The caller holds Busy.
  BlobLog::Blob write_blob(const BlobHead &head, const void *bytes, size_t size);

  //! Puts a change into an open range. The caller holds Busy.
  void apply(EventRecord &open, const Change &change);

  //! Writes a start/end range, and its origin: if another thread began it, or a task, or if it is named as a parent (`named`).
  //! The caller holds Busy.
  bool append_start_end(const OpenSlot &slot, uint64_t end, bool named = false);

  //! Writes a record about the process, and the number of a domain; see ProcessLog.
  void describe(RecordHead head, const MetaRecord &record);
  uint16_t domain(std::string_view name);

  //! [FORK] In a child: opens a range that the parent had open; it begins at the fork here. The caller holds Busy.
  void inherit(const EventRecord &open, uint64_t fork_ns);

  //! [HOT] The number of `text`, from this thread's cache where it can.
  uint32_t intern(const char *text, size_t size);

  uint32_t index() const { return index_; }
  uint32_t generation() const { return generation_; }  // of the recording
  ProcessLog *process() const { return process_; }
  const ClockParams &clock() const { return *clock_; }
  int level(uint16_t domain) const;

 private:
  friend class ProcessLog;
  static constexpr size_t kLevels = 64;
  static constexpr size_t kCacheSize = 1024;
  static constexpr size_t kFirstChunk = size_t{16} << 10;
  static constexpr size_t kLastChunk = size_t{1} << 20;
  static constexpr size_t kWindow = size_t{128} << 10;
  struct CachedName {
    uint64_t hash;
    uint32_t size;
    uint32_t id;
  };
  // A piece of the stack of open ranges; pieces are never given back while the thread lives.
  struct Piece {
    EventRecord *begin;
    EventRecord *end;
  };
  static constexpr size_t kPieces = 32;
  static constexpr size_t kLargestPiece = size_t{4}
                                          << 20;  // deeper than some 2.5 million, pushes are only counted

  uint64_t number_blob(uint8_t type, uint64_t payload, uint32_t flags, uint64_t next);
  EventRecord *innermost(uint16_t domain);
  EventRecord *more(RecordType type);
  EventRecord *more_while_busy(RecordType type);
  EventRecord *deeper();
  EventRecord *deeper_while_busy();
  bool next_chunk();
  void write(RecordHead head, uint64_t start, uint64_t end, const Label &label);
  int pop_slow(uint16_t domain, uint64_t end);
  uint32_t intern_new(const char *text, size_t size, uint64_t hash);
  int finish(EventRecord *slot, uint64_t end);
  void trim();

  ProcessLog *process_ = nullptr;
  const ClockParams *clock_ = nullptr;
  EventRecord *cursor_ = nullptr;  // next free record
  EventRecord *limit_ = nullptr;   // end of the populated window
  EventRecord *top_ = nullptr;     // next free slot of the open ranges
  EventRecord *top_begin_ = nullptr;
  EventRecord *top_end_ = nullptr;
  char *chunk_end_ = nullptr;
  size_t chunk_size_ = 0;
  uint32_t generation_ = 0;
  uint32_t index_ = 0;
  uint32_t holes_ = 0;     // slots below the top that were closed out of order
  uint32_t unstored_ = 0;  // open ranges that got no slot
  uint32_t piece_ = 0;
  uint32_t pieces_used_ = 0;
  uint32_t level_[kLevels] = {};
  Piece pieces_[kPieces] = {};
  uint32_t task_ = 0;
  ThreadLog *next_free_ = nullptr;
  BlobLog blobs_;
  CachedName cache_[kCacheSize] = {};
};

inline int ThreadLog::push(uint16_t domain, const Label &label) {
  EventRecord *slot = top_;
  if (slot == top_end_) [[unlikely]] {
    slot = deeper();
    if (slot == nullptr) {
      ++unstored_;
      return level(domain);
    }
  }
  copy_details(slot, label);  // slot->end is 0 from the start and never written
  slot->start = now_ns(*clock_);
  commit(slot, {RecordType::range, label.flags, domain, label.name});
  top_ = slot + 1;
  if (domain < kLevels) [[likely]] {
    return static_cast<int>(level_[domain]++);
  }
  return level(domain) - 1;
}

inline int ThreadLog::finish(EventRecord *slot, uint64_t end) {
  uint16_t domain = slot->head.domain;
  EventRecord *record = cursor_;
  if (record != limit_ || (record = more(RecordType::range)) != nullptr) [[likely]] {
    record->start = slot->start;
    record->end = end;
    copy_details(record, *slot);
    commit(record, slot->head);
    cursor_ = record + 1;
  }
  commit(slot, {});
  if (domain < kLevels) [[likely]] {
    return static_cast<int>(--level_[domain]);
  }
  return level(domain);
}

inline int ThreadLog::pop(uint16_t domain, uint64_t end) {
  if (top_ == top_begin_ || top_[-1].head.domain != domain || (holes_ | unstored_) != 0) [[unlikely]] {
    return pop_slow(domain, end);
  }
  EventRecord *slot = top_ - 1;
  int level = finish(slot, end);
  top_ = slot;  // last: until then a signal handler's ranges go above this one
  return level;
}

inline uint32_t ThreadLog::intern(const char *text, size_t size) {
  uint64_t hash = hash_text(text, size);
  const CachedName &cached = cache_[hash % kCacheSize];
  if (cached.hash == hash && cached.size == size) [[likely]] {
    return cached.id;
  }
  return intern_new(text, size, hash);
}

}  // namespace warpline

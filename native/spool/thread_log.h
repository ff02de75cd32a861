// The log of one thread.
// It writes closed records into its chunk and open push/pop ranges into its stack, without locks.
// It makes system calls only at the end of a window.
//
// The protocol. Two parties see a thread's log while the thread writes: its own signal handlers, and
// readers of the file, also after a kill. No other thread writes here.
//
// - A record: `advance` moves `cursor_` past the place, then the body is written, then commit() stores
//   the head as one word. A handler that annotates in between gets the next place. A reader stops at
//   a head of 0, so it never sees half a record; a kill costs the record that was being written.
// - Limits: `limit_` is null while cursor and limit move (open_chunk), so that a handler in between
//   finds no room and takes the slow path. There Busy is held already, and the handler counts its
//   record as lost (kInSignal) instead of waiting for the thread that it interrupted.
// - Open ranges: push() takes the slot before it fills it, pop() releases it last. A handler's ranges
//   lie above and are closed again when it returns, so the stack is as it was.
// - Fences are atomic_signal_fence: they order the compiler only, since handlers run on this thread.
#pragma once

#include <atomic>
#include <cstring>
#include <string_view>

#include "blob_log.h"
#include "chunk_ring.h"
#include "names.h"
#include "spool/system/busy.h"
#include "spool/system/clock.h"

namespace warplens {

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

//! Of a range; programs may give an end that lies before its start.
inline uint64_t length(uint64_t start, uint64_t end) {
  return end > start ? end - start : 0;
}

//! Sets `place` from `from` to `to`; false, and `from` is what it is, when a signal handler came in between. One instruction, for no
//! other thread writes here.
template <typename T>
[[gnu::always_inline]] inline bool advance(T *&place, T *&from, T *to) {
#if defined(__x86_64__)
  bool done;
  asm volatile("cmpxchgq %3, %1" : "=@ccz"(done), "+m"(place), "+a"(from) : "r"(to));
  return done;
#else
  return __atomic_compare_exchange_n(&place, &from, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
}

class ProcessLog;

// Signal handlers annotate as well, between any two instructions of the thread's own calls. So a record's place is taken before it
// is written, there is none while the limits move, and what a handler pushed it has popped when it returns, with the stack as it was.
class ThreadLog {
 public:
  //! Held on the slow paths, which take locks: a signal handler that annotates must not wait for the thread it interrupted.
  class Busy : public warplens::Busy {
   public:
    explicit Busy(ThreadLog &) {}
  };

  //! [HOT] Opens a push/pop range; returns its level in `domain`, from 0.
  template <RecordType type = RecordType::range>
  int push(uint16_t domain, const Label &label);

  //! [HOT] Closes the innermost open range of `domain` with the time `end`; returns its level, or -1 if none is open.
  int pop(uint16_t domain, uint64_t end);

  //! Closes the innermost open range of `domain`, changed.
  int pop(uint16_t domain, uint64_t end, const Change &change);

  //! [HOT] Closes the operator that was pushed with the payload `address`, and gives it `sequence`. False where there is none.
  bool pop_op(uint64_t address, uint64_t end, uint64_t sequence);

  //! [HOT] Whether what happens at `time` is recorded: marks, samples and operations are, in an open window.
  bool records(uint64_t time) {
    uint8_t flags = 0;
    return keeps(time, time, flags);
  }

  //! [HOT] Whether a range is recorded: one that overlaps a window is. `flags` gets kFlagClipped where it crosses an edge.
  //! `busy`: the caller holds Busy.
  bool keeps(uint64_t start, uint64_t end, uint8_t &flags, bool busy = false) {
    return open_since(start) || keeps_at_edge(start, end, flags, busy);
  }

  //! Calls `visit` with each open push/pop range of this thread, the outermost first: with its head.
  template <typename Visit>
  void each_open(const Visit &visit) const;

  //! The innermost open range of `domain`, or null.
  const EventRecord *innermost(uint16_t domain) const;

  //! [HOT] Writes a finished record that is to be recorded; false when there is no space (then it is counted as lost).
  bool append(RecordHead head, uint64_t start, uint64_t end, const Label &label);

  //! [HOT] Writes what was done to an object, in an open window. False when there is no space.
  bool operate(uint16_t domain, OperationAction action, uint64_t object, uint64_t value, uint64_t now);

  //! [HOT] What comes from here on belongs to `task`, 0 = none. Written before the next record in an open window.
  void switch_task(uint32_t task, uint64_t now);

  //! Writes a payload; see BlobLog. The caller holds Busy.
  BlobLog::Blob write_blob(const BlobHead &head, const void *bytes, size_t size);

  //! The payload of what is not recorded: its space is used again where that is easy. The caller holds Busy.
  void give_back(uint8_t flags, uint64_t payload) {
    if ((flags & kPayloadMask) == kPayloadMask) {
      blobs_.give_back(payload);
    }
  }

  //! Puts a change into an open range. The caller holds Busy.
  void apply(EventRecord &open, const Change &change);

  //! Writes a start/end range that is to be recorded, and its origin: if another thread began it, or a task, or if it is named as
  //! a parent (`named`). `flags` are added to its own. The caller holds Busy.
  bool append_start_end(const OpenSlot &slot, uint64_t end, uint8_t flags, bool named = false);

  //! Writes a record about the process, and the number of a domain; see ProcessLog.
  void describe(RecordHead head, const MetaRecord &record);
  uint16_t domain(std::string_view name);

  //! [FORK] In a child: opens a range that the parent had open; it begins at the fork here. The caller holds Busy.
  void inherit(const EventRecord &open, uint64_t fork_ns);

  //! [HOT] The number of `text` in this recording, from this thread's cache where it can; see Names::passing.
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
  static constexpr size_t kKept =
      16;  // slots of the first piece where the longest ranges stay when the disk is full
  static constexpr size_t kLargestPiece = size_t{4}
                                          << 20;  // deeper than some 2.5 million, pushes are only counted

  uint64_t number_blob(uint8_t type, uint64_t payload, uint32_t flags, uint64_t next);
  EventRecord *take(RecordType type, bool busy = false, size_t count = 1);
  bool more(RecordType type, size_t count);
  bool more_while_busy(RecordType type, size_t count);
  EventRecord *deeper();
  EventRecord *deeper_while_busy();
  void enter_piece(uint32_t piece, EventRecord *top);
  void open_chunk(EventRecord *cursor, char *end);
  bool next_chunk();
  void keep_closed(RecordHead head, const EventRecord &range, uint64_t end);
  void introduce();
  // A thread begins, perhaps in the chunk that another one left. `about` has no head.
  void take_over(const MetaRecord &about, uint32_t name);
  bool open_since(uint64_t time) const;
  [[gnu::cold]] bool keeps_at_edge(uint64_t start, uint64_t end, uint8_t &flags, bool busy);
  bool notice_opening(bool busy);
  bool write_task(uint64_t now, bool busy);
  void finish_slowly(const EventRecord &open, uint64_t end);
  int pop_slow(uint16_t domain, uint64_t end);
  bool pop_op_slow(uint64_t address, uint64_t end, uint64_t sequence);
  template <typename Wanted>
  EventRecord *find_open(const Wanted &wanted);
  int close_within(EventRecord *slot, uint64_t end);
  static bool is_op(const EventRecord &slot, uint64_t address) {
    return slot.head.type == RecordType::op && slot.payload == address;
  }
  uint32_t intern_new(const char *text, size_t size, uint64_t hash);
  int finish(EventRecord *slot, uint64_t end);
  void trim();

  ProcessLog *process_ = nullptr;
  const ClockParams *clock_ = nullptr;
  EventRecord *cursor_ = nullptr;     // next free record
  EventRecord *limit_ = nullptr;      // end of the populated window
  EventRecord *top_ = nullptr;        // next free slot of the open ranges
  EventRecord *top_begin_ = nullptr;  // below it, leaving the piece included, pops are slow
  EventRecord *top_end_ = nullptr;
  const std::atomic<uint32_t> *gate_ = nullptr;  // ControlPage::gate, or one that is always open
  uint64_t window_begin_ = 0;                    // of the window that this thread has seen open, …
  uint32_t open_gate_ = 0;                       // … and the gate's value while it is
  uint32_t written_task_ = 0;                    // of the last task_switch record
  char *chunk_end_ = nullptr;
  char *window_ = nullptr;  // where the window begins
  size_t chunk_size_ = 0;
  uint32_t generation_ = 0;
  uint32_t index_ = 0;
  uint32_t holes_ = 0;     // slots below the top that were closed out of order
  uint32_t unstored_ = 0;  // open ranges that got no slot
  uint32_t piece_ = 0;
  uint32_t pieces_used_ = 0;
  uint32_t level_[kLevels] = {};
  Piece pieces_[kPieces] = {};
  EventRecord *kept_ = nullptr;  // the first of kKept slots
  bool keeps_closed_ = false;    // some of them are taken
  uint32_t task_ = 0;
  ThreadLog *next_free_ = nullptr;
  ChunkRing ring_;
  MetaRecord about_{};
  uint32_t about_name_ = 0;
  BlobLog blobs_;
  CachedName cache_[kCacheSize] = {};
};

template <RecordType type>
[[gnu::always_inline]] inline int ThreadLog::push(uint16_t domain, const Label &label) {
  EventRecord *slot = top_;
  if (slot >= top_end_) [[unlikely]] {
    slot = deeper();
    if (slot == nullptr) {
      ++unstored_;
      return level(domain);
    }
  } else {
    top_ = slot + 1;
    std::atomic_signal_fence(std::memory_order_release);  // a handler's ranges go above this one
  }
  copy_details(slot, label);  // slot->end is 0 from the start and never written
  slot->start = now_ns(*clock_);
  commit(slot, {type, label.flags, domain, label.name});
  if (domain < kLevels) [[likely]] {
    return static_cast<int>(level_[domain]++);
  }
  return level(domain) - 1;
}

template <typename Visit>
void ThreadLog::each_open(const Visit &visit) const {
  for (uint32_t i = 0; i < pieces_used_ && i <= piece_; ++i) {
    const EventRecord *end = i == piece_ ? top_ : pieces_[i].end;
    for (const EventRecord *slot = pieces_[i].begin; slot != end; ++slot) {
      if (slot->head.type != RecordType::none) {
        visit(slot->head);
      }
    }
  }
}

// The gate is as this thread saw it last, and the window began before `time`: then nothing else needs to be looked at.
inline bool ThreadLog::open_since(uint64_t time) const {
  return gate_->load(std::memory_order_relaxed) == open_gate_ && time >= window_begin_;
}

[[gnu::always_inline]] inline int ThreadLog::finish(EventRecord *slot, uint64_t end) {
  uint16_t domain = slot->head.domain;
  uint64_t start = slot->start;
  EventRecord *record = cursor_;
  std::atomic_signal_fence(std::memory_order_acquire);  // the limit after it: what changes that changes both
  if (open_since(start) && record < limit_ && advance(cursor_, record, record + 1)) [[likely]] {
    record->start = start;
    record->end = end;
    copy_details(record, *slot);
    commit(record, slot->head);
  } else {
    finish_slowly(*slot, end);
  }
  commit(slot, {});
  if (domain < kLevels) [[likely]] {
    return static_cast<int>(--level_[domain]);
  }
  return level(domain);
}

[[gnu::always_inline]] inline int ThreadLog::pop(uint16_t domain, uint64_t end) {
  if (top_ == top_begin_ || top_[-1].head.domain != domain || (holes_ | unstored_) != 0) [[unlikely]] {
    return pop_slow(domain, end);
  }
  EventRecord *slot = top_ - 1;
  int level = finish(slot, end);
  top_ = slot;  // last: until then a signal handler's ranges go above this one
  return level;
}

[[gnu::always_inline]] inline bool ThreadLog::pop_op(uint64_t address, uint64_t end, uint64_t sequence) {
  if (top_ == top_begin_ || !is_op(top_[-1], address) || (holes_ | unstored_) != 0) [[unlikely]] {
    return pop_op_slow(address, end, sequence);
  }
  EventRecord *slot = top_ - 1;
  store_word(&slot->payload, sequence);
  finish(slot, end);
  top_ = slot;  // last, as in pop()
  return true;
}

inline uint32_t ThreadLog::intern(const char *text, size_t size) {
  uint64_t hash = hash_text(text, size);
  const CachedName &cached = cache_[hash % kCacheSize];
  if (cached.hash == hash && cached.size == size) [[likely]] {
    return cached.id;
  }
  return intern_new(text, size, hash);
}

}  // namespace warplens

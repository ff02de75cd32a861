// Writes one thread's wide records without a lock.
// For records that come often and from any place: also from signal handlers, and while the thread
// holds any lock of the program.
#pragma once

#include <cstring>

#include "names.h"
#include "spool/system/busy.h"
#include "spool/wide/wide_stream.h"
#include "thread_log.h"

namespace warplens {

class Lane {
 public:
  Lane(SpoolFile &file, uint32_t generation) : file_(file), generation_(generation) {}
  Lane(const Lane &) = delete;
  Lane &operator=(const Lane &) = delete;

  uint32_t generation() const { return generation_; }  // of the recording

  //! [HOT] Writes a record that is complete, head and all, and began at `time`; head.type is os_call, gil or python_span. False when
  //! there is no space, or a signal handler interrupted the thread where it looks for some: then it is counted as lost.
  template <typename Record>
  bool append(const Record &record, uint64_t time) {
    static_assert(sizeof(Record) % 8 == 0);
    WideStream &stream = streams_[static_cast<size_t>(record.head.type) - kFirst];
    char *at = take(stream, record.head.type, sizeof(Record));
    if (at == nullptr) {
      return false;
    }
    if (time < stream.since) [[unlikely]] {
      stream.reach_back(time);
    }
    std::memcpy(at + sizeof(RecordHead), reinterpret_cast<const char *>(&record) + sizeof(RecordHead),
                sizeof(Record) - sizeof(RecordHead));
    warplens::commit(reinterpret_cast<Record *>(at), record.head);
    return true;
  }

 private:
  friend class ProcessLog;
  static constexpr auto kFirst = static_cast<size_t>(RecordType::os_call);
  static constexpr size_t kTypes = static_cast<size_t>(RecordType::python_span) + 1 - kFirst;

  // The place is taken before it is written: a handler that interrupts us gets another one.
  char *take(WideStream &stream, RecordType type, uint16_t size) {
    char *at = stream.cursor;
    std::atomic_signal_fence(std::memory_order_acquire);  // `ready` after it: what changes that changes both
    while (static_cast<size_t>(stream.ready - at) < size || !advance(stream.cursor, at, at + size))
        [[unlikely]] {
      Busy busy;
      if (!busy) {
        file_.count(kInSignal);
        return nullptr;
      }
      if (static_cast<size_t>(stream.ready - stream.cursor) < size && !stream.more(file_, type, size)) {
        return nullptr;
      }
      at = stream.cursor;
    }
    return at;
  }

  SpoolFile &file_;
  const uint32_t generation_;
  Lane *next_free_ = nullptr;
  WideStream streams_[kTypes];
};

}  // namespace warplens

// Records of a process that are of several sizes: each type in separate chunks; any thread writes
// them.
#pragma once

#include <cstring>
#include <mutex>

#include "spool/names.h"
#include "wide_stream.h"

namespace warplens {

inline constexpr auto kFirstWide = static_cast<size_t>(RecordType::cuda_graph_node);
inline constexpr size_t kWideTypes = static_cast<size_t>(RecordType::intrakernel_read) + 1 - kFirstWide;

class WideLog {
 public:
  explicit WideLog(SpoolFile &file) : file_(file) {}
  WideLog(const WideLog &) = delete;
  WideLog &operator=(const WideLog &) = delete;

  //! Holds the log while somebody writes a batch into it. The caller holds Busy.
  class Writer {
   public:
    explicit Writer(WideLog &log) : log_(log), lock_(log.mutex_) {}

    //! [HOT] Where the next record of `type` goes, or null when there is no space: then it is counted as lost. It is there once
    //! commit() was called; without that, the next one gets the same place. All of it must be written.
    template <typename Record>
    Record *place(RecordType type) {
      static_assert(sizeof(Record) % 8 == 0);
      WideStream &stream = log_.stream_of(type);
      if (static_cast<size_t>(stream.ready - stream.cursor) < sizeof(Record)) [[unlikely]] {
        if (!stream.more(log_.file_, type, sizeof(Record))) {
          return nullptr;
        }
      }
      return reinterpret_cast<Record *>(stream.cursor);
    }

    //! [HOT] The record in the last place is complete but for its head. It began at `time`, in a flight recorder's eyes.
    template <typename Record>
    void commit(Record *record, RecordHead head, uint64_t time) {
      WideStream &stream = log_.stream_of(head.type);
      if (time < stream.since) [[unlikely]] {
        stream.reach_back(time);
      }
      warplens::commit(record, head);
      stream.cursor += sizeof(Record);
    }

    //! The same for a record that lies elsewhere, head and all. False when there is no space.
    template <typename Record>
    bool append(const Record &record, uint64_t time) {
      auto *at = place<Record>(record.head.type);
      if (at != nullptr) {
        std::memcpy(reinterpret_cast<char *>(at) + sizeof(RecordHead),
                    reinterpret_cast<const char *>(&record) + sizeof(RecordHead),
                    sizeof(Record) - sizeof(RecordHead));
        commit(at, record.head, time);
      }
      return at != nullptr;
    }

   private:
    WideLog &log_;
    std::lock_guard<std::mutex> lock_;
  };

 private:
  WideStream &stream_of(RecordType type) { return streams_[static_cast<size_t>(type) - kFirstWide]; }

  SpoolFile &file_;
  std::mutex mutex_;
  WideStream streams_[kWideTypes];
};

}  // namespace warplens

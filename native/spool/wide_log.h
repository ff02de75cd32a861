// Records of a process that are of several sizes: each type in chunks of its own, written by whoever has them, on any thread.
#pragma once

#include <algorithm>
#include <cstring>
#include <mutex>

#include "chunk_ring.h"
#include "names.h"

namespace warpline {

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
      Stream &stream = log_.stream_of(type);
      if (static_cast<size_t>(stream.ready - stream.cursor) < sizeof(Record)) [[unlikely]] {
        if (!log_.more(stream, type, sizeof(Record))) {
          return nullptr;
        }
      }
      return reinterpret_cast<Record *>(stream.cursor);
    }

    //! [HOT] The record in the last place is complete but for its head. It began at `time`, in a flight recorder's eyes.
    template <typename Record>
    void commit(Record *record, RecordHead head, uint64_t time) {
      Stream &stream = log_.stream_of(head.type);
      if (time < stream.since) [[unlikely]] {
        log_.reach_back(stream, time);
      }
      warpline::commit(record, head);
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
  static constexpr auto kFirst = static_cast<size_t>(RecordType::cuda_api);
  static constexpr size_t kTypes = static_cast<size_t>(RecordType::cuda_thread) + 1 - kFirst;
  static constexpr size_t kSmallChunk = size_t{16} << 10;
  static constexpr size_t kLastChunk = size_t{1} << 20;
  static constexpr size_t kWindow = size_t{128} << 10;

  struct Stream {
    char *cursor = nullptr;
    char *ready = nullptr;  // end of what is populated
    char *end = nullptr;
    size_t next_chunk = kPage;
    uint64_t since = 0;  // nothing in the chunk began earlier; 0: nobody wants to know
    ChunkRing ring;
    Chunk lasting;  // the chunk of a type that has no ring
  };

  Stream &stream_of(RecordType type) { return streams_[static_cast<size_t>(type) - kFirst]; }
  bool more(Stream &stream, RecordType type, uint16_t stride);
  void reach_back(Stream &stream, uint64_t time);

  SpoolFile &file_;
  std::mutex mutex_;
  Stream streams_[kTypes];
};

}  // namespace warpline

// Writes the wide chunks of one type of records, for one writer.
#pragma once

#include "spool/chunk_ring.h"

namespace warplens {

//! Not [MT]: its owner sees to it that one thread writes at a time.
class WideStream {
 public:
  char *cursor = nullptr;
  char *ready = nullptr;  // end of what is populated
  uint64_t since = 0;     // nothing in the chunk began earlier; 0: nobody wants to know

  //! Makes room for a record of `stride` bytes at the cursor; false when there is no space, and the record is counted as lost. The
  //! caller holds Busy.
  bool more(SpoolFile &file, RecordType type, uint16_t stride);

  //! A flight recorder is to keep the chunk for what began at `time`.
  void reach_back(uint64_t time);

  //! The next owner begins with a small chunk again.
  void shrink();

 private:
  static constexpr size_t kSmallChunk = size_t{16} << 10;
  static constexpr size_t kLastChunk = size_t{1} << 20;
  static constexpr size_t kWindow = size_t{128} << 10;

  char *end_ = nullptr;
  char *window_ = nullptr;  // where what is populated last begins
  size_t next_chunk_ = kPage;
  ChunkRing ring_;
  Chunk lasting_;  // the chunk of a type that has no ring
};

}  // namespace warplens

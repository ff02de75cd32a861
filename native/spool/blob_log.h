// Payloads of one thread: bytes of any length, one behind the other, in chunks of the spool.
#pragma once

#include "chunk_ring.h"

namespace warplens {

class BlobLog {
 public:
  static constexpr size_t kLargest = size_t{1} << 20;  // longer payloads are cut there, and counted

  struct Blob {
    uint64_t offset = 0;  // in the file; 0: there was no space, and the payload is counted as lost
    BlobHead *head = nullptr;
  };

  //! Copies a payload; one for which there is no space is counted in the slot `lost`. The caller makes sure that no signal handler of its thread comes between (ThreadLog::Busy).
  Blob write(SpoolFile &file, uint32_t thread, const BlobHead &head, const void *bytes, size_t size,
             size_t lost = kLostPayloads);

  //! The payloads of an event that is not recorded, from the first: where nothing was written behind them, their space is free
  //! again. The caller holds Busy.
  void give_back(uint64_t first);

 private:
  static constexpr size_t kSmallChunk = size_t{16} << 10;
  static constexpr size_t kWindow = size_t{128} << 10;

  ChunkRing ring_;
  char *cursor_ = nullptr;
  char *ready_ = nullptr;  // end of what is populated
  char *end_ = nullptr;
  char *window_ = nullptr;  // where what is populated last begins
  uint64_t begin_ = 0;      // of the chunk's contents in the file
  uint64_t offset_ = 0;     // of the cursor
  size_t next_chunk_ = kPage;
};

}  // namespace warplens

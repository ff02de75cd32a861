// Full chunks in the order in which they became full.
#pragma once

#include "warplens/format.h"

namespace warplens {

// A piece of the file. Callers keep its size: the header belongs to no file once the recording has ended.
struct Chunk {
  ChunkHeader *header = nullptr;
  size_t size = 0;
  uint64_t offset = 0;  // in the file
  uint64_t since = 0;   // nothing in it was written earlier; a flight recorder wants to know

  char *contents() const { return reinterpret_cast<char *>(header + 1); }
  char *end() const { return reinterpret_cast<char *>(header) + size; }
  explicit operator bool() const { return header != nullptr; }
};

struct UsedChunk {
  Chunk chunk;
  uint16_t generation;  // as its header says, which may be gone by now
  uint64_t newest;      // nothing in it is later
  uint64_t records;     // that it has room for; 0 for blobs
  UsedChunk *next;
};

class UsedChunks {
 public:
  void add(UsedChunk *used) {
    used->next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = used;
    last_ = used;
  }

  //! The first one with room for `need` bytes behind its header, if nothing in it is later than `latest`; or the smallest of those.
  UsedChunk *take(size_t need, uint64_t latest, bool smallest) {
    UsedChunk *best = nullptr;
    UsedChunk *before_best = nullptr;
    UsedChunk *before = nullptr;
    for (UsedChunk *used = first_; used != nullptr && used->newest < latest && (best == nullptr || smallest);
         before = used, used = used->next) {
      if (used->chunk.size - sizeof(ChunkHeader) >= need &&
          (best == nullptr || used->chunk.size < best->chunk.size)) {
        best = used;
        before_best = before;
      }
    }
    if (best != nullptr) {
      (before_best == nullptr ? first_ : before_best->next) = best->next;
      last_ = last_ == best ? before_best : last_;
    }
    return best;
  }

 private:
  UsedChunk *first_ = nullptr;
  UsedChunk *last_ = nullptr;
};

}  // namespace warplens

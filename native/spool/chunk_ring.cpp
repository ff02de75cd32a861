// Takes the next chunk of a writer, or an old one of a flight recorder.
#include "chunk_ring.h"

#include <algorithm>
#include <utility>

#include "spool/system/clock.h"

namespace warplens {

Chunk ChunkRing::next(SpoolFile &file, ChunkKind kind, uint16_t stride, uint32_t thread, size_t need,
                      size_t want, RecordType type) {
  uint64_t now = file.keep_ns() == 0 ? 0 : now_ns(file.clock());
  Chunk full = current_;
  if (kind == ChunkKind::blobs && current_) {
    full = std::exchange(before_, current_);
  }
  current_ = {};
  if (full) {
    file.retire(full, now);
  }
  if (file.keep_ns() != 0) {
    current_ = file.take_used(Used::expired, kind, stride, thread, need, type, now);
    want = std::min(want, file.largest_in_ring());
  }
  if (!current_) {
    current_ = file.allocate(kind, stride, thread, want, type, need);
  }
  if (!current_ && file.keep_ns() != 0) {  // the latest records are worth more than the oldest
    current_ = file.take_used(Used::oldest, kind, stride, thread, need, type);
  }
  current_.since = now;
  return current_;
}

}  // namespace warplens

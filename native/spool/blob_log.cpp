// Payloads, written as they come.
#include "blob_log.h"

#include <algorithm>
#include <cstring>

namespace warpline {

BlobLog::Blob BlobLog::write(SpoolFile &file, uint32_t thread, const BlobHead &head, const void *bytes,
                             size_t size) {
  uint32_t flags = head.flags;
  if (size > kLargest) {
    size = kLargest;
    flags |= kBlobCut;
  }
  size_t need = (sizeof(BlobHead) + size + 7) / 8 * 8;
  if (static_cast<size_t>(end_ - cursor_) < need) {
    uint64_t offset = 0;
    ChunkHeader *chunk = file.allocate_for(need, ChunkKind::blobs, thread, next_chunk_, &offset);
    if (chunk == nullptr) {
      file.count(kLostPayloads);
      return {};
    }
    next_chunk_ = std::min(next_chunk_ * 4, size_t{1} << 20);
    cursor_ = reinterpret_cast<char *>(chunk + 1);
    end_ = reinterpret_cast<char *>(chunk) + chunk->size;
    ready_ = chunk->size <= kSmallChunk ? end_ : cursor_;  // threads that write little should not cost memory
    offset_ = offset + sizeof(ChunkHeader);
  }
  if (static_cast<size_t>(ready_ - cursor_) < need) {
    char *begin = std::max(ready_, cursor_);
    ready_ = std::min(end_, begin + std::max(kWindow, need));
    SpoolFile::populate(begin, static_cast<size_t>(ready_ - begin));
  }
  if ((flags & kBlobCut) != 0) {
    file.count(kCutPayloads);
  }
  auto *blob = reinterpret_cast<BlobHead *>(cursor_);
  blob->flags = flags;
  blob->schema = head.schema;
  blob->next = head.next;
  if (size != 0) {
    std::memcpy(blob + 1, bytes, size);
  }
  std::atomic_ref(blob->size_plus_1).store(static_cast<uint32_t>(size + 1), std::memory_order_release);
  Blob result{offset_, blob};
  cursor_ += need;
  offset_ += need;
  return result;
}

}  // namespace warpline

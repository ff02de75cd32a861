// Writes payloads as they come.
#include "blob_log.h"

#include <algorithm>
#include <cstring>

namespace warplens {

BlobLog::Blob BlobLog::write(SpoolFile &file, uint32_t thread, const BlobHead &head, const void *bytes,
                             size_t size, size_t lost) {
  uint32_t flags = head.flags;
  if (size > kLargest) {
    size = kLargest;
    flags |= kBlobCut;
  }
  size_t need = (sizeof(BlobHead) + size + 7) / 8 * 8;
  if (static_cast<size_t>(end_ - cursor_) < need) {
    cursor_ = ready_ = end_ = nullptr;
    Chunk chunk = ring_.next(file, ChunkKind::blobs, 0, thread, need, next_chunk_);
    if (!chunk) {
      file.count(lost);
      return {};
    }
    next_chunk_ = std::min(next_chunk_ * 4, size_t{1} << 20);
    cursor_ = window_ = chunk.contents();
    end_ = chunk.end();
    ready_ = chunk.size <= kSmallChunk ? end_ : cursor_;  // threads that write little should not cost memory
    // Where it lies, and which of those that have lain there.
    uint64_t generation = chunk.header->generation;
    begin_ = offset_ = (chunk.offset + sizeof(ChunkHeader)) | generation << kBlobGeneration;
  }
  if (static_cast<size_t>(ready_ - cursor_) < need) {
    char *begin = std::max(ready_, cursor_);
    file.let_go(window_, cursor_);
    window_ = begin;
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

void BlobLog::give_back(uint64_t first) {
  if (cursor_ == nullptr) {
    return;
  }
  uint64_t end = first;
  for (uint64_t at = first; at >= begin_ && at < offset_;) {
    const auto *blob = reinterpret_cast<const BlobHead *>(cursor_ - (offset_ - at));
    end = at + (sizeof(BlobHead) + blob->size_plus_1 - 1 + 7) / 8 * 8;
    if (blob->next <= at) {
      break;
    }
    at = blob->next;
  }
  if (first < begin_ || end != offset_) {
    return;  // in another chunk, or something else follows
  }
  cursor_ -= offset_ - first;
  offset_ = first;
  auto *blob = reinterpret_cast<BlobHead *>(cursor_);
  std::atomic_ref(blob->size_plus_1).store(0, std::memory_order_release);
  std::memset(cursor_ + sizeof(uint32_t), 0, end - first - sizeof(uint32_t));
}

}  // namespace warplens

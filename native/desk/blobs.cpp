#include "blobs.h"

#include <algorithm>
#include <cstring>

namespace warpline::desk {

namespace {

// BlobHead of docs/dev/formats/spool.md.
struct Head {
  uint32_t size_plus_1;
  uint32_t flags;
  uint64_t schema;
  uint64_t next;
};

}  // namespace

void BlobReader::set_chunks(const uint64_t *offsets, const uint64_t *sizes, uint64_t count) {
  chunks_.clear();
  for (uint64_t index = 0; index < count; ++index) {
    chunks_.push_back({offsets[index], sizes[index], {}});
  }
}

bool BlobReader::take(const uint8_t *base, uint64_t offset, uint32_t event, uint64_t *next) {
  auto chunk = std::upper_bound(chunks_.begin(), chunks_.end(), offset,
                                [](uint64_t at, const Chunk &one) { return at < one.offset; });
  if (chunk == chunks_.begin()) {
    return false;
  }
  --chunk;
  const uint64_t within = offset - chunk->offset;
  if (within >= chunk->size || chunk->size - within < sizeof(Head) || within % 8 != 0) {
    return false;
  }
  Head head;
  std::memcpy(&head, base + offset, sizeof head);
  if (head.size_plus_1 == 0 || head.size_plus_1 - 1 > chunk->size - within - sizeof(Head)) {
    return false;
  }
  chunk->seen.resize(chunk->size / 512 + 1);
  uint64_t &word = chunk->seen[within / 512];
  const uint64_t bit = uint64_t{1} << (within / 8 % 64);
  if ((word & bit) != 0) {
    return false;
  }
  word |= bit;
  found.event.push_back(event);
  found.offset.push_back(offset + sizeof(Head));
  found.size.push_back(head.size_plus_1 - 1);
  found.flags.push_back(head.flags);
  found.schema.push_back(head.schema);
  *next = head.next;
  return true;
}

void BlobReader::walk(const uint8_t *base, const uint64_t *first, uint64_t count) {
  found = {};
  for (uint64_t index = 0; index < count; ++index) {
    for (uint64_t at = first[index]; at != 0;) {
      if (!take(base, at, static_cast<uint32_t>(index), &at)) {
        ++damaged;
        break;
      }
    }
  }
}

}  // namespace warpline::desk

// Follows events to their payloads, and trusts no offset.
#include "blobs.h"

#include <algorithm>
#include <cstring>

namespace warplens::reader {

namespace {

constexpr uint32_t kAtEnd = 1;
constexpr unsigned kGeneration =
    48;  // the bits of an offset from here on say which contents of the chunk are meant …
constexpr uint64_t kOffset = (uint64_t{1} << kGeneration) - 1;
constexpr uint64_t kGenerationAt =
    64 - 24;                     // … and the chunk's header, in front of the contents, which are there now
constexpr int kMostLooked = 64;  // payloads of one range that are looked at for a number

// Which type of a record's payload (docs/dev/formats/spool.md) a blob of one of NVTX's types is; 0: none.
uint8_t number_type(uint64_t schema, uint32_t size) {
  constexpr uint8_t kTypes[] = {5, 4, 2, 1, 6, 3};  // i32 u32 i64 u64 f32 f64, which NVTX numbers from 15
  if (schema < 15 || schema > 20) {
    return 0;
  }
  const bool short_one = schema < 17 || schema == 19;
  return size == (short_one ? 4 : 8) ? kTypes[schema - 15] : uint8_t{0};
}

}  // namespace

// BlobHead of docs/dev/formats/spool.md.
struct BlobReader::Head {
  uint32_t size_plus_1;
  uint32_t flags;
  uint64_t schema;
  uint64_t next;
};

void BlobReader::set_chunks(const uint64_t *offsets, const uint64_t *sizes, uint64_t count) {
  chunks_.clear();
  for (uint64_t index = 0; index < count; ++index) {
    chunks_.push_back({offsets[index], sizes[index], {}});
  }
}

const BlobReader::Chunk *BlobReader::find(const uint8_t *base, uint64_t named, Head *head) const {
  const uint64_t offset = named & kOffset;
  auto chunk = std::upper_bound(chunks_.begin(), chunks_.end(), offset,
                                [](uint64_t at, const Chunk &one) { return at < one.offset; });
  if (chunk == chunks_.begin()) {
    return nullptr;
  }
  --chunk;
  const uint64_t within = offset - chunk->offset;
  if (within >= chunk->size || chunk->size - within < sizeof(Head) || within % 8 != 0) {
    return nullptr;
  }
  uint16_t generation = 0;
  std::memcpy(&generation, base + chunk->offset - kGenerationAt, sizeof generation);
  if (named >> kGeneration != generation) {
    return nullptr;  // a flight recorder has overwritten it
  }
  std::memcpy(head, base + offset, sizeof *head);
  const bool whole = head->size_plus_1 != 0 && head->size_plus_1 - 1 <= chunk->size - within - sizeof(Head);
  return whole ? &*chunk : nullptr;
}

std::optional<PayloadNumber> BlobReader::number_at_end(const uint8_t *base, uint64_t first) const {
  Head head{};
  if (find(base, first, &head) == nullptr || (head.flags & kAtEnd) == 0) {
    return {};
  }
  uint64_t at = first;
  for (int looked = 0; looked < kMostLooked && at != 0 && find(base, at, &head) != nullptr; ++looked) {
    if (const uint8_t type = number_type(head.schema, head.size_plus_1 - 1); type != 0) {
      PayloadNumber number{type, 0};
      std::memcpy(&number.payload, base + (at & kOffset) + sizeof(Head), head.size_plus_1 - 1);
      return number;
    }
    at = head.next;
  }
  return {};
}

bool BlobReader::take(const uint8_t *base, uint64_t named, uint32_t event, uint64_t *next, Blobs &blobs) {
  Head head{};
  const uint64_t offset = named & kOffset;
  const Chunk *found_in = find(base, named, &head);
  if (found_in == nullptr) {
    return false;
  }
  Chunk *chunk = &chunks_[static_cast<size_t>(found_in - chunks_.data())];
  const uint64_t within = offset - chunk->offset;
  chunk->seen.resize(chunk->size / 512 + 1);
  uint64_t &word = chunk->seen[within / 512];
  const uint64_t bit = uint64_t{1} << (within / 8 % 64);
  if ((word & bit) != 0) {
    return false;
  }
  word |= bit;
  blobs.event.push_back(event);
  blobs.offset.push_back(offset + sizeof(Head));
  blobs.size.push_back(head.size_plus_1 - 1);
  blobs.flags.push_back(head.flags);
  blobs.schema.push_back(head.schema);
  *next = head.next;
  return true;
}

Blobs BlobReader::walk(const uint8_t *base, const uint64_t *first, uint64_t count) {
  Blobs blobs;
  for (uint64_t index = 0; index < count; ++index) {
    for (uint64_t at = first[index]; at != 0;) {
      if (!take(base, at, static_cast<uint32_t>(index), &at, blobs)) {
        ++damaged;
        break;
      }
    }
  }
  return blobs;
}

}  // namespace warplens::reader

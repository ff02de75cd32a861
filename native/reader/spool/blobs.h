// Follows events to their payloads, trusting no offset.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace warplens::reader {

// The payloads of some events, column by column.
struct Blobs {
  std::vector<uint32_t> event;  // position in the list of events asked for
  std::vector<uint64_t> offset;
  std::vector<uint32_t> size;
  std::vector<uint32_t> flags;
  std::vector<uint64_t> schema;
};

// One number, as a record would hold it.
struct PayloadNumber {
  uint8_t flags;
  uint64_t payload;
};

class BlobReader {
 public:
  // The contents of the blobs chunks, in order of offset.
  void set_chunks(const uint64_t *offsets, const uint64_t *sizes, uint64_t count);
  // Reads the chains that begin at `first[0 … count-1]`; 0 begins none.
  Blobs walk(const uint8_t *base, const uint64_t *first, uint64_t count);
  // The number that a range with payloads given at its end has: the end's, else the beginning's.
  std::optional<PayloadNumber> number_at_end(const uint8_t *base, uint64_t first) const;

  uint64_t damaged = 0;  // offsets that are no payload, or that of two events

 private:
  struct Head;
  struct Chunk {
    uint64_t offset;
    uint64_t size;
    std::vector<uint64_t> seen;  // a bit per 8 bytes: a chain that bites its tail must end
  };

  // The chunk that holds the whole payload at `offset`, and its head; null: there is none.
  const Chunk *find(const uint8_t *base, uint64_t offset, Head *head) const;
  bool take(const uint8_t *base, uint64_t offset, uint32_t event, uint64_t *next, Blobs &blobs);

  std::vector<Chunk> chunks_;
};

}  // namespace warplens::reader

// Reads the strings of a spool chunk.
#include "string_chunk.h"

#include <cstring>

namespace warplens::reader {

uint64_t read_strings(const uint8_t *chunk, uint64_t size, uint64_t most, uint32_t *ids, int64_t *ends,
                      uint8_t *data, uint64_t *bytes, uint32_t *broken) {
  const uint64_t room = *bytes;
  *bytes = 0;
  uint64_t count = 0;
  uint64_t at = 0;
  while (count < most && size - at >= 8) {
    uint32_t length_plus_1;
    uint32_t id;
    std::memcpy(&length_plus_1, chunk + at, 4);
    std::memcpy(&id, chunk + at + 4, 4);
    if (length_plus_1 == 0) {
      break;
    }
    const uint64_t length = length_plus_1 - 1;
    if (length > size - at - 8) {
      *broken = 1;
      break;
    }
    if (length > room - *bytes) {
      break;  // the program goes on, and has added it since they were counted
    }
    if (ids != nullptr) {
      ids[count] = id;
      std::memcpy(data + *bytes, chunk + at + 8, length);
      ends[count] = static_cast<int64_t>(*bytes + length);
    }
    *bytes += length;
    ++count;
    const uint64_t padded = 8 + (length + 7) / 8 * 8;
    if (padded > size - at) {
      break;
    }
    at += padded;
  }
  return count;
}

}  // namespace warplens::reader

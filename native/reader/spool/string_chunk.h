// Reads the strings of a spool chunk.
#pragma once

#include <cstdint>

namespace warplens::reader {

// Walks a strings chunk's contents. Returns the number of whole strings, at most `most` of at most `*bytes` bytes together, and
// sets *bytes to what they have; with `ids` not null it also writes their ids, their ends in `data` and the text.
// *broken becomes 1 where a length does not fit into the chunk.
uint64_t read_strings(const uint8_t *chunk, uint64_t size, uint64_t most, uint32_t *ids, int64_t *ends,
                      uint8_t *data, uint64_t *bytes, uint32_t *broken);

}  // namespace warplens::reader

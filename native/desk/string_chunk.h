// The strings of a spool chunk.
#pragma once

#include <cstdint>

namespace warpline::desk {

// Walks a strings chunk's contents. Returns the number of whole strings and adds their lengths to *bytes; with `ids`
// not null it also writes their ids, their ends in `data` (counted from *bytes as it came in) and the text.
// *broken becomes 1 where a length does not fit into the chunk.
uint64_t read_strings(const uint8_t *chunk, uint64_t size, uint32_t *ids, int64_t *ends, uint8_t *data,
                      uint64_t *bytes, uint32_t *broken);

}  // namespace warpline::desk

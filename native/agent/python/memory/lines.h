// The line tables of code objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace warplens::agent {

// Instructions up to `end` (bytes from the first one), from where the range before it ends.
struct LineRange {
  uint32_t end;
  uint32_t line;  // 0 = none
};

//! Takes a line table apart: co_linetable of `version` (0x030b: 3.11). What does not make sense ends it. Throws bad_alloc.
std::vector<LineRange> decode_lines(uint32_t version, int first_line, const uint8_t *table, size_t size);

//! The line of the instruction at `offset`; 0 where there is none, `first_line` before the first one.
uint32_t line_at(const std::vector<LineRange> &ranges, int64_t offset, uint32_t first_line);

}  // namespace warplens::agent

// Decodes line tables: that of 3.10 (PEP 626), and of 3.11 and later (PEP 657).
#include "lines.h"

#include <algorithm>

namespace warplens::agent {
namespace {

uint32_t valid(int64_t line) {
  return line > 0 && line <= INT32_MAX ? static_cast<uint32_t>(line) : 0;
}

void add(std::vector<LineRange> &ranges, uint32_t end, uint32_t line) {
  if (!ranges.empty() && ranges.back().line == line) {
    ranges.back().end = end;
  } else {
    ranges.push_back({end, line});
  }
}

// Pairs: how many bytes of instructions, and how many lines on; -128: they are of no line.
std::vector<LineRange> decode_pairs(int first_line, const uint8_t *table, size_t size) {
  std::vector<LineRange> ranges;
  int64_t line = first_line;
  uint32_t end = 0;
  for (size_t i = 0; i + 1 < size; i += 2) {
    auto lines = static_cast<int8_t>(table[i + 1]);
    end += table[i];
    if (lines != -128) {
      line += lines;
    }
    if (table[i] != 0) {
      add(ranges, end, lines == -128 ? 0 : valid(line));
    }
  }
  return ranges;
}

class Varints {
 public:
  Varints(const uint8_t *at, const uint8_t *end) : at_(at), end_(end) {}
  bool is_done() const { return at_ == end_; }
  uint8_t byte() { return at_ == end_ ? 0 : *at_++; }
  void skip(size_t count) { at_ += std::min(count, static_cast<size_t>(end_ - at_)); }

  uint32_t number() {
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 32; shift += 6) {
      uint8_t next = byte();
      value |= static_cast<uint32_t>(next & 63) << shift;
      if ((next & 64) == 0) {
        break;
      }
    }
    return value;
  }

  int64_t signed_number() {
    uint32_t value = number();
    return (value & 1) != 0 ? -static_cast<int64_t>(value >> 1) : static_cast<int64_t>(value >> 1);
  }

 private:
  const uint8_t *at_;
  const uint8_t *end_;
};

// Entries: a byte with its kind and how many instructions of two bytes, then by kind lines and columns.
std::vector<LineRange> decode_locations(int first_line, const uint8_t *table, size_t size) {
  std::vector<LineRange> ranges;
  Varints from(table, table + size);
  int64_t line = first_line;
  uint32_t end = 0;
  while (!from.is_done()) {
    uint8_t head = from.byte();
    if ((head & 0x80) == 0) {
      break;  // not where an entry begins
    }
    unsigned kind = head >> 3 & 15;
    end += ((head & 7) + 1u) * 2;
    switch (kind) {
      case 15:  // of no line
        break;
      case 14:  // lines and columns
        line += from.signed_number();
        from.number();
        from.number();
        from.number();
        break;
      case 13:  // lines
        line += from.signed_number();
        break;
      case 10:
      case 11:
      case 12:
        line += kind - 10;
        from.skip(2);
        break;
      default:  // on the same line
        from.skip(1);
        break;
    }
    add(ranges, end, kind == 15 ? 0 : valid(line));
  }
  return ranges;
}

}  // namespace

std::vector<LineRange> decode_lines(uint32_t version, int first_line, const uint8_t *table, size_t size) {
  return version >= 0x030b ? decode_locations(first_line, table, size)
                           : decode_pairs(first_line, table, size);
}

uint32_t line_at(const std::vector<LineRange> &ranges, int64_t offset, uint32_t first_line) {
  if (offset < 0) {
    return first_line;  // it was entered just now
  }
  auto range = std::upper_bound(ranges.begin(), ranges.end(), offset,
                                [](int64_t at, const LineRange &is) { return at < is.end; });
  return range == ranges.end() ? 0 : range->line;
}

}  // namespace warplens::agent

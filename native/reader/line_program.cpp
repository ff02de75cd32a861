// Runs the line programs of DWARF (section .debug_line): millions of steps, which take seconds in Python.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "door.h"

namespace warplens::desk {
namespace {

constexpr uint64_t kFar = std::numeric_limits<uint64_t>::max();
constexpr int64_t kLastLine = std::numeric_limits<int32_t>::max();

// Bytes of a program. Behind its end are zeros, and `is_cut` becomes true.
struct Bytes {
  Array<const uint8_t> data;
  uint64_t at;
  uint64_t end;
  bool is_cut = false;

  uint8_t next() {
    if (at >= end) {
      is_cut = true;
      return 0;
    }
    return data[at++];
  }

  // Little-endian, of at most 8 bytes.
  uint64_t number(unsigned size) {
    uint64_t value = 0;
    for (unsigned byte = 0; byte < size; ++byte) {
      value |= uint64_t{next()} << (8 * byte);
    }
    return value;
  }

  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const uint8_t byte = next();
      value |= shift < 64 ? uint64_t{byte & 0x7Fu} << shift : 0;
      if (byte < 0x80) {
        break;
      }
    }
    return value;
  }

  int64_t sleb() {
    const uint64_t begin = at;
    const uint64_t value = uleb();
    const uint64_t bits = 7 * (at - begin);
    return static_cast<int64_t>(bits > 0 && bits < 64 && (value >> (bits - 1) & 1) ? value - (1ULL << bits)
                                                                                   : value);
  }
};

// The header's numbers, in this order.
struct Header {
  int64_t step;
  int64_t line_base;
  int64_t line_range;
  int64_t opcode_base;
};

// Runs the program in data[begin, end) and sets file number and line of each of `addresses` (rising) that it covers, unless it has a
// line by then: 0 is none. `lengths`: how many arguments the standard opcodes have.
void run_line_program(Array<const uint8_t> data, uint64_t begin, uint64_t end, Array<const int64_t> header,
                      Array<const int64_t> lengths, Array<const int64_t> addresses, Array<int64_t> files,
                      Array<int64_t> lines) {
  require_size(4, header);
  require_size(addresses.size, files, lines);
  const Header unit{header[0], header[1], header[2], header[3]};
  if (unit.line_range <= 0 || unit.opcode_base <= 0 || end > data.size) {
    throw std::invalid_argument("this is no header of a line program");
  }
  const auto far = [&](uint64_t code) {
    return (code - static_cast<uint64_t>(unit.opcode_base)) / static_cast<uint64_t>(unit.line_range) *
           static_cast<uint64_t>(unit.step);
  };
  Bytes bytes{data, begin, end};
  uint64_t address = 0;
  uint64_t file = 1;
  int64_t line = 1;
  bool has_row = false;  // its addresses end where the next row's begin
  uint64_t row_file = 0;
  int64_t row_line = 0;
  uint64_t place = 0;  // of the next address that may be met
  const auto target = [&] { return place < addresses.size ? static_cast<uint64_t>(addresses[place]) : kFar; };
  uint64_t next = kFar;
  while (bytes.at < end && !bytes.is_cut) {
    const uint8_t code = bytes.next();
    bool ends = false;
    if (code >= unit.opcode_base) {
      address += far(code);
      line += unit.line_base + (code - unit.opcode_base) % unit.line_range;
    } else if (code == 0) {
      const uint64_t size = bytes.uleb();
      const uint64_t after = bytes.at + std::min(size, end - bytes.at);
      const uint8_t kind = bytes.next();
      if (kind == 2 && size == 9) {
        address = bytes.number(8);
        if (!has_row) {
          const int64_t *first = std::lower_bound(
              addresses.begin(), addresses.end(),
              static_cast<int64_t>(std::min<uint64_t>(address, std::numeric_limits<int64_t>::max())));
          place = static_cast<uint64_t>(first - addresses.begin());
          next = target();
        }
      }
      bytes.at = after;
      if (kind != 1) {
        continue;
      }
      ends = true;
    } else if (code != 1) {
      switch (code) {
        case 2:
          address += bytes.uleb() * static_cast<uint64_t>(unit.step);
          break;
        case 3:
          line += bytes.sleb();
          break;
        case 4:
          file = bytes.uleb();
          break;
        case 8:
          address += far(255);
          break;
        case 9:
          address += bytes.number(2);
          break;
        default:
          for (int64_t count = code <= lengths.size ? lengths[code - 1U] : 0; count > 0; --count) {
            bytes.uleb();
          }
      }
      continue;
    }
    // A row.
    while (next < address) {
      if (has_row && lines[place] == 0 && row_line > 0 && row_line <= kLastLine) {
        files[place] = static_cast<int64_t>(row_file);
        lines[place] = row_line;
      }
      ++place;
      next = target();
    }
    has_row = true;
    row_file = file;
    row_line = line;
    if (ends) {
      address = 0;
      file = 1;
      line = 1;
      has_row = false;
      next = kFar;
    }
  }
}
WARPLENS_FUNCTION(run_line_program);

}  // namespace
}  // namespace warplens::desk

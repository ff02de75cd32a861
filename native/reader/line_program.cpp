// Runs a line program of DWARF: which file and line are at some addresses. Programs have millions of steps.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "reader/door.h"

namespace warplens::reader {
namespace {

constexpr uint64_t kFar = std::numeric_limits<uint64_t>::max();
constexpr int64_t kLastLine = 0x7FFFFFFF;

// The parts of a unit's header that a program needs, in the order in which lines.py passes them.
struct Header {
  int64_t begin, end;  // of the program within the section
  int64_t step, line_base, line_range, opcode_base;
  int64_t first_file, files;  // the numbers of files that have a name
};

// Bytes of the section. Behind its end `cut` is true and all bytes are 0.
struct Cursor {
  const uint8_t *data;
  uint64_t at, size;
  bool cut = false;

  uint8_t byte() {
    if (at >= size) {
      cut = true;
      return 0;
    }
    return data[at++];
  }

  void skip(uint64_t count) { at = count > size - std::min(at, size) ? size : at + count; }

  uint64_t little_endian(uint64_t from, unsigned bytes) const {
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes && from + i < size; ++i) {
      value |= static_cast<uint64_t>(data[from + i]) << (8 * i);
    }
    return value;
  }

  // A number of variable length; `bits`: how many were read.
  uint64_t number(unsigned &bits) {
    uint64_t value = 0;
    bits = 0;
    for (uint8_t next = 0x80; next >= 0x80 && bits < 70; bits += 7) {
      next = byte();
      value |= bits < 64 ? static_cast<uint64_t>(next & 0x7F) << bits : 0;
    }
    return value;
  }

  uint64_t unsigned_number() {
    unsigned bits;
    return number(bits);
  }

  uint64_t signed_number() {
    unsigned bits;
    const uint64_t value = number(bits);
    return bits < 64 && (value >> (bits - 1) & 1) != 0 ? value | kFar << bits : value;
  }
};

// The addresses that somebody asked for, in rising order, and the rows that cover them.
class Wanted {
 public:
  Wanted(Array<const int64_t> addresses, Array<int64_t> file, Array<int64_t> line)
      : addresses_(addresses), file_(file), line_(line) {}

  void begin_at(uint64_t address) {
    const auto less = [](int64_t one, uint64_t other) { return static_cast<uint64_t>(one) < other; };
    place_ = std::lower_bound(addresses_.begin(), addresses_.end(), address, less) - addresses_.begin();
    look();
  }

  void end() { target_ = kFar; }

  // The last row covers what lies before `address`.
  void up_to(uint64_t address, bool is_row, uint64_t file, int64_t line, const Header &header) {
    while (target_ < address) {
      const uint64_t index = file - static_cast<uint64_t>(header.first_file);
      if (is_row && line_[place_] == 0 && line > 0 && line <= kLastLine &&
          index < static_cast<uint64_t>(header.files)) {
        file_[place_] = static_cast<int64_t>(file);
        line_[place_] = line;
      }
      ++place_;
      look();
    }
  }

 private:
  void look() { target_ = place_ < addresses_.size ? static_cast<uint64_t>(addresses_[place_]) : kFar; }

  Array<const int64_t> addresses_;
  Array<int64_t> file_, line_;
  uint64_t place_ = 0;
  uint64_t target_ = kFar;
};

struct Row {
  uint64_t address = 0, file = 1;
  uint64_t line = 1;  // wraps: damaged programs count to anything
};

}  // namespace

// Puts the file's number and the line at each of `addresses` (rising) into `file` and `line`; those that have a line already keep it.
// `header`: see Header; `lengths`: how many numbers follow each standard opcode.
void run_line_program(Array<const uint8_t> section, Array<const int64_t> header, Array<const uint8_t> lengths,
                      Array<const int64_t> addresses, Array<int64_t> file, Array<int64_t> line) {
  require_size(addresses.size, file, line);
  require_size(sizeof(Header) / sizeof(int64_t), header);
  const Header unit{header[0], header[1], header[2], header[3], header[4], header[5], header[6], header[7]};
  if (unit.begin < 0 || unit.end < unit.begin || static_cast<uint64_t>(unit.end) > section.size ||
      unit.line_range <= 0 || unit.opcode_base <= 0 ||
      lengths.size + 1 < static_cast<uint64_t>(unit.opcode_base)) {
    throw std::invalid_argument("the header of the line program is damaged");
  }
  const auto step = static_cast<uint64_t>(unit.step);
  const auto advance = [&](int64_t code) {
    return static_cast<uint64_t>((code - unit.opcode_base) / unit.line_range) * step;
  };
  Cursor cursor{section.data, static_cast<uint64_t>(unit.begin), section.size};
  Wanted wanted(addresses, file, line);
  Row now, before;
  bool is_row = false;  // whether `before` is one
  while (!cursor.cut && cursor.at < static_cast<uint64_t>(unit.end)) {
    const int64_t code = cursor.byte();
    bool over = false;
    if (code >= unit.opcode_base) {
      now.address += advance(code);
      now.line += static_cast<uint64_t>(unit.line_base + (code - unit.opcode_base) % unit.line_range);
    } else if (code == 0) {  // an extended one: the end of a sequence, an address, or what we skip
      const uint64_t size = cursor.unsigned_number();
      const uint64_t at = cursor.at;
      const uint8_t kind = cursor.byte();
      if (kind == 2 && size == 9) {
        now.address = cursor.little_endian(at + 1, 8);
        if (!is_row) {
          wanted.begin_at(now.address);
        }
      }
      cursor.at = at;
      cursor.skip(size);
      over = kind == 1;
      if (!over) {
        continue;
      }
    } else if (code != 1) {
      if (code == 2) {
        now.address += cursor.unsigned_number() * step;
      } else if (code == 3) {
        now.line += cursor.signed_number();
      } else if (code == 4) {
        now.file = cursor.unsigned_number();
      } else if (code == 8) {
        now.address += advance(255);
      } else if (code == 9) {
        now.address += cursor.little_endian(cursor.at, 2);
        cursor.skip(2);
      } else {
        for (unsigned number = 0; number < lengths[code - 1] && !cursor.cut; ++number) {
          cursor.unsigned_number();
        }
      }
      continue;
    }
    if (cursor.cut) {
      break;
    }
    wanted.up_to(now.address, is_row, before.file, static_cast<int64_t>(before.line), unit);
    before = now;
    is_row = !over;
    if (over) {
      now = Row{};
      wanted.end();
    }
  }
}
WARPLENS_FUNCTION(run_line_program);

}  // namespace warplens::reader

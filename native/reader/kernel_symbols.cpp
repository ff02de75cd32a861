// Finds functions of the kernel in the text of /proc/kallsyms, which has 100,000 lines and more: one pass for all addresses.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "door.h"

namespace warplens::reader {
namespace {

constexpr size_t kDigits = 16;   // of an address, on the machines that we record on
constexpr size_t kShortest = 4;  // bytes behind it: a letter between blanks, and a name

// How well a function is known by a letter of the kernel: to other files, to its own, as a stand-in. 0: it is no function.
int rank_of(char letter) {
  switch (letter) {
    case 'T':
      return 1;
    case 't':
      return 2;
    case 'w':
    case 'W':
      return 3;
    default:
      return 0;
  }
}

// The address at the begin of a line; 0 for other text.
uint64_t address_of(const char *line) {
  uint64_t address = 0;
  for (size_t place = 0; place < kDigits; ++place) {
    const char digit = line[place];
    uint64_t value = 0;
    if (digit >= '0' && digit <= '9') {
      value = static_cast<uint64_t>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      value = static_cast<uint64_t>(digit - 'a') + 10;
    } else {
      return 0;
    }
    address = address << 4 | value;
  }
  return address;
}

size_t underscores(const char *name, const char *end) {
  return static_cast<size_t>(std::find_if(name, end, [](char letter) { return letter != '_'; }) - name);
}

struct Best {
  uint64_t begin = 0;
  uint64_t name = 0;
  uint64_t end = 0;
  int rank = std::numeric_limits<int>::max();
  size_t underscores = 0;

  // Of several names of an address the one that is known best.
  bool is_before(const Best &other) const {
    return begin != other.begin ? begin > other.begin
           : rank != other.rank ? rank < other.rank
                                : underscores < other.underscores;
  }
};

}  // namespace

// For each address (rising): where the last function before it begins, and where its name is in the text; 0 and an empty name for
// none. Returns the number of all functions.
uint64_t find_kernel_functions(Array<const char> text, Array<const uint64_t> addresses,
                               Array<uint64_t> begins, Array<uint64_t> names, Array<uint64_t> ends) {
  require_size(addresses.size, begins, names, ends);
  std::vector<Best> best(addresses.size);
  uint64_t functions = 0;
  const char *const stop = text.data + text.size;
  for (const char *line = text.data; line < stop;) {
    const void *const newline = std::memchr(line, '\n', static_cast<size_t>(stop - line));
    const char *const end = newline != nullptr ? static_cast<const char *>(newline) : stop;
    const char *const name = line + kDigits + kShortest - 1;
    if (end > name && line[kDigits] == ' ' && line[kDigits + 2] == ' ' &&
        static_cast<unsigned char>(*name) > ' ') {
      const int rank = rank_of(line[kDigits + 1]);
      const uint64_t address = rank != 0 ? address_of(line) : 0;
      if (address != 0) {
        ++functions;
        const auto slot = static_cast<uint64_t>(
            std::lower_bound(addresses.begin(), addresses.end(), address) - addresses.begin());
        if (slot < best.size()) {
          const Best one{address, static_cast<uint64_t>(name - text.data),
                         static_cast<uint64_t>(end - text.data), rank, underscores(name, end)};
          if (one.is_before(best[slot])) {
            best[slot] = one;
          }
        }
      }
    }
    line = end + 1;
  }
  Best last;
  for (uint64_t slot = 0; slot < best.size(); ++slot) {
    if (best[slot].begin != 0) {
      last = best[slot];
    }
    begins[slot] = last.begin;
    names[slot] = last.name;
    ends[slot] = last.end;
  }
  return functions;
}
WARPLENS_FUNCTION(find_kernel_functions);

}  // namespace warplens::reader

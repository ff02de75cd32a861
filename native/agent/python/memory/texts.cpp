// Reads str and bytes objects.
// It trusts nothing that they say about themselves.
#include "texts.h"

#include <cstring>

#include "memory.h"

namespace warplens::agent {
namespace {

constexpr size_t kMostCharacters = 500;

void append(std::string &text, uint32_t character) {
  auto put = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xc0 | character >> 6);
    put(0x80 | (character & 63));
  } else if (character < 0x10000) {
    if (character >= 0xd800 && character < 0xe000) {
      character = 0xfffd;  // half of a pair: a file name that was not UTF-8
    }
    put(0xe0 | character >> 12);
    put(0x80 | (character >> 6 & 63));
    put(0x80 | (character & 63));
  } else if (character < 0x110000) {
    put(0xf0 | character >> 18);
    put(0x80 | (character >> 12 & 63));
    put(0x80 | (character >> 6 & 63));
    put(0x80 | (character & 63));
  } else {
    append(text, 0xfffd);
  }
}

struct Kind {
  uint32_t size;  // bytes of a character; 0: not a compact str
  bool is_ascii;
};

// interned, then kind:3, compact:1, ascii:1.
Kind kind_of(uint32_t state, uint32_t first_bit) {
  uint32_t bits = state >> first_bit;
  uint32_t size = bits & 7;
  bool is_compact = (bits & 8) != 0;
  bool is_ascii = (bits & 16) != 0;
  if (!is_compact || (size != 1 && size != 2 && size != 4) || (is_ascii && size != 1)) {
    return {0, false};
  }
  return {size, is_ascii};
}

}  // namespace

bool read_text(const PythonRuntime &python, uintptr_t address, std::string &text) {
  const PythonLayout &at = python.at;
  uintptr_t type = 0;
  int64_t length = 0;
  uint32_t state = 0;
  Piece pieces[] = {{&type, address + at.object_type, sizeof(type)},
                    {&length, address + at.text_length, sizeof(length)},
                    {&state, address + at.text_state, sizeof(state)}};
  if (address % 8 != 0 || copy_pieces(pieces, 3) != 3 || type != python.text_type || length < 0) {
    return false;
  }
  Kind kind = kind_of(state, at.text_kind);
  if (kind.size == 0) {
    return false;
  }
  size_t count =
      length < static_cast<int64_t>(kMostCharacters) ? static_cast<size_t>(length) : kMostCharacters;
  char characters[kMostCharacters * 4];
  if (!copy_memory(characters, address + (kind.is_ascii ? at.text_ascii : at.text_compact),
                   count * kind.size)) {
    return false;
  }
  text.clear();
  for (size_t i = 0; i < count; ++i) {
    uint32_t character = 0;
    std::memcpy(&character, characters + i * kind.size, kind.size);
    append(text, character);
  }
  return true;
}

bool read_bytes(const PythonRuntime &python, uintptr_t address, size_t most, std::string &bytes) {
  const PythonLayout &at = python.at;
  uintptr_t type = 0;
  int64_t size = 0;
  Piece pieces[] = {{&type, address + at.object_type, sizeof(type)},
                    {&size, address + at.bytes_size, sizeof(size)}};
  if (address % 8 != 0 || copy_pieces(pieces, 2) != 2 || type != python.bytes_type || size < 0 ||
      static_cast<uint64_t>(size) > most) {
    return false;
  }
  bytes.resize(static_cast<size_t>(size));
  return copy_memory(bytes.data(), address + at.bytes_data, bytes.size());
}

}  // namespace warplens::agent

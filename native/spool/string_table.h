// Interned strings: each text is written to the spool once and called by its number ever after.
#pragma once

#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "file.h"

namespace warpline {

template <typename Word>
inline uint64_t load(const char *at) {
  Word word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

//! [HOT] 64-bit content hash, never 0. Ends are read as whole words that may overlap, so short names need no loop.
inline uint64_t hash_text(const char *text, size_t size) {
  uint64_t h = size * 0x9e3779b97f4a7c15u;
  uint64_t tail = 0;
  if (size >= 8) {
    const char *last = text + size - 8;
    tail = load<uint64_t>(last);
    for (; text < last; text += 8) {
      h = (h ^ load<uint64_t>(text)) * 0xbf58476d1ce4e5b9u;
      h ^= h >> 32;
    }
  } else if (size >= 4) {
    tail = load<uint32_t>(text) | load<uint32_t>(text + size - 4) << 32;
  } else if (size > 0) {
    tail = load<uint8_t>(text) | load<uint8_t>(text + size / 2) << 8 | load<uint8_t>(text + size - 1) << 16;
  }
  h = (h ^ tail) * 0x94d049bb133111ebu;
  return (h ^ (h >> 29)) | 1;
}

class StringTable {
 public:
  static constexpr size_t kLongest = 32768;  // longer names are cut there, at a UTF-8 border
  static constexpr size_t kLongestDefinition = size_t{1} << 20;

  //! [MT] The number of `text` (from 1), or 0 when it cannot be stored now; then it is tried again next time.
  uint32_t intern(std::string_view text, SpoolFile &file, size_t longest = kLongest);

  //! [MT] The same for a text that will not come again: it is written, but not remembered.
  uint32_t write_once(std::string_view text, SpoolFile &file);

  //! [FORK] In a child: takes the strings of `parent` and writes them into the child's own file under their old numbers.
  void adopt(StringTable &parent, SpoolFile &file);

  std::mutex &mutex() { return mutex_; }

 private:
  bool write(std::string_view text, uint32_t id, SpoolFile &file);

  std::mutex mutex_;
  uint32_t last_id_ = 0;
  struct Text {
    uint32_t id;
    std::string text;
  };
  std::deque<Text> texts_;  // a deque, so that the keys of ids_ stay where they are
  std::unordered_map<std::string_view, uint32_t> ids_;
  char *cursor_ = nullptr;
  char *end_ = nullptr;
  size_t next_chunk_ = kPage;
};

}  // namespace warpline

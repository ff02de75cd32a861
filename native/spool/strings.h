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

//! [HOT] 64-bit content hash, never 0.
inline uint64_t hash_text(const char* text, size_t size) {
  uint64_t h = size * 0x9e3779b97f4a7c15u;
  while (size >= 8) {
    uint64_t word;
    std::memcpy(&word, text, 8);
    h = (h ^ word) * 0xbf58476d1ce4e5b9u;
    h ^= h >> 32;
    text += 8;
    size -= 8;
  }
  uint64_t tail = 0;
  for (size_t i = 0; i < size; ++i) {
    tail |= static_cast<uint64_t>(static_cast<unsigned char>(text[i])) << (8 * i);
  }
  h = (h ^ tail) * 0x94d049bb133111ebu;
  return (h ^ (h >> 29)) | 1;
}

class StringTable {
 public:
  static constexpr size_t kLongest = 32768;  // longer texts are cut there, at a UTF-8 border

  //! [MT] The number of `text` (from 1), or 0 when it cannot be stored now; then it is tried again next time.
  uint32_t intern(std::string_view text, SpoolFile& file);

  //! [FORK] In a child: takes the strings of `parent` and writes them into the child's own file under their old numbers.
  void adopt(StringTable& parent, SpoolFile& file);

  std::mutex& mutex() { return mutex_; }

 private:
  bool write(std::string_view text, uint32_t id, SpoolFile& file);

  std::mutex mutex_;
  std::deque<std::string> texts_;  // by id - 1; a deque, so that the keys of ids_ stay where they are
  std::unordered_map<std::string_view, uint32_t> ids_;
  char* cursor_ = nullptr;
  char* end_ = nullptr;
  size_t next_chunk_ = kPage;
};

}  // namespace warpline

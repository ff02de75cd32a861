// Copies many small pieces of memory, and compares the copy with the memory later.
#pragma once

#include <unordered_map>
#include <vector>

#include "memory.h"

namespace warplens::agent {

// Pages are read, not pieces: a piece costs the system as much as the page that it is in. What did not change from its first copy to the
// comparison was all there at one moment in between.
class Snapshot {
 public:
  void clear();

  //! A piece to be read by the next read(), for `owner`; its number. Throws bad_alloc.
  uint32_t want(uintptr_t from, size_t size, uint32_t owner);

  //! Reads what is wanted so far. Throws bad_alloc.
  void read();

  //! The copy of a piece; null where it could not be read. Good until the next want().
  const char *at(uint32_t piece) const {
    return pieces_[piece].is_read ? bytes_.data() + pieces_[piece].offset : nullptr;
  }
  template <typename T>
  bool get(uint32_t piece, size_t offset, T &value) const;

  //! Reads everything again: changed[owner] becomes true where a piece of an owner is not what it was. Throws bad_alloc.
  void compare(std::vector<bool> &changed);

 private:
  struct Own {
    uintptr_t from;
    uint32_t size, owner;
    size_t offset;
    bool is_read;
  };
  // Copies of pages, one behind the other.
  struct Pages {
    std::unordered_map<uintptr_t, size_t> places;  // by number of the page
    std::vector<char> bytes;

    void clear();
    void add(std::vector<uintptr_t> &numbers);
    bool copy(char *to, uintptr_t from, size_t size) const;
  };

  std::vector<Own> pieces_;
  std::vector<char> bytes_;
  Pages pages_;
  Pages again_;
  std::vector<uintptr_t> numbers_;
  size_t used_ = 0;
  size_t read_ = 0;  // pieces that were read, or tried
};

template <typename T>
bool Snapshot::get(uint32_t piece, size_t offset, T &value) const {
  const char *bytes = at(piece);
  if (bytes == nullptr || offset + sizeof(T) > pieces_[piece].size) {
    return false;
  }
  __builtin_memcpy(&value, bytes + offset, sizeof(T));
  return true;
}

}  // namespace warplens::agent

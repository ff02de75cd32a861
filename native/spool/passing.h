// Caches the numbers of recent names.
// A name is known by its hash and its length, as in a thread's own cache. A name that is not cached
// any more is written to the spool again, under a new number.
#pragma once

#include <cstring>

#include "spool/system/memory.h"

namespace warplens {

class PassingNames {
 public:
  //! The number of a name, or 0.
  uint32_t find(uint64_t hash, uint32_t size) const {
    const Entry *entry = entries_ == nullptr ? nullptr : entries_ + hash % kEntries;
    return entry != nullptr && entry->hash == hash && entry->size == size ? entry->number : 0;
  }

  //! Takes the place of the name that was there; without memory, nothing is remembered.
  void put(uint64_t hash, uint32_t size, uint32_t number) {
    if (entries_ == nullptr) {
      entries_ = static_cast<Entry *>(map_memory(kEntries * sizeof(Entry)));
    }
    if (entries_ != nullptr) {
      entries_[hash % kEntries] = {hash, size, number};
    }
  }

  //! Numbers belong to one recording.
  void forget() {
    if (entries_ != nullptr) {
      std::memset(entries_, 0, kEntries * sizeof(Entry));
    }
  }

  //! [FORK] In a child: another thread may have been changing it.
  void abandon() { entries_ = nullptr; }

 private:
  static constexpr size_t kEntries = size_t{1} << 14;
  struct Entry {
    uint64_t hash;
    uint32_t size;
    uint32_t number;
  };
  Entry *entries_ = nullptr;
};

}  // namespace warplens

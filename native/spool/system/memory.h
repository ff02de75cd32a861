// Takes memory straight from the kernel: the program's allocator may be the caller.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace warplens {

//! [MT] Zeroed pages for `size` bytes, or nullptr.
void *map_memory(size_t size);
void unmap_memory(void *at, size_t size);

//! [MT] Puts memory that belongs to no file in the place of a mapping; `size` is a multiple of the page. What threads in the
//! middle of a call still write there then goes nowhere.
void forget_mapping(void *at, size_t size);

//! [FORK] The same in a child, where the mapping does not exist and the place may be taken.
void fill_hole(void *at, size_t size);

// An array that grows in blocks, each twice as large as all before it. Elements never move and start as zeros, so that
// they can be read without a lock, and in a fork child whatever the other threads were doing.
template <typename T>
class BlockArray {
 public:
  //! The element `i`, or nullptr where there is none yet.
  T *at(uint32_t i) const {
    unsigned block = block_of(i);
    T *begin = blocks_[block];
    return begin == nullptr ? nullptr : begin + offset_in(i, block);
  }

  //! The element `i`, its block made now if need be; nullptr when memory is out. One thread at a time.
  T *make(uint32_t i) {
    unsigned block = block_of(i);
    if (blocks_[block] == nullptr) {
      blocks_[block] = static_cast<T *>(map_memory(sizeof(T) << (block + kFirst)));
      if (blocks_[block] == nullptr) {
        return nullptr;
      }
    }
    return at(i);
  }

 private:
  static constexpr unsigned kFirst = 6;
  static constexpr unsigned kBlocks = 33 - kFirst;
  static unsigned block_of(uint32_t i) {
    return static_cast<unsigned>(std::bit_width(uint64_t{i} + (1u << kFirst))) - 1 - kFirst;
  }
  static uint64_t offset_in(uint32_t i, unsigned block) {
    return uint64_t{i} + (1u << kFirst) - (uint64_t{1} << (block + kFirst));
  }

  T *blocks_[kBlocks] = {};
};

// Numbers found by a hash; what they stand for is compared by the caller.
class HashIndex {
 public:
  HashIndex() = default;
  HashIndex(const HashIndex &) = delete;
  HashIndex &operator=(const HashIndex &) = delete;
  ~HashIndex() { clear(); }

  //! The first number under `hash` that `is` accepts, or 0.
  template <typename Is>
  uint32_t find(uint64_t hash, const Is &is) const {
    if (entries_ == nullptr) {
      return 0;
    }
    auto tag = static_cast<uint32_t>(hash >> 32);
    for (uint32_t i = static_cast<uint32_t>(hash) & mask_;; i = (i + 1) & mask_) {
      const Entry &entry = entries_[i];
      if (entry.number == 0) {
        return 0;
      }
      if (entry.tag == tag && is(entry.number)) {
        return entry.number;
      }
    }
  }

  //! Room for one more; false when memory is out. `hash_of` gives the hash of a number that is in it.
  template <typename HashOf>
  bool reserve(const HashOf &hash_of) {
    if (entries_ != nullptr && used_ < mask_ - mask_ / 4) {
      return true;
    }
    HashIndex larger;
    uint32_t size = entries_ == nullptr ? 512 : (mask_ + 1) * 2;
    larger.entries_ = size == 0 ? nullptr : static_cast<Entry *>(map_memory(size * sizeof(Entry)));
    if (larger.entries_ == nullptr) {
      return false;
    }
    larger.mask_ = size - 1;
    for (uint32_t i = 0; entries_ != nullptr && i <= mask_; ++i) {
      if (entries_[i].number != 0) {
        larger.add(hash_of(entries_[i].number), entries_[i].number);
      }
    }
    swap(larger);
    return true;
  }

  void add(uint64_t hash, uint32_t number) {
    uint32_t i = static_cast<uint32_t>(hash) & mask_;
    while (entries_[i].number != 0) {
      i = (i + 1) & mask_;
    }
    entries_[i] = {static_cast<uint32_t>(hash >> 32), number};
    ++used_;
  }

  //! Takes out `number`, which lies under `hash`.
  template <typename HashOf>
  void remove(uint64_t hash, uint32_t number, const HashOf &hash_of) {
    uint32_t gap = static_cast<uint32_t>(hash) & mask_;
    while (entries_[gap].number != number) {
      if (entries_[gap].number == 0) {
        return;
      }
      gap = (gap + 1) & mask_;
    }
    // What lies behind moves up, where its own place is not behind the gap: no marks stay.
    for (uint32_t i = (gap + 1) & mask_; entries_[i].number != 0; i = (i + 1) & mask_) {
      uint32_t home = static_cast<uint32_t>(hash_of(entries_[i].number)) & mask_;
      if (((i - home) & mask_) >= ((i - gap) & mask_)) {
        entries_[gap] = entries_[i];
        gap = i;
      }
    }
    entries_[gap] = {};
    --used_;
  }

  //! [FORK] In a child: another thread may have been changing it, and the memory may be anybody's.
  void abandon() {
    entries_ = nullptr;
    mask_ = used_ = 0;
  }

  void clear() {
    if (entries_ != nullptr) {
      unmap_memory(entries_, (size_t{mask_} + 1) * sizeof(Entry));
    }
    entries_ = nullptr;
    mask_ = used_ = 0;
  }

 private:
  struct Entry {
    uint32_t tag;
    uint32_t number;
  };
  void swap(HashIndex &other) {
    Entry *entries = entries_;
    uint32_t mask = mask_;
    uint32_t used = used_;
    entries_ = other.entries_;
    mask_ = other.mask_;
    used_ = other.used_;
    other.entries_ = entries;
    other.mask_ = mask;
    other.used_ = used;
  }

  Entry *entries_ = nullptr;
  uint32_t mask_ = 0;
  uint32_t used_ = 0;
};

}  // namespace warplens

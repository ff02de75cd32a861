// Gives each distinct text a number, in the order in which they come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace warplens::reader {

class TextCodes {
 public:
  TextCodes() : slots_(size_t{1} << 12, Slot{0, kNone}) {}

  uint32_t code(std::string_view text) {
    const uint64_t hash = hash_of(text);
    const size_t mask = slots_.size() - 1;
    const auto tag = static_cast<uint32_t>(hash >> 32);
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      Slot &slot = slots_[at];
      if (slot.code == kNone) {
        slot = {tag, static_cast<uint32_t>(begins_.size())};
        begins_.push_back(bytes_.size());
        bytes_.insert(bytes_.end(), text.begin(), text.end());
        const uint32_t made = slot.code;
        if (begins_.size() * 2 > slots_.size()) {
          grow();
        }
        return made;
      }
      if (slot.tag == tag && (*this)[slot.code] == text) {
        return slot.code;
      }
    }
  }

  size_t size() const { return begins_.size(); }
  std::string_view operator[](uint32_t code) const {
    const size_t begin = begins_[code];
    const size_t end = code + size_t{1} < begins_.size() ? begins_[code + 1] : bytes_.size();
    return {bytes_.data() + begin, end - begin};
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Slot {
    uint32_t tag;
    uint32_t code;
  };

  static uint64_t mix(uint64_t value) {
    value ^= value >> 32;
    value *= 0x9E3779B97F4A7C15;
    return value ^ value >> 29;
  }
  static uint64_t hash_of(std::string_view text) {
    uint64_t hash = text.size() * 0xFF51AFD7ED558CCD;
    const char *at = text.data();
    size_t left = text.size();
    for (; left >= 8; at += 8, left -= 8) {
      uint64_t word;
      std::memcpy(&word, at, 8);
      hash = (hash ^ word) * 0x9FB21C651E98DF25;
      hash ^= hash >> 35;
    }
    uint64_t word = 0;
    std::memcpy(&word, at, left);
    return mix((hash ^ word) * 0x9FB21C651E98DF25);
  }
  void grow() {
    std::vector<Slot> bigger(slots_.size() * 2, Slot{0, kNone});
    const size_t mask = bigger.size() - 1;
    for (uint32_t code = 0; code < begins_.size(); ++code) {
      const uint64_t hash = hash_of((*this)[code]);
      size_t at = hash & mask;
      while (bigger[at].code != kNone) {
        at = (at + 1) & mask;
      }
      bigger[at] = {static_cast<uint32_t>(hash >> 32), code};
    }
    slots_.swap(bigger);
  }

  std::vector<char> bytes_;
  std::vector<size_t> begins_;
  std::vector<Slot> slots_;
};

}  // namespace warplens::reader

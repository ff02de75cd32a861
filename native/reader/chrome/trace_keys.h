// Guesses which key comes next in the events of a trace: writers give events of one kind the same keys in the same order, so that
// comparing a few words does where else a key would have to be found, taken apart and looked up.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace warplens::reader {

// `Meaning`: what is known of a key. A key is kept as it stands in the text, from behind the value before it to its own value.
template <typename Meaning>
class TraceKeys {
 public:
  static constexpr size_t kLongest = 40;  // bytes that may be read behind `at` in `guessed`
  static constexpr uint32_t kContexts = 16;
  static constexpr uint8_t kFirst = 0;    // stands before the first key
  static constexpr uint8_t kUnknown = 1;  // stands for keys that are not kept

  TraceKeys() : keys_(2) {}

  // The key that stands at `at` if it is the one that followed `before` in this context last time; else nullptr.
  // `before` becomes it.
  const Meaning *guessed(const char *at, uint32_t context, uint8_t &before, size_t &size) const {
    const uint8_t next = keys_[before].next[context % kContexts];
    const Key &key = keys_[next];
    for (size_t word = 0; word < key.words; ++word) {
      uint64_t text;
      std::memcpy(&text, at + word * 8, 8);
      if (((text ^ key.text[word]) & key.mask[word]) != 0) {
        return nullptr;
      }
    }
    if (next == kFirst) {
      return nullptr;
    }
    before = next;
    size = key.size;
    return &key.meaning;
  }

  // Keeps for the next time that this key followed `before`; `before` becomes it.
  void learn(const char *begin, size_t size, const Meaning &meaning, uint32_t context, uint8_t &before) {
    const uint8_t found = size <= kLongest ? place(begin, size, meaning) : kFirst;
    if (found != kFirst) {
      keys_[before].next[context % kContexts] = found;
    }
    before = found == kFirst ? kUnknown : found;
  }

 private:
  static constexpr size_t kMost = 255, kSlots = 1024;
  struct Key {
    std::array<uint64_t, kLongest / 8> text{}, mask{};
    size_t size = 0, words = 0;
    Meaning meaning{};
    std::array<uint8_t, kContexts> next{};
  };

  uint8_t place(const char *begin, size_t size, const Meaning &meaning) {
    Key made;
    made.size = size;
    made.words = (size + 7) / 8;
    made.meaning = meaning;
    std::array<char, kLongest> ones{};
    std::memset(ones.data(), 0xFF, size);
    std::memcpy(made.text.data(), begin, size);
    std::memcpy(made.mask.data(), ones.data(), kLongest);
    uint64_t hash = size;
    for (const uint64_t word : made.text) {
      hash = std::rotl((hash ^ word) * 0x9E3779B97F4A7C15, 29);
    }
    size_t at = hash % kSlots;
    for (; slots_[at] != kFirst; at = (at + 1) % kSlots) {
      if (keys_[slots_[at]].size == size && keys_[slots_[at]].text == made.text) {
        return slots_[at];
      }
    }
    if (keys_.size() > kMost) {  // keys that are different each time: nothing to guess
      return kFirst;
    }
    slots_[at] = static_cast<uint8_t>(keys_.size());
    keys_.push_back(made);
    return slots_[at];
  }

  std::vector<Key> keys_;
  std::array<uint8_t, kSlots> slots_{};
};

}  // namespace warplens::reader

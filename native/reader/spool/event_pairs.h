// Finds the begin of what ends: duration events of a thread, asynchronous events of an id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace warplens::reader {

struct Begun {
  int64_t start;
  int64_t name;
  int64_t category;
  int64_t payload;
  int64_t lane;
};

struct PairKey {
  int64_t first;   // lane, or the id
  int64_t second;  // of an id: its category, and whether it is a text
  bool operator==(const PairKey &) const = default;
};

struct PairHash {
  size_t operator()(const PairKey &key) const {
    uint64_t hash = static_cast<uint64_t>(key.first) * 0x9E3779B97F4A7C15;
    hash = (hash ^ hash >> 32 ^ static_cast<uint64_t>(key.second)) * 0xFF51AFD7ED558CCD;
    return static_cast<size_t>(hash ^ hash >> 32);
  }
};

class EventPairs {
 public:
  void begin(const PairKey &key, const Begun &begun) { open_[key].push_back(begun); }

  // Takes the latest one that is open, of this name where there is one (kNull: whatever it is called). False: there is none.
  bool end(const PairKey &key, int64_t name, int64_t any, Begun &out) {
    const auto found = open_.find(key);
    if (found == open_.end()) {
      return false;
    }
    auto &stack = found->second;
    size_t at = stack.size() - 1;
    if (name != any && stack[at].name != name) {
      for (size_t i = stack.size(), left = kLookBack; i-- > 0 && left-- > 0;) {
        if (stack[i].name == name) {
          at = i;
          break;
        }
      }
    }
    out = stack[at];
    stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(at));
    if (stack.empty()) {
      open_.erase(found);
    }
    return true;
  }

  // Hands over all that never ended.
  template <typename Take>
  void drain(const Take &take) {
    for (const auto &[key, stack] : open_) {
      for (const Begun &begun : stack) {
        take(begun);
      }
    }
    open_.clear();
  }

 private:
  static constexpr size_t kLookBack = 64;
  std::unordered_map<PairKey, std::vector<Begun>, PairHash> open_;
};

}  // namespace warplens::reader

// The interned texts of a Perfetto trace, by sequence of packets.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace warplens::perfetto {

inline constexpr int32_t kNoText = -1;

// All texts of a trace, each once; numbers count from 0.
class Texts {
 public:
  int32_t number(std::string_view text) {
    const auto known = numbers_.find(text);
    if (known != numbers_.end()) return known->second;
    kept_.emplace_back(text);
    const auto number = static_cast<int32_t>(kept_.size() - 1);
    numbers_.emplace(std::string_view(kept_.back()), number);
    bytes_ += text.size();
    return number;
  }
  std::string_view text(int32_t number) const { return kept_[static_cast<size_t>(number)]; }
  uint64_t size() const { return kept_.size(); }
  uint64_t bytes() const { return bytes_; }
  // Writes the texts behind each other, and where each begins and the last ends.
  void copy(char *out, int64_t *offsets) const {
    int64_t at = 0;
    for (const std::string &text : kept_) {
      *offsets++ = at;
      text.copy(out + at, text.size());
      at += static_cast<int64_t>(text.size());
    }
    *offsets = at;
  }

 private:
  std::deque<std::string> kept_;
  std::unordered_map<std::string_view, int32_t> numbers_;
  uint64_t bytes_ = 0;
};

// Numbers that a sequence gave to something; they are small and dense, as a rule.
template <typename T>
class Numbered {
 public:
  void set(uint64_t id, T value) {
    if (id >=
        2 * dense_.size() + kFew) {  // not dense: a file must not make us reserve what it has no data for
      others_[id] = value;
      return;
    }
    if (id >= dense_.size()) dense_.resize(id + 1 + id / 2);
    dense_[id] = {true, value};
  }
  const T *get(uint64_t id) const {
    if (id < dense_.size() && dense_[id].first) return &dense_[id].second;
    const auto known = others_.find(id);
    return known == others_.end() ? nullptr : &known->second;
  }
  void clear() {
    dense_.clear();
    others_.clear();
  }

 private:
  static constexpr uint64_t kFew = 64;
  std::vector<std::pair<bool, T>> dense_;
  std::unordered_map<uint64_t, T> others_;
};

struct GraphicsContext {
  int32_t pid = 0;
};

// A clock that only this sequence has (ids 64 to 127).
struct ScopedClock {
  bool incremental = false;
  uint64_t multiplier = 1;
  uint64_t value = 0;
};

struct Sequence {
  uint32_t index = 0;
  bool valid = true;    // the texts that its packets need are known
  bool stacks = false;  // it has stacks of samples
  bool thread = false;  // its packets are of the thread `pid`, `tid` where they do not say
  int64_t pid = 0;
  int64_t tid = 0;
  int64_t reference_us = 0;
  uint64_t clock = 0;  // 0: not said
  bool has_track = false;
  uint64_t track = 0;
  std::vector<uint64_t> counters;
  std::vector<uint64_t> real_counters;
  Numbered<int32_t> names;
  Numbered<int32_t> categories;
  Numbered<int32_t> notes;
  Numbered<int32_t> values;
  Numbered<int32_t> specifications;
  Numbered<GraphicsContext> contexts;
  std::unordered_map<uint64_t, ScopedClock> clocks;

  // The sequence begins anew.
  void clear() {
    names.clear();
    categories.clear();
    notes.clear();
    values.clear();
    specifications.clear();
    contexts.clear();
    clock = 0;
    has_track = false;
    counters.clear();
    real_counters.clear();
    valid = true;
  }
};

}  // namespace warplens::perfetto

// Exact statistics of range durations by group: streamed in, kept as 4 bytes each, the median found by radix selection.
//
// SQL engines keep 8 bytes per value and more while they grow; at 5*10^7 ranges that and the copying is most of the time.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "reader/door.h"

namespace warplens::reader {
namespace {

// The first values in place, then chunks of growing size: a million groups of one value stay small, large ones never copy.
class Values {
 public:
  void push(uint32_t value) {
    if (few_ < kFew) {
      first_[few_++] = value;
      return;
    }
    if (many_ == nullptr) many_ = std::make_unique<Many>();
    if (many_->used == many_->room) many_->grow();
    *many_->next++ = value;
    ++many_->used;
  }
  void take(Values &other) {
    if (other.many_ != nullptr) {
      if (many_ == nullptr) many_ = std::make_unique<Many>();
      many_->seal();
      other.many_->seal();
      for (auto &chunk : other.many_->chunks) many_->chunks.push_back(std::move(chunk));
      other.many_.reset();
    }
    for (uint32_t i = 0; i < other.few_; ++i) push(other.first_[i]);
    other.few_ = 0;
  }
  void seal() {
    if (many_ != nullptr) many_->seal();
  }
  template <typename Function>
  void each_chunk(Function function) const {
    if (few_ != 0) function(first_, size_t{few_});
    if (many_ == nullptr) return;
    for (const auto &chunk : many_->chunks) function(chunk.data.get(), chunk.size);
  }
  int64_t count() const {
    int64_t total = few_;
    if (many_ == nullptr) return total;
    for (const auto &chunk : many_->chunks) total += static_cast<int64_t>(chunk.size);
    return total;
  }

 private:
  struct Chunk {
    std::unique_ptr<uint32_t[]> data;
    size_t size = 0;
  };
  struct Many {
    std::vector<Chunk> chunks;
    uint32_t *next = nullptr;
    uint32_t used = 0, room = 0, grown = 0;  // of the last chunk

    void seal() {
      if (!chunks.empty() && used != 0) chunks.back().size = used;
      used = room = 0;
    }
    void grow() {
      seal();
      room = grown == 0 ? 32 : std::min<uint32_t>(grown * 4, 16384);
      grown = room;
      chunks.push_back({std::make_unique_for_overwrite<uint32_t[]>(room), 0});
      next = chunks.back().data.get();
    }
  };
  static constexpr uint32_t kFew = 4;
  uint32_t first_[kFew];
  uint32_t few_ = 0;
  std::unique_ptr<Many> many_;
};

constexpr int64_t kDirect = 1 << 16;

struct Group {
  uint64_t key = 0;
  Values small;  // durations below 2^32 ns (4.3 s)
  std::unique_ptr<std::vector<int64_t>> rest;

  // Durations that are no small ones.
  const std::vector<int64_t> &large() const {
    static const std::vector<int64_t> none;
    return rest == nullptr ? none : *rest;
  }
  std::vector<int64_t> &more() {
    if (rest == nullptr) rest = std::make_unique<std::vector<int64_t>>();
    return *rest;
  }
};

// The k-th smallest (from 0) of the small values, which lie in [least, greatest].
uint32_t select_small(const Values &values, int64_t k, uint32_t least, uint32_t greatest) {
  constexpr int digit = 11;
  uint32_t low = least;
  int bits = std::bit_width(greatest - least);
  while (bits > 0) {
    const int shift = std::max(bits - digit, 0);
    // Values of interest are low .. low + 2^bits - 1; the unsigned difference puts all others above.
    const uint64_t width = uint64_t{1} << bits;
    std::array<int64_t, (1 << digit) + 1> counts{};
    values.each_chunk([&](const uint32_t *data, size_t size) {
      for (size_t i = 0; i < size; ++i) {
        const uint32_t offset = data[i] - low;
        const size_t slot = offset < width ? offset >> shift : size_t{1} << digit;
        ++counts[slot];
      }
    });
    size_t slot = 0;
    while (k >= counts[slot]) k -= counts[slot++];
    low += static_cast<uint32_t>(slot << shift);
    bits = shift;
  }
  return low;
}

class Groups {
 public:
  Groups() : table_(1024, 0) {}

  Group &at(uint64_t key) {
    if (last_ != nullptr && last_->key == key) return *last_;
    size_t slot = hash(key) & (table_.size() - 1);
    while (table_[slot] != 0) {
      Group &group = groups_[table_[slot] - 1];
      if (group.key == key) return *(last_ = &group);
      slot = (slot + 1) & (table_.size() - 1);
    }
    if (groups_.size() == UINT32_MAX) throw std::bad_alloc();
    groups_.emplace_back().key = key;
    table_[slot] = static_cast<uint32_t>(groups_.size());
    last_ = &groups_.back();
    if (groups_.size() * 2 > table_.size()) rehash();
    return *last_;
  }
  std::deque<Group> &all() { return groups_; }
  void clear() {
    groups_.clear();
    table_.assign(1024, 0);
    last_ = nullptr;
  }

 private:
  // Keys are packed bit fields: both halves must reach the low bits.
  static uint64_t hash(uint64_t key) {
    key = (key ^ (key >> 32)) * 0x9E3779B97F4A7C15u;
    return key ^ (key >> 32);
  }
  void rehash() {
    table_.assign(table_.size() * 2, 0);
    for (size_t i = 0; i < groups_.size(); ++i) {
      size_t slot = hash(groups_[i].key) & (table_.size() - 1);
      while (table_[slot] != 0) slot = (slot + 1) & (table_.size() - 1);
      table_[slot] = static_cast<uint32_t>(i + 1);
    }
  }
  std::deque<Group> groups_;
  std::vector<uint32_t> table_;
  Group *last_ = nullptr;
};

// The k-th smallest (from 0) of all values; those that are large are sorted.
int64_t nth(const Group &group, int64_t k, uint32_t least = 0,
            uint32_t greatest = std::numeric_limits<uint32_t>::max()) {
  const std::vector<int64_t> &large = group.large();
  const auto first_positive = std::lower_bound(large.begin(), large.end(), int64_t{0});
  const int64_t negative = first_positive - large.begin(), small = group.small.count();
  if (k < negative) return large[static_cast<size_t>(k)];
  if (k < negative + small) return select_small(group.small, k - negative, least, greatest);
  return large[static_cast<size_t>(k - small)];
}

// Everything but the median in one pass over the group's values; the deviation in a second, from the exact mean.
struct Result {
  int64_t count, total, least, greatest;
  double median, deviation;
};

Result finish(Group &group) {
  group.small.seal();
  if (group.rest != nullptr) std::sort(group.rest->begin(), group.rest->end());
  const std::vector<int64_t> &large = group.large();
  const int64_t small_count = group.small.count();
  Result result{small_count + static_cast<int64_t>(large.size()), 0, 0, 0, 0.0, 0.0};
  uint32_t least = std::numeric_limits<uint32_t>::max(), greatest = 0;
  group.small.each_chunk([&](const uint32_t *data, size_t size) {
    uint64_t sum = 0;
    for (size_t i = 0; i < size; ++i) {
      sum += data[i];
      least = std::min(least, data[i]);
      greatest = std::max(greatest, data[i]);
    }
    result.total += static_cast<int64_t>(sum);
  });
  for (const int64_t value : large) result.total += value;
  const auto first_positive = std::lower_bound(large.begin(), large.end(), int64_t{0});
  const int64_t negative = first_positive - large.begin();
  if (result.count == 0) return result;
  const auto edge = [&](bool low) -> int64_t {
    const bool from_large = low ? negative > 0 || small_count == 0 : !large.empty() && large.back() >= 0;
    if (from_large) return low ? large.front() : large.back();
    return small_count == 0 ? large.back() : (low ? least : greatest);
  };
  result.least = edge(true);
  result.greatest = edge(false);
  const int64_t upper = nth(group, result.count / 2, least, greatest);
  result.median = static_cast<double>(upper);
  if (result.count % 2 == 0)
    result.median =
        (static_cast<double>(nth(group, result.count / 2 - 1, least, greatest)) + result.median) / 2;
  if (result.count > 1) {
    const double mean =
        static_cast<double>(static_cast<long double>(result.total) / static_cast<long double>(result.count));
    double squares = 0;
    group.small.each_chunk([&](const uint32_t *data, size_t size) {
      std::array<double, 4> sums{};
      for (size_t i = 0; i < size; ++i) {
        const double d = data[i] - mean;
        sums[i & 3] += d * d;
      }
      squares += (sums[0] + sums[1]) + (sums[2] + sums[3]);
    });
    for (const int64_t value : large) {
      const double d = static_cast<double>(value) - mean;
      squares += d * d;
    }
    result.deviation = std::sqrt(squares / static_cast<double>(result.count - 1));
  }
  return result;
}

std::unique_ptr<Groups> durations_new() {
  return std::make_unique<Groups>();
}
WARPLENS_FUNCTION(durations_new);

constexpr size_t kTexts = 3;

// Adds end[i] - start[i] to the group whose key is the OR over the texts of map[code[i] + 1] << shift; a code of -1 is null.
void durations_add(Groups &groups, Array<const int64_t> start, Array<const int64_t> end,
                   Array<const int32_t> first_code, Array<const int32_t> second_code,
                   Array<const int32_t> third_code, Array<const uint64_t> first_map,
                   Array<const uint64_t> second_map, Array<const uint64_t> third_map,
                   Array<const uint8_t> shift) {
  require_size(start.size, end, first_code, second_code, third_code);
  require_size(kTexts, shift);
  const Array<const int32_t> codes[kTexts] = {first_code, second_code, third_code};
  const Array<const uint64_t> remap[kTexts] = {first_map, second_map, third_map};
  // Where the dictionaries are small, each combination of codes finds its group once, and then without hashing.
  int64_t combinations = 1;
  for (size_t k = 0; k < kTexts && combinations <= kDirect; ++k)
    combinations *= static_cast<int64_t>(remap[k].size);
  std::vector<Group *> direct(combinations <= kDirect ? static_cast<size_t>(combinations) : 0, nullptr);
  const auto find = [&](int64_t i) -> Group & {
    uint64_t key = 0;
    for (size_t k = 0; k < kTexts; ++k) key |= remap[k].data[codes[k].data[i] + 1] << shift[k];
    return groups.at(key);
  };
  for (int64_t i = 0; i < static_cast<int64_t>(start.size); ++i) {
    Group *group = nullptr;
    if (!direct.empty()) {
      int64_t slot = 0;
      for (size_t k = 0; k < kTexts; ++k)
        slot = slot * static_cast<int64_t>(remap[k].size) + codes[k].data[i] + 1;
      Group *&known = direct[static_cast<size_t>(slot)];
      if (known == nullptr) known = &find(i);
      group = known;
    } else {
      group = &find(i);
    }
    const int64_t duration = end.data[i] - start.data[i];
    if (static_cast<uint64_t>(duration) <= std::numeric_limits<uint32_t>::max()) {
      group->small.push(static_cast<uint32_t>(duration));
    } else {
      group->more().push_back(duration);
    }
  }
}
WARPLENS_FUNCTION(durations_add);

// Moves all of `from` into `groups`; `from` is left empty.
void durations_merge(Groups &groups, Groups &from) {
  for (auto &all = from.all(); !all.empty(); all.pop_front()) {  // so that no group is there twice
    Group &other = all.front();
    Group &group = groups.at(other.key);
    group.small.take(other.small);
    if (other.rest != nullptr)
      group.more().insert(group.more().end(), other.rest->begin(), other.rest->end());
  }
  from.clear();
}
WARPLENS_FUNCTION(durations_merge);

int64_t durations_groups(Groups &groups) {
  return static_cast<int64_t>(groups.all().size());
}
WARPLENS_FUNCTION(durations_groups);

// Rows from `first` to `last` - 1, which are there.
void require_rows(Groups &groups, int64_t first, int64_t last) {
  if (first < 0 || last < first || static_cast<size_t>(last) > groups.all().size()) {
    throw std::invalid_argument("there are no such groups");
  }
}

// Fills rows first .. last-1 of the output arrays, one per group; may run for different rows in several threads.
void durations_finish(Groups &groups, int64_t first, int64_t last, Array<uint64_t> key, Array<int64_t> count,
                      Array<int64_t> total, Array<int64_t> least, Array<int64_t> greatest,
                      Array<double> median, Array<double> deviation) {
  require_rows(groups, first, last);
  require_size(groups.all().size(), key, count, total, least, greatest, median, deviation);
  for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
    Group &group = groups.all()[i];
    const Result result = finish(group);
    key[i] = group.key;
    count[i] = result.count;
    total[i] = result.total;
    least[i] = result.least;
    greatest[i] = result.greatest;
    median[i] = result.median;
    deviation[i] = result.deviation;
  }
}
WARPLENS_FUNCTION(durations_finish);

// Fills `values`: of each group the least value that `share` (0 to 1) of its values do not exceed. After durations_finish.
void durations_rank(Groups &groups, double share, Array<int64_t> values) {
  require_size(groups.all().size(), values);
  for (size_t i = 0; i < values.size; ++i) {
    const Group &group = groups.all()[i];
    const int64_t small = group.small.count(), count = small + static_cast<int64_t>(group.large().size());
    const auto rank = static_cast<int64_t>(std::ceil(share * static_cast<double>(count))) - 1;
    values[i] = count == 0 ? 0 : nth(group, std::clamp<int64_t>(rank, 0, count - 1));
  }
}
WARPLENS_FUNCTION(durations_rank);

}  // namespace
}  // namespace warplens::reader

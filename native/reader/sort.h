// Sorts row numbers by a 64-bit key: radix where key and number fit into one word, else by comparison.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace warplens::reader {

// Kept between calls: fresh memory costs more than the sorting.
struct SortScratch {
  std::vector<uint64_t> words;
  std::vector<uint64_t> other;
};

// `order` becomes 0 … count-1 sorted by `less`, which must order by `key(row)` before anything else.
template <typename KeyOf, typename Less>
void sort_numbers(size_t count, const KeyOf &key, const Less &less, std::vector<uint32_t> &order,
                  SortScratch &scratch) {
  order.resize(count);
  std::iota(order.begin(), order.end(), uint32_t{0});
  if (std::is_sorted(order.begin(), order.end(), less)) {
    return;
  }
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  for (uint32_t row = 0; row < count; ++row) {
    least = std::min(least, key(row));
    most = std::max(most, key(row));
  }
  const int number_bits = std::bit_width(count);
  const int key_bits = std::bit_width(most - least);
  if (count < 256 || key_bits + number_bits > 64) {
    std::sort(order.begin(), order.end(), less);
    return;
  }
  constexpr int kDigit = 11;
  auto &[words, other] = scratch;
  words.resize(count);
  other.resize(count);
  for (uint32_t row = 0; row < count; ++row) {
    words[row] = (key(row) - least) << number_bits | row;
  }
  for (int shift = number_bits; shift < number_bits + key_bits; shift += kDigit) {
    std::array<size_t, size_t{1} << kDigit> place{};
    constexpr uint64_t mask = (uint64_t{1} << kDigit) - 1;
    for (const uint64_t word : words) {
      ++place[word >> shift & mask];
    }
    std::exclusive_scan(place.begin(), place.end(), place.begin(), size_t{0});
    for (const uint64_t word : words) {
      other[place[word >> shift & mask]++] = word;
    }
    words.swap(other);
  }
  const uint64_t numbers = (uint64_t{1} << number_bits) - 1;
  for (size_t at = 0; at < count; ++at) {
    order[at] = static_cast<uint32_t>(words[at] & numbers);
  }
  for (size_t first = 0; first < count;) {  // ties
    size_t last = first + 1;
    while (last < count && words[last] >> number_bits == words[first] >> number_bits) {
      ++last;
    }
    if (last - first > 1) {
      std::sort(order.begin() + static_cast<ptrdiff_t>(first), order.begin() + static_cast<ptrdiff_t>(last),
                less);
    }
    first = last;
  }
}

}  // namespace warplens::reader

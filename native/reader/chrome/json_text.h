// Steps over JSON text that may be cut off anywhere: strings, numbers, whole values. Lenient where writers of traces are careless.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace warplens::reader::json {

// The text must be followed by this many zero bytes: then no step has to ask for the end at each byte.
constexpr size_t kPadding = 48;

inline bool is_space(char letter) {
  return letter == ' ' || letter == '\n' || letter == '\r' || letter == '\t';
}

inline const char *space(const char *at) {
  while (is_space(*at)) {
    ++at;
  }
  return at;
}

// Of eight bytes, those that are `letter` have their highest bit set in the result; only the lowest such bit can be trusted.
inline uint64_t matches(uint64_t word, uint64_t letter) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  const uint64_t difference = word ^ (kOnes * letter);
  return (difference - kOnes) & ~difference & (kOnes << 7);
}

// `at` is behind the opening quote; returns where the closing one is, nullptr where the text ends before.
inline const char *string_end(const char *at, const char *end) {
  while (at < end) {
    uint64_t word;
    std::memcpy(&word, at, sizeof word);
    if ((matches(word, '"') | matches(word, '\\')) == 0) {
      at += sizeof word;
      continue;
    }
    while (*at != '"' && *at != '\\') {
      ++at;
    }
    if (at >= end) {
      return nullptr;
    }
    if (*at == '"') {
      return at;
    }
    at += 2;
  }
  return nullptr;
}

// A number, `true`, `null`, `NaN`, `-inf`, …: whatever stands there without quotes.
inline constexpr std::array<bool, 256> kBare = [] {
  std::array<bool, 256> made{};
  for (const char letter :
       std::string_view("0123456789-+.#_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    made[static_cast<unsigned char>(letter)] = true;
  }
  return made;
}();
inline bool is_bare(char letter) {
  return kBare[static_cast<unsigned char>(letter)];
}

inline const char *bare_end(const char *at) {
  while (is_bare(*at)) {
    ++at;
  }
  return at;
}

// Returns where the value at `at` ends; nullptr where the text ends before it does, or where it is none (`bad` is then the place).
const char *value_end(const char *at, const char *end, const char *&bad);

// The same; most values are short.
inline const char *scalar_end(const char *at, const char *end, const char *&bad) {
  if (*at == '"') {
    const char *const closing = string_end(at + 1, end);
    return closing == nullptr ? nullptr : closing + 1;
  }
  const char *const behind = bare_end(at);
  return behind != at && behind < end ? behind : value_end(at, end, bad);
}

// Reads a decimal number times 10^shift as an integer, rounded half away from zero; false where it is none, or too large.
bool any_decimal(std::string_view text, int shift, int64_t &out);

inline bool decimal(std::string_view text, int shift, int64_t &out) {
  uint64_t value = 0;
  size_t at = 0;
  if (text.size() <= 19) {
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
      value = value * 10 + static_cast<uint64_t>(text[at++] - '0');
    }
  }
  const size_t digits = at + static_cast<size_t>(shift);
  if (at == 0 || digits > 19 || (digits == 19 && text[0] == '9')) {
    return any_decimal(text, shift, out);
  }
  int left = shift;
  if (at < text.size() && text[at] == '.') {
    for (++at; at < text.size() && left > 0 && text[at] >= '0' && text[at] <= '9'; --left) {
      value = value * 10 + static_cast<uint64_t>(text[at++] - '0');
    }
  }
  if (at != text.size()) {
    return any_decimal(text, shift, out);
  }
  for (; left > 0; --left) {
    value *= 10;
  }
  out = static_cast<int64_t>(value);
  return true;
}

// Reads the number at `at` times 10^shift if it is one of those that nearly all are: digits, perhaps a point and as many digits as `shift`
// at most. Returns where it ends; nullptr: it is of another kind, or the text may go on.
inline const char *plain_decimal(const char *at, int shift, int64_t &out) {
  const char *const begin = at;
  uint64_t value = 0;
  for (; static_cast<unsigned char>(*at - '0') < 10; ++at) {
    value = value * 10 + static_cast<uint64_t>(*at - '0');
  }
  const std::ptrdiff_t digits = at - begin;
  if (digits == 0 || digits + shift > 18) {
    return nullptr;
  }
  if (*at == '.') {
    ++at;
    for (; shift > 0 && static_cast<unsigned char>(*at - '0') < 10; ++at, --shift) {
      value = value * 10 + static_cast<uint64_t>(*at - '0');
    }
  }
  if (*at != ',' && *at != '}') {
    return nullptr;
  }
  for (; shift > 0; --shift) {
    value *= 10;
  }
  out = static_cast<int64_t>(value);
  return at;
}

// Reads any number; false where it is none. `NaN` and the like are none.
bool real(std::string_view text, double &out);

// Appends a string (without its quotes) with its escapes resolved, as valid UTF-8; what is none becomes U+FFFD.
void unescape(std::string_view text, std::string &out);

// Appends a text as valid UTF-8, and nothing else changed.
void repair(std::string_view text, std::string &out);

}  // namespace warplens::reader::json

// Reads bytes in order, never beyond their end, from tables that may be damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace warplens::agent {

class Cursor {
 public:
  Cursor(const uint8_t *begin, size_t size) : at_(begin), end_(begin + size) {}

  bool ok() const { return ok_; }  // false for good once something was asked for that is not there
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  const uint8_t *at() const { return at_; }

  template <typename T>
  T take() {
    T value{};
    if (left() < sizeof(T)) {
      fail();
      return value;
    }
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  void skip(uint64_t count) {
    if (count > left()) {
      fail();
      return;
    }
    at_ += count;
  }

  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      auto byte = take<uint8_t>();
      if (shift < 64) {
        value |= uint64_t{byte & 0x7fu} << shift;
      }
      if ((byte & 0x80) == 0) {
        return value;
      }
    }
  }

  int64_t sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
      auto byte = take<uint8_t>();
      if (shift < 64) {
        value |= uint64_t{byte & 0x7fu} << shift;
      }
      shift += 7;
      if ((byte & 0x80) == 0) {
        if (shift < 64 && (byte & 0x40) != 0) {
          value |= ~uint64_t{0} << shift;
        }
        return static_cast<int64_t>(value);
      }
    }
  }

  void fail() {
    ok_ = false;
    at_ = end_;
  }

 private:
  const uint8_t *at_;
  const uint8_t *end_;
  bool ok_ = true;
};

}  // namespace warplens::agent

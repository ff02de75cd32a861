// Reads the protobuf wire format.
// It reads fields one by one, without copies, and reports a message that is cut short.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace warplens::wire {

// One field: `number` of the fixed and varint kinds, `bytes` of strings and messages.
struct Field {
  uint32_t id = 0;
  uint32_t type = 0;
  uint64_t number = 0;
  std::string_view bytes;

  int64_t whole() const { return static_cast<int64_t>(number); }
  double real() const { return std::bit_cast<double>(number); }
};

// Reads a varint; null where there is none.
inline const uint8_t *varint(const uint8_t *at, const uint8_t *end, uint64_t &value) {
  if (at < end && *at < 0x80) {  // most are one byte long
    value = *at;
    return at + 1;
  }
  value = 0;
  for (uint32_t shift = 0; at < end && shift < 70; shift += 7) {
    const uint64_t byte = *at++;
    if (shift < 64) value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return at;
  }
  return nullptr;
}

// The fields of a message. `broken()` after `next()` said false: the rest of it is no message.
class Message {
 public:
  explicit Message(std::string_view bytes)
      : at_(reinterpret_cast<const uint8_t *>(bytes.data())), end_(at_ + bytes.size()) {}

  bool next(Field &field) {
    if (at_ >= end_) return false;
    uint64_t tag = 0;
    const uint8_t *at = varint(at_, end_, tag);
    if (at == nullptr || (tag >> 3) == 0 || (tag >> 3) > 0x1fffffff) return fail();
    field.id = static_cast<uint32_t>(tag >> 3);
    field.type = static_cast<uint32_t>(tag & 7);
    field.number = 0;
    field.bytes = {};
    switch (field.type) {
      case 0:
        at = varint(at, end_, field.number);
        if (at == nullptr) return fail();
        break;
      case 1:
        if (end_ - at < 8) return fail();
        std::memcpy(&field.number, at, 8);
        at += 8;
        break;
      case 2: {
        uint64_t size = 0;
        at = varint(at, end_, size);
        if (at == nullptr || size > static_cast<uint64_t>(end_ - at)) return fail();
        field.bytes = {reinterpret_cast<const char *>(at), static_cast<size_t>(size)};
        at += size;
        break;
      }
      case 5: {
        if (end_ - at < 4) return fail();
        uint32_t four = 0;
        std::memcpy(&four, at, 4);
        field.number = four;
        at += 4;
        break;
      }
      default:
        return fail();
    }
    at_ = at;
    return true;
  }
  bool broken() const { return broken_; }

 private:
  bool fail() {
    broken_ = true;
    at_ = end_;
    return false;
  }

  const uint8_t *at_;
  const uint8_t *end_;
  bool broken_ = false;
};

}  // namespace warplens::wire

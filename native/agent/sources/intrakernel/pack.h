// Packs the used part of a buffer into pieces.
// A piece has the units of one launch, each with only as many slots as it used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "warplens/intrakernel_records.h"

namespace warplens::agent {

// What was found in a buffer.
struct IntrakernelFound {
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  uint32_t units = 0;
  uint32_t blocks = 0;
};

//! Whether this is the header of a buffer that fits into `bytes`.
bool is_intrakernel_buffer(const IntrakernelHead &head, uint64_t bytes);

class IntrakernelPacker {
 public:
  //! `generation`: of the launch. Units of others are left out.
  IntrakernelPacker(const IntrakernelHead &head, uint32_t generation);

  //! Takes `count` units, as they lie in the buffer. `put(bytes, size)` is called with each piece that is full, and returns whether to
  //! go on.
  template <typename Put>
  bool take(const char *units, size_t count, const Put &put) {
    for (size_t i = 0; i < count; ++i) {
      const char *unit = units + i * head_.stride;
      if (!belongs(unit)) {
        continue;
      }
      uint32_t used = used_slots(unit);
      if (!fits(used) && !flush(put)) {
        return false;
      }
      add(unit, used);
    }
    return true;
  }

  //! The last piece.
  template <typename Put>
  bool flush(const Put &put) {
    if (units_.empty()) {
      return true;
    }
    finish_piece();
    return put(piece_.data(), piece_.size());
  }

  const IntrakernelFound &found() const { return found_; }

 private:
  struct Unit {
    size_t offset;  // in held_
    uint32_t used;
  };
  bool belongs(const char *unit) const;
  uint32_t used_slots(const char *unit) const;
  bool fits(uint32_t used) const;
  void add(const char *unit, uint32_t used);
  void finish_piece();

  IntrakernelHead head_;
  uint32_t generation_;
  uint32_t record_size_;
  IntrakernelFound found_;
  std::vector<Unit> units_;
  std::vector<char> held_;   // the units of the piece, one behind the other
  std::vector<char> piece_;  // as it is to be stored
  uint32_t most_ = 0;        // slots of any of them
  uint64_t used_ = 0;        // of all of them
};

}  // namespace warplens::agent

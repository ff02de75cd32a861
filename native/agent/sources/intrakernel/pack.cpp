// Packs the used part of a buffer.
// Nothing in a buffer is trusted: the program may have written anything there.
#include "pack.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "spool/blob_log.h"

namespace warplens::agent {
namespace {

constexpr uint32_t kRing = 2;  // mode
constexpr uint16_t kVersion = 1;
constexpr uint16_t kHasEnded = 1;
constexpr uint32_t kUnevenFrom = 64;  // slots: smaller ones may stand empty

IntrakernelUnit header_of(const char *unit) {
  IntrakernelUnit header;
  std::memcpy(&header, unit, sizeof(header));
  return header;
}

uint32_t size_of_record(const IntrakernelHead &head) {
  return head.mode == kRing ? 8 : 16;
}

}  // namespace

bool is_intrakernel_buffer(const IntrakernelHead &head, uint64_t bytes) {
  if (head.magic != kIntrakernelMagic || head.version != kVersion || head.header_bytes != sizeof(head) ||
      head.mode > kRing || bytes < sizeof(head)) {
    return false;
  }
  uint64_t stride = sizeof(IntrakernelUnit) + uint64_t{head.slots} * size_of_record(head);
  return head.stride == stride && head.units <= (bytes - sizeof(head)) / stride;
}

IntrakernelPacker::IntrakernelPacker(const IntrakernelHead &head, uint32_t generation)
    : head_(head), generation_(generation), record_size_(size_of_record(head)) {}

bool IntrakernelPacker::belongs(const char *unit) const {
  IntrakernelUnit header = header_of(unit);
  return header.magic == kIntrakernelUnitMagic && header.version == kVersion &&
         header.generation == generation_;
}

// A ring has to keep its length once it went round, and a power of two before.
uint32_t IntrakernelPacker::used_slots(const char *unit) const {
  IntrakernelUnit header = header_of(unit);
  uint32_t used = std::min(header.cursor, head_.slots);
  if ((header.flags & kHasEnded) == 0) {
    // How many there are, readers find out: up to the last that was ever written.
    for (used = head_.slots; used != 0; --used) {
      uint64_t words[2] = {0, 0};
      std::memcpy(words, unit + sizeof(header) + size_t{used - 1} * record_size_, record_size_);
      if ((words[0] | words[1]) != 0) {
        break;
      }
    }
  }
  return head_.mode == kRing ? std::min(std::bit_ceil(std::max(used, 1u)), head_.slots) : used;
}

// Units of a piece have slots as the longest of them: those that differ much are kept apart.
bool IntrakernelPacker::fits(uint32_t used) const {
  uint64_t most = std::max(most_, used);
  uint64_t units = units_.size() + 1;
  uint64_t slots = most * units;
  return units_.empty() ||
         (sizeof(head_) + units * sizeof(IntrakernelUnit) + slots * record_size_ <= BlobLog::kLargest &&
          slots <= 2 * (used_ + used) + kUnevenFrom * units);
}

void IntrakernelPacker::add(const char *unit, uint32_t used) {
  IntrakernelUnit header = header_of(unit);
  size_t size = sizeof(header) + size_t{used} * record_size_;
  units_.push_back({held_.size(), used});
  held_.insert(held_.end(), unit, unit + size);
  most_ = std::max(most_, used);
  used_ += used;
  ++found_.units;
  found_.blocks = std::max(found_.blocks, header.cta == ~uint32_t{0} ? header.cta : header.cta + 1);
  uint64_t last = std::max(header.begin_ns, header.end_ns);
  if (header.begin_ns != 0) {
    found_.first_ns = found_.first_ns == 0 ? header.begin_ns : std::min(found_.first_ns, header.begin_ns);
    found_.last_ns = std::max(found_.last_ns, last);
  }
}

void IntrakernelPacker::finish_piece() {
  most_ = std::max(most_, 1u);  // readers take a buffer without slots for damage
  size_t stride = sizeof(IntrakernelUnit) + size_t{most_} * record_size_;
  piece_.assign(sizeof(head_) + units_.size() * stride, 0);
  IntrakernelHead head = head_;
  head.units = static_cast<uint32_t>(units_.size());
  head.slots = most_;
  head.stride = static_cast<uint32_t>(stride);
  head.generation = generation_;
  head.claimed = 0;
  std::memcpy(piece_.data(), &head, sizeof(head));
  char *to = piece_.data() + sizeof(head);
  for (const Unit &unit : units_) {
    std::memcpy(to, held_.data() + unit.offset, sizeof(IntrakernelUnit) + size_t{unit.used} * record_size_);
    to += stride;
  }
  units_.clear();
  held_.clear();
  most_ = 0;
  used_ = 0;
}

}  // namespace warplens::agent

// Hands buffers to CUPTI and takes them back.
// A buffer is found by a linear search: there are a few per thread, each with thousands of records.
#include "buffers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace warplens::agent {
namespace {

constexpr uint32_t kDiscards = 8;
std::atomic<uint32_t> g_discards[kDiscards];  // how many have each
alignas(64) uint8_t g_discard[kDiscards][CuptiBuffers::kDiscardSize];

// CUPTI relies on zeros. It may have begun records behind those that it says are there.
void empty(uint8_t *buffer, size_t used) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto begin = (reinterpret_cast<uintptr_t>(buffer) + used + page - 1) / page * page;
  auto end = reinterpret_cast<uintptr_t>(buffer) + CuptiBuffers::kSize;
  auto whole = end / page * page;
  if (begin >= whole || madvise(reinterpret_cast<void *>(begin), whole - begin, MADV_DONTNEED) != 0) {
    begin = whole = end;  // locked into memory
  }
  std::memset(buffer, 0, begin - reinterpret_cast<uintptr_t>(buffer));
  std::memset(reinterpret_cast<void *>(whole), 0, end - whole);
}

}  // namespace

// The caller alone has the slot.
uint8_t *CuptiBuffers::hand_out(Slot &slot) {
  if (slot.memory == nullptr) {
    // Of the program's allocator: another tool that takes over CUPTI's callbacks gets this buffer, and may free it.
    slot.memory = static_cast<uint8_t *>(std::calloc(1, kSize));
  }
  uint8_t *memory = slot.memory;
  if (memory != nullptr) {
    taken_.fetch_add(1, std::memory_order_relaxed);
  }
  slot.state.store(memory != nullptr ? kTaken : kFree, std::memory_order_release);
  return memory;
}

uint8_t *CuptiBuffers::take() {
  bool out_of_memory = false;
  for (uint32_t i = 0, count = made(); i < count; ++i) {
    uint32_t free = kFree;
    if (slots_[i].state.load(std::memory_order_relaxed) == kFree &&
        slots_[i].state.compare_exchange_strong(free, kNone, std::memory_order_acquire)) {
      if (uint8_t *memory = hand_out(slots_[i])) {
        return memory;
      }
      out_of_memory = true;
    }
  }
  if (out_of_memory) {
    return nullptr;
  }
  uint32_t next = made_.fetch_add(1, std::memory_order_acq_rel);
  if (next >= kMost) {
    made_.store(kMost, std::memory_order_relaxed);
    return nullptr;
  }
  return hand_out(slots_[next]);
}

uint32_t CuptiBuffers::made() const {
  return std::min(made_.load(std::memory_order_acquire), kMost);
}

CuptiBuffers::Slot *CuptiBuffers::find(const uint8_t *buffer, State state) {
  for (uint32_t i = 0, count = made(); i < count; ++i) {
    if (slots_[i].state.load(std::memory_order_acquire) == state && slots_[i].memory == buffer) {
      return &slots_[i];
    }
  }
  return nullptr;
}

bool CuptiBuffers::claim(const uint8_t *buffer) {
  Slot *slot = find(buffer, kTaken);
  uint32_t taken = kTaken;
  return slot != nullptr && slot->state.compare_exchange_strong(taken, kClaimed, std::memory_order_acq_rel);
}

void CuptiBuffers::give_back(uint8_t *buffer, size_t used) {
  if (Slot *slot = find(buffer, kClaimed)) {
    empty(buffer, std::min(used, kSize));
    taken_.fetch_sub(1, std::memory_order_relaxed);
    slot->state.store(kFree, std::memory_order_release);
  }
}

uint8_t *CuptiBuffers::take_discard() {
  for (uint32_t i = 0; i < kDiscards - 1; ++i) {
    uint32_t none = 0;
    if (g_discards[i].compare_exchange_strong(none, 1, std::memory_order_acquire)) {
      return g_discard[i];
    }
  }
  g_discards[kDiscards - 1].fetch_add(1, std::memory_order_relaxed);
  return g_discard[kDiscards - 1];
}

bool CuptiBuffers::is_discard(const uint8_t *buffer, bool *alone) const {
  if (buffer < g_discard[0] || buffer >= g_discard[0] + sizeof(g_discard)) {
    return false;
  }
  auto i = static_cast<size_t>(buffer - g_discard[0]) / kDiscardSize;
  *alone = i != kDiscards - 1;  // the last one is everybody's
  return true;
}

void CuptiBuffers::give_back_discard(uint8_t *buffer) {
  auto i = static_cast<size_t>(buffer - g_discard[0]) / kDiscardSize;
  if (i != kDiscards - 1) {
    std::memset(g_discard[i], 0, kDiscardSize);
  }
  g_discards[i].fetch_sub(1, std::memory_order_release);
}

}  // namespace warplens::agent

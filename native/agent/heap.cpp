// The agent's own memory for `new`: the program's allocator may be the one that calls us, or be held by the code that a signal
// handler interrupted. Nothing here waits: where another thread is busy, memory is taken afresh and not given back.
//
// The protocol. Free lists are used under g_held, which nobody waits for: without it, take() uses fresh
// memory and release() drops the piece. A signal handler therefore never blocks, at the price of some
// memory. Fresh memory is a fetch_add in the current block; the thread that runs over its end maps the
// next block, and one compare-exchange decides which of several becomes the current one.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <new>

#include "heap.h"
#include "spool/system/memory.h"

// The address sanitizer watches the usual heap.
#if defined(__SANITIZE_ADDRESS__)

namespace warplens::agent {
void renew_heap() {}
}  // namespace warplens::agent

#else

namespace warplens::agent {
namespace {

// In front of each piece; 16 bytes, so that what follows is aligned for anything.
struct alignas(16) Piece {
  size_t size;  // with this head
  Piece *next;  // while it is free
};

constexpr size_t kSmallest = 32;
constexpr size_t kLargest = size_t{128} << 10;  // larger pieces are separate mappings
constexpr size_t kBlock = size_t{256} << 10;
constexpr size_t kClasses = std::bit_width(kLargest) - std::bit_width(kSmallest) + 1;

struct Block {
  std::atomic<size_t> used;
};

std::atomic<Block *> g_block{nullptr};
std::atomic<bool> g_held{false};
Piece *g_free[kClasses];

class Hold {
 public:
  Hold() : mine_(!g_held.exchange(true, std::memory_order_acquire)) {}
  ~Hold() {
    if (mine_) {
      g_held.store(false, std::memory_order_release);
    }
  }
  Hold(const Hold &) = delete;
  Hold &operator=(const Hold &) = delete;
  explicit operator bool() const { return mine_; }

 private:
  bool mine_;
};

size_t class_of(size_t size) {
  return static_cast<size_t>(std::bit_width(size)) - std::bit_width(kSmallest);
}

Piece *fresh(size_t size) {
  for (;;) {
    Block *block = g_block.load(std::memory_order_acquire);
    if (block != nullptr) {
      size_t at = block->used.fetch_add(size, std::memory_order_relaxed);
      if (at + size <= kBlock) {
        return reinterpret_cast<Piece *>(reinterpret_cast<char *>(block) + at);
      }
    }
    auto *next = static_cast<Block *>(map_memory(kBlock));
    if (next == nullptr) {
      return nullptr;
    }
    next->used.store(sizeof(Piece), std::memory_order_relaxed);
    if (!g_block.compare_exchange_strong(block, next, std::memory_order_acq_rel)) {
      unmap_memory(next, kBlock);  // another thread was faster
    }
  }
}

Piece *take(size_t size) {
  {
    Hold hold;
    if (Piece *piece = hold ? g_free[class_of(size)] : nullptr) {
      g_free[class_of(size)] = piece->next;
      return piece;
    }
  }
  return fresh(size);
}

void *allocate(size_t wanted) {
  if (wanted > SIZE_MAX / 2) {
    return nullptr;
  }
  size_t size = std::bit_ceil(std::max(wanted + sizeof(Piece), kSmallest));
  Piece *piece = nullptr;
  if (size > kLargest) {
    size = (wanted + sizeof(Piece) + 4095) / 4096 * 4096;
    piece = static_cast<Piece *>(map_memory(size));
  } else {
    piece = take(size);
  }
  if (piece == nullptr) {
    return nullptr;
  }
  piece->size = size;
  return piece + 1;
}

void release(void *at) {
  if (at == nullptr) {
    return;
  }
  Piece *piece = static_cast<Piece *>(at) - 1;
  if (piece->size > kLargest) {
    unmap_memory(piece, piece->size);
    return;
  }
  Hold hold;
  if (hold) {
    Piece *&head = g_free[class_of(piece->size)];
    piece->next = head;
    head = piece;
  }
}

}  // namespace

void renew_heap() {
  std::fill(std::begin(g_free), std::end(g_free), nullptr);
  g_held.store(false);
}

}  // namespace warplens::agent

// Local to the agent's library (exports.map): the program keeps its own.
void *operator new(size_t size) {
  void *at = warplens::agent::allocate(size);
  if (at == nullptr) {
    throw std::bad_alloc();
  }
  return at;
}

void *operator new(size_t size, const std::nothrow_t &) noexcept {
  return warplens::agent::allocate(size);
}

void *operator new[](size_t size) {
  return operator new(size);
}

void *operator new[](size_t size, const std::nothrow_t &) noexcept {
  return warplens::agent::allocate(size);
}

void operator delete(void *at) noexcept {
  warplens::agent::release(at);
}

void operator delete(void *at, size_t) noexcept {
  warplens::agent::release(at);
}

void operator delete[](void *at) noexcept {
  warplens::agent::release(at);
}

void operator delete[](void *at, size_t) noexcept {
  warplens::agent::release(at);
}

void operator delete(void *at, const std::nothrow_t &) noexcept {
  warplens::agent::release(at);
}

void operator delete[](void *at, const std::nothrow_t &) noexcept {
  warplens::agent::release(at);
}

#endif

// Memory that CUPTI fills with records. It is never given back to the system: CUPTI may write into a buffer until the process ends.
//
// The protocol. A slot goes kFree -> (kNone while it gets memory) -> kTaken while CUPTI has it ->
// kClaimed while its records are read -> kFree. Each step is one compare-exchange, so each has one
// winner: take() by two threads gives two slots, and claim() of one buffer succeeds once. `memory` is
// written before the release to kTaken and never changes afterwards.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace warplens::agent {

class CuptiBuffers {
 public:
  // CUPTI may keep a buffer until it is full, while some of its records are of work that runs: a kill costs as much for each thread.
  static constexpr size_t kSize = size_t{256} << 10;
  static constexpr size_t kDiscardSize = size_t{64} << 10;

  //! [MT] A zeroed buffer of kSize bytes, or null when memory (or their number) is out.
  uint8_t *take();

  //! [MT] One of a few buffers of kDiscardSize bytes for what nobody wants: never null. Where many are out at once, some are shared.
  uint8_t *take_discard();

  //! [MT] CUPTI is done with a buffer: it is the caller's until give_back(). False if take() did not
  //! hand it to CUPTI, or if another thread got the same answer.
  bool claim(const uint8_t *buffer);

  //! [MT] The first `used` bytes of a claimed buffer were records.
  void give_back(uint8_t *buffer, size_t used);

  //! [MT] Whether it is from take_discard(), and whether nobody else writes into it.
  bool is_discard(const uint8_t *buffer, bool *alone) const;
  void give_back_discard(uint8_t *buffer);

  //! [MT] Buffers that CUPTI has.
  uint32_t taken() const { return taken_.load(std::memory_order_relaxed); }

  //! [MT] Asks `is_it` about each of them until it says yes. They may be written meanwhile, or freed by another tool.
  template <typename Function>
  bool any_taken(Function is_it) const {
    for (uint32_t i = 0, count = taken() != 0 ? made() : 0; i < count; ++i) {
      if (slots_[i].state.load(std::memory_order_acquire) == kTaken && is_it(slots_[i].memory)) {
        return true;
      }
    }
    return false;
  }

 private:
  static constexpr uint32_t kMost = 4096;
  enum State : uint32_t { kNone, kFree, kTaken, kClaimed };
  struct Slot {
    std::atomic<uint32_t> state;
    uint8_t *memory = nullptr;  // null: there was none for it yet
  };

  uint8_t *hand_out(Slot &slot);
  Slot *find(const uint8_t *buffer, State state);
  uint32_t made() const;

  Slot slots_[kMost];
  std::atomic<uint32_t> made_;  // slots from here on were never used
  std::atomic<uint32_t> taken_;
};

}  // namespace warplens::agent

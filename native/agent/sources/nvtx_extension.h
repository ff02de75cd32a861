// The modules of NVTX's extensions: each file fills its slots.
#pragma once

#include "drivers/nvtx.h"

namespace warpline::agent {

// The slots of one client for one module; there may be fewer or more than we know.
class Slots {
 public:
  explicit Slots(const nvtxExtModuleSegment_t &segment) : segment_(segment) {}

  template <typename Function>
  void set(size_t id, Function *function) {
    if (id < segment_.slotCount) {
      segment_.functionSlots[id] = reinterpret_cast<intptr_t>(function);
    }
  }

 private:
  const nvtxExtModuleSegment_t &segment_;
};

void fill_payload(Slots slots);
void fill_time(Slots slots);
void fill_deferred(Slots slots);
void fill_counters(Slots slots);
void fill_memory(Slots slots);

}  // namespace warpline::agent

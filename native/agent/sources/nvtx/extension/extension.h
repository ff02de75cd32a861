// The modules of NVTX's extensions: each file fills its slots.
#pragma once

#include "drivers/nvtx.h"

namespace warplens::agent {

// The slots of one client for one module; there may be fewer or more than we know.
class Slots {
 public:
  Slots(intptr_t *functions, size_t count) : functions_(functions), count_(count) {}

  template <typename Function>
  void set(size_t id, Function *function) {
    if (id < count_) {
      functions_[id] = reinterpret_cast<intptr_t>(function);
    }
  }

 private:
  intptr_t *functions_;
  size_t count_;
};

void fill_payload(Slots slots);
void fill_time(Slots slots);
void fill_deferred(Slots slots);
void fill_counters(Slots slots);
void fill_memory(Slots slots);

}  // namespace warplens::agent

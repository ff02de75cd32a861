// Numbers the names of kernels and API functions.
// Programs launch few kernels often, so the name behind a pointer is cached. It is checked each
// time, since a module may be unloaded and another take its place.
#pragma once

#include <cstring>

#include "agent/hooks/cupti/cupti.h"
#include "spool/process_log.h"

namespace warplens::agent {

class CudaNames {
 public:
  //! [HOT] The number of a kernel's name; 0 when it has none, or it cannot be stored.
  uint32_t kernel(ProcessLog &log, const char *name) {
    const Known &known = known_[place_of(name)];
    if (known.at == name && name != nullptr && std::strncmp(known.text, name, known.size) == 0 &&
        name[known.size] == '\0') [[likely]] {
      return known.number;
    }
    return learn_kernel(log, name);
  }

  //! [HOT] The number of a function's name: CUPTI is asked once per function.
  uint32_t function(ProcessLog &log, const Cupti &cupti, CuptiDomain domain, uint32_t cbid) {
    uint32_t number = cbid < kFunctions ? functions_[domain == kCuptiRuntimeApi][cbid] : 0;
    return number != 0 ? number : learn_function(log, cupti, domain, cbid);
  }

 private:
  static constexpr size_t kKnown = 4096;
  static constexpr uint32_t kFunctions = 2048;
  struct Known {
    const char *at;  // CUPTI's
    const char *text;
    uint32_t size;
    uint32_t number;
  };
  static size_t place_of(const char *name) {
    return (reinterpret_cast<uintptr_t>(name) * 0x9e3779b97f4a7c15u) >> 52;
  }
  uint32_t learn_kernel(ProcessLog &log, const char *name);
  uint32_t learn_function(ProcessLog &log, const Cupti &cupti, CuptiDomain domain, uint32_t cbid);

  Known known_[kKnown] = {};
  uint32_t functions_[2][kFunctions] = {};
};

}  // namespace warplens::agent

// Writes names of kernels and API functions when they first appear.
#include "names.h"

#include <cstdio>

namespace warplens::agent {

uint32_t CudaNames::learn_kernel(ProcessLog &log, const char *name) {
  if (name == nullptr || *name == '\0') {
    return 0;
  }
  size_t size = std::strlen(name);
  uint32_t number = log.intern({name, size});
  std::string_view text = log.text(number);
  if (number != 0 && text.size() == size) {  // else it was too long, and is cut
    known_[place_of(name)] = {name, text.data(), static_cast<uint32_t>(size), number};
  }
  return number;
}

uint32_t CudaNames::learn_function(ProcessLog &log, const Cupti &cupti, CuptiDomain domain, uint32_t cbid) {
  const char *name = cupti_callback_name(cupti, domain, cbid);
  char unknown[32];
  if (name == nullptr || *name == '\0') {
    std::snprintf(unknown, sizeof(unknown), "%s %u", domain == kCuptiRuntimeApi ? "cuda" : "cu", cbid);
    name = unknown;
  }
  uint32_t number = log.intern(name);
  if (cbid < kFunctions) {
    functions_[domain == kCuptiRuntimeApi][cbid] = number;
  }
  return number;
}

}  // namespace warplens::agent

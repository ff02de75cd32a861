// What functions that are called through ctypes share: they are visible, and nothing throws across.
#pragma once

#include <cstdint>

#if defined(_WIN32)
#define WARPLENS_API extern "C" __declspec(dllexport)
#else
#define WARPLENS_API extern "C" __attribute__((visibility("default")))
#endif

namespace warplens::desk {

constexpr int64_t kNoMemory = -1;

template <typename Work>
int64_t guarded(const Work &work) noexcept {
  try {
    return static_cast<int64_t>(work());
  } catch (...) {
    return kNoMemory;
  }
}

}  // namespace warplens::desk
